r"""What this method claims about one replaced row, each claim with its proof.

All of it rests on the private second moment (:class:`dpadapt.privacy.statistics.SecondMoment`): how
far one row moves it, what that does to the gradient of a smoothing, to the steps of the single
stage, and to the discrepancy :math:`\|M_0 - S(q)\|_2` of public weights q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.matrices import row_scores
from dpadapt.discrepancy.minimisation import discrepancy
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.statistics import SecondMoment

_ROUNDING = 1e-11  # of the squared norms: what rounding can add to the change of a moment


@dataclass(frozen=True)
class RowBounds:
    r"""Public bounds from which every sensitivity follows.

    Parameters
    ----------
    private : float
        r, bound on the norm of a private row, its intercept included.
    public : float
        :math:`\hat r`, the largest norm of a public row, its intercept included.
    n_rows : int
        n, the number of private rows.

    Examples
    --------
    >>> RowBounds(private=2.0, public=1.0, n_rows=100).move.__round__(6)
    0.04
    """

    private: float
    public: float
    n_rows: int

    def __post_init__(self) -> None:
        validate.positive("private", self.private)
        validate.positive("public", self.public)
        validate.count("n_rows", self.n_rows)

    @classmethod
    def of(cls, query: SecondMoment, X: FloatArray, n_rows: int) -> RowBounds:
        """Bounds of a private second moment beside public rows X.

        Examples
        --------
        >>> from dpadapt.privacy import Cleaning
        >>> RowBounds.of(SecondMoment(Cleaning(radius=3.0, intercept=4.0)), np.eye(2), 10)
        RowBounds(private=5.0, public=1.0, n_rows=10)
        """
        norms = np.linalg.norm(np.asarray(X, dtype=float), axis=1)
        if not norms.size or not 0 < norms.max() < math.inf:
            raise ValueError("X must hold at least one row that is not zero, and finite numbers.")
        return cls(math.sqrt(query.magnitude), float(norms.max()), max(1, n_rows))

    @property
    def move(self) -> float:
        """Bound on the spectral norm of what one row changes: r^2 / n, and what rounding adds."""
        return self.private**2 / self.n_rows + _ROUNDING * (self.private**2 + self.public**2)


def bounds_of(session: Session, moment: Hidden, X: FloatArray) -> RowBounds:
    """Bounds of a hidden second moment beside public rows X; of its own query and part.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     bounds_of(session, session.hide(SecondMoment(Cleaning(radius=2.0))), np.eye(2))
    RowBounds(private=2.0, public=1.0, n_rows=10)
    """
    return RowBounds.of(moment.statistic, X, session.size(moment.part))


class Smoothing(Protocol):
    """What an algorithm needs to know of a smooth function of M. Sensitivities: replace-one."""

    def value(self, M: FloatArray) -> float:
        """Value at a symmetric matrix. Private if M is."""

    def gradient(self, M: FloatArray) -> FloatArray:
        """Gradient H with respect to M, symmetric. Private if M is."""

    def bracket(self, value: float, d: int) -> tuple[float, float]:
        """Interval that holds the approximated norm of a d x d matrix of this value."""

    def smoothness(self, reach: float) -> float:
        """Modulus with respect to the l1 norm of q, for public rows of norm up to ``reach``."""

    def slope(self, bounds: RowBounds) -> float:
        """Bound on every entry of the gradient in q."""

    def sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves any entry of the gradient in q."""

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the difference of any two entries."""

    def matrix_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves H, in the Frobenius norm."""

    def value_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the value."""

    def printed_sensitivity(self, bounds: RowBounds) -> float:
        """Sensitivity of the gradient's entries as the paper prints it."""


@dataclass(frozen=True, eq=False)
class Scores:
    r"""A score for every public row, as a function of the private moment.

    .. math:: g_i(M_0) = c_i - a\, x_i^T H(M_0 - S) x_i

    with public numbers :math:`c_i` (``offset``), a (``strength``) and S (``public``). A difference
    of two scores moves by at most a times the range of the smoothing's gradient: the
    :math:`c_i` are the same for neighbours.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import PNorm
    >>> Scores(np.eye(2), PNorm(1), np.zeros((2, 2)), np.array([1.0, 0.0]))(np.diag([2.0, 3.0]))
    array([-3., -6.])
    """

    X: FloatArray
    smoothing: Smoothing
    public: FloatArray
    offset: FloatArray
    strength: float = 1.0

    def __call__(self, target: FloatArray) -> FloatArray:
        """Scores for a moment. Private if that is."""
        H = self.smoothing.gradient(target - self.public)
        return np.asarray(self.strength * row_scores(self.X, H) + self.offset)

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """How far one private row moves the difference of two scores."""
        return self.strength * self.smoothing.range_sensitivity(bounds)


def hidden_scores(session: Session, moment: Hidden, scores: Scores, bounds: RowBounds) -> Hidden:
    """Hide the scores of the public rows, to choose one; the range is that of :class:`Scores`.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> scores = Scores(np.eye(2), Softmax(5.0), np.eye(2) / 2, np.zeros(2))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_scores(session, moment, scores, RowBounds(1.0, 1.0, 10))
    >>> round(found.sensitivity, 6)
    0.5
    """
    reach = scores.range_sensitivity(bounds)
    return session.derive(moment, scores, label="Frank-Wolfe vertex", sensitivity=reach)


def hidden_gradient_matrix(
    session: Session, moment: Hidden, smoothing: Smoothing, public: FloatArray, bounds: RowBounds
) -> Hidden:
    """Hide H, the gradient of a smoothing in M; its sensitivity is in the Frobenius norm.

    The proof is that of the smoothing: see :class:`~dpadapt.papers.discrepancy.smoothing.Softmax`.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> facts = (Softmax(5.0), np.eye(2) / 2, RowBounds(1.0, 1.0, 10))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_gradient_matrix(session, moment, *facts)
    >>> found.shape, round(found.sensitivity, 6)
    ((2, 2), 0.5)
    """
    return session.derive(
        moment,
        lambda target: smoothing.gradient(target - public),
        label="gradient matrix",
        sensitivity=smoothing.matrix_sensitivity(bounds),
    )


def hidden_gradient(
    session: Session,
    moment: Hidden,
    smoothing: Smoothing,
    public: FloatArray,
    X: FloatArray,
    bounds: RowBounds,
    *,
    spread: float,
) -> Hidden:
    r"""Hide the gradient in q, all m entries; its sensitivity is Euclidean.

    The entries :math:`-x_i^T H x_i` move together by at most the change of H in the Frobenius norm
    times :func:`gradient_spread`. (The paper has :math:`\sqrt m` times its bound on one.)

    Parameters
    ----------
    spread : float
        ``gradient_spread(X)``, which is the same for every step.

    Examples
    --------
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> from dpadapt.privacy.statistics import SecondMoment
    >>> X = np.eye(2)
    >>> facts = (Softmax(5.0), X / 2, X, RowBounds(1.0, 1.0, 10))
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_gradient(session, moment, *facts, spread=gradient_spread(X))
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 0.5)
    """
    return session.derive(
        moment,
        lambda target: row_scores(X, smoothing.gradient(target - public)),
        label="gradient",
        sensitivity=smoothing.matrix_sensitivity(bounds) * spread,
    )


def gradient_spread(X: FloatArray) -> float:
    r"""Largest Euclidean norm of :math:`(x_i^T E x_i)_i` over symmetric E of Frobenius norm 1.

    .. math:: \sum_i (x_i^T E x_i)^2 \le \sum_i \|x_i\|^2 \|E x_i\|^2
              = Tr\, E (\sum_i \|x_i\|^2 x_i x_i^T) E
              \le \lambda_{max}(\sum_i \|x_i\|^2 x_i x_i^T) \|E\|_F^2,

    and this bound is what is returned; it is at most :math:`\sqrt m \hat r^2`.

    Examples
    --------
    >>> gradient_spread(np.array([[1.0, 0.0], [0.0, 2.0]]))
    4.0
    """
    scaled = X * np.linalg.norm(X, axis=1, keepdims=True)
    return math.sqrt(float(np.linalg.eigvalsh(scaled.T @ scaled)[-1]))


_SIMPLEX = (1.0, 0.0)  # how its vertices swing: see :mod:`dpadapt.papers.discrepancy.single_stage`


class Objective(Protocol):
    """A function f(q, w) of weights and coefficients that depends on a private statistic.

    Attributes
    ----------
    shape : (int, int)
        Number of weights, number of coefficients.
    radius : float
        Of the ball of coefficients.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def radius(self) -> float: ...
    def weight_gradient(self, q: FloatArray, w: FloatArray, statistic: FloatArray) -> FloatArray:
        """Gradient in q, one score for each vertex of the simplex."""

    def coefficient_gradient(
        self, q: FloatArray, w: FloatArray, statistic: FloatArray | None
    ) -> FloatArray:
        """Gradient in w; the statistic is None where ``coefficient_sensitivity`` is 0."""

    def best_coefficients(self, q: FloatArray) -> FloatArray:
        """Minimiser over w for given weights, from public data."""

    def range_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """How far one private row moves the difference of two entries of the gradient in q."""

    def coefficient_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """How far one private row moves the gradient in w, in the Euclidean norm."""

    def printed_sensitivity(self, query: SecondMoment, n_rows: int) -> float:
        """Sensitivity of one entry of the gradient in q as the paper prints it."""


def vertex_range(
    objective: Objective,
    query: SecondMoment,
    n_rows: int,
    swing: tuple[float, float] = _SIMPLEX,
) -> float:
    r"""Range of the scores of a polyhedron's vertices, from those of the gradient in q.

    A difference of two scores is :math:`\langle g, v - v' \rangle`. By the argument of
    :mod:`.single_stage` one row moves it by the paired mass of v - v' times the range of the
    entries of g, plus the unpaired mass times how far one entry moves. Vertices that
    are distributions over rows have the paired mass 1 and nothing unpaired: the objective's own
    range.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.papers.discrepancy.single_stage import AdaptationObjective
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning
    >>> objective = AdaptationObjective(np.eye(2), np.ones(2), Softmax(5.0), radius=1.0)
    >>> query = SecondMoment(Cleaning(radius=1.0))
    >>> round(vertex_range(objective, query, 10), 6), round(
    ...     vertex_range(objective, query, 10, (1.0, 2.0)), 6
    ... )
    (2.0, 6.0)
    """
    paired, alone = swing
    reach = paired * objective.range_sensitivity(query, n_rows)
    if alone == 0:
        return reach
    entry = getattr(objective, "entry_sensitivity", None)
    if entry is None:
        raise ValueError("vertices of different masses need an objective with entry_sensitivity.")
    return float(reach + alone * entry(query, n_rows))


def hidden_weight_gradient(
    session: Session,
    statistic: Hidden,
    objective: Objective,
    scores: Callable[[FloatArray], FloatArray],
    swing: tuple[float, float] = _SIMPLEX,
) -> Hidden:
    """Hide the scores of the vertices, to choose one: :func:`vertex_range`.

    Parameters
    ----------
    scores : callable
        ``objective.weight_gradient`` at public q and w, as a function of the statistic; for
        another polyhedron than the simplex, the scores of its vertices.
    swing : (float, float)
        Of the polyhedron.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.papers.discrepancy.single_stage import AdaptationObjective
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> objective = AdaptationObjective(np.eye(2), np.ones(2), Softmax(5.0), radius=1.0)
    >>> q, w = np.array([0.5, 0.5]), np.zeros(2)
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_weight_gradient(
    ...         session, moment, objective, lambda known: objective.weight_gradient(q, w, known)
    ...     )
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 2.0)
    """
    facts = (objective, statistic.statistic, session.size(statistic.part), swing)
    reach = vertex_range(*facts)
    return session.derive(statistic, scores, label="Frank-Wolfe vertex", sensitivity=reach)


def hidden_coefficient_gradient(
    session: Session, statistic: Hidden, objective: Objective, q: FloatArray, w: FloatArray
) -> Hidden:
    """Hide the gradient in w, where it is private; its sensitivity is the objective's own claim.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from dpadapt.privacy import Cleaning, Private
    >>> objective = SimpleNamespace(  # <w, M_0 e_1>
    ...     coefficient_gradient=lambda q, w, known: known[0],
    ...     coefficient_sensitivity=lambda query, n_rows: query.sensitivity(n_rows),
    ... )
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_coefficient_gradient(session, moment, objective, np.ones(1), np.zeros(2))
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 0.141421)
    """
    return session.derive(
        statistic,
        lambda known: objective.coefficient_gradient(q, w, known),
        label="gradient in w",
        sensitivity=objective.coefficient_sensitivity(
            statistic.statistic, session.size(statistic.part)
        ),
    )


def gap_range(
    objective: Objective,
    query: SecondMoment,
    n_rows: int,
    swing: tuple[float, float] = _SIMPLEX,
    diameter: float | None = None,
) -> float:
    r"""Range of the stationarity gaps of public iterates (q_k, w_k).

    A gap is :math:`\langle g_k, q_k \rangle - \min_i g_{k,i} + G_{w,k}`, g the gradient in q. Its
    first part is the largest of :math:`\langle g_k, q_k - v \rangle` over the vertices v. Each of
    these is a mean of differences of two scores, since :math:`q_k` is a mean of vertices, hence
    moves by at most their range R (:func:`vertex_range`) when one private row is replaced, and so
    does the largest. Where the gradient in w is private with sensitivity t, :math:`G_{w,k}`, the
    largest of its products with :math:`w_k - u` over the ball, adds t times the diameter of the
    ball (or ``diameter``, of another set) to R. Two gaps may move in opposite directions: twice
    that.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.papers.discrepancy.single_stage import AdaptationObjective
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning
    >>> objective = AdaptationObjective(np.eye(2), np.ones(2), Softmax(5.0), radius=1.0)
    >>> round(gap_range(objective, SecondMoment(Cleaning(radius=1.0)), 10), 6)
    4.0
    """
    reach = vertex_range(objective, query, n_rows, swing)
    turn = objective.coefficient_sensitivity(query, n_rows)
    wide = 2 * objective.radius if diameter is None else diameter
    return 2 * (reach + wide * turn)


def hidden_gaps(
    session: Session,
    statistic: Hidden,
    objective: Objective,
    gaps: Callable[[FloatArray], FloatArray],
    swing: tuple[float, float] = _SIMPLEX,
    diameter: float | None = None,
) -> Hidden:
    """Hide the gaps of public iterates, to choose one: :func:`gap_range`.

    Parameters
    ----------
    gaps : callable
        The gaps as a function of the statistic.
    swing, diameter
        Of the polyhedron and of the convex set, if they are not the simplex and the ball.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadapt.papers.discrepancy.single_stage import AdaptationObjective
    >>> from dpadapt.papers.discrepancy.smoothing import Softmax
    >>> from dpadapt.privacy import Cleaning, Private
    >>> objective = AdaptationObjective(np.eye(2), np.ones(2), Softmax(5.0), radius=1.0)
    >>> def gaps(known):  # of one iterate
    ...     scores = objective.weight_gradient(np.array([0.5, 0.5]), np.zeros(2), known)
    ...     return np.array([scores.mean() - scores.min()])
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     round(hidden_gaps(session, moment, objective, gaps).sensitivity, 6)
    4.0
    """
    facts = (objective, statistic.statistic, session.size(statistic.part))
    reach = gap_range(*facts, swing, diameter)
    return session.derive(statistic, gaps, label="choice of iterate", sensitivity=reach)


def discrepancy_move(query: SecondMoment, X: FloatArray, n_rows: int) -> float:
    r"""Sensitivity of the discrepancy of public rows X with public weights.

    Replacing x by x' moves M(q) by :math:`(x x^T - x' x'^T) / n`, which lies between
    :math:`-x' x'^T / n` and :math:`x x^T / n`: the norm moves by :math:`r^2 / n` at most (attained
    where the public weights sit at zero and x' = 0), and by what rounding adds.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> round(discrepancy_move(SecondMoment(Cleaning(radius=2.0)), np.eye(2), 100), 6)
    0.04
    """
    r = math.sqrt(query.magnitude)
    longest = max(r, float(np.linalg.norm(X, axis=1).max()))  # zero rows need no rule of their own
    return RowBounds(r, longest, n_rows).move


def hidden_discrepancy(
    session: Session, moment: Hidden, X: FloatArray, weights: FloatArray
) -> Hidden:
    """Hide the discrepancy of given weights, for Gaussian noise: :func:`discrepancy_move`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     found = hidden_discrepancy(session, moment, np.eye(2), np.array([0.5, 0.5]))
    >>> round(found.sensitivity, 6)
    0.1
    """
    return session.derive(
        moment,
        lambda target: discrepancy(X, weights, target),
        label="discrepancy",
        sensitivity=discrepancy_move(moment.statistic, X, session.size(moment.part)),
    )


def hidden_discrepancies(
    session: Session, moment: Hidden, moments: Sequence[FloatArray], bounds: RowBounds
) -> Hidden:
    r"""Hide the discrepancies of several weights, by their moments S(q), to choose the least.

    Every one moves by at most :math:`r^2 / n` (:func:`discrepancy_move`), one up and another down,
    and the difference of two by at most :math:`2 r^2 / n` (attained), whatever the number of
    candidates.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> with Private([[1.0, 0.0]] * 10).open(epsilon=1.0, delta=1e-6) as session:
    ...     moment = session.hide(SecondMoment(Cleaning(radius=1.0)))
    ...     both = [np.eye(2) / 2, np.diag([1.0, 0.0])]
    ...     found = hidden_discrepancies(session, moment, both, RowBounds(1.0, 1.0, 10))
    >>> found.shape, round(found.sensitivity, 6)
    ((2,), 0.2)
    """
    return session.derive(
        moment,
        lambda target: np.array([np.linalg.norm(target - each, 2) for each in moments]),
        label="choice of weights",
        sensitivity=choice_range(bounds),
    )


def choice_range(bounds: RowBounds) -> float:
    """Twice how far one row moves a discrepancy: one may rise while another falls.

    Examples
    --------
    >>> round(choice_range(RowBounds(1.0, 1.0, 10)), 6)
    0.2
    """
    return 2 * bounds.move
