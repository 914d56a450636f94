"""Where noise comes from: secure (the default), seeded (tests), exact (OpenDP).

A source adds noise to an array and says which event that causes, because the two belong together:
continuous Gaussian noise is Gaussian DP, discrete Gaussian noise is zCDP and its grid enlarges
the sensitivity.

The secure and the seeded source draw float64 noise and then round the sum to a power of two near
scale / 4096. Rounding is post-processing, so the continuous formulas keep; it also hides
the low-order bits through which floating-point noise can betray its argument (Mironov 2012). That
is a mitigation, not a proof, and the guarantee says so; the exact source needs no such words.

**What is rounded, and when.** Rounding is post-processing only if what is rounded is a whole
release: the sum of a private value and noise of its full scale. Noise that is rounded first and
scaled, turned or added afterwards is another law, on a comb that the private value places: answers
that are possible under one neighbour are impossible under the other. So the rule is: *noise is
continuous until the last addition*, and the grid depends on the public scale alone. Every use of
noise in the library, with the reason why it is sound:

==========================  =====================================================================
use                         why
==========================  =====================================================================
``gaussian``, ``laplace``   The sum is rounded: post-processing.
``symmetric_gaussian``      The sum with svec is rounded and released; division by sqrt(2) after it.
``gaussian_process``,       The sum with the whitened values is rounded and released; the root, a
pools of points             public matrix, comes after it.
paths of noise              :meth:`NoiseSource.normals`, scaled, turned, added; the answer, the last
                            sum, is rounded.
objective perturbation      :meth:`NoiseSource.normals` inside the objective, never released; the
                            minimum gets noise of its own, and that sum is rounded.
descent on drawn rows       Each noisy gradient, a sum at full scale, is rounded; steps after it.
filtered, weighted sums     As ``gaussian``: filter and weights act before the noise.
``noisy_argmin``            Gumbel noise is not rounded; only an index leaves.
``laplace_argmin``          Laplace noise is not rounded; only an index leaves. (Exact: ties between
                            whole numbers are paid for, two grid steps in the sensitivity.)
sparse vector               Laplace noise is not rounded; only a comparison leaves, then a
                            ``gaussian`` of its own.
PINP                        The sum is rounded, then compared and perhaps told: post-processing.
``ball_exponential``        A draw, no sum; the point is rounded, on a grid of the public radius.
randomised response, bits,  Uniforms against thresholds that are multiples of their own grain, or a
parities, random stopping   hair on the safe side of one: exact.
directions of agents        Only a sign depends on the value; the law of the rest is symmetric.
rows drawn from weights     Whole numbers against a table of whole numbers.
==========================  =====================================================================

**Values much larger than the scale.** The addition itself rounds to float64, to the spacing of the
*sum*, a function of the sum: post-processing again, also where that spacing is above the grid (from
2^41 scales on) and the grid has nothing left to do. The noise has 2^40 steps in each cell of either
grid, so every multiple is reached from every value, with its right probability to about 2^-40,
except far out, where less than 2^-50 of all draws fall. For a choice among scores rounding is no
post-processing: scores of up to 2^30 scales shift its log-probabilities by 2^-20 at the most.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpadapt._types import FloatArray

from ... import _validate
from ..accounting.events import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
)
from ..rows.errors import PrivacyError
from .home import here

_FLOAT_CAVEAT = (
    "Noise is drawn in float64 and the sum is rounded to a grid of about scale/4096: a "
    "mitigation of floating-point attacks, not a proof."
)


class NoiseSource(ABC):
    """Adds noise, and names the event that the noise amounts to.

    Attributes
    ----------
    name : str
        "secure", "seeded" or "exact".
    caveats : tuple of str
        What a reader of the guarantee should know.
    """

    name: ClassVar[str]
    caveats: tuple[str, ...]

    @abstractmethod
    def add_gaussian(self, values: FloatArray, scale: float) -> FloatArray:
        """``values`` plus Gaussian noise of standard deviation ``scale``."""

    @abstractmethod
    def add_laplace(self, values: FloatArray, scale: float) -> FloatArray:
        """``values`` plus Laplace noise of scale ``scale``."""

    @abstractmethod
    def noisy_argmin(self, scores: FloatArray, scale: float) -> int:
        """Index i with probability proportional to exp(-scores[i] / scale)."""

    @abstractmethod
    def laplace_argmin(self, scores: FloatArray, scale: float) -> int:
        """Index of the least of ``scores`` with Laplace noise of scale ``scale``."""

    @abstractmethod
    def uniform(self, size: int) -> FloatArray:
        """Uniform numbers in [0, 1)."""

    @abstractmethod
    def normals(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Standard normals that are not rounded, for noise that is scaled or never released.

        Noise on a grid that is scaled and then added to a private value leaves a comb of possible
        answers, placed by the value. Who adds these rounds the *answer*, on a grid that depends on
        the scale alone, or never lets it out.
        """

    def directions(self, shape: tuple[int, ...]) -> FloatArray:
        """Normals of a law that is the same for x and -x, to the last bit.

        Sizes and signs are drawn apart. For who turns them by a sign, which alone depends on a
        private value: then it does not matter that the sizes are on a grid (of 2^-53, uniform).
        """
        size, side = self.uniform(2 * math.prod(shape)).reshape(2, *shape)
        return np.asarray(np.where(side < 0.5, 1.0, -1.0) * -ndtri((1 - size) / 2))

    def gaussian_event(
        self, label: str, sensitivity: float, scale: float, dimension: int, count: int
    ) -> Event:
        """Event of ``count`` calls of :meth:`add_gaussian` on ``dimension`` numbers."""
        return GaussianEvent(label, sensitivity, scale, count)

    def laplace_event(
        self, label: str, sensitivity: float, scale: float, dimension: int, count: int
    ) -> Event:
        """Event of ``count`` calls of :meth:`add_laplace` on ``dimension`` numbers."""
        return LaplaceEvent(label, sensitivity, scale, count)

    def argmin_event(self, label: str, sensitivity: float, scale: float, count: int) -> Event:
        """Event of ``count`` calls of :meth:`noisy_argmin`, with the *range* sensitivity."""
        return BoundedRangeEvent(label, sensitivity, scale, count)


class _ContinuousNoise(NoiseSource):
    """Float64 noise from a numpy Generator, rounded to a grid."""

    def __init__(self, caveats: tuple[str, ...]) -> None:
        self.caveats = caveats

    @abstractmethod
    def _generator(self) -> np.random.Generator: ...

    def add_gaussian(self, values: FloatArray, scale: float) -> FloatArray:
        noise = self._generator().standard_normal(values.shape)
        return _to_grid(values + scale * noise, _power_of_two(scale, 12))

    def add_laplace(self, values: FloatArray, scale: float) -> FloatArray:
        return _to_grid(values + scale * self._laplace(values.shape), _power_of_two(scale, 12))

    def noisy_argmin(self, scores: FloatArray, scale: float) -> int:
        exponential = self._generator().standard_exponential(scores.shape)
        gumbel = -np.log(np.maximum(exponential, np.finfo(np.float64).tiny))
        return int(np.argmin(scores - scale * gumbel))

    def laplace_argmin(self, scores: FloatArray, scale: float) -> int:
        return int(np.argmin(scores + scale * self._laplace(scores.shape)))

    def _laplace(self, shape: tuple[int, ...]) -> FloatArray:
        # the difference of two exponentials never takes the logarithm of a uniform zero
        pair = self._generator().standard_exponential((2, *shape))
        return np.asarray(pair[0] - pair[1])

    def uniform(self, size: int) -> FloatArray:
        return self._generator().random(size)

    def normals(self, shape: int | tuple[int, ...]) -> FloatArray:
        return self._generator().standard_normal(shape)


class SecureNoise(_ContinuousNoise):
    """AES in counter mode, keyed by the operating system; the key never leaves the object.

    A forked child draws a new key, so parent and child never share noise.

    Examples
    --------
    >>> SecureNoise().add_gaussian(np.zeros(3), scale=1.0).shape
    (3,)
    """

    name = "secure"

    def __init__(self) -> None:
        super().__init__((_FLOAT_CAVEAT,))
        self._process: tuple[int, int] | None = None

    def _generator(self) -> np.random.Generator:
        if self._process != here():
            from randomgen import AESCounter

            self._stream = np.random.Generator(AESCounter(key=secrets.randbits(128)))
            self._process = here()
        return self._stream

    def __reduce__(self) -> Any:
        raise TypeError("a secure noise source cannot be pickled: its key must stay secret.")


class SeededNoise(_ContinuousNoise):
    """Repeatable noise for tests and teaching. Whoever knows the seed can remove it.

    Examples
    --------
    >>> one, two = (SeededNoise(7).add_gaussian(np.zeros(2), 1.0) for _ in range(2))
    >>> bool((one == two).all())
    True
    """

    name = "seeded"

    def __init__(self, seed: int) -> None:
        super().__init__(
            (
                "The noise is seeded and can be removed by anyone who knows the seed: "
                "for tests and teaching, never for a release.",
                _FLOAT_CAVEAT,
            )
        )
        self._stream = np.random.default_rng(_validate.count("random_state", seed, least=0))

    def _generator(self) -> np.random.Generator:
        return self._stream


class ExactNoise(NoiseSource):
    """Discrete noise sampled exactly by OpenDP (``pip install 'dpadapt[exact]'``).

    Values are rounded to a public grid (a power of two near scale / 2^30) and integers are
    noised: no floating-point number is sampled. About a thousand times slower than the secure
    source; meant for releases of up to about ten thousand numbers. Values beyond 2^61 grid steps
    are clamped, which no neighbour can notice more than the sensitivity says.

    Examples
    --------
    >>> ExactNoise().gaussian_event("mean", 1.0, 2.0, dimension=10, count=1).kind
    'discrete-gaussian'
    """

    name = "exact"
    caveats = ()
    _FINENESS = 30

    def __init__(self) -> None:
        try:
            import opendp.prelude as opendp
        except ImportError as error:
            raise ImportError(
                "noise='exact' needs OpenDP: pip install 'dpadapt[exact]', or choose "
                "noise='secure'."
            ) from error
        opendp.enable_features("contrib")
        self._opendp = opendp

    def __reduce__(self) -> Any:
        return (ExactNoise, ())

    def add_gaussian(self, values: FloatArray, scale: float) -> FloatArray:
        dp = self._opendp
        return self._add(values, scale, dp.m.make_gaussian, dp.l2_distance(T=float))

    def add_laplace(self, values: FloatArray, scale: float) -> FloatArray:
        dp = self._opendp
        return self._add(values, scale, dp.m.make_laplace, dp.l1_distance(T="i64"))

    def _add(self, values: FloatArray, scale: float, make: Any, metric: Any) -> FloatArray:
        dp = self._opendp
        grid = _power_of_two(scale, self._FINENESS)
        measurement = make(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale / grid)
        noisy = measurement(_integers(values, grid).ravel().tolist())
        return np.asarray(noisy, dtype=np.float64).reshape(values.shape) * grid

    def noisy_argmin(self, scores: FloatArray, scale: float) -> int:
        dp = self._opendp
        grid = _power_of_two(scale, self._FINENESS)
        select = dp.m.make_noisy_max(
            dp.vector_domain(dp.atom_domain(T="i64")),
            dp.linf_distance(T="i64"),
            dp.zero_concentrated_divergence(),
            scale=scale / grid,
            negate=True,
        )
        return int(select(_integers(scores, grid).tolist()))

    def laplace_argmin(self, scores: FloatArray, scale: float) -> int:
        dp = self._opendp
        noisy = self._add(scores, scale, dp.m.make_laplace, dp.l1_distance(T="i64"))
        return int(np.argmin(noisy))

    def uniform(self, size: int) -> FloatArray:
        return np.array([secrets.randbits(53) for _ in range(size)], dtype=np.float64) * 2.0**-53

    def normals(self, shape: int | tuple[int, ...]) -> FloatArray:
        raise PrivacyError(
            "noise='exact' has no normals that are not on a grid, and this needs them; use "
            "noise='secure'."
        )

    def gaussian_event(
        self, label: str, sensitivity: float, scale: float, dimension: int, count: int
    ) -> Event:
        grid = _power_of_two(scale, self._FINENESS)
        total = sensitivity + grid * math.sqrt(dimension)
        return DiscreteGaussianEvent(label, total, scale, count)

    def laplace_event(
        self, label: str, sensitivity: float, scale: float, dimension: int, count: int
    ) -> Event:
        total = sensitivity + _power_of_two(scale, self._FINENESS) * dimension
        return LaplaceEvent(label, total, scale, count)

    def argmin_event(self, label: str, sensitivity: float, scale: float, count: int) -> Event:
        total = sensitivity + 2 * _power_of_two(scale, self._FINENESS)
        return BoundedRangeEvent(label, total, scale, count)


def noise_source(noise: str, random_state: int | None = None) -> NoiseSource:
    """Build the source named by an estimator's ``noise`` and ``random_state``.

    Examples
    --------
    >>> noise_source("secure").name
    'secure'
    >>> noise_source("secure", random_state=0)
    Traceback (most recent call last):
    ...
    ValueError: random_state was given, but noise='secure' cannot be seeded: leave random_state \
at None, or take noise='seeded' for a repeatable test.
    """
    _validate.choice("noise", noise, ("secure", "seeded", "exact"))
    if noise == "seeded":
        if random_state is None:
            raise ValueError("noise='seeded' needs a random_state: a whole number, 0 or more.")
        return SeededNoise(random_state)
    if random_state is not None:
        raise ValueError(
            f"random_state was given, but noise={noise!r} cannot be seeded: leave random_state at "
            "None, or take noise='seeded' for a repeatable test."
        )
    return SecureNoise() if noise == "secure" else ExactNoise()


def _power_of_two(scale: float, bits: int) -> float:
    """Largest power of two at most scale / 2**bits."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def _to_grid(values: FloatArray, grid: float) -> FloatArray:
    """Nearest multiples of the grid; of it are all numbers from 2^52 grid on, and stay."""
    far = np.abs(values) >= 2.0**52 * grid
    return np.where(far, values, np.rint(np.where(far, 0.0, values) / grid) * grid)


def _integers(values: FloatArray, grid: float) -> NDArray[np.int64]:
    most = 2.0**61 * grid  # clipped before the division, which might overflow and warn
    return np.rint(np.clip(values, -most, most) / grid).astype(np.int64)
