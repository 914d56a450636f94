"""Algorithms 1 to 3 of paper 002 (Jain, Thakurta), as printed and repaired.

Ways to ask a model (:mod:`.interactive_methods`), releases (:mod:`.tddl`, :mod:`.tdil`) and their
bounds (:mod:`.error_bounds`). What reads un-noised answers stands in :mod:`.machines`, and claims
of sensitivity in :mod:`.queries`. Found as ``dpadapt.kernels``.
"""
