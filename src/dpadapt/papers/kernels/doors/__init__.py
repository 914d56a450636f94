"""What reads un-noised answers of a private model: machines, their constants, their event.

Under the rules of :mod:`dpadapt.privacy.mechanisms`: a session plans what is on the closed list and
no other.
"""
