"""Which papers there are: by number, and by the name of their folder."""

from __future__ import annotations

from importlib import import_module

from .page import Paper

__all__ = ["FOLDERS", "known_papers", "paper_of"]

FOLDERS = {
    "000": "discrepancy",
    "001": "reweighting",
    "002": "kernels",
    "003": "hybrid",
    "004": "mixing",
}


def known_papers() -> str:
    """Numbers and names, as text."""
    return ", ".join(f"{number} ({folder})" for number, folder in FOLDERS.items())


def paper_of(name: str) -> Paper:
    """The paper of this number or name, or an error that lists them."""
    folder = FOLDERS.get(name, name)
    if folder not in FOLDERS.values():
        raise ValueError(f"there is no paper {name!r}; there are {known_papers()}.")
    paper: Paper = import_module(f"reproduce.{folder}.page").PAPER
    return paper
