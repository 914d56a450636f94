"""Doors of several papers: choices among candidates, the best of secret runs, Laplace noise.

They obey the rules of :mod:`dpadapt.privacy.mechanisms`, which shows their names: each with its
event, its sampler and its proof.
"""
