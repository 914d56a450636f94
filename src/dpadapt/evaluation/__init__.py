"""Measure a fitted model on private rows it was not trained on, with a guarantee for them."""

from dpadapt.privacy.units import hold_out

from .evaluation import Evaluation, Measured
from .facts import OnPublic
from .intervals import Interval
from .outlook import Limit, Outlook
from .preparation import outlook, outlook_of, public_facts
from .private_error import evaluate

__all__ = [
    "Evaluation",
    "Interval",
    "Limit",
    "Measured",
    "OnPublic",
    "Outlook",
    "evaluate",
    "hold_out",
    "outlook",
    "outlook_of",
    "public_facts",
]
