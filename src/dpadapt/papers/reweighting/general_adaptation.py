r"""Algorithm 2 of the paper, PNCnvxAdap: noisy projected gradient descent on J, for a smooth loss.

With the line numbers of the paper, :math:`\Lambda` the norm bound and p the reference weights::

     1   w_0 = 0 (or the public solution),  u_0 = 1/p
    2-3  sigma_1, sigma_2 as in Algorithm 1 (:mod:`.convex_adaptation`)
     4   eta = 1 / beta~,   beta~ the smoothness of J: :meth:`GeneralAdaptation.smoothness`
     5   for t = 0 ... T - 1:
     6       w <- w - eta (grad_w J(w, u) + z),   z ~ N(0, sigma_1^2)
     7       if |w| > Lambda: w <- Lambda w / |w|
    8-11     u <- max(u - eta (grad_u J(w, u) + z'), 1/p),   z' ~ N(0, sigma_2^2) on private rows
    13   return (w_t*, u_t*) for t* drawn uniformly from 1 ... T

The loop is :meth:`GeneralAdaptation._run`; J is in :mod:`.objective` (:class:`.SmoothPenalty`). t*
is drawn from a public generator: it tells nothing of the rows. :math:`\tilde\beta = \beta + \beta'
+ G (\alpha^2 m^{-3/2} + (1 - \alpha)^2 n^{-3/2})` is Lemma 3's. With "tight" calibration the
gradients by w and u are released together (:class:`.queries.StepClaims`).

**Discrepancy.** The supremum over all models cannot be computed for a general loss, and the value
of a local search must not be released (:func:`~.labelled_discrepancy.difference_of_convex`). What
can be released is the largest :math:`|L_{priv}(h) - L_{pub}(h)|` over a fixed, public, finite set
of models (:func:`.queries.hidden_candidate_discrepancy`). Without such a set (the default) the
public losses get no offset.

With the printed step size in the units of u, u moves even less than in Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.privacy import Cleaning, Mechanism, Rows, Session
from dpadapt.privacy.mechanisms import Gaussian, Laplace

from .convex_adaptation import (
    DISCREPANCY_SHARE,
    Adapted,
    PrivateGradients,
    PrivateSteps,
    active_public,
    check_public,
    check_three,
    objective_gradients,
    project,
    public_weights,
    whole_labelled_sample,
)
from .labelled_discrepancy import row_length
from .objective import LogisticLoss, RowLoss, SmoothPenalty, loss_gradients, reference_weights
from .queries import StepClaims, candidate_sensitivity, hidden_candidate_discrepancy


@dataclass(frozen=True, eq=False)
class GeneralAdaptation:
    r"""A linear model with a smooth loss on reweighted public and private rows by Algorithm 2.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their class codes, 0 ... k - 1; for regression labels in [-1, 1].
    n_classes : int
        k. Two classes have one column of coefficients w (the log-odds), returned as -w/2 and w/2.
        0 for regression, with a loss of its own.
    alpha : float, default=0.5
        Reference weight of the public sample, in [0, 1].
    strengths : (float, float, float), default=(0, 0, 0)
        :math:`\lambda_1, \lambda_2, \lambda_\infty`.
    norm_bound : float, default=1
        :math:`\Lambda`, of the coefficients that are learned, in the Frobenius norm.
    steps : int, optional
        T; None for the theorem's, which grows with n epsilon (not at alpha = 1).
    sharpness : float, optional
        :math:`\mu` of the softmax; None for :math:`10\, m \log(m + n)`, where the smoothed largest
        weight is within a tenth of 1/m of the largest weight.
    start : {"zero", "public"}, default="zero"
        "public": the logistic regression of the public rows within the ball.
    calibration : {"tight", "paper"}, default="tight"
    candidates : ndarray of shape (h, d, k), optional
        Public models, over which the discrepancy is taken; of shape (h, d) for regression.
    seed : int, default=0
        Of the public generator that draws the iterate.
    regression : Loss, optional
        :class:`.HuberLoss`, :class:`.SquaredLoss` or any other; the logistic loss if not given.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> X, codes = np.array([[1.0], [-1.0]] * 500), np.array([1.0, 0.0] * 500)
    >>> algorithm = GeneralAdaptation(X, codes, 2, norm_bound=3.0, steps=100)
    >>> algorithm.minimise(X, codes).coefficients.round(1)
    array([[-1.5,  1.5]])

    >>> cleaning = Cleaning(radius=1.0, classes=2)
    >>> with Private(X, codes).open(epsilon=1.0, delta=1e-6) as session:
    ...     coefficients = algorithm.fit(session, cleaning)
    >>> coefficients.shape, bool(coefficients[0, 1] > 0), session.guarantee.epsilon <= 1.0
    ((1, 2), True, True)
    """

    X: FloatArray
    y: FloatArray
    n_classes: int
    alpha: float = 0.5
    strengths: tuple[float, float, float] = (0.0, 0.0, 0.0)
    norm_bound: float = 1.0
    steps: int | None = None
    sharpness: float | None = None
    start: str = "zero"
    calibration: str = "tight"
    candidates: FloatArray | None = None
    seed: int = 0
    regression: RowLoss | None = None

    def __post_init__(self) -> None:
        check_public(self)
        check_three("strengths", self.strengths)
        if (self.regression is None) is (self.n_classes < 2) or self.n_classes == 1:
            raise ValueError("n_classes must be 0 with a loss for regression, and 2 or more else.")
        if self.regression is not None and np.abs(self.y).max() > 1 + 1e-9:
            raise ValueError("y must lie in [-1, 1].")
        if self.regression is None and not np.isin(self.y, np.arange(self.n_classes)).all():
            raise ValueError(f"y must be class codes from 0 to {self.n_classes - 1}.")
        if self.steps is not None:
            validate.count("steps", self.steps)
        elif self.alpha == 1:
            raise ValueError("steps must be given at alpha = 1: without noise there is no best T.")
        if self.sharpness is not None:
            validate.positive("sharpness", self.sharpness)
        if self.candidates is not None:
            shape, wanted = np.shape(self.candidates), self.X.shape[1:]
            wanted += (self.n_classes,) if self.n_classes else ()
            if len(shape) != 1 + len(wanted) or shape[1:] != wanted or not shape[0]:
                raise ValueError("candidates must have the shape (models, columns of X, classes).")

    @property
    def loss(self) -> RowLoss:
        """The loss."""
        return LogisticLoss(self.n_classes) if self.regression is None else self.regression

    @property
    def width(self) -> int:
        """How many coefficients are learned."""
        return self.X.shape[1] * (self.n_classes if self.n_classes > 2 else 1)

    def fit(self, session: Session, cleaning: Cleaning) -> FloatArray:
        """Spend a whole session; return the coefficients, a column for each class."""
        grants = session.plan(**self.mechanisms(session, cleaning))
        return self.release(session, grants, cleaning).coefficients

    def mechanisms(self, session: Session, cleaning: Cleaning) -> dict[str, Mechanism]:
        """Course the discrepancy (if there are candidates), then the gradients."""
        (n, times), B = whole_labelled_sample(session), self._bound(self._length(cleaning))
        planned: dict[str, Mechanism] = {}
        if self._offset:
            facts = "discrepancy over candidates", times * candidate_sensitivity(B, n)
            planned["discrepancy"] = (
                Laplace(*facts, printed=times * B / n)
                if self.calibration == "paper"
                else Gaussian(*facts, weight=math.sqrt(DISCREPANCY_SHARE))
            )
        if self.alpha < 1:
            planned |= self._steps(session, cleaning).mechanisms(session, self.width)
        if not planned:
            raise ValueError("alpha = 1 without candidates takes nothing from the private rows.")
        return planned

    def release(self, session: Session, grants: Any, cleaning: Cleaning) -> Adapted:
        """Run the algorithm; trades the grants of :meth:`mechanisms`."""
        discrepancy, length = 0.0, self._length(cleaning)
        if self._offset:
            models, bound = self._models(), self._bound(length)
            public = [self._mean_loss(self.X, self.y, w) for w in models]
            rows = session.hide(Rows(cleaning))
            hidden = hidden_candidate_discrepancy(session, rows, self.loss, models, public, bound)
            noisy = session.release(grants.discrepancy, hidden)
            discrepancy = float(np.clip(noisy, 0.0, bound))
        steps = self._steps(session, cleaning)
        private = None
        if self.alpha < 1:
            private = steps.noisy(session, grants, cleaning, self.X.shape[1])
        T, n = steps.steps, session.n_given
        return self._run(private, discrepancy, length=length, n=n, steps=T)

    def minimise(self, X_private: npt.ArrayLike, codes_private: npt.ArrayLike) -> Adapted:
        """NCnvxAdap: the same without noise, for rows that may be looked at; needs ``steps``."""
        X, y = np.asarray(X_private, dtype=np.float64), np.asarray(codes_private, dtype=np.float64)
        if self.steps is None:
            raise ValueError("steps must be given: without noise there is no best T.")
        return self._run(
            lambda w, u: loss_gradients(self.loss, X, y, w, u),
            self._discrepancy(X, y) if self._offset else 0.0,
            length=float(np.linalg.norm(np.concatenate([self.X, X]), axis=1).max()),
            n=len(X),
            steps=self.steps,
        )

    def smoothness(self, length: float, n: int) -> float:
        r""":math:`\tilde\beta`: bound on the norm of the Hessian of J in (w, u)."""
        m, G = len(self.X), self.loss.lipschitz(length, self.norm_bound)
        cross = G * (self.alpha**2 / m**1.5 + (1 - self.alpha) ** 2 / n**1.5)
        block = self._penalty(n).smoothness(self._bound(length), offset=self._offset)
        return self.loss.smoothness(length) + block + cross

    def theorem_steps(self, length: float, n: int, epsilon: float, delta: float) -> int:
        r"""The T of Theorem 4, about :math:`n \epsilon / \sqrt{d \log(1/\delta)}`.

        .. math:: T = \frac{\sqrt{\tilde\beta M}\, \epsilon\, n^{3/2}}
           {(1 - \alpha) \sqrt{\log(2/\delta)} \sqrt{40 G^2 d n + (1 - \alpha)^2 B^2}}

        with M the range of J (:meth:`objective_range`). What it brings: :func:`.theorem_4`.
        """
        rest, M = 1 - self.alpha, self.objective_range(length, n)
        G, B = self.loss.lipschitz(length, self.norm_bound), self._bound(length)
        noise = math.sqrt(math.log(2 / delta) * (40 * G**2 * self.width * n + (rest * B) ** 2))
        size = math.sqrt(self.smoothness(length, n) * M) * epsilon * n**1.5 / (rest * noise)
        return max(1, math.ceil(size))

    def objective_range(self, length: float, n: int) -> float:
        r"""M: how far values of J can be apart.

        :math:`2B + \lambda_1 + \lambda_2 (\alpha / \sqrt m + (1 - \alpha) / \sqrt n) +
        \lambda_\infty \max p`: losses and offset are at most B, and u at least 1/p.
        """
        m, rest, (l1, l2, l3) = len(self.X), 1 - self.alpha, self.strengths
        spread = l2 * (self.alpha / math.sqrt(m) + rest / math.sqrt(n))
        return 2 * self._bound(length) + l1 + spread + l3 * max(self.alpha / m, rest / n)

    @property
    def _offset(self) -> bool:
        return self.candidates is not None and self.alpha > 0

    def _epsilon(self, session: Session) -> float:
        """What the paper leaves for the gradients: half, if there is a discrepancy to release."""
        return session.epsilon / (2 if self._offset else 1)

    def _count(self, session: Session, cleaning: Cleaning) -> int:
        """T."""
        if self.steps is not None:
            return self.steps
        facts = self._epsilon(session), validate.delta(session.delta)
        return self.theorem_steps(self._length(cleaning), session.n_rows, *facts)

    def _steps(self, session: Session, cleaning: Cleaning) -> PrivateSteps:
        """The private part of the loop."""
        n, times = whole_labelled_sample(session)
        claims = StepClaims.of(
            self.loss,
            self._length(cleaning),
            self.norm_bound,
            alpha=self.alpha,
            n=n,
            width=self.width,
            times=times,
        )
        printed = self._epsilon(session) if self.calibration == "paper" else None
        return PrivateSteps(claims, self._count(session, cleaning), printed)

    def _bound(self, length: float) -> float:
        return self.loss.bound(length, self.norm_bound)

    def _length(self, cleaning: Cleaning) -> float:
        length = row_length(cleaning)
        if self.n_classes and cleaning.classes != self.n_classes:
            raise ValueError(f"cleaning must have classes={self.n_classes}.")
        if not self.n_classes and not cleaning.unit_labels:
            raise ValueError("cleaning must have a label_range and unit_labels.")
        if np.linalg.norm(self.X, axis=1).max() > length * (1 + 1e-9):
            raise ValueError("X must be within the bounds that cleaning sets private rows.")
        return length

    def _penalty(self, n: int) -> SmoothPenalty:
        m = len(self.X)
        sharpness = self.sharpness or 10 * m * math.log(m + n)
        return SmoothPenalty(reference_weights(m, n, self.alpha), self.strengths, sharpness)

    def _models(self) -> list[FloatArray]:
        """The candidates as they are learned: in the ball, one column for two classes."""
        assert self.candidates is not None
        models = [np.asarray(one, dtype=np.float64) for one in self.candidates]
        columns = [one[:, 1] - one[:, 0] if self.n_classes == 2 else one for one in models]
        return [project(one, self.norm_bound) for one in columns]

    def _mean_loss(self, X: FloatArray, y: FloatArray, w: FloatArray) -> float:
        return float(self.loss.value(X @ w, y).mean())

    def _discrepancy(self, X: FloatArray, y: FloatArray) -> float:
        models = self._models()
        pairs = [(self._mean_loss(X, y, w), self._mean_loss(self.X, self.y, w)) for w in models]
        return max(abs(private - public) for private, public in pairs)

    def _run(
        self,
        private: PrivateGradients | None,
        discrepancy: float,
        *,
        length: float,
        n: int,
        steps: int,
    ) -> Adapted:
        """Lines 4 to 13; ``private`` is the private part of a gradient, with its noise."""
        loss, penalty = self.loss, self._penalty(n)
        p = penalty.reference
        public, eta = active_public(self.X, self.y, self.alpha), 1 / self.smoothness(length, n)
        chosen = int(np.random.default_rng(self.seed).integers(1, steps + 1))
        w, u = self._first(length), 1 / p
        for _ in range(chosen):  # what comes after it would be thrown away
            grad_w, grad_u = objective_gradients(loss, penalty, public, private, discrepancy, w, u)
            w = project(w - eta * grad_w, self.norm_bound)
            u = np.maximum(u - eta * grad_u, 1 / p)
        coefficients = np.column_stack([-w / 2, w / 2]) if self.n_classes == 2 else w
        return Adapted(coefficients, public_weights(u, len(self.X), self.alpha), discrepancy)

    def _first(self, length: float) -> FloatArray:
        """Zero, or the minimiser of the public loss in the ball by accelerated descent."""
        shape = self.X.shape[1:] + ((self.n_classes,) if self.n_classes > 2 else ())
        w = ahead = np.zeros(shape)
        if self.start == "zero":
            return w
        step, momentum = 1 / self.loss.smoothness(length), 1.0
        for _ in range(500):
            slope = self.X.T @ self.loss.residual(self.X @ ahead, self.y) / len(self.X)
            last, w = w, project(ahead - step * slope, self.norm_bound)
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead, momentum = w + (momentum - 1) / following * (w - last), following
        return w
