"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023)."""
