r"""The other way to learn a shift of known noise: one noisy moment, solved once.

A descent leaves a part of the shift unlearned however small the noise is, and its clip is made for
residuals of the size that public ones have. Where rows and budget are many, it is better to release
the moment of the rows with the residuals of the public model once, and to solve for the shift:

    z = public coordinates of a row, e = residual of the public model
    f = min(1, R / |z|),  z <- f z,  e <- clip(f e, E)       row and residual shrunk together
    S, b = mean of z z^T, mean of z e                        released together, once
    shift = (S + lambda I)^-1 b

lambda is the norm of the noise in S, or more if Mallows' criterion, computed from what was
released, says so. R and E grow with n epsilon without end: what they cut costs the part of a shift
that Chebyshev's inequality (with fourth moments) allows, and the noise that they let in is known.
So the error falls to that of a ridge regression of the private rows, from the public model, as
n epsilon grows. What is expected of it is compared with what is expected of the descent, from
public facts only; the better one is run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpadapt._types import FloatArray
from dpadapt.learning.descent import Geometry
from dpadapt.learning.shrinkage import james_stein
from dpadapt.privacy import Cleaning, shrink_factors
from dpadapt.privacy.statistics import MeanOuter, Prepared

from .plan import PublicProblem

_LONG = 1e-4  # of the harm of a cut residual: a long row that is shrunk only has less weight
_GROWTH = 2.0 ** np.arange(0, 31)  # of the bounds, in root mean squares
_STRENGTHS = 10.0 ** np.arange(-8, 1.0, 0.5)  # penalties that are compared, in mean curvatures


@dataclass(frozen=True, eq=False)
class MomentCourse:
    """What will be done; all of it may be published.

    Attributes
    ----------
    geometry : Geometry
    length : float
        R: bound on the length of a row, in coordinates of mean square length 1.
    clip : float
        E: bound on a residual.
    curvature : ndarray of shape (d + 1, d + 1)
        Public second moment of the coordinates.
    sampling : float
        Variance of a label around its prediction, as public rows have it.
    expected : float
        Mean square that a prediction is expected to be off by.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> problem = PublicProblem(X, X[:, 0] + X[:, 1] ** 2, np.zeros((3, 1)))
    >>> little, much = (choose_moments(problem, n, 0.2) for n in (1000, 10**7))
    >>> little.clip < much.clip, little.expected > much.expected
    (True, True)
    """

    geometry: Geometry
    length: float
    clip: float
    curvature: FloatArray
    sampling: float
    expected: float

    def sized(self, size: float) -> MomentCourse:
        """The same for residuals that are so many times as large."""
        square = {name: size**2 * getattr(self, name) for name in ("sampling", "expected")}
        return replace(self, clip=size * self.clip, **square)


def choose_moments(problem: PublicProblem, n_rows: int, mu: float) -> MomentCourse:
    """Bounds with the least expected error, for n private rows and a budget of mu.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> choose_moments(PublicProblem(X, X[:, 0], np.zeros((3, 1))), 10**6, 1.0).length >= 1
    True
    """
    geometry = Geometry.of(problem.rows, power=1.0, constant=problem.kind.constant)
    features = geometry.features(problem.rows[problem.some])
    curvature = features.T @ features / len(features)
    values = np.maximum(np.diag(curvature), 1e-12)  # the coordinates are public principal axes
    shares = geometry.axis_shares(problem.kind.level_share)
    scale = 2 * math.sqrt(2) / (n_rows * mu)
    shift, typical = problem.kind.shift * problem.public_error, math.sqrt(problem.public_error)

    # of n rows, with the best penalty for each axis: Mallows' criterion looks for it
    each, parts = problem.sampling_error / n_rows, shift * shares
    sampling = float(np.sum(parts * each / np.maximum(parts + each, 1e-300)))

    clips = _GROWTH * typical

    def expected(length: float) -> FloatArray:
        """Error at every clip."""
        penalty = _noise_norm(scale * length**2, len(values))
        kept = values / (values + penalty)
        slopes = shift * float(np.sum(shares * kept**2 / values))  # squared length of the shift
        noise = (scale * length) ** 2 / 2 * (clips**2 + length**2 * slopes)
        error = float(np.sum(kept / (values + penalty))) * noise
        error += shift * float(shares @ (1 - kept) ** 2)
        cut = (typical / clips) ** 4 + _LONG / length**4  # Chebyshev
        return np.asarray(error + shift * np.minimum(1.0, cut) + sampling)

    table = np.array([expected(float(length)) for length in _GROWTH])
    row, column = np.unravel_index(table.argmin(), table.shape)
    chosen = (float(_GROWTH[row]), float(clips[column]), curvature, problem.sampling_error)
    return MomentCourse(geometry, *chosen, float(table[row, column]))


def moment_query(chosen: MomentCourse, model: FloatArray, cleaning: Cleaning) -> MeanOuter:
    """The moment of (z / R, e / E) over private rows, of length sqrt(2) at most.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> chosen = choose_moments(PublicProblem(X, X[:, 0], np.zeros((3, 1))), 10**6, 1.0)
    >>> cleaning = Cleaning(9.0, intercept=1.0, label_range=(-9.0, 9.0))
    >>> round(moment_query(chosen, np.zeros((3, 1)), cleaning).sensitivity(1000), 6)
    0.002828
    """
    width = len(chosen.curvature)

    def prepare(X: FloatArray, y: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        Z = chosen.geometry.features(X[:, :-1])
        factors = shrink_factors(np.linalg.norm(Z, axis=1), chosen.length)
        rows = Z * (factors / chosen.length)[:, None]
        if y is None:
            return rows, None
        residual = factors * (y - (X @ model)[:, 0])
        return rows, np.clip(residual / chosen.clip, -1.0, 1.0)

    return MeanOuter(Prepared(cleaning, prepare, width), width + 1, math.sqrt(2))


def solve_shift(
    moment: FloatArray, scale: float, n_rows: int, chosen: MomentCourse
) -> tuple[FloatArray, float]:
    """Coefficients of (x, 1) to add to the public model, and the part of the shift that was kept.

    Parameters
    ----------
    moment : ndarray
        As released, of (z / R, e / E).
    scale : float
        Of its noise.
    n_rows : int
    chosen : MomentCourse

    Examples
    --------
    Without noise, least squares on the residuals:

    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> chosen = choose_moments(PublicProblem(X, X[:, 0] ** 2, np.zeros((2, 1))), 10**9, 1.0)
    >>> cleaning = Cleaning(99.0, intercept=1.0, label_range=(-99.0, 99.0))
    >>> query = moment_query(chosen, np.zeros((2, 1)), cleaning)
    >>> rows, labels = query.cleaning(X, 2 * X[:, 0] + 1)
    >>> shift, share = solve_shift(query.block(rows, labels) / 500, 0.0, 500, chosen)
    >>> shift.round(4).ravel(), round(share, 3)
    (array([2., 1.]), 1.0)
    """
    R, E = chosen.length, chosen.clip
    S, b, whole = R**2 * moment[:-1, :-1], R * E * moment[:-1, -1], E**2 * float(moment[-1, -1])
    floor = _noise_norm(scale * R**2, len(S))
    values, vectors = np.linalg.eigh(S + floor * np.eye(len(S)))
    values = np.maximum(values, max(floor, 1e-12 * float(values[-1])))
    along = vectors.T @ b

    def left(penalty: float) -> tuple[float, float]:
        """Mean square residual, and degrees of freedom."""
        slopes = along / (values + penalty)
        residual = whole - float((2 * along - values * slopes) @ slopes)
        return max(residual, 0.0), float(np.sum(values / (values + penalty)))

    strengths = _STRENGTHS * float(np.mean(values))
    free = max(1 - left(0.0)[1] / n_rows, 0.0)
    variance = left(0.0)[0] / free if free > 0.5 else min(chosen.sampling, max(whole, 0.0))

    def criterion(penalty: float) -> float:
        residual, freedom = left(penalty)
        return residual + 2 * variance * freedom / n_rows

    penalty = min([0.0, *map(float, strengths)], key=criterion)
    gain = 1 / (values + penalty)
    shift = vectors @ (gain * along)
    # James and Stein: what noise and sampling alone would have moved predictions of private rows
    noise = (scale * R) ** 2 / 2 * (E**2 + R**2 * float(shift @ shift))
    moved = float(values @ (gain**2 * (noise + variance * values / n_rows)))
    energy = float(values @ (gain * along) ** 2)
    share = james_stein(energy, moved)
    return share * chosen.geometry.coefficients(shift[:, None]), share


def _noise_norm(scale: float, size: int) -> float:
    """Expected spectral norm of symmetric noise, at most."""
    return scale * math.sqrt(2 * size)
