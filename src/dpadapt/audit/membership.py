r"""Membership inference by the likelihood ratio of the loss (LiRA; Carlini et al., 2022).

Was this example among those that the model was trained on? The attacker knows every example, its
label and how the model was trained, not who took part. It trains *shadow* models on random halves,
and so learns for each example how confident a model is that has seen it, and one that has not.
The confidence is put on the scale of logits, :math:`\phi = \log p_y - \log(1 - p_y)`, where it is
nearly Gaussian; the score of a *victim* model for an example is

.. math:: \log N(\phi; m_{in}, s_{in}^2) - \log N(\phi; m_{out}, s_{out}^2).

A score that tells members from others refutes nothing by itself; one that does so better than the
bounds below allow refutes the guarantee. An attack that fails proves nothing: another might not.

**Which guarantee the game tests.** Under ``relation="replace-one"`` a model is trained on exactly
half of the examples. Given that example i is left out, put it in the place of a member chosen at
random: the result is distributed as a half that holds i. So "in" and "out" are mixtures, with the
same weights, of pairs of neighbours that differ by one replacement, and the bounds hold for the
mixtures (the hockey-stick divergence is jointly convex). Under ``relation="add-remove"`` every
example tosses its own coin; given the coins of the others, "in" and "out" differ by one row. A
guarantee for one relation says less, or nothing, in the other's game.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, expit, ndtr
from sklearn.metrics import roc_curve

from dpadapt import _validate as validate
from dpadapt._types import BoolArray, FloatArray
from dpadapt.learning.figures import BLUE, GREY, ORANGE, blank, literal_text, set_title
from dpadapt.privacy.accounting.calibration import gaussian_mu

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_PROBABILITY = 1e-9  # keeps logits finite where a model is certain
_LEAST_DEVIATION = 1e-3  # of the confidence, on the scale of logits
_OWN_VARIANCE = 64  # shadows from which on an example's own variance is better than a common one
_FEW = 1000  # others below which fewer than ten false alarms would decide the rate at 1 %


@dataclass(frozen=True, eq=False, repr=False)
class AttackResult:
    """How well an attack told members from others. It depends on private rows: do not publish it.

    Parameters
    ----------
    scores : ndarray of shape (targets, n)
        Of each victim model for each example; larger speaks for a member.
    members : ndarray of bool of shape (targets, n)
        Which examples the victim was trained on.

    Examples
    --------
    >>> result = AttackResult(np.array([[0.1, 0.9, 0.8, 0.2]]), np.array([[0, 1, 1, 0]], bool))
    >>> result
    AttackResult(auc=1.000, advantage=1.000, 1 victim, 4 examples)
    """

    scores: FloatArray
    members: BoolArray

    @cached_property
    def roc(self) -> tuple[FloatArray, FloatArray]:
        """Rates of false alarms and of true detections, over all thresholds and victims."""
        curve = roc_curve(self.members.ravel(), self.scores.ravel(), drop_intermediate=False)
        return np.asarray(curve[0]), np.asarray(curve[1])

    @property
    def auc(self) -> float:
        """Probability that a member's score is above another's; 0.5 is guessing."""
        return float(np.trapezoid(self.roc[1], self.roc[0]))

    @property
    def advantage(self) -> float:
        """Largest rate of true detections minus that of false alarms, over all thresholds.

        The threshold is chosen on the scores themselves, so that guessing gives a little more than
        0: about 1 / sqrt(number of scores).
        """
        return float((self.roc[1] - self.roc[0]).max())

    @property
    def detected_at_1_percent(self) -> float:
        """Rate of true detections at 1 % false alarms; NaN where fewer than ten alarms decide."""
        if (~self.members).sum() < _FEW:
            return math.nan
        return float(self.roc[1][self.roc[0] <= 0.01].max())

    def without(self, victim: int) -> AttackResult:
        """Return the result without one victim: a jackknife over these gives an error bar."""
        others = np.arange(len(self.scores)) != victim
        return AttackResult(self.scores[others], self.members[others])

    def __repr__(self) -> str:
        victims, n = self.scores.shape
        return (
            f"AttackResult(auc={self.auc:.3f}, advantage={self.advantage:.3f}, "
            f"{victims} victim{'s' * (victims != 1)}, {n} examples)"
        )


def membership_attack(
    fit: Callable[[Any, Any, int], Any],
    X: Any,
    y: ArrayLike,
    *,
    shadows: int = 32,
    targets: int | None = None,
    relation: str = "replace-one",
    random_state: int = 0,
) -> AttackResult:
    """Attack models of one's own data; see the module for the attack and for what it tests.

    The result depends on private rows and nothing protects it. It is for who owns the data, and
    must not be published.

    Parameters
    ----------
    fit : callable
        ``fit(X_part, y_part, seed)`` trains on some of the examples and returns a classifier with
        ``predict_proba`` and ``classes_``. For a result that can be repeated, all its randomness
        must come from the seed, a whole number: ``noise="seeded", random_state=seed``.
    X : array or DataFrame of shape (n, d)
        Examples; each is in one half of the models.
    y : array of shape (n,)
        Their labels.
    shadows : int, default=32
        Models from which the attacker learns; even, since they are trained in pairs, on a half and
        on the other examples. From 64 on, each example has variances of its own; below, all
        examples share two.
    targets : int, optional
        Victim models, held out from what the attacker learns; half as many as shadows by default.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        The game, as explained above: exactly half of the examples, or a coin for each.
    random_state : int, default=0

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    >>> def memorise(X, y, seed):
    ...     return KNeighborsClassifier(1).fit(X, y)
    >>> membership_attack(memorise, X, y, shadows=8).auc > 0.7
    True
    """
    labels = np.asarray(y)
    n = len(labels)
    if labels.ndim != 1 or n != (X.shape[0] if hasattr(X, "shape") else len(X)):
        raise ValueError("y must hold one label for each row of X.")
    if n < 4:
        raise ValueError(f"X must hold at least four examples; got {n}.")
    validate.choice("relation", relation, ("replace-one", "add-remove"))
    if validate.count("shadows", shadows, least=4) % 2:
        raise ValueError(f"shadows must be an even number, they come in pairs; got {shadows}.")
    victims = shadows // 2 if targets is None else validate.count("targets", targets)
    rng = np.random.default_rng(random_state)
    halves = _memberships(rng, shadows // 2, n, relation)
    shadow_bits = np.concatenate([halves, ~halves])  # so that every example is in half of them
    victim_bits = _memberships(rng, victims, n, relation)
    bits = np.concatenate([shadow_bits, victim_bits])
    rows = X if hasattr(X, "iloc") else np.asarray(X)
    seeds = rng.integers(0, 2**31, len(bits))
    found = [_confidence(fit, rows, labels, *each) for each in zip(bits, seeds, strict=True)]
    seen, hidden = np.array(found[:shadows]), np.array(found[shadows:])
    inside, outside = _gaussian(seen, shadow_bits), _gaussian(seen, ~shadow_bits)
    return AttackResult(_log_density(hidden, *inside) - _log_density(hidden, *outside), victim_bits)


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    r"""Largest advantage of any attack on an (epsilon, delta)-DP training.

    .. math:: \frac{e^\epsilon - 1 + 2 \delta}{e^\epsilon + 1}

    Proof. An attack says "member" on an event S of the model; t and f are the probabilities of S
    with the example in and out. Privacy in both directions, for S and for its complement, gives

    .. math:: t \le e^\epsilon f + \delta, \qquad 1 - f \le e^\epsilon (1 - t) + \delta.

    Their sum is :math:`t - f + 1 \le e^\epsilon (1 - (t - f)) + 2 \delta`; solve for t - f. A
    randomised response that reveals the bit with probability delta, and otherwise tells the truth
    with odds :math:`e^\epsilon`, attains it. It is linear in (t, f), so it also holds for the
    averages over examples and victims that :class:`AttackResult` reports, up to sampling.

    Examples
    --------
    >>> round(advantage_bound(1.0, 1e-5), 3), advantage_bound(0.0), advantage_bound(np.inf)
    (0.462, 0.0, 1.0)
    """
    _check(epsilon, delta)
    return min(1.0, float(np.tanh(epsilon / 2) + 2 * delta * expit(-epsilon)))


def gaussian_advantage_bound(mu: float) -> float:
    r"""Largest advantage of any attack on a mu-Gaussian-DP training: :math:`2 \Phi(\mu/2) - 1`.

    Proof. mu-GDP means that no test has a rate of detections above
    :math:`\Phi(\Phi^{-1}(f) + \mu)` at the rate f of false alarms. With :math:`f = \Phi(x)`, the
    difference :math:`\Phi(x + \mu) - \Phi(x)` is stationary where the densities agree,
    :math:`x = -\mu/2`, and is there :math:`\Phi(\mu/2) - \Phi(-\mu/2)`. Averages over examples obey
    the same bound. It is smaller than :func:`advantage_bound` at every (epsilon, delta) that mu
    implies.

    Examples
    --------
    >>> round(gaussian_advantage_bound(1.0), 3)
    0.383
    """
    return float(erf(validate.non_negative("mu", mu) / math.sqrt(8)))


def auc_bound(epsilon: float, delta: float = 0.0) -> float:
    r"""Largest area under the curve of any attack on an (epsilon, delta)-DP training.

    The two inequalities in :func:`advantage_bound` keep the curve of detections below the polygon
    (0, delta), (a, 1 - a), (1 - delta, 1), (1, 1) with :math:`a = (1 - \delta)/(1 + e^\epsilon)`.
    It is concave, so that averages over examples stay below it, too. Its area is
    :math:`1 - a (1 - \delta)`.

    Examples
    --------
    >>> round(auc_bound(1.0, 1e-5), 3), auc_bound(0.0), auc_bound(np.inf)
    (0.731, 0.5, 1.0)
    """
    _check(epsilon, delta)
    return 1.0 - (1.0 - delta) ** 2 * float(expit(-epsilon))


def gaussian_auc_bound(mu: float) -> float:
    r"""Largest area under the curve of any attack on a mu-Gaussian-DP training.

    The area under :math:`\Phi(\Phi^{-1}(f) + \mu)`, a concave curve, is the probability that a
    normal variable with mean mu is above one with mean 0: :math:`\Phi(\mu / \sqrt 2)`.

    Examples
    --------
    >>> round(gaussian_auc_bound(1.0), 3)
    0.76
    """
    return float(ndtr(validate.non_negative("mu", mu) / math.sqrt(2)))


def _check(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be zero or more; got {epsilon!r}.")
    validate.delta(delta, allow_zero=True)


def _memberships(rng: np.random.Generator, models: int, n: int, relation: str) -> BoolArray:
    """Who takes part in the training of each model."""
    if relation == "add-remove":
        return rng.random((models, n)) < 0.5
    places = rng.permuted(np.tile(np.arange(n), (models, 1)), axis=1)
    return places < n // 2


def _confidence(
    fit: Callable[[Any, Any, int], Any], X: Any, y: NDArray[Any], members: BoolArray, seed: int
) -> FloatArray:
    """Confidence of one model in every example's label, on the scale of logits."""
    model = fit(X[members], y[members], int(seed))
    probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    classes = np.asarray(model.classes_)
    if probabilities.shape != (len(y), len(classes)) or not np.isfinite(probabilities).all():
        raise ValueError("fit: predict_proba must give a finite number for each row and class.")
    own = y[:, None] == classes  # no column for a class that the model has never seen
    right = np.where(own, probabilities, 0.0).sum(axis=1)
    wrong = np.where(own, 0.0, probabilities).sum(axis=1)  # 1 - right would lose small numbers
    right, wrong = (np.maximum(each, _LEAST_PROBABILITY) for each in (right, wrong))
    return np.asarray(np.log(right) - np.log(wrong))


def _gaussian(confidence: FloatArray, chosen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each example's confidence over the chosen models."""
    count = chosen.sum(axis=0)
    mean = np.where(chosen, confidence, 0.0).sum(axis=0) / count
    squares = np.where(chosen, (confidence - mean) ** 2, 0.0).sum(axis=0)
    if len(confidence) < _OWN_VARIANCE:
        squares, count = squares.sum(), (count - 1).sum() + 1
    return mean, np.maximum(np.sqrt(squares / (count - 1)), _LEAST_DEVIATION)


def _log_density(value: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    return np.asarray(-(((value - mean) / deviation) ** 2) / 2 - np.log(deviation))


_POINTS = 80
_MARKERS = ("o", "s", "D", "^", "v")
_COLOURS = (ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_Results = Mapping[float, AttackResult]


def draw_attack(
    results: _Results | Mapping[str, _Results], *, delta: float, title: str = "Membership inference"
) -> Figure:
    """Draw the success of attacks against epsilon, with the most that privacy allows.

    Points are attacks, with bars of two standard errors (a jackknife over the victims). The solid
    line bounds every (epsilon, delta)-DP training, the dashed one those whose noise is all Gaussian
    and calibrated to (epsilon, delta). The figure depends on private rows: do not publish it.

    Parameters
    ----------
    results : mapping of epsilon to AttackResult, or of names to such mappings
        An epsilon of infinity stands for training without privacy.
    delta : float
        Of the guarantees.
    title : str, default="Membership inference"

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> scores, members = np.array([[0.2, 0.9], [0.1, 0.3]]), np.array([[0, 1], [1, 0]], bool)
    >>> figure = draw_attack({1.0: AttackResult(scores, members)}, delta=1e-5)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['area under the curve', 'advantage']
    """
    validate.delta(delta)
    named = _named(results)
    epsilons = sorted({epsilon for each in named.values() for epsilon in each})
    finite = [epsilon for epsilon in epsilons if math.isfinite(epsilon)] or [1.0]
    low, high = finite[0] / 1.5, finite[-1] * 1.5
    places = {epsilon: min(epsilon, high * 1.6) for epsilon in epsilons}  # infinity: at the right
    figure, panels = blank(9.4, 3.8, columns=2)
    figure.suptitle(literal_text(title), x=0.01, ha="left", fontsize=11, weight="bold")
    _panel(panels[0], named, places, lambda each: each.auc)
    _panel(panels[1], named, places, lambda each: each.advantage)
    grid = np.geomspace(low, high, _POINTS)
    mus = [gaussian_mu(float(epsilon), delta) for epsilon in grid]
    for axes, bound, gaussian, guessing in (
        (panels[0], auc_bound, gaussian_auc_bound, 0.5),
        (panels[1], advantage_bound, gaussian_advantage_bound, 0.0),
    ):
        limits = [bound(float(epsilon), delta) for epsilon in grid]
        axes.fill_between(grid, limits, 1.0, color=GREY, alpha=0.12, lw=0)
        axes.plot(grid, limits, color=BLUE, lw=2, label="limit for any attack")
        label = "limit, Gaussian noise"
        axes.plot(grid, list(map(gaussian, mus)), "--", color=BLUE, lw=1.5, label=label)
        axes.axhline(guessing, color=GREY, ls=":", lw=1.2, label="guessing")
        axes.set_ylim(guessing - 0.04 - 0.04 * guessing, 1.02)
        axes.set_xscale("log")
        axes.set_xticks(
            list(places.values()),
            ["no\nprivacy" if math.isinf(each) else f"{each:g}" for each in epsilons],
        )
        axes.minorticks_off()
        axes.set_xlabel(f"epsilon (delta {delta:.0e})")
    set_title(panels[0], "How often a member scores higher")
    set_title(panels[1], "Detections minus false alarms")
    panels[0].set_ylabel("area under the curve")
    panels[1].set_ylabel("advantage")
    figure.legend(
        *panels[1].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4 if len(named) == 1 else 3,
        frameon=False,
    )
    return figure


def _panel(
    axes: Any,
    named: Mapping[str, _Results],
    places: Mapping[float, float],
    measure: Callable[[AttackResult], float],
) -> None:
    for number, (name, results) in enumerate(named.items()):
        spread = 0.035 * (number - (len(named) - 1) / 2)  # side by side on the log scale
        axes.errorbar(
            [places[epsilon] * math.exp(spread) for epsilon in sorted(results)],
            [measure(results[epsilon]) for epsilon in sorted(results)],
            yerr=[2 * _standard_error(results[epsilon], measure) for epsilon in sorted(results)],
            fmt=_MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            ms=6,
            capsize=3,
            zorder=3,
            label=literal_text(name),
        )


def _standard_error(result: AttackResult, measure: Callable[[AttackResult], float]) -> float:
    """Of a measure over other draws of the victims; 0 where there is only one."""
    victims = len(result.scores)
    if victims < 2:
        return 0.0
    left_out = [measure(result.without(victim)) for victim in range(victims)]
    return float(np.std(left_out) * math.sqrt(victims - 1))


def _named(results: _Results | Mapping[str, _Results]) -> dict[str, _Results]:
    """Results by name; one mapping alone is called "attack"."""
    if not results:
        raise ValueError("results must hold at least one attack.")
    groups: dict[Any, Any] = dict(results)
    if any(isinstance(each, AttackResult) for each in groups.values()):
        groups = {"attack": groups}
    for group in groups.values():
        for epsilon, result in group.items():
            if not isinstance(result, AttackResult) or not epsilon > 0:
                raise TypeError("results must map epsilons above 0 to AttackResults.")
    return groups
