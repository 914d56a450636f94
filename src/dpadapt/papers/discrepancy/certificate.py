r"""A bound on the error in the private population, and the label discrepancy that it needs.

**The output-label discrepancy of two labelled samples: the paper's :math:`\eta_H`.**

.. math:: \eta_H(S, T) = \min_{\|w\| \le \Lambda} \max_S |y - w \cdot x| + \max_T |y - w \cdot x|

is 0 where one linear function of norm :math:`\Lambda` gives all labels of both samples; it is what
no bound can do without. Private labels tell it, and they are what discrepancy minimisation does not
have: :func:`label_difference` is for samples that may be looked at, and a certificate rests on what
its user states (:class:`PrivateLabels`). Public rows alone can refute a statement that is too
small: :math:`\eta_H` is at least what their own best linear function leaves.

Without the ball it is a linear program. The ball is approached from outside by tangent planes, and
the rows are taken in as they are violated: each round's program, which knows some of the rows and
some of the planes, gives a lower bound, and its solution, shrunk into the ball, an upper one.

**A bound on the error in the private population, for the model at hand: every term named.**

With probability 1 - beta, for all coefficients :math:`\|w\| \le \Lambda` and all weights q of the
public rows at once, L(P, w) -- the expected squared loss in the private population -- is at most

.. math:: \underbrace{\sum_i q_i (w \cdot x_i - y_i)^2}_{\text{weighted loss}}
   + \underbrace{4 \Lambda^2 \|\hat M(q)\|_2}_{\text{discrepancy}}
   + \underbrace{4 \Lambda^2 s_\beta}_{\text{noise}}
   + \underbrace{\gamma\, \eta_H}_{\text{labels}}
   + \underbrace{4 \sqrt B\, \Lambda r / \sqrt n}_{\text{complexity}}
   + \underbrace{B \sqrt{\log(2 / \beta) / 2n}}_{\text{deviation}},
   \qquad B = (\Lambda r + Y)^2.

**Assumptions.** The n private rows are independent draws from P, *as they enter the session*: P is
the population of cleaned rows z (clipped, scaled, intercept included), :math:`\|z\| \le r`. Where
people have several rows, n is the number of people, who are the draws: a person's loss is the mean
of theirs, in [0, B] too, and the supremum of a mean is at most the mean of suprema. Private labels,
which nobody has seen, are at most Y in size. :math:`\Lambda`, r and Y were fixed before looking at
private data. :math:`\eta_H`, the smallest :math:`\max_S |y - h_0| + \max_T |y - h_0|` over
:math:`h_0` in the ball, and Y are what the caller states (:class:`.PrivateLabels`): there is no
default, since no data that may be looked at can tell them. Public rows are as they are: nothing is
assumed of where they come from. The certificate says all of this in its sentence.

**Proof.** Let T be the private sample.

1. *Complexity and deviation.* With probability :math:`1 - \beta_1`, for all w, :math:`L(P, w) \le
   L(T, w) + 2 R_n(\ell \circ H) + B \sqrt{\log(1/\beta_1) / 2n}` (symmetrisation; McDiarmid, the
   loss lies in [0, B]). It is :math:`2 \sqrt B`-Lipschitz in the prediction, so by Talagrand's
   contraction :math:`R_n(\ell \circ H) \le 2 \sqrt B R_n(H) \le 2 \sqrt B \Lambda r / \sqrt n`.
   (The paper prints :math:`2 B R_n(H)` in all: too small for B < 4.)
2. *Labels.* :math:`(h - y)^2 - (h - h_0)^2 = (h_0 - y)(2h - y - h_0)`, and the last factor is at
   most :math:`\gamma = Y + 3 \Lambda r` in size (the larger of r, Y and their public counterparts).
   Replacing y by :math:`h_0` in T and back in the public sample costs :math:`\gamma \eta_H`. (The
   paper drops :math:`\gamma`.)
3. *Discrepancy.* For labels :math:`h_0`, loss on T minus weighted public loss is
   :math:`(w - w_0)^T M(q) (w - w_0) \le 4 \Lambda^2 \lambda_{max}(M(q))_+`.
4. *Noise.* For a released matrix :math:`\hat M = M_0 + s_0 N`, :math:`\lambda_{max}(M(q)) \le
   \|\hat M(q)\|_2 + s_0 \lambda_{max}(-N)` whatever q is. :math:`E \lambda_{max}(-N) \le \sqrt{2d}`
   (Sudakov and Fernique: :math:`\|uu^T - vv^T\|_F^2 \le 2 \|u - v\|^2`), and
   :math:`\lambda_{max}` is 1-Lipschitz in the Frobenius norm, in which N is isotropic: it exceeds
   :math:`\sqrt{2d} + \sqrt{2 \log(1/\beta_2)}` with probability at most :math:`\beta_2`. A known
   entry, exact instead of noisy, makes the mean and the Lipschitz constant no larger (Jensen). For
   a released number :math:`\|M(q)\|_2 + s Z`, :math:`s_\beta` is s times the normal quantile of
   :math:`1 - \beta_2`.
5. *Union.* The sampling event of 1 and the noise event of 4 fail with probability
   :math:`\beta_1 + \beta_2 = \beta` at most: half each, or all of it on 1 if there is no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.special import ndtri

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.minimisation import discrepancy
from dpadapt.discrepancy.moments import NoisyMoment
from dpadapt.discrepancy.source import Adaptation, Source
from dpadapt.learning.certificate import NoisyNumber, SummedBound, cut_rows
from dpadapt.learning.constraints import NonNegative, ParameterTable, Vector
from dpadapt.learning.strategy import Strategy
from dpadapt.privacy import Cleaning, Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.statistics import SecondMoment

from .queries import discrepancy_move, hidden_discrepancy

_Sample = tuple[npt.ArrayLike, npt.ArrayLike]

_ROUNDS = 200
_PUBLIC_ROUNDS = 30  # rounds that public rows get to refute a statement
_NEAR = 1.05  # the least that they allow is told up to this factor, if that is not too slow
_MORE = 20  # rows of a sample that join the program in a round: those with the largest errors
_SLACK = 1e-6  # of the largest label: what a linear program may miss


class LabelDifference(NamedTuple):
    """How far two samples are from one labelling function.

    Attributes
    ----------
    value : float
        Attained by ``model``: an upper bound.
    lower_bound : float
    model : ndarray of shape (d,)

    Examples
    --------
    >>> LabelDifference(0.5, 0.5, np.zeros(2)).value
    0.5
    """

    value: float
    lower_bound: float
    model: FloatArray


def label_difference(
    public: _Sample, private: _Sample, norm_bound: float, *, tolerance: float = 1e-6
) -> LabelDifference:
    r"""The :math:`\eta_H` of two labelled samples.

    Parameters
    ----------
    public, private : (X, y)
        Rows with an intercept column if there is to be one, and labels.
    norm_bound : float
        :math:`\Lambda`.
    tolerance : float, default=1e-6
        Between the value and its lower bound, in units of the largest label.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0]])
    >>> round(label_difference((X, [1.0, 2.0]), (X, [1.0, 2.0]), 5.0).value, 6)
    0.0
    >>> round(label_difference((X, [1.0, 2.0]), (X, [-1.0, -2.0]), 5.0).value, 6)
    4.0
    """
    validate.positive("norm_bound", norm_bound)
    validate.positive("tolerance", tolerance)
    (X, y), (T, t) = (_checked(name, s) for name, s in (("public", public), ("private", private)))
    d = X.shape[1]
    if T.shape[1] != d:
        raise ValueError(f"private must have the {d} columns of public; got {T.shape[1]}.")
    unit = max(float(np.abs(y).max()), float(np.abs(t).max()), 1e-300)
    found = LabelDifference(math.inf, 0.0, np.zeros(d))
    for found in _narrowed(((X, y), (T, t)), norm_bound, _ROUNDS):
        if found.value - found.lower_bound <= tolerance * unit:
            break
    return found


def least_difference(
    rows: FloatArray, labels: FloatArray, norm_bound: float, *, stated: float
) -> float | None:
    r"""What public rows show :math:`\eta_H` to be at least, if that is more than was stated.

    Examples
    --------
    Labels of -1 and 1 on the same row are 1 away from every function.

    >>> rows, labels = np.ones((2, 1)), np.array([-1.0, 1.0])
    >>> least_difference(rows, labels, 1.0, stated=1.0)
    >>> round(least_difference(rows, labels, 1.0, stated=0.5), 6)
    1.0
    """
    nobody = np.zeros((1, rows.shape[1])), np.zeros(1)
    stated = stated + _SLACK * float(np.abs(labels).max())
    least = 0.0
    for found in _narrowed(((rows, labels), nobody), norm_bound, _PUBLIC_ROUNDS):
        least = found.lower_bound
        if found.value <= stated or (least > stated and found.value < _NEAR * least):
            break
    return least if least > stated else None


def _narrowed(
    samples: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    norm_bound: float,
    rounds: int,
) -> Iterator[LabelDifference]:
    """What is known after 0, 1, ... rounds: bounds that come nearer to each other."""
    d = samples[0][0].shape[1]
    program, model, lower = _Program(d, norm_bound), np.zeros(d), 0.0
    errors = _errors(samples, model)
    best = sum(float(each.max()) for each in errors)
    yield LabelDifference(best, lower, model)
    for _ in range(rounds):
        for side, ((rows, labels), missed) in enumerate(zip(samples, errors, strict=True)):
            worst = np.argsort(missed)[-_MORE:]
            program.add_rows(rows[worst], labels[worst], side)
        solved = program.solve()
        if solved is None:  # a solver that stopped: what is known stands
            return
        w, value = solved
        lower, length = max(lower, value), float(np.linalg.norm(w))
        errors = _errors(samples, w)
        inside = w if length <= norm_bound else w * (norm_bound / length)
        reached = sum(float(each.max()) for each in _errors(samples, inside))
        if reached < best:
            best, model = reached, inside
        yield LabelDifference(best, min(lower, best), model)
        if length > norm_bound:
            program.add_plane(w / length)


def _errors(samples: tuple[tuple[FloatArray, FloatArray], ...], w: FloatArray) -> list[FloatArray]:
    return [np.abs(rows @ w - labels) for rows, labels in samples]


class _Program:
    """Least sum of the two largest errors over some of the rows, within some of the planes."""

    def __init__(self, d: int, norm_bound: float) -> None:
        self.d, self.norm_bound = d, norm_bound
        self.lines: list[FloatArray] = []
        self.limits: list[float] = []

    def add_rows(self, rows: FloatArray, labels: FloatArray, side: int) -> None:
        """Bound the errors of these rows by the largest error of their sample."""
        largest = -np.eye(2)[side]
        for x, y in zip(rows, labels, strict=True):
            self.lines += [np.append(x, largest), np.append(-x, largest)]
            self.limits += [float(y), -float(y)]

    def add_plane(self, direction: FloatArray) -> None:
        """Keep to the side of the ball of its tangent plane in this direction."""
        self.lines.append(np.append(direction, [0.0, 0.0]))
        self.limits.append(self.norm_bound)

    def solve(self) -> tuple[FloatArray, float] | None:
        """Coefficients and value; None if the solver stopped."""
        cost = np.append(np.zeros(self.d), [1.0, 1.0])
        box = [(-self.norm_bound, self.norm_bound)] * self.d + [(0, None)] * 2
        found = linprog(cost, np.array(self.lines), np.array(self.limits), bounds=box)
        if found.x is None or found.fun is None:
            return None
        return np.asarray(found.x[: self.d]), float(found.fun)


def _checked(name: str, sample: _Sample) -> tuple[FloatArray, FloatArray]:
    X, y = (np.asarray(part, dtype=np.float64) for part in sample)
    if X.ndim != 2 or not X.size or y.shape != X.shape[:1] or not np.isfinite(X).all():
        raise ValueError(f"{name} must be rows of finite numbers, and a label for each.")
    if not np.isfinite(y).all():
        raise ValueError(f"{name} must have finite labels.")
    return X, y


_ROUNDING = 1e-9  # how far weights may miss the simplex, and coefficients their ball

_MEANINGS = {
    "weighted_loss": "squared error on the public rows, with the weights that were found",
    "discrepancy": "how far the weighted public rows are from the private ones, as released",
    "noise": "what the privacy noise may hide of that distance",
    "labels": "how far public and private labels may follow different rules, as stated",
    "complexity": "what the best of all models of this norm may owe to chance",
    "deviation": "what the private sample may differ from its population by chance",
}


@dataclass(frozen=True)
class PrivateLabels(Strategy):
    r"""What you state about private labels, which nobody has seen; a certificate rests on it.

    Nothing checks it against private rows. Public rows may refute it, and then there is no
    certificate.

    Parameters
    ----------
    label_range : (float, float)
        Every private label lies between these two numbers.
    label_difference : float
        How far the labels may be from *one* linear function, in units of the label: the largest
        error of that function on a public row plus its largest error on anybody of the private
        population, the paper's :math:`\eta_H`. 0 says that one linear function gives every label
        exactly, public and private. If both populations have the same linear rule and noise of at
        most e, it is 2e; if labels are a coin of -1 and +1, it is 2. The function may be any
        whose coefficients (standardised columns, with the constant, labels counted from the
        public mean) have a norm of at most ``norm_bound``; rows are those of the fit, cut to
        ``radius``.

    Examples
    --------
    >>> PrivateLabels(label_range=(1, 5), label_difference=0.5)
    PrivateLabels(label_range=(1, 5), label_difference=0.5)
    """

    label_range: tuple[float, float]
    label_difference: float
    _constraints: ClassVar[ParameterTable] = {
        "label_range": [Vector(2)],
        "label_difference": [NonNegative()],
    }

    def _check(self) -> None:
        if not self.label_range[0] <= self.label_range[1]:
            raise ValueError(
                f"label_range must be two numbers (low, high); got {self.label_range!r}."
            )

    def bound(self, center: float = 0.0) -> float:
        """Y: the largest size of a private label, counted from ``center``."""
        low, high = self.label_range
        return float(max(abs(low - center), abs(high - center)))

    def conditions(self, norm_bound: float, radius: float) -> tuple[str, ...]:
        """What a bound holds under, in words; ``radius`` is that of a row with its constant."""
        low, high = self.label_range
        return (
            f"private labels lie between {low:.6g} and {high:.6g}, as you stated",
            f"one linear function of norm {norm_bound:.3g} or less has a largest error on public "
            "labels and a largest error on private ones that add up to "
            f"{self.label_difference:.6g} or less, as you stated",
            cut_rows(radius),
        )

    def check(self, source: Source) -> None:
        """Refuse a certificate that cannot be, from public facts, before anything is charged."""
        bound = source.norm_bound
        if source.public_norm > bound * (1 + _ROUNDING):
            raise ValueError(
                f"certificate needs a norm_bound of at least {source.public_norm:.4g}, the norm of "
                f"the coefficients of public data alone; got {bound:.4g}. Nothing was charged."
            )
        least = self.refuted(source.matched, source.centered, bound)
        if least is not None:
            raise ValueError(
                f"certificate: the public rows refute label_difference={self.label_difference:.4g}."
                f" Every linear function of norm {bound:.4g} or less (norm_bound) misses one of "
                f"their labels by {least:.4g} or more. State at least that, and what the function "
                "may miss private labels by on top of it. Nothing was charged."
            )

    def refuted(self, rows: FloatArray, labels: FloatArray, norm_bound: float) -> float | None:
        """:func:`.least_difference` of public rows, if it is more than was stated."""
        return least_difference(rows, labels, norm_bound, stated=self.label_difference)

    def certify(
        self, source: Source, found: Adaptation, slopes: FloatArray, cleaning: Cleaning, people: int
    ) -> Certificate:
        """Bound on the error in the private population of rows as they were released.

        Parameters
        ----------
        source : Source
        found : Adaptation
            Weights, and what was released.
        slopes : ndarray
            Coefficients of the scaled features.
        cleaning : Cleaning
        people : int
            How many draws of the population the private rows are.
        """
        assert found.released is not None
        level = float(source.labels.mean())
        return certify(
            source.matched,
            source.centered,
            found.weights,
            slopes - source.constant(level),
            found.released,
            radius=source.norm_bound,
            private_radius=float(np.hypot(cleaning.radius, cleaning.intercept)),
            n_rows=people,
            stated=self,
            label_center=level,
        )


@dataclass(frozen=True)
class Certificate(SummedBound):
    """A bound on the expected squared error in the private population; see this module.

    Parameters
    ----------
    weighted_loss, discrepancy, noise, labels, complexity, deviation : float
        The terms; :meth:`terms` says what they are.
    confidence : float
        Probability with which the bound holds, over the private sample and the noise.
    ceiling : float
        B, the largest loss that the stated bounds allow at all.
    conditions : tuple of str
        What it rests on, in words: what was stated of private labels, and where rows are cut.

    Examples
    --------
    >>> stated = PrivateLabels(label_range=(-1, 1), label_difference=0.0)
    >>> terms, rests = (0.01, 0.02, 0.01, 0.0, 0.1, 0.06), stated.conditions(1.0, 1.0)
    >>> certificate = Certificate(*terms, confidence=0.95, ceiling=4.0, conditions=rests)
    >>> round(certificate.bound, 6)
    0.2
    >>> print(certificate)
    With 95% confidence, the expected squared error in the private population, of which the \
private rows are a random sample, is at most 0.2, if (1) private labels lie between -1 and 1, as \
you stated; (2) one linear function of norm 1 or less has a largest error on public labels and a \
largest error on private ones that add up to 0 or less, as you stated; (3) rows longer than 1 \
(standardised, with a constant of 1) are cut to that length first.
      weighted loss  0.01  squared error on the public rows, with the weights that were found
      discrepancy    0.02  how far the weighted public rows are from the private ones, as released
      noise          0.01  what the privacy noise may hide of that distance
      labels            0  how far public and private labels may follow different rules, as stated
      complexity      0.1  what the best of all models of this norm may owe to chance
      deviation      0.06  what the private sample may differ from its population by chance
    """

    meanings: ClassVar[Mapping[str, str]] = _MEANINGS

    weighted_loss: float
    discrepancy: float
    noise: float
    labels: float
    complexity: float
    deviation: float
    confidence: float
    ceiling: float
    conditions: tuple[str, ...]


def certify(
    rows: npt.ArrayLike,
    labels: npt.ArrayLike,
    weights: npt.ArrayLike,
    coefficients: npt.ArrayLike,
    released: NoisyMoment | tuple[float, float],
    *,
    radius: float,
    private_radius: float,
    n_rows: int,
    stated: PrivateLabels,
    label_center: float = 0.0,
    confidence: float = 0.95,
) -> Certificate:
    r"""Bound the model's error in the private population, from public and released facts: free.

    Parameters
    ----------
    rows : array-like of shape (m, d)
        Public rows, scaled and with an intercept column, as the moment was.
    labels : array-like of shape (m,)
    weights : array-like of shape (m,)
        q, in the simplex.
    coefficients : array-like of shape (d,)
        w, of norm ``radius`` at most.
    released : NoisyMoment or (value, scale)
        The released moment, or the pair of :func:`release_discrepancy` for these weights.
    radius : float
        :math:`\Lambda`, fixed beforehand: not the norm of coefficients that private data moved.
    private_radius : float
        r, bound on a cleaned private row with its intercept, the root of ``query.magnitude``.
    n_rows : int
        n; the number of people where they have several rows.
    stated : PrivateLabels
        The range of private labels, and :math:`\eta_H`.
    label_center : float, default=0
        What the range of private labels is counted from, as ``labels`` are.
    confidence : float, default=0.95
        1 - beta.

    Examples
    --------
    >>> from dpadapt.privacy import Guarantee
    >>> moment = NoisyMoment(np.diag([0.7, 0.3]), scale=1e-5, guarantee=Guarantee())
    >>> certificate = certify(
    ...     np.eye(2), [0.5, -0.5], [0.7, 0.3], [0.5, -0.5], moment,
    ...     radius=1.0, private_radius=1.0, n_rows=10**6,
    ...     stated=PrivateLabels(label_range=(-1, 1), label_difference=0.0),
    ... )
    >>> round(certificate.complexity, 6), round(certificate.bound, 3)
    (0.008, 0.014)
    """
    X = _array("rows", rows, (None, None))
    y, q = _array("labels", labels, (len(X),)), _simplex(weights, len(X))
    w = _array("coefficients", coefficients, (X.shape[1],))
    reach = validate.positive("radius", radius)
    r = validate.positive("private_radius", private_radius)
    Y = stated.bound(label_center)
    n, beta = validate.count("n_rows", n_rows), 1 - validate.fraction("confidence", confidence)
    if np.linalg.norm(w) > reach * (1 + _ROUNDING):
        raise ValueError(f"coefficients must have a norm of at most radius, {reach:.6g}.")

    distance, noise, failure = _private_part(released, X, q, beta)
    ceiling = (reach * r + Y) ** 2
    longest = max(r, float(np.linalg.norm(X, axis=1).max()))
    spread = max(Y, float(np.abs(y).max())) + 3 * reach * longest
    return Certificate(
        weighted_loss=float(q @ (X @ w - y) ** 2),
        discrepancy=4 * reach**2 * distance,
        noise=4 * reach**2 * noise,
        labels=spread * stated.label_difference,
        complexity=4 * math.sqrt(ceiling) * reach * r / math.sqrt(n),
        deviation=ceiling * math.sqrt(math.log(1 / failure) / (2 * n)),
        confidence=float(confidence),
        ceiling=ceiling,
        conditions=stated.conditions(reach, r),
    )


def planned_discrepancy(
    query: SecondMoment, n_rows: int, weight: float = 1.0, *, rows: npt.ArrayLike
) -> Gaussian:
    r"""Plan a Gaussian release of :math:`\|M(q)\|_2`, for solvers that release no moment.

    Its sensitivity is proved in :func:`.queries.discrepancy_move`.

    Parameters
    ----------
    query : SecondMoment
    n_rows : int
        Number of private rows, ``session.n_rows``.
    weight : float, default=1
        Share of the budget, relative to the other mechanisms of the plan.
    rows : array-like of shape (m, d)
        Public rows, whose size decides what rounding may add.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning
    >>> query = SecondMoment(Cleaning(radius=2.0))
    >>> round(planned_discrepancy(query, 100, rows=np.eye(2)).sensitivity, 6)
    0.04
    """
    X = _array("rows", rows, (None, None))
    move = discrepancy_move(query, X, validate.count("n_rows", n_rows))
    return Gaussian("discrepancy", move, weight=validate.positive("weight", weight))


def release_discrepancy(
    session: Session, grant: Grant, moment: Hidden, rows: npt.ArrayLike, weights: npt.ArrayLike
) -> NoisyNumber:
    """Release the discrepancy of given weights; trades the grant of :func:`planned_discrepancy`.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> query, rows = SecondMoment(Cleaning(radius=1.0)), np.eye(2)
    >>> with Private([[1.0, 0.0]] * 10_000).open(epsilon=1.0, delta=1e-6) as session:
    ...     noisy = planned_discrepancy(query, session.n_rows, rows=rows)
    ...     grant = session.plan(discrepancy=noisy).discrepancy
    ...     found = release_discrepancy(session, grant, session.hide(query), rows, [0.5, 0.5])
    >>> bool(abs(found.value - 0.5) < 8 * found.scale), bool(found.scale < 0.001)
    (True, True)
    """
    X = _array("rows", rows, (None, None))
    q = _simplex(weights, len(X))
    if moment.shape != (X.shape[1], X.shape[1]):
        raise ValueError(f"rows must have the {moment.shape[0]} columns of the private moment.")
    value = session.release(grant, hidden_discrepancy(session, moment, X, q))
    return NoisyNumber(float(value), grant.scale)


def _private_part(
    released: NoisyMoment | tuple[float, float], X: FloatArray, q: FloatArray, beta: float
) -> tuple[float, float, float]:
    """Discrepancy, what noise may hide of it, and beta's share for the sampling event."""
    d = X.shape[1]
    if isinstance(released, NoisyMoment):
        distance = discrepancy(X, q, _array("released", released.matrix, (d, d)))
        scale = released.scale
    else:
        pair = _array("released", released, (2,))
        distance, scale = max(0.0, float(pair[0])), float(pair[1])
    if validate.non_negative("released scale", scale) == 0:
        return distance, 0.0, beta
    share = beta / 2
    if isinstance(released, NoisyMoment):
        quantile = math.sqrt(2 * d) + math.sqrt(2 * math.log(1 / share))
    else:
        quantile = -float(ndtri(share))
    return distance, scale * quantile, share


def _simplex(weights: npt.ArrayLike, m: int) -> FloatArray:
    q = _array("weights", weights, (m,))
    if q.min() < 0 or abs(q.sum() - 1) > _ROUNDING:
        raise ValueError("weights must not be negative, and must sum to 1.")
    return q


def _array(name: str, values: npt.ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Finite float64 array of this shape (None: any size but 0), or an error that names it."""
    array = np.asarray(values, dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        size == (wanted or max(size, 1)) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        wanted = tuple("any" if size is None else size for size in shape)
        raise ValueError(f"{name} must be finite numbers of shape {wanted}; got {array.shape}.")
    return array
