"""The battery that every estimator of the library runs.

Subclass :class:`EstimatorContract`, say how to build the estimator (``make``), and its tests are
inherited. What a fit asks of the noise sources is written on a tape (:func:`taped`), and the tape
of one private sample can be played to a neighbouring one: then the two fits see the same noisy
answers, and what they want to release may differ by the stated sensitivity, no more. That the
battery fails where it should is tested in ``test_contracts_have_power.py``.
"""

from __future__ import annotations

from contracts.battery import EstimatorContract
from contracts.hostile import HOSTILE_CELLS, HOSTILE_LABELS, HOSTILE_ROWS, SECRET_TEXT, SENTINEL
from contracts.ledgers import Refusing, Watching
from contracts.search import Secrets, reachable
from contracts.speech import everything_said, told
from contracts.tape import Draw, paid_by, planned, releases, taped

__all__ = [
    "HOSTILE_CELLS",
    "HOSTILE_LABELS",
    "HOSTILE_ROWS",
    "SECRET_TEXT",
    "SENTINEL",
    "Draw",
    "EstimatorContract",
    "Refusing",
    "Secrets",
    "Watching",
    "everything_said",
    "paid_by",
    "planned",
    "reachable",
    "releases",
    "taped",
    "told",
]
