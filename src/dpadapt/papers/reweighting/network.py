r"""The paper's solvers, for a small torch network.

"profiled" is the descent of :mod:`dpadapt.reweighting.network` with rows weighed down by
:math:`\min(1, \sqrt{\kappa/loss})` (:mod:`.profile`), and nothing shrunk. "gradient" is Algorithm 2
of the paper with its weights frozen at their start (they hardly move, see
:mod:`.general_adaptation`): a constant step, and an iterate drawn at random. The paper's G, a bound
on gradients, does not exist for a network: ``clip`` takes its place, and is enforced. Nor does a
bound on the curvature: the step is one over the curvature of the linearised network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.learning.descent import Map, descend
from dpadapt.privacy import Cleaning, Session
from dpadapt.privacy.mechanisms import Gaussian
from dpadapt.reweighting.network import NetworkAdaptation
from dpadapt.reweighting.queries import NetworkGradient
from dpadapt.reweighting.torch_module import public_gradient


@dataclass(frozen=True, eq=False)
class ProfiledNetwork(NetworkAdaptation):
    r"""A network, adapted with the weights of rows in closed form.

    Parameters
    ----------
    alpha : float, default=0
        Share of the public sample in the objective, from 0 to 1. At 1 nothing is asked of the
        private rows, and the public network is the answer.
    kappa : float, optional
        :math:`\kappa`; None keeps the weights uniform.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from dpadapt.privacy import Private
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> codes = (X[:, 0] > 0).astype(int)
    >>> solver = ProfiledNetwork(X, codes, 2, torch.nn.Linear(2, 2), kappa=0.5, steps=5)
    >>> with Private(X, codes).open(epsilon=1.0, delta=1e-6) as session:
    ...     network = solver.fit(session, Cleaning(5.0, classes=2))
    >>> tuple(network.weight.shape)
    (2, 2)
    """

    shrink: bool = False
    alpha: float = 0.0
    kappa: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if validate.non_negative("alpha", self.alpha) > 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {self.alpha!r}.")
        if self.kappa is not None:
            validate.positive("kappa", self.kappa)

    def fit(self, session: Session, cleaning: Cleaning) -> Any:
        """Spend a whole session; the adapted network, in evaluation mode."""
        return self.pretrain() if self.alpha == 1 else super().fit(session, cleaning)

    def noise_energy(self, scale: float, step: float) -> float:
        """Variance of a logit due to noise of this scale in every released gradient."""
        return super().noise_energy((1 - self.alpha) * scale, step)

    def _query(self, cleaning: Cleaning, parameters: FloatArray) -> NetworkGradient:
        return replace(super()._query(cleaning, parameters), kappa=self.kappa)

    def _mixed(self, private_gradient: Map) -> Map:
        """The gradient of both samples."""

        def gradient(now: FloatArray) -> FloatArray:
            g = (1 - self.alpha) * private_gradient(now)
            if self.alpha > 0:
                public = public_gradient(self.module, now, self.X, self.codes, self.kappa)
                g = g + self.alpha * public
            return np.asarray(g)

        return gradient

    def _descend(self, gradient: Map, step: float) -> FloatArray:
        return super()._descend(self._mixed(gradient), step)


@dataclass(frozen=True, eq=False)
class GradientNetwork(ProfiledNetwork):
    r"""A network, adapted by the paper's Algorithm 2.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of the public sample in the objective, from 0 to 1.
    calibration : {"tight", "paper"}, default="tight"
        "paper": the noise :math:`2 s_1 \sqrt{T \log(2/\delta)} / \epsilon`,
        :math:`s_1 = 2 (1 - \alpha) G / n`, as printed.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> GradientNetwork(X, (X[:, 0] > 0).astype(int), 2, torch.nn.Linear(2, 2)).alpha
    0.5
    """

    alpha: float = 0.5
    calibration: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.choice("calibration", self.calibration, ("tight", "paper"))

    def mechanism(self, session: Session, cleaning: Cleaning) -> Gaussian:
        """Plan the T gradients."""
        tight = super().mechanism(session, cleaning)
        if self.calibration == "tight":
            return tight
        moved, delta = 2 * self.gradient_bound / session.n_rows, validate.delta(session.delta)
        noise = 2 * moved * math.sqrt(self._count * math.log(2 / delta)) / session.epsilon
        return replace(tight, printed=noise)

    def step(self, scale: float) -> float:
        """One over the curvature, if no other was given."""
        return self.longest_step if self.step_size is None else self.step_size

    def _descend(self, gradient: Map, step: float) -> FloatArray:
        # the index tells nothing of the rows
        steps = int(np.random.default_rng(self.seed).integers(1, self._count + 1))
        return descend(self._mixed(gradient), self.start, step, steps, last=1)
