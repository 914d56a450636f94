"""Paper 001 as printed and repaired: its solvers, discrepancies, theorems and certificate.

Bassily, Cortes, Mao and Mohri (2023). :mod:`dpadapt.reweighting` shows the public names.
"""
