"""Private domain adaptation with the help of public data."""

__version__ = "0.1.0"
