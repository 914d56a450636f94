"""``python -m reproduce``: run the experiments of a paper again."""

from .command import app

app()
