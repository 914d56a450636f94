"""Read if used: kernel values of rows, and weights of rows."""
