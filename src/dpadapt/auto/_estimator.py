"""What both estimators share: tables as they are, public facts, a story in plain sentences."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadapt._types import FloatArray
from dpadapt.base import PrivateEstimator, Problem, labelled, read_public
from dpadapt.features.columns import number_ids
from dpadapt.learning.cautions import CautionWarning
from dpadapt.learning.checks import check_private
from dpadapt.learning.constraints import Like, Null, OneOf
from dpadapt.learning.constraints import ParameterTable as Table
from dpadapt.learning.story import Fact, Story, class_facts, label_count_sentence
from dpadapt.learning.tables import known_columns, words_for_tables
from dpadapt.privacy import Private, Session

from .releases import PRIVATE_STEP, ReleaseRecord, StepResult
from .stacking import Reader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST = 1e100  # number in public rows or labels


@dataclass(frozen=True, eq=False)
class AutoProblem(Problem):
    """Public rows, the table that they come from, and the user's groups of them."""

    table: Any = None
    reader: Reader | None = None
    groups: Any = None
    note: str = ""


class AutoEstimator(PrivateEstimator):
    """The fit of both estimators: public experts, their stack, the private step from there."""

    experts: Sequence[Any] | None
    classes: Sequence[Any] | None

    _constraints: ClassVar[Table] = {
        "experts": [Like("be a list of experts, as in ['linear', 'trees']", "__iter__"), Null()],
        "noise": [OneOf("secure", "seeded")],  # a purse is proved for continuous noise
    }

    def fit(self, X: Any, y: Any, *, private: Private | None = None, groups: Any = None) -> Self:
        """Fit to public labelled rows and private ones.

        Parameters
        ----------
        X : DataFrame or array-like of shape (m, d)
            Public rows. In a frame, cells may be texts, categories or missing.
        y : array-like of shape (m,)
            Public labels.
        private : Private, optional
            Private rows with the same columns, and their labels. Without labels, or without
            private rows, the model is the public one and costs nothing.
        groups : array-like of shape (m,), optional
            Sub-populations of the public rows (sites, batches, years): experts are tried on those
            that they have not seen, which rehearses the shift.

        Returns
        -------
        object
            Itself, fitted.
        """
        self._fit(X, y, private, groups=groups)
        self._caution()  # last: whoever makes an error of a warning has the model all the same
        return self

    def _caution(self) -> None:
        """Warn of what the fitted model, which is released, shows on public rows."""

    def _read(self, X: Any, y: Any, private: Any, *, groups: Any = None) -> AutoProblem:
        note = self._why_public(private)
        if not hasattr(X, "iloc"):
            plain = read_public(self, X, y)
            rows = np.ascontiguousarray(plain.X)  # axes keep their signs, whatever the layout was
            return AutoProblem(rows, plain.labels, plain.names, None, Reader(), groups, note)
        validate_data(self, X, skip_check_array=True)
        reader = Reader.of(X)
        numeric = not self._classifies
        cells = reader.rows(X)
        with words_for_tables(cells, y, numbers=numeric):
            rows, labels = check_X_y(cells, y, dtype=np.float64, y_numeric=numeric)
            plain = labelled(self, rows, labels)
        return AutoProblem(rows, plain.labels, plain.names, X, reader, groups, note)

    def _sample(self, problem: AutoProblem, private: Any) -> Private | None:
        if private is not None:
            check_private(private)
        if problem.note:
            return None
        if problem.table is None or problem.reader is None:
            return super()._sample(problem, private)
        sample = problem.reader.private(problem.table, private)
        return sample if problem.names is None else sample.encode(problem.names)

    def _why_public(self, private: Any) -> str:
        """Why private rows are not used; nothing if they are."""
        if private is None:
            return "There were no private rows, so this is the public model. It cost nothing."
        check_private(private)
        if private.n_rows == 0:
            return "The private table has no rows, so this is the public model. It cost nothing."
        if not private.labelled:
            text = (
                "The private rows have no labels. Nothing is learned from them: this is the public "
                "model, and it cost nothing. Give labels, or try DiscrepancyRegressor."
            )
            warnings.warn(text, CautionWarning, stacklevel=5)
            return text
        return ""

    @property
    @abstractmethod
    def _classifies(self) -> bool:
        """Whether labels are classes."""

    @abstractmethod
    def _facts(self, problem: AutoProblem) -> Any:
        """Fit the experts and their stack to public rows."""

    @abstractmethod
    def _step(self, facts: Any, session: Session) -> StepResult:
        """Take the private step."""

    def explain_figure(self) -> Figure:
        """Draw the weights of the experts, what each release cost and said, and what was kept.

        Returns
        -------
        matplotlib.figure.Figure
        """
        check_is_fitted(self, "public_model_")
        weights, kept = (
            dict(self._weights(self.public_model_)),
            getattr(self.no_harm_, "kept", None),
        )
        return draw_releases(self.releases_, weights, self._result(), kept)

    def public_facts(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        """Everything that is computed from public rows before private ones are read.

        Parameters
        ----------
        X : DataFrame or array-like of shape (m, d)
        y : array-like of shape (m,)
        groups : array-like of shape (m,), optional
        """
        return self._facts(self._read(X, y, None, groups=groups))

    def _solve(self, problem: AutoProblem, session: Session | None) -> dict[str, Any]:
        if session is not None:
            check_units(problem)
        facts = self._facts(problem)
        model = deepcopy(facts.model)  # an expert of somebody's own may keep what it is given
        step, labels = StepResult(None, (), None, (problem.note,)), tuple[str, ...]()
        if session is not None:
            step = self._step(facts, session)
            labels = (label_count_sentence(session.guarantee),)
        return {
            "public_model_": model,
            "adapted_": step.adapted,
            "no_harm_": step.no_harm,
            "releases_": step.releases,
            "explain_": (*self._public_sentences(problem, facts), *labels, *step.sentences),
            **self._more(problem, facts, step),
        }

    def _more(self, problem: AutoProblem, facts: Any, step: StepResult) -> dict[str, Any]:
        """Fitted attributes of one of the estimators alone."""
        return {}

    def _public_sentences(self, problem: AutoProblem, facts: Any) -> tuple[str, ...]:
        parts = self._weighed(facts.model)
        sentences = [f"The public model is a stack of experts on {len(problem.X):,} rows: {parts}."]
        sentences.extend(_constant(problem.table, facts.model))
        for role in () if problem.table is None else number_ids(problem.table):
            sentences.append(
                f"The column {role.name} {role.why}, and was used all the same: leave it out if it "
                "is one."
            )
        return tuple(sentences)

    def _weighed(self, model: Any) -> str:
        """Experts by name, with their weights."""
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self._weights(model))

    def _weights(self, model: Any) -> list[tuple[str, float]]:
        names = self._expert_names()
        if len(names) != len(model.weights):
            names = ["directions"]  # few public rows have one expert of their own
        return list(zip(names, map(float, model.weights), strict=True))

    def _expert_names(self) -> list[str]:
        return [each if isinstance(each, str) else type(each).__name__ for each in self._kinds]

    @property
    def _kinds(self) -> Sequence[Any]:
        """Experts by name or as they were given."""
        raise NotImplementedError

    def _rows(self, X: Any) -> FloatArray:
        """Rows to predict for, as numbers, with their columns clipped."""
        check_is_fitted(self, "public_model_")
        model = self.public_model_
        X = known_columns(self, X)
        if model.reader.transformer is None:
            rows = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            validate_data(self, X, skip_check_array=True, reset=False)
            rows = model.reader.rows(X)
        return model.rows(rows)

    def _story(self) -> Story:
        weights = self._weighed(self.public_model_)
        facts = (Fact("experts", weights, "weights of the public models in the start"),)
        return Story(
            " ".join(self.explain_),
            (*facts, *class_facts(self)),
            reads_labels=bool(self.guarantee_.events),
            result=self._result(),
            parts={
                PRIVATE_STEP: tuple((each.name, each.share, each.times) for each in self.releases_)
            },
        )

    def _result(self) -> str:
        """What became of the public model, in a sentence, from released values."""
        if not self.guarantee_.events:
            return "Kept the public model: no private row was used."
        if self.no_harm_ is None:
            return "Moved away from the public model; what that gains was not looked at."
        return str(self.no_harm_.result)


def check_units(problem: Problem) -> None:
    """Refuse units in which squares overflow or underflow, before anything is paid for.

    Examples
    --------
    >>> check_units(Problem(np.ones((3, 1)), np.arange(3.0)))
    >>> check_units(Problem(np.ones((3, 1)), 1e-160 * np.arange(3.0)))
    Traceback (most recent call last):
        ...
    ValueError: y must be in units in which no number is above 1e+100, and the largest less the \
smallest is 0 or at least 1e-100; multiply it by a constant.
    """
    columns = {"y": problem.labels[:, None], "X": problem.X}
    for name, values in columns.items():
        spread = np.ptp(values, axis=0)
        if np.abs(values).max() > _LARGEST or ((spread > 0) & (spread < 1 / _LARGEST)).any():
            raise ValueError(
                f"{name} must be in units in which no number is above {_LARGEST:g}, and the "
                f"largest less the smallest is 0 or at least {1 / _LARGEST:g}; multiply it by a "
                "constant."
            )


def _constant(table: Any, model: Any) -> Iterator[str]:
    """Say what is left out as constant: columns of a table by name, not what is made of others."""
    if table is None:  # perhaps made of a table by somebody else
        same = model.low == model.high
        count = int(same.sum())
        which = f"{count} of {len(same)} features"
    else:
        names = [str(name) for name in table.columns if _one_value(table[name])]
        count = len(names)
        which = f"The column{'s' * (count > 1)} {', '.join(names)}"
    if count > 1:
        yield (
            f"{which} are constant in public rows, which say nothing about them, and are left out."
        )
    elif count:
        yield f"{which} is constant in public rows, which say nothing about it, and is left out."


def _one_value(column: Any) -> bool:
    try:
        return bool(column.nunique(dropna=False) <= 1)
    except TypeError:  # cells that are lists
        return bool(column.astype(str).nunique(dropna=False) <= 1)


# the picture

_WIDE, _LINE = 58, 120  # letters of a line beside a bar, and above all
_BESIDE, _RIGHT = 1.35, 4.0  # where texts begin, and where the axes end
_BLUE, _ORANGE, _GREEN = "#4c78a8", "#f58518", "#2e7d32"


def draw_releases(
    releases: tuple[ReleaseRecord, ...],
    experts: dict[str, float],
    result: str = "",
    kept: float | None = None,
) -> Figure:
    """Weights of the experts, what each release cost and said, and what was kept.

    Parameters
    ----------
    releases : tuple of ReleaseRecord
    experts : dict
        Weight of each public expert, by name.
    result : str
        What became of the public model, in a sentence.
    kept : float, optional
        Part of the private move that was kept.

    Examples
    --------
    >>> figure = draw_releases((ReleaseRecord("level", 1.0, "94% of it is kept"),), {"linear": 1.0})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Public experts', 'Private releases: share of the budget, and what was found']
    """
    from dpadapt.learning.figures import blank, literal_text, set_title

    bars = [(each.name, each.share, each.said, _ORANGE) for each in releases]
    if kept is not None:
        bars.append(("kept", kept, "part of the private move that is in the model", _GREEN))
    said = [_wrapped(each[2], _WIDE) for each in bars]
    lines = sum(max(2, each.count("\n") + 1) for each in said)
    height = 1.2 + max(0.22 * lines, 0.45 * len(experts))
    figure, (left, right) = blank(11, height, columns=2)
    left.get_gridspec().set_width_ratios([1, 2.6])
    left.barh([literal_text(each) for each in experts], list(experts.values()), color=_BLUE)
    left.invert_yaxis()
    left.set_xlim(0, max(1.0, *experts.values()))
    left.grid(False)
    set_title(left, "Public experts")
    _bars(right, bars, said)
    set_title(right, "Private releases: share of the budget, and what was found")
    if result:
        figure.suptitle(_wrapped(result, _LINE), x=0.01, ha="left", fontsize=11)
    return figure


def _wrapped(text: str, width: int) -> str:
    """Words of ours in lines, in which nothing is a formula."""
    return "\n".join(wrap(text.replace("$", r"\$"), width))


def _bars(axes: Any, bars: list[tuple[str, float, str, str]], said: list[str]) -> None:
    """Bars from 0 to 100 %, with a text beside each where no bar or line reaches."""
    places = range(len(bars))
    axes.barh(places, [each[1] for each in bars], color=[each[3] for each in bars], height=0.6)
    axes.set_yticks(places, labels=[each[0] for each in bars])
    for place, each, text in zip(places, bars, said, strict=True):
        axes.text(each[1] + 0.02, place, f"{each[1]:.1%}", va="center", fontsize=9)
        axes.text(_BESIDE, place, text, va="center", fontsize=9)
    axes.invert_yaxis()
    axes.grid(False)
    axes.set_xlim(0, _RIGHT)
    axes.set_xticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
    axes.spines["bottom"].set_bounds(0, 1)
    axes.tick_params(axis="y", length=0)
