"""What the pictures and tables of paper 000 have in common."""

from __future__ import annotations

from dpadapt.learning.figures import BLUE, GREY, ORANGE

__all__ = ["LINES", "NAMES"]

LINES: dict[str, tuple[str, str]] = {
    "uniform weights": (GREY, ":"),
    "Frank-Wolfe, tight, own K": (ORANGE, "-."),
    "moments": (BLUE, "-"),
}
NAMES = {"discrepancy": "discrepancy ‖M(q)‖₂", "mse": "test error (MSE x 10⁴)"}
