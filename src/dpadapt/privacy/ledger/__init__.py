"""Read for operations: the budget of a data set, kept on disk."""
