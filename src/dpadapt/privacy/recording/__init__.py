"""For tests alone: every un-noised value on its way to its noise."""
