"""Attacks of ``dpadapt audit``: neighbours of a table, replays, the worst pair told apart."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import clone, is_classifier

from dpadapt.audit import replay
from dpadapt.audit.one_run import many_runs_audit
from dpadapt.audit.result import AuditResult, settings_digest
from dpadapt.privacy import Private
from dpadapt.privacy.accounting.calibration import gaussian_mu

from . import screens
from .estimators import is_auto, table_model

if TYPE_CHECKING:
    import pandas as pd

    Pair = tuple[pd.DataFrame, pd.DataFrame]

_EXTREME = 1e6  # beyond every radius: such a row is shortened to its bound
_MOST_PAIRS = 24
_ODD = (1e308, float("nan"), float("inf"), -0.0, 5e-324, None, "text", True)
_MORE_ROWS = 2  # than count, of a person in one of the pairs
MOST_REPLAYS = _MOST_PAIRS + 3 + len(_ODD)
_SURE = 1.96 + 0.84  # standard errors: 95 % confidence, reached four times of five


@dataclass(frozen=True, eq=False)
class AttackedFit:
    """A fit to attack, and public rows for both of its sides.

    Parameters
    ----------
    estimator : estimator
        Not fitted; it is copied for each fit.
    rows : DataFrame
        Public rows: every second one plays a private one.
    labels : ndarray
        Of all rows.
    degree : {1, 2}
    dates : sequence, optional
        Columns to read as dates, if they are not to be found.
    groups : ndarray, optional
        Sub-populations of all rows.
    people : ndarray of int, optional
        Whose each row is, -1 if nobody's, where people are attacked: every second person plays a
        private one. By default rows are.
    max_rows : int
        Rows of a person that count.
    """

    estimator: Any
    rows: pd.DataFrame
    labels: Any
    degree: int = 1
    dates: Sequence[Any] | None = None
    groups: Any = None
    people: Any = None
    max_rows: int = 1

    @property
    def relation(self) -> str:
        """Of the neighbours."""
        if self.people is not None:
            return "replace-unit"
        return str(getattr(self.estimator, "relation", "replace-one"))

    @cached_property
    def plays(self) -> Any:
        """Which rows play private ones."""
        whose = np.arange(len(self.rows)) if self.people is None else self.people
        return (whose % 2 == 1) & (whose >= 0)

    @property
    def played(self) -> pd.DataFrame:
        """Rows that play the private ones; the last columns are whose they are and their label."""
        played = self.rows[self.plays].reset_index(drop=True)
        whose = np.arange(len(played)) if self.people is None else self.people[self.plays]
        played = played.assign(**{_free("person", played): whose})
        return played.assign(**{_free("label", played): self.labels[self.plays]})

    @property
    def counted(self) -> str:
        """Who plays the private ones, with their number."""
        rows = f"{int(self.plays.sum()):,} public rows"
        if self.people is None:
            return rows
        return f"{len(np.unique(self.people[self.plays])):,} people with {rows}"

    def fit(self) -> Callable[[pd.DataFrame], Any]:
        """Return what fits a new model to rows that play the private ones."""
        public, labels = self.rows[~self.plays], self.labels[~self.plays]
        estimator = self.estimator
        if is_auto(estimator):  # the public side is the same in all fits
            from dpadapt.preview.rehearsal import with_facts

            rows = public
            if self.dates is not None:  # then features come before it, and it sees numbers
                features = table_model(public, estimator, dates=self.dates).steps[0][1]
                rows = features.fit_transform(public)
            groups = None if self.groups is None else self.groups[~self.plays]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of experts that did not converge
                facts = estimator.public_facts(rows, labels, groups=groups)
            estimator = with_facts(type(estimator), facts)(**estimator.get_params())
        reads_labels = getattr(estimator, "_reads_labels", True)

        def fit(rows: pd.DataFrame) -> Any:
            X, y = rows.iloc[:, :-2], list(rows.iloc[:, -1]) if reads_labels else None
            whose = {} if self.people is None else {"unit": rows.iloc[:, -2].tolist()}
            private = Private(X, y, **whose, max_rows=self.max_rows if whose else None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                copied, dates = clone(estimator), self.dates
                model = table_model(public, copied, degree=self.degree, dates=dates)
                return model.fit(public, labels, private=private)

        return fit


def runs_that_see_half(epsilon: float, delta: float) -> int:
    """Runs in which noise of half its size would be seen, four times of five.

    The best test of one bit at mu is wrong with probability Phi(-mu / 2) on either side; with half
    of the noise that is Phi(-mu).

    Examples
    --------
    >>> runs_that_see_half(4.0, 1e-6) < 300 < 1000 < runs_that_see_half(1.0, 1e-6)
    True
    """
    mu = gaussian_mu(epsilon, delta)
    wrong, claimed = ndtr(-mu), ndtr(-mu / 2)
    return math.ceil(2 * wrong * (1 - wrong) * (_SURE / (claimed - wrong)) ** 2)


def run_attack(
    target: AttackedFit, *, runs: int, seed: int, told: Callable[[float], None] | None = None
) -> AuditResult:
    """Replay a fit on neighbours, and tell the worst pair apart.

    ``told`` is called after the first replay, with the seconds that all will take if it was like
    the others.
    """
    fit = target.fit()
    classes = np.unique(target.labels) if is_classifier(target.estimator) else None
    pairs = list(_pairs(target, np.random.default_rng(seed), classes))
    found = []
    with bar() as shown:
        task = shown.add_task("replay", total=len(pairs))
        for number, pair in enumerate(pairs):
            began = time.monotonic()
            found.append(replay(fit, *pair, seed=seed))
            if number == 0 and told is not None:
                told((time.monotonic() - began) * (len(pairs) + runs))
            shown.update(task, completed=number + 1)
        if refused := next((each.refused for each in found if each.refused), None):
            raise ValueError(refused)
        worst = int(np.argmax([each.largest for each in found]))
        task = shown.add_task("attack", total=runs)
        bound = many_runs_audit(
            fit,
            *pairs[worst],
            runs=runs,
            seed=seed,
            progress=lambda done, _: shown.update(task, completed=done),
        )
    return AuditResult(
        type(target.estimator).__name__,
        bound.claimed,
        bound.epsilon,
        bound.delta,
        bound.confidence,
        bound.method,
        bound.right,
        bound.guesses,
        len(pairs),
        sum(len(each.moved) for each in found),
        max(each.largest for each in found),
        next((each.diverged for each in found if each.diverged), ""),
        f"{target.counted} that played the private ones",
        settings=settings_digest(target.estimator, target.relation),
        relation=target.relation,
        max_rows=target.max_rows,
    )


def _free(name: str, rows: pd.DataFrame) -> str:
    """A name that no column has."""
    while name in rows.columns:
        name += "_"
    return name


def _pairs(target: AttackedFit, rng: np.random.Generator, classes: Any) -> Iterator[Pair]:
    """Neighbours: one row far out in one direction or in another, and cells of every kind.

    The label goes with them: another class, or a number far out on either side. Where people are
    attacked, it is all rows of one of them; who then also has one row, or more than count. Under
    add-remove the neighbour lacks the row.
    """
    rows = target.played
    person, label = rows.columns[-2:]
    ends = (_EXTREME, -_EXTREME) if classes is None else (classes[0], classes[-1])
    numbers = [name for name in rows.columns[:-2] if rows[name].dtype.kind in "biuf"]
    where = np.flatnonzero(rows[person] == rng.choice(rows[person].unique()))
    directions = [(a, b) for i, a in enumerate(numbers) for b in numbers[i:]]
    chosen = rng.permutation(len(directions))[:_MOST_PAIRS]
    changes: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
    for place, (a, b) in enumerate(directions[int(i)] for i in chosen):
        elsewhere = {a: _EXTREME, b: -_EXTREME} if a != b else {a: 0.0}
        far_out = {a: _EXTREME, b: _EXTREME, label: ends[0]}
        changes.append((far_out, {**elsewhere, label: ends[place % 2]}))
    changes.append(({label: ends[0]}, {label: ends[1]}))
    cells = [*rows.columns[:-2], label]
    changes += [({cells[int(rng.integers(len(cells)))]: odd}, {}) for odd in _ODD]
    for change in changes:
        one, other = (_changed(rows, where, each) for each in change)
        yield one, other.drop(index=list(where)) if target.relation == "add-remove" else other
    if target.relation == "replace-unit":
        one, other = (_changed(rows, where, each) for each in changes[0])
        yield one, other.drop(index=list(where[1:]))
        yield one, _repeated(other, where, target.max_rows + _MORE_ROWS)


def _changed(rows: pd.DataFrame, where: Any, cells: dict[Any, Any]) -> pd.DataFrame:
    out = rows.astype(object)
    for name, cell in cells.items():
        for place in where:
            out.at[place, name] = cell
    return out


def _repeated(rows: pd.DataFrame, where: Any, count: int) -> pd.DataFrame:
    """Rows in which a person has so many: the last of theirs again, at the end of the file."""
    import pandas as pd

    more = max(0, count - len(where))
    return pd.concat([rows, rows.loc[[where[-1]] * more]], ignore_index=True)


def bar() -> Any:
    """Progress on the error stream, gone when it is done."""
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    columns = ("{task.description}", BarColumn(bar_width=20), TimeElapsedColumn())
    return Progress(*columns, console=screens.console(stderr=True), transient=True)
