"""Paper 000: its three algorithms, sets, theorems and certificate; see ``dpadapt.discrepancy``."""
