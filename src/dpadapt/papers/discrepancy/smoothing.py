r"""Smooth stand-ins for the spectral norm of :math:`M(q) = M_0 - \sum_i q_i x_i x_i^T`.

The spectral norm has no gradient where its largest eigenvalue is double, and next to such a point
one private row turns the gradient round. The functions here are smooth instead, so that one row
moves their gradient a little, by an amount that is known. All are functions of the eigenvalues
:math:`l` of M, and have a symmetric matrix H as their gradient:
:math:`\partial F / \partial q_i = - x_i^T H x_i`.

What one row does to M, inequality (1) below, is said in :mod:`.queries`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpadapt import _validate as validate
from dpadapt._types import FloatArray
from dpadapt.discrepancy.variable_projection import SmoothNorm, from_spectrum

from .queries import RowBounds


@dataclass(frozen=True)
class Softmax(SmoothNorm):
    r"""Two-sided softmax, the paper's :math:`\tilde F`: the default.

    .. math:: \tilde F = \frac 1 \mu \log \sum_k (e^{\mu l_k} + e^{-\mu l_k}), \qquad
              \|M\|_2 \le \tilde F \le \|M\|_2 + \log(2d) / \mu.

    (Zero eigenvalues count as well: d, not the rank that the paper prints.)

    Parameters
    ----------
    mu : float
        Sharpness, the paper's :math:`\mu`; nearer to the norm, and more sensitive, as it grows.

    Notes
    -----
    *Smoothness.* :math:`f(M) = \mu^{-1} \log Tr\, e^{\mu M}` has :math:`\langle f''(M) U, U \rangle
    \le \mu \|U\|_2^2` (Nesterov 2007), and :math:`\tilde F = f(diag(M, -M))` inherits it; with
    :math:`U = \sum_i h_i x_i x_i^T`, :math:`\|U\|_2 \le \hat r^2 \|h\|_1`: modulus :math:`\mu \hat
    r^4`.

    *Sensitivity.* By Cauchy and Schwarz in f'', the gradients D of f at two points differ by at
    most :math:`\mu \|\Delta\|_2` in the trace norm. For :math:`\tilde F`, :math:`H = D_1 - D_2`
    with the two diagonal blocks of D, so that
    :math:`\|H - H'\|_{(1)} \le \|D_1 - D_1'\|_{(1)} + \|D_2 - D_2'\|_{(1)} = \|D - D'\|_{(1)}`,
    and with (1)

    .. math:: \|H - H'\|_F \le \|H - H'\|_{(1)} \le \mu r^2 / n.

    An entry of the gradient is :math:`-\langle H, x_i x_i^T \rangle`: it moves by at most
    :math:`\tau = \mu r^2 \hat r^2 / n` (half of what the paper prints; attained at d = 1), and a
    difference of two entries by at most
    :math:`\|H - H'\|_{(1)} \|x_i x_i^T - x_j x_j^T\|_2 \le \tau`, not :math:`2 \tau`. The value
    moves by at most :math:`\|H\|_{(1)} \|\Delta\|_2 \le r^2 / n`.

    Examples
    --------
    >>> M = np.diag([0.3, -0.5])
    >>> round(Softmax(mu=100.0).value(M), 6)
    0.5
    >>> Softmax(mu=100.0).gradient(M).round(6)
    array([[ 0.,  0.],
           [ 0., -1.]])
    """

    def bracket(self, value: float, d: int) -> tuple[float, float]:
        """Interval that holds the spectral norm."""
        return value - math.log(2 * d) / self.mu, value

    def smoothness(self, reach: float) -> float:
        """Mu r_hat^4."""
        return self.mu * reach**4

    def slope(self, bounds: RowBounds) -> float:
        """r_hat^2, because the trace norm of H is at most 1."""
        return bounds.public**2

    def sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 r_hat^2 / n; see the proof above."""
        return self.matrix_sensitivity(bounds) * bounds.public**2

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 r_hat^2 / n, the same; see the proof above."""
        return self.matrix_sensitivity(bounds) * bounds.public**2

    def matrix_sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 / n, in the Frobenius and in the trace norm."""
        return self.mu * bounds.move

    def value_sensitivity(self, bounds: RowBounds) -> float:
        """r^2 / n."""
        return bounds.move

    def printed_sensitivity(self, bounds: RowBounds) -> float:
        """2 mu r^2 r_hat^2 / n (Corollary 1)."""
        return 2 * self.mu * bounds.private**2 * bounds.public**2 / bounds.n_rows


@dataclass(frozen=True)
class OneSidedSoftmax(Softmax):
    r"""Softmax of the largest eigenvalue alone, the paper's F.

    .. math:: F = \frac 1 \mu \log \sum_k e^{\mu l_k}, \qquad
              \lambda_{max} \le F \le \lambda_{max} + \log(d) / \mu.

    Parameters
    ----------
    mu : float
        Sharpness.

    Notes
    -----
    As for :class:`Softmax`, :math:`\|H - H'\|_{(1)} \le \mu r^2 / n`. Moreover Tr H = 1 always, so
    that the positive and the negative part of :math:`H - H'` weigh the same, at most
    :math:`\mu r^2 / 2n` each. Hence an entry of the gradient moves by at most :math:`\tau / 2`, and
    H by at most :math:`\mu r^2 / (\sqrt 2 n)` in the Frobenius norm. A difference of two entries
    still moves by up to :math:`\tau`.

    Examples
    --------
    >>> round(OneSidedSoftmax(mu=100.0).value(np.diag([0.3, -0.5])), 6)
    0.3
    """

    def value(self, M: FloatArray) -> float:
        """Value at M."""
        t = self.mu * np.linalg.eigvalsh(M)
        shift = float(t.max())
        return (shift + math.log(np.exp(t - shift).sum())) / self.mu

    def gradient(self, M: FloatArray) -> FloatArray:
        """Gradient H, a density matrix."""
        values, vectors = np.linalg.eigh(M)
        up = np.exp(self.mu * (values - values.max()))
        return from_spectrum(up / up.sum(), vectors)

    def bracket(self, value: float, d: int) -> tuple[float, float]:
        """Interval that holds the largest eigenvalue."""
        return value - math.log(d) / self.mu, value

    def sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 r_hat^2 / 2n; see the proof above."""
        return self.mu * bounds.move * bounds.public**2 / 2

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 r_hat^2 / n."""
        return self.mu * bounds.move * bounds.public**2

    def matrix_sensitivity(self, bounds: RowBounds) -> float:
        """Mu r^2 / (sqrt(2) n), in the Frobenius norm."""
        return self.mu * bounds.move / math.sqrt(2)


@dataclass(frozen=True)
class PNorm:
    r"""Square of a Schatten norm, the paper's G, with an error relative to the norm.

    .. math:: G = (Tr M^{2p})^{1/p} = \|M\|_{(2p)}^2, \qquad
              \|M\|_2^2 \le G \le d^{1/p} \|M\|_2^2.

    Parameters
    ----------
    p : int
        The paper's p, 1 or more; log d keeps the relative error below e.

    Notes
    -----
    *Smoothness.* Half the square of a Schatten 2p-norm has modulus 2p - 1 in that norm (Nesterov
    2007), so G has 2(2p-1): in q, :math:`2 (2p-1) \hat r^4` (the paper drops the 2; p = 1 is the
    Frobenius norm's square).

    *Sensitivity.* With s = 2p and 1/s + 1/s* = 1, and (1),

    .. math:: \|H - H'\|_F \le \|H - H'\|_{(s*)} \le 2 (2p-1) \|\Delta\|_{(s)}
              \le 2 (2p-1) 2^{1/2p} r^2 / n,

    the first because s* is at most 2. By Hölder an entry of the gradient moves by at most
    :math:`\hat r^2` times that. A difference of two rows' matrices has a Schatten norm of up to
    :math:`2^{1/2p} \hat r^2`: the range is :math:`2 (2p-1) 2^{1/p} r^2 \hat r^2 / n`, larger than
    the sensitivity of one entry.

    *Value.* :math:`M_0` and S(q) are positive semidefinite with traces of at most :math:`r^2` and
    :math:`\hat r^2`. By Weyl the positive eigenvalues of their difference are at most those of
    :math:`M_0`, the negative ones at most those of S(q), so that :math:`\|M\|_{(2p)} \le b`,
    :math:`b^{2p} = r^{4p} + \hat r^{4p}`. Hence
    :math:`|G - G'| \le 2 b \|\Delta\|_{(2p)} \le 2 b 2^{1/2p} r^2 / n`. Likewise an entry of the
    gradient is at most :math:`\|H\|_{(s*)} \hat r^2 = 2 \|M\|_{(2p)} \hat r^2 \le 2 b \hat r^2`.

    Examples
    --------
    >>> round(PNorm(p=1).value(np.diag([3.0, -4.0])), 6)
    25.0
    >>> PNorm(p=1).gradient(np.diag([3.0, -4.0])).round(6)
    array([[ 6.,  0.],
           [ 0., -8.]])
    """

    p: int

    def __post_init__(self) -> None:
        validate.count("p", self.p)

    def value(self, M: FloatArray) -> float:
        """Value at M."""
        values = np.linalg.eigvalsh(M)
        largest = float(np.abs(values).max())
        if largest == 0:
            return 0.0
        return largest**2 * float((values / largest) ** (2 * self.p) @ np.ones(len(values))) ** (
            1 / self.p
        )

    def gradient(self, M: FloatArray) -> FloatArray:
        """Gradient H; zero at zero."""
        values, vectors = np.linalg.eigh(M)
        largest = float(np.abs(values).max())
        if largest == 0:
            return np.zeros_like(M)
        t = values / largest
        total = float((t ** (2 * self.p)).sum())
        return from_spectrum(
            2 * largest * t ** (2 * self.p - 1) * total ** (1 / self.p - 1), vectors
        )

    def bracket(self, value: float, d: int) -> tuple[float, float]:
        """Interval that holds the spectral norm (not its square)."""
        return math.sqrt(value / d ** (1 / self.p)), math.sqrt(value)

    def smoothness(self, reach: float) -> float:
        """2(2p-1) r_hat^4."""
        return self._modulus * reach**4

    def slope(self, bounds: RowBounds) -> float:
        """2 b r_hat^2; see the proof above."""
        return 2 * self._largest(bounds) * bounds.public**2

    def sensitivity(self, bounds: RowBounds) -> float:
        """2(2p-1) 2^(1/2p) r^2 r_hat^2 / n."""
        return self.matrix_sensitivity(bounds) * bounds.public**2

    def range_sensitivity(self, bounds: RowBounds) -> float:
        """2(2p-1) 2^(1/p) r^2 r_hat^2 / n."""
        return self._modulus * 2 ** (1 / self.p) * bounds.move * bounds.public**2

    def matrix_sensitivity(self, bounds: RowBounds) -> float:
        """2(2p-1) 2^(1/2p) r^2 / n, in the Frobenius norm."""
        return self._modulus * 2 ** (1 / (2 * self.p)) * bounds.move

    def value_sensitivity(self, bounds: RowBounds) -> float:
        """2 b 2^(1/2p) r^2 / n; see the proof above."""
        return 2 * self._largest(bounds) * 2 ** (1 / (2 * self.p)) * bounds.move

    def printed_sensitivity(self, bounds: RowBounds) -> float:
        """2(2p-1) r^2 r_hat^2 / n (Appendix C.3)."""
        return self._modulus * bounds.private**2 * bounds.public**2 / bounds.n_rows

    @property
    def _modulus(self) -> float:
        return 2.0 * (2 * self.p - 1)

    def _largest(self, bounds: RowBounds) -> float:
        """b, bound on the Schatten 2p-norm of M."""
        large, small = sorted((bounds.private**2, bounds.public**2), reverse=True)
        return large * float((1 + (small / large) ** (2 * self.p)) ** (1 / (2 * self.p)))
