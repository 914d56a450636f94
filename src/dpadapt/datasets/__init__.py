"""Bundled real data for the demo and the tests."""

from .wages import load_wages, wage_features

__all__ = ["load_wages", "wage_features"]
