"""Files that are at one place and whole."""
