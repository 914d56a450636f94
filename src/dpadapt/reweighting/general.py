r"""Algorithm 2 of the paper (PNCnvxAdap): noisy projected gradient descent on J, for a smooth loss.

The loop and the noise are those of Algorithm 1 (:mod:`.convex`); the step size is
:math:`1 / \tilde\beta` for w and u alike, with :math:`\tilde\beta = \beta + \beta' + G (\alpha^2
m^{-3/2} + (1 - \alpha)^2 n^{-3/2})` a bound on the smoothness of J (Lemma 3), and the result is the
iterate :math:`(w_t, u_t)` of a step t drawn uniformly from 1 ... T. The index is drawn from a
public generator: it tells nothing of the rows.

The gradients by w and u are released together ("tight"), with a joint sensitivity of
:math:`\sqrt 2` in units of :math:`s_1` and :math:`s_2`: for a general loss, a row with a gradient
of full length may have any loss.

**Discrepancy.** The supremum over all models cannot be computed for a general loss, and the value
of a local search must not be released (:func:`~.labelled_discrepancy.difference_of_convex`). What
can be released is the largest :math:`|L_{priv}(h) - L_{pub}(h)|` over a fixed, public, finite set
of models: each moves by B/n at most, and so does the largest. Without such a set (the default) the
public losses get no offset.

With the printed step size in the units of u, u moves even less than in Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from dpadapt.privacy import Cleaning, Grant, Request, Session
from dpadapt.privacy import _validate as validate

from ._descent import (
    DISCREPANCY_SHARE,
    Adapted,
    Array,
    PrivateGradients,
    Scales,
    active_public,
    check_public,
    check_three,
    descend,
    private_gradients,
    project,
    public_weights,
    whole_sample,
)
from .labelled_discrepancy import row_length
from .objective import LogisticLoss, SmoothPenalty, reference_weights

__all__ = ["GeneralAdaptation"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class GeneralAdaptation:
    r"""Logistic regression on reweighted public and private rows by Algorithm 2.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled and with an intercept column.
    y : ndarray of shape (m,)
        Their class codes, 0 ... k - 1.
    n_classes : int
        k. Two classes have one column of coefficients w (the log-odds), returned as -w/2 and w/2.
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
        Public models, over which the discrepancy is taken.
    seed : int, default=0
        Of the public generator that draws the iterate.

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

    X: Array
    y: Array
    n_classes: int
    alpha: float = 0.5
    strengths: tuple[float, float, float] = (0.0, 0.0, 0.0)
    norm_bound: float = 1.0
    steps: int | None = None
    sharpness: float | None = None
    start: str = "zero"
    calibration: str = "tight"
    candidates: Array | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_public(self)
        check_three("strengths", self.strengths)
        if not np.isin(self.y, np.arange(self.loss.n_classes)).all():
            raise ValueError(f"y must be class codes from 0 to {self.n_classes - 1}.")
        if self.steps is not None:
            validate.count("steps", self.steps)
        elif self.alpha == 1:
            raise ValueError("steps must be given at alpha = 1: without noise there is no best T.")
        if self.sharpness is not None:
            validate.positive("sharpness", self.sharpness)
        if self.candidates is not None:
            shape = np.shape(self.candidates)
            if len(shape) != 3 or shape[1:] != (self.X.shape[1], self.n_classes) or not shape[0]:
                raise ValueError("candidates must have the shape (models, columns of X, classes).")

    @property
    def loss(self) -> LogisticLoss:
        """The loss."""
        return LogisticLoss(self.n_classes)

    @property
    def width(self) -> int:
        """How many coefficients are learned."""
        return self.X.shape[1] * (1 if self.n_classes == 2 else self.n_classes)

    def fit(self, session: Session, cleaning: Cleaning) -> Array:
        """Spend a whole session; return the coefficients, a column for each class."""
        grants = session.plan(*self.requests(session, cleaning))
        return self.release(session, grants, cleaning).coefficients

    def requests(self, session: Session, cleaning: Cleaning) -> list[Request]:
        """Ask for the discrepancy (if there are candidates), then for the gradients."""
        n, B = whole_sample(session), self._bound(self._length(cleaning))
        label, printed = "discrepancy over candidates", self.calibration == "paper"
        asked = []
        if self._offset:  # a mean of n losses, with what rounding does to it on either neighbour
            reach = B / n + 2 * (n + 8) * _EPS * B + 1e-9 * B / n
            if printed:
                asked.append(Request("laplace", label, reach, printed=B / n))
            else:
                share = math.sqrt(DISCREPANCY_SHARE)
                asked.append(Request("gaussian", label, reach, weight=share))
        if self.alpha < 1:
            asked += self._scales(session, cleaning).requests(
                session,
                joint=math.sqrt(2),
                width=self.width,
                steps=self._steps(session, cleaning),
                printed=self._epsilon(session) if printed else None,
            )
        if not asked:
            raise ValueError("alpha = 1 without candidates takes nothing from the private rows.")
        return asked

    def release(self, session: Session, grants: Sequence[Grant], cleaning: Cleaning) -> Adapted:
        """Run the algorithm; trades the grants of :meth:`requests`."""
        discrepancy, left = 0.0, list(grants)
        length = self._length(cleaning)
        if self._offset:
            grant, rows = left.pop(0), session.hide_rows(cleaning)
            mechanism = (
                session.gaussian if grant.request.mechanism == "gaussian" else session.laplace
            )
            noisy = mechanism(grant, rows, lambda t: self._discrepancy(t[:, :-1], t[:, -1]))
            discrepancy = float(np.clip(noisy, 0.0, self._bound(length)))
        scales = self._scales(session, cleaning)
        private = scales.noisy(session, left, self.loss, cleaning, self.X.shape[1])
        steps = self._steps(session, cleaning)
        return self._run(private, discrepancy, length=length, n=session.n_rows, steps=steps)

    def minimise(self, X_private: npt.ArrayLike, codes_private: npt.ArrayLike) -> Adapted:
        """NCnvxAdap: the same without noise, for rows that may be looked at; needs ``steps``."""
        X, y = np.asarray(X_private, dtype=np.float64), np.asarray(codes_private, dtype=np.float64)
        if self.steps is None:
            raise ValueError("steps must be given: without noise there is no best T.")
        return self._run(
            lambda w, u: private_gradients(self.loss, X, y, w, u),
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

        with M = :math:`2B + \lambda_1 + \lambda_2 (\alpha / \sqrt m + (1 - \alpha) / \sqrt n) +
        \lambda_\infty \max p` the range of J.
        """
        m, rest, (l1, l2, l3) = len(self.X), 1 - self.alpha, self.strengths
        G, B = self.loss.lipschitz(length, self.norm_bound), self._bound(length)
        spread = l2 * (self.alpha / math.sqrt(m) + rest / math.sqrt(n))
        M = 2 * B + l1 + spread + l3 * max(self.alpha / m, rest / n)
        noise = math.sqrt(math.log(2 / delta) * (40 * G**2 * self.width * n + (rest * B) ** 2))
        size = math.sqrt(self.smoothness(length, n) * M) * epsilon * n**1.5 / (rest * noise)
        return max(1, math.ceil(size))

    @property
    def _offset(self) -> bool:
        return self.candidates is not None and self.alpha > 0

    def _epsilon(self, session: Session) -> float:
        """What the paper leaves for the gradients: half, if there is a discrepancy to release."""
        return session.epsilon / (2 if self._offset else 1)

    def _steps(self, session: Session, cleaning: Cleaning) -> int:
        if self.steps is not None:
            return self.steps
        facts = self._epsilon(session), validate.delta(session.delta)
        return self.theorem_steps(self._length(cleaning), session.n_rows, *facts)

    def _bound(self, length: float) -> float:
        return self.loss.bound(length, self.norm_bound)

    def _length(self, cleaning: Cleaning) -> float:
        length = row_length(cleaning)
        if cleaning.classes != self.n_classes:
            raise ValueError(f"cleaning must have classes={self.n_classes}.")
        if np.linalg.norm(self.X, axis=1).max() > length * (1 + 1e-9):
            raise ValueError("X must be within the bounds that cleaning sets private rows.")
        return length

    def _scales(self, session: Session, cleaning: Cleaning) -> Scales:
        length = self._length(cleaning)
        return Scales.of(
            G=self.loss.lipschitz(length, self.norm_bound),
            B=self._bound(length),
            alpha=self.alpha,
            n=whole_sample(session),
            width=self.width,
        )

    def _penalty(self, n: int) -> SmoothPenalty:
        m = len(self.X)
        sharpness = self.sharpness or 10 * m * math.log(m + n)
        return SmoothPenalty(reference_weights(m, n, self.alpha), self.strengths, sharpness)

    def _models(self) -> list[Array]:
        """The candidates as they are learned: in the ball, one column for two classes."""
        assert self.candidates is not None
        models = [np.asarray(one, dtype=np.float64) for one in self.candidates]
        columns = [one[:, 1] - one[:, 0] if self.n_classes == 2 else one for one in models]
        return [project(one, self.norm_bound) for one in columns]

    def _discrepancy(self, X: Array, y: Array) -> float:
        def mean_loss(rows: Array, codes: Array, w: Array) -> float:
            return float(self.loss.value(rows @ w, codes).mean())

        return max(abs(mean_loss(X, y, w) - mean_loss(self.X, self.y, w)) for w in self._models())

    def _run(
        self,
        private: PrivateGradients,
        discrepancy: float,
        *,
        length: float,
        n: int,
        steps: int,
    ) -> Adapted:
        m, size, penalty = len(self.X), 1 / self.smoothness(length, n), self._penalty(n)
        path = descend(
            self.loss,
            penalty,
            active_public(self.X, self.y, self.alpha),
            private,
            self._first(length),
            offset=discrepancy,
            norm_bound=self.norm_bound,
            step_w=size,
            steps_u=np.full(len(penalty.reference), size),
        )
        chosen = int(np.random.default_rng(self.seed).integers(1, steps + 1))
        w, u = next(islice(path, chosen, None))  # what comes after it would be thrown away
        coefficients = np.column_stack([-w / 2, w / 2]) if self.n_classes == 2 else w
        return Adapted(coefficients, public_weights(u, m, self.alpha), discrepancy)

    def _first(self, length: float) -> Array:
        """Zero, or the minimiser of the public loss in the ball by accelerated descent."""
        shape = self.X.shape[1:] + (() if self.n_classes == 2 else (self.n_classes,))
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
