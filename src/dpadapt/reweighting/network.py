r"""A small torch network, trained on public rows and adapted to private ones by clipped gradients.

Noisy gradient descent whose noise is known in advance:

1. Train the module on the public rows.
2. Linearise its logits there: parameters that move by v move those of row i by :math:`J_i v`. A few
   public rows give the spectrum of :math:`J^T J`.
3. Take T noisy steps on the private rows' mean gradient, each row's clipped to half the length that
   is usual on public rows at equal probabilities.
4. The step is the longest one for which the noise of the answer is predicted to change logits by
   at most a fifth of their public variance, and no longer than one over the curvature.
5. The answer is the mean of the last half of the iterates, which averages noise away.
6. What noise leaves in the logits is known, E; how far the logits of public rows moved, A, can be
   seen. The move of the parameters is shrunk by :math:`\max(0, 1 - E/A)` (James-Stein): a move that
   noise alone explains is undone, and the public network remains.

Sampling by batches is not offered: full gradients need no amplification, and their accounting is
exact. The paper's own solvers are in :mod:`dpadapt.papers.reweighting.classification_solvers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.descent import Map, affordable_step, descend, predicted_noise
from dpadapt.learning.shrinkage import james_stein
from dpadapt.privacy import Cleaning, Grant, Hidden, Session
from dpadapt.privacy.mechanisms import Gaussian

from .queries import NetworkGradient
from .torch_module import as_rows, check_module, flat, jacobian, load_torch, logits, with_parameters

_STEPS = 100
_NOISE_SHARE = 0.2  # of the public variance of the logits
_SPREAD = (0.01, 2.0)  # of public logits: how small and how large a shift is reckoned with
_LINEAR = (128, 1280, 1 << 24)  # rows of the linearisation, outputs of them, numbers in it, at most
_HELD, _RATE, _EPOCHS, _PATIENCE = 0.2, 0.01, 1000, 50  # of public training


@dataclass(frozen=True, eq=False)
class NetworkAdaptation:
    r"""A classifying network for private rows, adapted from public ones.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        Public rows, scaled; without an intercept column (the module has biases).
    codes : ndarray of shape (m,)
        Their classes, coded 0 ... n_classes - 1.
    n_classes : int
        k, 2 or more.
    module : torch.nn.Module
        From rows of shape (batch, d) to logits of shape (batch, k); public. It is copied, never
        changed. Parameters that need no gradient stay as they are. Run in evaluation mode always:
        dropout does nothing. Layers that take statistics of a batch are refused unless frozen. A
        ``Sequential`` of torch's own layers is given private rows in blocks, any other module one
        row a call (:mod:`dpadapt.privacy.rows.layers`), which is slower.
    clip : float, optional
        C. By default half the median length of :math:`J_i^T (1/k - e_y)` on public rows, the
        gradient at equal probabilities.
    steps : int, optional
        T; 100 by default.
    step_size : float, optional
        The step, instead of the one described above.
    shrink : bool, default=True
        Whether step 6 is taken.
    seed : int, default=0
        Of public choices: the hold-out of the training, rows of the linearisation.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from dpadapt.privacy import Private
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(200, 2)), rng.normal(size=(1000, 2))
    >>> solver = NetworkAdaptation(X, (X[:, 0] > 0).astype(int), 2, torch.nn.Linear(2, 2))
    >>> cleaning = Cleaning(5.0, classes=2)
    >>> with Private(T, T[:, 0] + T[:, 1] > 0).open(epsilon=1.0, delta=1e-6) as session:
    ...     network = solver.fit(session, cleaning)
    >>> W = network.weight.detach().numpy()
    >>> bool(W[1, 1] - W[0, 1] > 0.5), session.guarantee.epsilon <= 1.0
    (True, True)
    """

    X: FloatArray
    codes: npt.NDArray[Any]
    n_classes: int
    module: Any
    clip: float | None = None
    steps: int | None = None
    step_size: float | None = None
    shrink: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        X, codes = np.asarray(self.X, dtype=np.float64), np.asarray(self.codes)
        if X.ndim != 2 or not X.size or not np.isfinite(X).all() or codes.shape != X.shape[:1]:
            raise ValueError("X must be a matrix of finite numbers, codes one class for each row.")
        validate.count("n_classes", self.n_classes, least=2)
        if not np.isin(codes, np.arange(self.n_classes)).all():
            raise ValueError(f"codes must be class codes from 0 to {self.n_classes - 1}.")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "codes", codes.astype(np.int64))
        for name in ("clip", "step_size"):
            if getattr(self, name) is not None:
                validate.positive(name, getattr(self, name))
        if self.steps is not None:
            validate.count("steps", self.steps)
        check_module(self.module, X, self.n_classes)

    def pretrain(self) -> Any:
        """The public network: a copy of the module, trained on the public rows alone."""
        return with_parameters(self.module, self.start)

    def fit(self, session: Session, cleaning: Cleaning) -> Any:
        """Spend a whole session; the adapted network, in evaluation mode."""
        grants = session.plan(gradients=self.mechanism(session, cleaning))
        return self.release(session, grants.gradients, cleaning)

    def mechanism(self, session: Session, cleaning: Cleaning) -> Gaussian:
        """Plan the T gradients."""
        if cleaning.classes != self.n_classes:
            raise ValueError(f"cleaning must have classes={self.n_classes}.")
        if session.n_columns + (cleaning.intercept != 0) != self.X.shape[1]:  # public facts
            raise ValueError(f"private rows must have {self.X.shape[1]} columns once cleaned.")
        return Gaussian.of(self._gradient(session, cleaning, self.start), count=self._count)

    def release(self, session: Session, grant: Grant, cleaning: Cleaning) -> Any:
        """The adapted network; trades the grant of :meth:`mechanism`."""

        def gradient(parameters: FloatArray) -> FloatArray:
            hidden = self._gradient(session, cleaning, parameters)
            return np.asarray(session.release(grant, hidden))

        step = self.step(grant.scale)
        found = self._descend(gradient, step)
        if self.shrink:
            found = self._shrunken(found, self.noise_energy(grant.scale, step))
        return with_parameters(self.module, found)

    def minimise(self, X_private: npt.ArrayLike, codes_private: npt.ArrayLike) -> Any:
        """The same descent without noise, for private rows that may be looked at."""
        T = np.asarray(X_private, dtype=np.float64)
        codes = np.asarray(codes_private, dtype=np.float64)
        cleaning = Cleaning(radius=1.0, classes=self.n_classes)  # not applied here

        def gradient(parameters: FloatArray) -> FloatArray:
            return self._query(cleaning, parameters).block(T, codes) / max(1, len(T))

        return with_parameters(self.module, self._descend(gradient, self.step(0.0)))

    @cached_property
    def start(self) -> FloatArray:
        """Parameters of the public network.

        Full-batch Adam, from the module's own parameters. A fifth of the rows says after how many
        steps to stop; then all rows are used for as many.
        """
        order = np.random.default_rng(self.seed).permutation(len(self.X))
        held = math.floor(_HELD * len(order))
        steps = self._train(order[held:], _EPOCHS, order[:held])[1] if held else _PATIENCE
        return self._train(order, steps, order[:0])[0]

    @cached_property
    def gradient_bound(self) -> float:
        """C."""
        return self._linear[1] if self.clip is None else self.clip

    @cached_property
    def longest_step(self) -> float:
        """One over the largest curvature of the linearised network at equal probabilities."""
        return 1 / (float(self._curvature.max()) or 1.0)

    def noise_energy(self, scale: float, step: float) -> float:
        """Variance of a logit due to noise of this scale in every released gradient."""
        variance = predicted_noise(
            self._curvature, np.full(len(self._curvature), step), self._count
        )
        energy = float(self._linear[0] @ variance) / self.n_classes
        return scale**2 * energy

    def step(self, scale: float) -> float:
        """The step, for noise of this scale in every released gradient."""
        if self.step_size is not None:
            return self.step_size
        spread = float(np.var(logits(self.module, self.start, self.X), axis=0).mean())
        allowed = _NOISE_SHARE * min(max(spread, _SPREAD[0]), _SPREAD[1])
        return affordable_step(
            lambda step: self.noise_energy(scale, step), allowed, self.longest_step
        )

    @property
    def _count(self) -> int:
        """T."""
        return _STEPS if self.steps is None else self.steps

    @cached_property
    def _linear(self) -> tuple[FloatArray, float]:
        """Eigenvalues of the mean of J^T J over a few public rows, and the clip they suggest."""
        rows, outputs, cells = _LINEAR
        few = min(rows, outputs // self.n_classes, cells // (self.n_classes * self.start.size))
        some = np.random.default_rng([self.seed, 1]).permutation(len(self.X))[: max(1, few)]
        J = jacobian(self.module, self.start, self.X[some])
        J = J - J.mean(axis=1, keepdims=True)  # the loss does not see what all logits share
        correct = J[np.arange(len(some)), self.codes[some]]  # centred: minus J^T (1/k - e_y)
        usual = float(np.median(np.linalg.norm(correct, axis=1)))
        both = J.reshape(-1, J.shape[2])
        gram = both @ both.T if len(both) < both.shape[1] else both.T @ both
        return np.maximum(np.linalg.eigvalsh(gram / len(some)), 0.0), usual / 2 or 1.0

    @property
    def _curvature(self) -> FloatArray:
        return self._linear[0] * ((1 - 1 / self.n_classes) / self.n_classes)

    def _query(self, cleaning: Cleaning, parameters: FloatArray) -> NetworkGradient:
        return NetworkGradient(cleaning, self.module, parameters, self.gradient_bound)

    def _gradient(self, session: Session, cleaning: Cleaning, parameters: FloatArray) -> Hidden:
        return session.hide(self._query(cleaning, parameters), keep=True)

    def _descend(self, gradient: Map, step: float) -> FloatArray:
        return descend(gradient, self.start, step, self._count)

    def _shrunken(self, found: FloatArray, noise: float) -> FloatArray:
        before, after = (logits(self.module, p, self.X) for p in (self.start, found))
        moved = float(np.mean((after - before) ** 2))
        share = james_stein(moved, noise)
        return np.asarray(self.start + share * (found - self.start))

    def _train(
        self, rows: npt.NDArray[Any], steps: int, held: npt.NDArray[Any]
    ) -> tuple[FloatArray, int]:
        """Parameters after so many steps, and the step of the least loss on the held rows."""
        torch = load_torch()
        module = with_parameters(self.module, flat(self.module))
        X, codes = as_rows(module, self.X), torch.from_numpy(self.codes)
        (X, X_held), (codes, codes_held) = ((a[rows], a[held]) for a in (X, codes))
        loss = torch.nn.functional.cross_entropy
        adam = torch.optim.Adam([p for p in module.parameters() if p.requires_grad], lr=_RATE)
        least, best = math.inf, 0
        for t in range(1, steps + 1):
            with torch.enable_grad():
                adam.zero_grad()
                loss(module(X), codes).backward()
                adam.step()
            if len(held):
                with torch.no_grad():
                    value = float(loss(module(X_held), codes_held))
                if value < least:
                    least, best = value, t
                elif t > best + _PATIENCE:
                    break
        return flat(module), best
