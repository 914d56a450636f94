"""Private fine-tuning of a linear classifier with a few public examples (paper 004)."""
