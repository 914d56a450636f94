"""How far one private row moves a step of the single stage, and the gap of an iterate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpadapt._types import FloatArray
from dpadapt.privacy import Hidden, Session
from dpadapt.privacy.statistics import SecondMoment

_SIMPLEX = (1.0, 0.0)  # how its vertices swing: see :mod:`dpadapt.papers.discrepancy.sets`


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
    :mod:`dpadapt.papers.discrepancy.sets` one row moves it by the paired mass of v - v' times the
    range of the entries of g, plus the unpaired mass times how far one entry moves. Vertices that
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
