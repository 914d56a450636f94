"""One curator with private rows, many people who trust nobody (paper 003: Kohen, Sheffet)."""
