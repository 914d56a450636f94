r"""A bound on the error in the private population, for any model and any weights: every term named.

Let p give each of m public rows :math:`\alpha / m` and each of n private rows
:math:`(1 - \alpha) / n`; q any weights of the rows, :math:`q_{pub}` the public part of their sum,
:math:`t = \|q - p\|_1`. With probability 1 - beta, for all h of the ball and **all** q at once,

.. math:: L(D_{priv}, h) \le \underbrace{\sum_i q_i \ell_i(h)}_{\text{weighted loss}}
   + \underbrace{q_{pub}\, \hat d}_{\text{discrepancy}}
   + \underbrace{2 G \Lambda \|q\|_2}_{\text{complexity}}
   + \underbrace{3 B t}_{\text{distance}}
   + \underbrace{B (\|q\|_2 + t) \sqrt{\log(1/\eta) / 2}
   + q_{pub} B \sqrt{(1/m + 1/n) \log(1/\eta) / 2}}_{\text{deviation}} + \text{noise}.

**Assumptions.** Private rows are independent draws from their population, as cleaned: no longer
than r, labels clamped to the range that the user states. Where people have several rows, n is the
number of people, who are the draws. :math:`\Lambda`, r and :math:`\alpha` were fixed before looking
at private data. Public rows are as they are: :math:`\Lambda`, r and the units come from them.

**Proof**, given the public rows; L(S) is their mean loss, L(T) that of the private rows.
1. *At p*, which is fixed. :math:`L(D_{priv}, h) = \alpha L(S, h) + \alpha [L(D_{priv}, h) -
L(S, h)] + (1 - \alpha) L(D_{priv}, h)`. By symmetrisation and McDiarmid over T, with probability
:math:`1 - \eta` for all h, :math:`L(D_{priv}, h) \le L(T, h) + 2 R_n + B \sqrt{\log(1/\eta) / 2n}`.
The bracket is at most :math:`dis = \sup_h |L(D_{priv}, h) - L(S, h)|`, a supremum of means, so at
most the mean of :math:`\hat d` (Jensen), which :math:`\hat d` falls short of by more than
:math:`B \sqrt{\log(1/\eta) / 2n}` with probability :math:`\eta` at most (McDiarmid).
2. *Complexity.* By contraction :math:`R_n \le G \Lambda / \sqrt n`, and :math:`2 R_n \le B`.
3. *From p to q.* The losses are in [0, B], so is :math:`\hat d`: :math:`\sum p \ell \le
\sum q \ell + B t`, :math:`\alpha \hat d \le q_{pub} \hat d + B t`. With w = the private part of
the sum of q, :math:`2 (1 - \alpha) R_n \le 2 w G \Lambda / \sqrt n + B t`, and
:math:`w / \sqrt n \le \|q\|_2`. The deviations, :math:`(1 - \alpha) + \alpha \le w + q_{pub} + t`
times :math:`B \sqrt{\log(1/\eta) / 2n}`, are within those above, which have room for a
public sample that is a draw as well.
4. *Noise.* What was released with noise of scale s lies above the truth minus s times the quantile.
The events that fail with probability :math:`\eta` each are two, and one for each noisy number:
:math:`\eta` is beta over their count.

**The printed Theorem 5** has :math:`6 B t + B (\|q\|_2 + 2t) [\sqrt{\log \log_2 (2 / (1 - t))} +
\sqrt{\log(2/\eta) / 2}]` and holds for t < 1. (Erratum: the steps of its own proof add up
to 9 B t.) With the same discrepancy, the bound above is smaller for every q.

**What it says of reweighting.** With the theorem's constants the minimiser is q = p: leaving p
costs 3 B t, and gains at most 2 B t in loss and discrepancy and :math:`2 G \Lambda t \max_i p_i /
\|p\|_2` in complexity, which is at most B t if :math:`\max_i p_i \le \|p\|_2 / 4` (uniform weights:
16 rows). Weights that differ from p, which is what the algorithms of this package choose where
:math:`\kappa_1` is below the largest loss, happen only as a heuristic outside the bound. So does a
choice of :math:`\alpha` by the bound, unless from a public grid with beta divided by its size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpadapt import _validate as validate
from dpadapt.learning.certificate import NoisyNumber, SummedBound, cut_rows
from dpadapt.privacy import Mechanism, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.privacy.mechanisms.counted import LabelledRows

from .labelled_discrepancy import row_length
from .objective import SquaredLoss
from .queries import hidden_loss
from .released_discrepancy import LabelledDiscrepancy

_COUNTED = LabelledRows()
_COUNT_FAILS = 0.02  # of the chance of failure, for the count of rows with a label
_ROUNDING = 1e-9  # how far coefficients may miss their ball

_MEANINGS = {
    "weighted_loss": "squared error on public and private rows, with their weights",
    "discrepancy": "how much more a model may lose on private rows than on public ones",
    "noise": "what the privacy noise may hide of these two",
    "complexity": "what the best of all models of this norm may owe to chance",
    "distance": "for weights other than the reference ones",
    "deviation": "what the samples may differ from their populations by chance",
}


@dataclass(frozen=True)
class ReweightingCertificate(SummedBound):
    """A bound on the expected squared error in the private population; see this module.

    Parameters
    ----------
    weighted_loss, discrepancy, noise, complexity, distance, deviation : float
        The terms; :meth:`terms` says what they are.
    confidence : float
        Probability with which the bound holds, over the samples and the noise.
    ceiling : float
        B, the largest loss that the stated bounds allow at all.
    conditions : tuple of str
        What it rests on, in words: the range of labels that was stated, and where rows are cut.

    Examples
    --------
    >>> parts, rests = (0.1, 0.02, 0.01, 0.2, 0.0, 0.07), ("labels lie between 0 and 1",)
    >>> certificate = ReweightingCertificate(*parts, 0.95, ceiling=4.0, conditions=rests)
    >>> print(certificate)
    With 95% confidence, the expected squared error in the private population, of which the \
private rows are a random sample, is at most 0.4, if (1) labels lie between 0 and 1.
      weighted loss   0.1  squared error on public and private rows, with their weights
      discrepancy    0.02  how much more a model may lose on private rows than on public ones
      noise          0.01  what the privacy noise may hide of these two
      complexity      0.2  what the best of all models of this norm may owe to chance
      distance          0  for weights other than the reference ones
      deviation      0.07  what the samples may differ from their populations by chance
    """

    meanings: ClassVar[Mapping[str, str]] = _MEANINGS

    weighted_loss: float
    discrepancy: float
    noise: float
    complexity: float
    distance: float
    deviation: float
    confidence: float
    ceiling: float
    conditions: tuple[str, ...]


def anchored_bound(
    public_losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    private_loss: tuple[float, float],
    discrepancy: tuple[float, float],
    *,
    alpha: float,
    n_rows: int,
    length: float,
    norm_bound: float,
    label_range: tuple[float, float] = (-1.0, 1.0),
    private_weight: float | None = None,
    confidence: float = 0.95,
) -> ReweightingCertificate:
    r"""Bound the model's error in the private population, from public and released facts: free.

    Parameters
    ----------
    public_losses : array-like of shape (m,)
        Squared errors of the model on the public rows, labels in [-1, 1].
    weights : array-like of shape (m,)
        Public part of q, not negative.
    private_loss, discrepancy : (value, scale)
        The mean loss of the model on private rows and the labelled discrepancy, as released.
    alpha : float
        Fixed beforehand.
    n_rows : int
        n; the number of people where they have several rows.
    length : float
        r, bound on a cleaned row with its intercept.
    norm_bound : float
        :math:`\Lambda`.
    label_range : (float, float), default=(-1, 1)
        What private labels lie in, as stated, before it was mapped to [-1, 1]: the bound is in its
        units.
    private_weight : float, optional
        Sum of the private part of q, the same for every row; None for :math:`1 - \alpha`.
    confidence : float, default=0.95
        1 - beta.

    Examples
    --------
    >>> certificate = anchored_bound(
    ...     np.full(10**6, 0.1), np.full(10**6, 0.5e-6), (0.1, 0.0), (0.01, 0.0),
    ...     alpha=0.5, n_rows=10**6, length=1.0, norm_bound=1.0,
    ... )
    >>> round(certificate.weighted_loss, 6), round(certificate.bound, 3)
    (0.1, 0.118)
    """
    parts = _parts(public_losses, weights, alpha, n_rows, private_weight)
    beta = 1 - validate.fraction("confidence", confidence)
    B = SquaredLoss().bound(length, norm_bound)
    G = SquaredLoss().lipschitz(length, norm_bound)
    scaled = (parts.private * private_loss[1], parts.public * discrepancy[1])
    eta = beta / (2 + sum(scale > 0 for scale in scaled))
    chance = math.sqrt(math.log(1 / eta) / 2)
    shared = 1 / len(np.asarray(weights)) + 1 / n_rows
    low, high = label_range
    unit = (high / 2 - low / 2) ** 2  # of a squared error
    return ReweightingCertificate(
        weighted_loss=unit * (parts.public_loss + parts.private * private_loss[0]),
        discrepancy=unit * parts.public * discrepancy[0],
        noise=unit * -float(ndtri(eta)) * math.fsum(scaled),
        complexity=unit * 2 * G * norm_bound * parts.norm,
        distance=unit * 3 * B * parts.distance,
        deviation=unit
        * B
        * chance
        * (parts.norm + parts.distance + parts.public * math.sqrt(shared)),
        confidence=float(confidence),
        ceiling=unit * B,
        conditions=(
            f"private labels lie between {low:.6g} and {high:.6g}, as you stated (others were "
            "clamped)",
            cut_rows(length),
        ),
    )


def printed_bound(
    public_losses: npt.ArrayLike,
    weights: npt.ArrayLike,
    private_loss: float,
    discrepancy: float,
    *,
    alpha: float,
    n_rows: int,
    length: float,
    norm_bound: float,
    private_weight: float | None = None,
    confidence: float = 0.95,
) -> float:
    r"""The paper's Theorem 5 as printed, for comparison; infinite at :math:`t \ge 1`.

    Takes the arguments of :func:`anchored_bound`, without noise, and ``discrepancy`` as that of the
    populations: the theorem has no term for its estimate.

    Examples
    --------
    >>> facts = dict(alpha=0.5, n_rows=100, length=1.0, norm_bound=1.0)
    >>> losses, weights = np.full(100, 0.1), np.full(100, 0.004)
    >>> round(printed_bound(losses, weights, 0.1, 0.01, **facts), 2)
    4.84
    """
    parts = _parts(public_losses, weights, alpha, n_rows, private_weight)
    eta, t = 1 - validate.fraction("confidence", confidence), parts.distance
    if t >= 1:
        return math.inf
    B = SquaredLoss().bound(length, norm_bound)
    G = SquaredLoss().lipschitz(length, norm_bound)
    chance = math.sqrt(math.log(math.log2(2 / (1 - t)))) + math.sqrt(math.log(2 / eta) / 2)
    return math.fsum(
        [
            parts.public_loss + parts.private * private_loss,
            parts.public * discrepancy,
            2 * G * norm_bound * parts.norm,
            6 * B * t,
            B * (parts.norm + 2 * t) * chance,
        ]
    )


@dataclass(frozen=True, eq=False)
class Certifier:
    r"""The anchored bound for a public sample and a session: two numbers of the private rows.

    Parameters
    ----------
    target : LabelledDiscrepancy
        The public sample, :math:`\Lambda`, and how private rows are cleaned.
    alpha : float
        Fixed beforehand.
    people : int, optional
        How many independent draws the private rows are; by default as many as rows.

    Examples
    --------
    >>> from dpadapt.privacy import Cleaning, Private
    >>> X, y = np.array([[1.0], [-1.0]] * 50_000), np.array([0.5, -0.5] * 50_000)
    >>> cleaning = Cleaning(radius=1.0, label_range=(-1.0, 1.0), unit_labels=True)
    >>> certifier = Certifier(LabelledDiscrepancy(X, y, 1.0, cleaning), alpha=0.5)
    >>> with Private(X, y).open(epsilon=1.0, delta=1e-6) as session:
    ...     grants = session.plan(**certifier.mechanisms(session))
    ...     certificate = certifier.release(session, grants, np.array([0.5]))
    >>> bool(certificate.weighted_loss < 0.01), certificate.informative
    (True, True)
    """

    target: LabelledDiscrepancy
    alpha: float
    people: int | None = None

    def mechanisms(self, session: Session, *, weight: float = 1.0) -> dict[str, Mechanism]:
        """Course the private loss of a model, the rows that have a label, and the discrepancy."""
        hidden = self.target.hide(session)  # moves as far as a loss does
        loss = Gaussian("private loss", hidden.sensitivity, weight=weight)
        size = session.sensitivity(_COUNTED)
        count = Gaussian("rows of the certificate", size, weight=weight, divided=False)
        planned: dict[str, Mechanism] = {"certified_loss": loss, "certified_rows": count}
        if self.alpha > 0:
            found = self.target.mechanism(session, hidden, weight=weight)
            planned["certified_discrepancy"] = found
        return planned

    def _rows(self, session: Session, grants: Any, rare: float) -> tuple[float, float]:
        """Rows that have a label, at least and at most, but for a rare chance."""
        found = float(session.release(grants.certified_rows, session.hide(_COUNTED)))
        reach = -float(ndtri(rare / 2)) * grants.certified_rows.scale
        return max(1.0, min(found - reach, session.n_given)), min(found + reach, session.n_given)

    def release(
        self,
        session: Session,
        grants: Any,
        coefficients: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        confidence: float = 0.95,
    ) -> ReweightingCertificate:
        r"""Certify a model; trades the grants of :meth:`mechanisms`.

        Parameters
        ----------
        coefficients : array-like of shape (d,)
            Public, or released, of norm :math:`\Lambda` at most.
        weights : array-like of shape (m,), optional
            Public part of q; None for the reference weights, where the bound is least.
        """
        X, y, reach = self.target.X, self.target.y, self.target.norm_bound
        w = np.asarray(coefficients, dtype=np.float64)
        if w.shape != X.shape[1:] or not np.linalg.norm(w) <= reach * (1 + _ROUNDING):
            raise ValueError(
                f"coefficients must be {X.shape[1]} numbers of norm {reach:.6g} at most."
            )
        moment, B = session.hide(self.target.query), self.target.loss_bound
        rare = _COUNT_FAILS * (1 - validate.fraction("confidence", confidence))
        least, most = self._rows(session, grants, rare)
        # what was divided by n_rows is at most so many times that, over those that have a label
        fewer = max(1.0, session.n_rows / least)
        part = least / session.n_given  # of the people too, at least: all have as many places
        off = max(fewer, most / session.n_rows) - 1
        hidden = hidden_loss(session, moment, w, reach, B)
        loss = float(session.release(grants.certified_loss, hidden))
        distance = NoisyNumber(0.0, 0.0)
        if self.alpha > 0:
            grant = grants.certified_discrepancy
            found = self.target.release(session, grant, self.target.hide(session))
            distance = NoisyNumber(found + off * B, grant.scale)
        bound = anchored_bound(
            (X @ w - y) ** 2,
            np.full(len(X), self.alpha / len(X)) if weights is None else weights,
            NoisyNumber(min(max(fewer * loss, 0.0), B), fewer * grants.certified_loss.scale),
            distance,
            alpha=self.alpha,
            n_rows=max(1, math.floor((self.people or session.n_given) * part)),
            length=row_length(self.target.cleaning),
            norm_bound=reach,
            label_range=self.target.cleaning.label_range or (-1.0, 1.0),
            confidence=confidence + rare,
        )
        return replace(bound, confidence=confidence)


class _Parts(NamedTuple):
    public_loss: float
    public: float
    private: float
    norm: float
    distance: float


def _parts(
    losses: npt.ArrayLike, weights: npt.ArrayLike, alpha: float, n: int, private: float | None
) -> _Parts:
    """Weighted public loss, sums of q on both sides, its l2 norm, its distance from p."""
    loss, q = np.asarray(losses, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if q.ndim != 1 or not q.size or loss.shape != q.shape or not (q >= 0).all():
        raise ValueError("weights must not be negative, one for each of the public losses.")
    if not 0 <= validate.non_negative("alpha", alpha) <= 1:
        raise ValueError(f"alpha must lie between 0 and 1; got {alpha!r}.")
    rest = 1 - alpha if private is None else validate.non_negative("private_weight", private)
    norm = math.hypot(float(np.linalg.norm(q)), rest / math.sqrt(validate.count("n_rows", n)))
    distance = float(np.abs(q - alpha / len(q)).sum()) + abs(rest - (1 - alpha))
    return _Parts(float(q @ loss), float(q.sum()), rest, norm, distance)
