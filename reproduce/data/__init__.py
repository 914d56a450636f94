"""Data that several papers use, and the files that all of them are read from."""
