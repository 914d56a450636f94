"""Paper 002 (Jain, Thakurta): private learning with kernels."""
