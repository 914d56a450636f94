"""The tables and figures of the papers, run again; each paper's data in a file of its own."""
