"""What would a budget buy? The whole fit, rehearsed on public rows before anything is spent."""

from .asking import preview
from .result import Preview, Target

__all__ = ["Preview", "Target", "preview"]
