"""What the curator's weighted rows are asked, with the proof of how far one row can move it.

Every claim of sensitivity of Subsample-Test-Reweigh stands here: gradients
(:mod:`.weighted_slopes`), scores and weights (:mod:`.mistakes`).
"""
