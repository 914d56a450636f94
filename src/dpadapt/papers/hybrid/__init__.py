"""Subsample-Test-Reweigh (paper 003: Kohen, Sheffet), as printed and repaired.

The estimator (:mod:`.subsample_test_reweigh`), its rounds, learners, schedules and tests by agents,
the sizes of its theorems, and what is not private. What reads the curator's rows stands in
:mod:`.doors`, and claims of sensitivity in :mod:`.queries`. Found as ``dpadapt.hybrid``.
"""
