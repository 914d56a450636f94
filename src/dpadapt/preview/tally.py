"""Which classes the rehearsed models predict: a low error rate may hide a class that none finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_HARDLY = 1 / 3  # of its rows: a class that is predicted less often is hardly ever predicted


@dataclass(eq=False)
class Tally:
    """Counts of test rows over all rehearsals.

    Parameters
    ----------
    classes : ndarray of shape (k,)
    rows : int
        Test rows, once for each rehearsal.

    Examples
    --------
    >>> tally = Tally(np.array(["no", "yes"]))
    >>> tally.add(np.array(["no"] * 9 + ["yes"]), np.array(["no"] * 10))
    >>> print(next(tally.sentences())[:72])
    Class 'yes' is never predicted in the rehearsals: 10.0% of their test ro
    """

    classes: Any
    rows: int = 0
    counts: Any = field(init=False)
    predicted: Any = field(init=False)
    found: Any = field(init=False)

    def __post_init__(self) -> None:
        self.counts, self.predicted, self.found = np.zeros((3, len(self.classes)), dtype=np.int64)

    def add(self, labels: Any, answers: Any) -> None:
        """Count one rehearsal: true classes of test rows, and what was predicted for them."""
        for each in (labels, answers):
            place = self.counts if each is labels else self.predicted
            place += self._count(each)
        self.found += self._count(np.asarray(labels)[np.asarray(labels) == np.asarray(answers)])
        self.rows += len(labels)

    def _count(self, labels: Any) -> Any:
        return np.bincount(np.searchsorted(self.classes, labels), minlength=len(self.classes))

    def sentences(self) -> Iterator[str]:
        """What is told of classes that are hardly ever predicted."""
        for place in np.flatnonzero((self.counts > 0) & (self.predicted < _HARDLY * self.counts)):
            ever = "never" if self.predicted[place] == 0 else "hardly ever"
            yield (
                f"Class {str(self.classes[place])!r} is {ever} predicted in the rehearsals: "
                f"{self.counts[place] / self.rows:.1%} of their test rows are of it, "
                f"{self.predicted[place] / self.rows:.1%} are predicted to be, and "
                f"{self.found[place] / self.counts[place]:.0%} of its rows are found. The error "
                "rate hides that. If missing one is worse than a false alarm, predict with a "
                "threshold (--threshold), or fit with --class-weight balanced."
            )
