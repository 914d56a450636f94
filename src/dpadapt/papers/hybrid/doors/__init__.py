"""What reads the curator's rows: weights, weighted sums, draws, descents, loans, parities.

Each with its event, its sampler and its proof, under the rules of
:mod:`dpadapt.privacy.mechanisms`: a session plans what is on the closed list and no other.
"""
