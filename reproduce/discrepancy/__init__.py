"""Paper 000 (Bassily, Mohri, Suresh 2023): adaptation by the least discrepancy."""
