"""The experiment of the demo: real wages, two settings, and the methods that are compared.

One setting has a gap that matters, one a gap that people hardly notice. A run splits the private
people at random: 70 % are the private sample, 30 % are kept for testing. Errors are mean squared
errors of log earnings on the test people. ``dpadapt demo`` runs it from an installed package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt._types import FloatArray
from dpadapt.auto import AutoRegressor
from dpadapt.datasets import load_wages, wage_features
from dpadapt.discrepancy import AdaptationWarning, DiscrepancyRegressor
from dpadapt.evaluation import Evaluation, evaluate
from dpadapt.pipeline import AdaptationPipeline
from dpadapt.preview.rehearsal import with_facts
from dpadapt.privacy import Private

if TYPE_CHECKING:
    import pandas as pd

    from dpadapt.auto import AutoRegressor

EPSILONS, DELTA = (0.25, 1.0, 4.0), 1e-6
PUBLIC_LINEAR = "public data only, linear"
PUBLIC_TREES = "public data only, boosted trees"
UNLABELLED = "dpadapt, no private labels, epsilon 1"
REFERENCE = "no privacy at all"
_OURS = "dpadapt, epsilon "


def method_name(epsilon: float) -> str:
    """Name of our method, with private labels, in the tables.

    Examples
    --------
    >>> method_name(1.0)
    'dpadapt, epsilon 1'
    """
    return f"{_OURS}{epsilon:g}"


class Public:
    """The public people of a setting: everything that reads no private row is fitted once.

    Parameters
    ----------
    X : DataFrame
    y : ndarray

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 40, 50, 60]})
    >>> Public(people, np.arange(4.0)).X.shape
    (4, 1)
    """

    def __init__(self, X: pd.DataFrame, y: FloatArray) -> None:
        self.X, self.y = X, y
        self._facts: Any = None

    def auto(self, epsilon: float) -> AutoRegressor:
        """Estimator of the demo; the public side of all that it returns is computed once."""
        if self._facts is None:
            self._facts = AutoRegressor(epsilon=1.0, delta=DELTA).public_facts(self.X, self.y)
        return with_facts(AutoRegressor, self._facts)(epsilon=epsilon, delta=DELTA)


def methods(
    public: Public, X: pd.DataFrame, y: FloatArray, test: pd.DataFrame
) -> Iterator[tuple[str, FloatArray, bool]]:
    """Name of each method, its predictions for the test people, and whether it adapted.

    Parameters
    ----------
    public : Public
    X, y : DataFrame and ndarray
        The private people. Only :data:`REFERENCE` and our method with labels read ``y``.
    test : DataFrame

    Examples
    --------
    >>> next(methods(None, None, None, None))  # doctest: +SKIP
    """
    linear, trees = _linear(public.X, public.y, test), _trees(public.X, public.y, test)
    yield PUBLIC_LINEAR, linear, True
    yield PUBLIC_TREES, trees, True
    unlabelled = AdaptationPipeline(
        [("features", wage_features())], DiscrepancyRegressor(epsilon=1.0, delta=DELTA)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        unlabelled.fit(public.X, public.y, private=Private(X))
    yield UNLABELLED, unlabelled.predict(test), bool(unlabelled.estimator_.adapted_)
    for epsilon in EPSILONS:
        model = public.auto(epsilon).fit(public.X, public.y, private=Private(X, y))
        yield method_name(epsilon), model.predict(test), True
    yield REFERENCE, (_linear(X, y, test) + _trees(X, y, test)) / 2, True


def _linear(X: pd.DataFrame, y: FloatArray, test: pd.DataFrame) -> FloatArray:
    """Ridge regression as anybody would fit it."""
    model = make_pipeline(wage_features(), StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    return np.asarray(model.fit(X, y).predict(test))


def _trees(X: pd.DataFrame, y: FloatArray, test: pd.DataFrame) -> FloatArray:
    """Boosted trees as anybody would fit them."""
    model = make_pipeline(wage_features(), HistGradientBoostingRegressor(random_state=0))
    return np.asarray(model.fit(X, y).predict(test))


COLUMNS = ["age", "education", "gender", "region"]
_PUBLIC_SEED, _SPLIT_SEED = 2004, 70_30
_TRAIN = 0.7
_FAR = 3.0  # deviations of the label: no larger error counts in the evaluation
_PUBLIC, _PRIVATE = 2000, 10_000  # people at most: the demo is quick


@dataclass(frozen=True)
class DemoSetting:
    """Who is public and who is private.

    Parameters
    ----------
    name : str
    story : str
        Some sentences for the screen.
    public, private : ndarray of int
        Rows of :func:`dpadapt.datasets.load_wages`.

    Examples
    --------
    >>> DemoSetting("halves", "", np.array([0]), np.array([1])).name
    'halves'
    """

    name: str
    story: str
    public: NDArray[np.int64]
    private: NDArray[np.int64]


def settings(wages: pd.DataFrame) -> tuple[DemoSetting, DemoSetting]:
    """Return the two settings of the demo.

    Parameters
    ----------
    wages : DataFrame
        With columns ``age`` and ``gender``.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [25, 45, 55], "gender": ["female", "male", "male"]})
    >>> settings(people)[0].private
    array([0])
    """
    years, men = wages["age"].to_numpy(), (wages["gender"] == "male").to_numpy()
    generator = np.random.default_rng(_PUBLIC_SEED)
    order, draws = generator.permutation(len(years)), generator.random(len(years))
    older = draws < 1 / (1 + np.exp(-(years - 40) / 5))

    def some(which: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
        return np.sort(order[which[order]][:count])

    return (
        DemoSetting(
            "older men public, women private",
            "Pay is known of men of 40 and over, and women are asked about. What public data say "
            "is wrong for them. No weights turn older men into women: without private labels "
            "dpadapt says so and keeps the public model. With private labels it learns, as far as "
            "the budget allows.",
            some(men & (years >= 40), _PUBLIC),
            some(~men, _PRIVATE),
        ),
        DemoSetting(
            "an older panel public, the rest private",
            "The public panel is older than the private people, but nearly every age occurs in "
            "both: there is little to gain, and little must be lost.",
            some(older, _PUBLIC),
            some(~older, _PRIVATE),
        ),
    )


def both_settings() -> tuple[DemoSetting, DemoSetting]:
    """Return the two settings over the rows of the wages.

    Examples
    --------
    >>> [setting.name for setting in both_settings()]
    ['older men public, women private', 'an older panel public, the rest private']
    """
    return settings(load_wages())


def public_people(setting: DemoSetting) -> Public:
    """Public people of a setting, their log earnings with them.

    Examples
    --------
    >>> public_people(both_settings()[0]).X.shape
    (2000, 4)
    """
    wages = load_wages().iloc[setting.public]
    return Public(wages[COLUMNS], np.log(wages["earnings"].to_numpy()))


def run_demo(
    runs: int = 3,
    *,
    publics: tuple[Public, ...] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> pd.DataFrame:
    """Run both settings; one line for each setting, run and method.

    Parameters
    ----------
    runs : int, default=3
        Random splits of the private people in each setting.
    publics : tuple of Public, optional
        The public people of the settings, where their public side is known already.
    progress : callable, optional
        Called with (steps done, steps in all, name of the next step).

    Returns
    -------
    DataFrame
        Columns ``setting``, ``method``, ``run``, ``mse``, ``adapted`` (False where the method
        noticed that it cannot adapt).

    Examples
    --------
    >>> summarise(run_demo(runs=1))  # doctest: +SKIP
    """
    import pandas as pd

    wages, lines = load_wages(), []
    labels = np.log(wages["earnings"].to_numpy())
    both = settings(wages)
    total, done = len(both) * runs * (len(EPSILONS) + 4), 0
    for setting, public in zip(both, publics or map(public_people, both), strict=True):
        people, earned = wages.iloc[setting.private][COLUMNS], labels[setting.private]
        for run in range(runs):
            sample, test = _split(run, len(people))
            given = people.iloc[sample], earned[sample], people.iloc[test]
            if progress is not None:
                progress(done, total, f"{setting.name}: public data only")
            for method, predicted, adapted in methods(public, *given):
                mse = float(np.mean((predicted - earned[test]) ** 2))
                lines.append((setting.name, method, run, mse, adapted))
                done += 1
                if progress is not None:
                    progress(done, total, f"{setting.name}: after {method}")
    return pd.DataFrame(lines, columns=["setting", "method", "run", "mse", "adapted"])


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread over runs, and the part of the gap that each method closes.

    The gap is the error of the better model of public data alone minus that of models trained on
    private labels without privacy, in the same run: 0 is public data only, 1 is no privacy,
    negative is harm.

    Parameters
    ----------
    results : DataFrame
        From :func:`run_demo`.

    Returns
    -------
    DataFrame
        One line for each setting and method, in the order of ``results``: ``mse``, ``spread``
        (standard deviation over runs), ``gap`` and ``gap_spread``, ``adapted`` (part of the runs).

    Examples
    --------
    >>> import pandas as pd
    >>> names = [PUBLIC_LINEAR, PUBLIC_TREES, "ours", REFERENCE]
    >>> table = pd.DataFrame({"setting": "s", "method": names, "run": 0,
    ...                       "mse": [0.4, 0.3, 0.25, 0.2], "adapted": True})
    >>> summarise(table)["gap"].round(3).tolist()
    [-1.0, 0.0, 0.5, 1.0]
    """
    worst = np.minimum(_error_of(results, PUBLIC_LINEAR), _error_of(results, PUBLIC_TREES))
    gap = (worst - results["mse"]) / (worst - _error_of(results, REFERENCE))
    grouped = results.assign(gap=gap).groupby(["setting", "method"], sort=False)
    table = grouped.agg(
        mse=("mse", "mean"),
        spread=("mse", "std"),
        gap=("gap", "mean"),
        gap_spread=("gap", "std"),
        adapted=("adapted", "mean"),
    )
    return table.reset_index()


def example_model(public: Public | None = None, epsilon: float = 1.0) -> AutoRegressor:
    """Fit one model on the first setting, for the report.

    Parameters
    ----------
    public : Public, optional
        The public people of the first setting, where their public side is known already.
    epsilon : float, default=1.0

    Examples
    --------
    >>> example_model(epsilon=1.0).guarantee_.epsilon <= 1.0  # doctest: +SKIP
    True
    """
    setting = both_settings()[0]
    own = public or public_people(setting)
    people = load_wages().iloc[setting.private]
    sample = people.iloc[_split(0, len(people))[0]]
    private = Private(sample[COLUMNS], np.log(sample["earnings"].to_numpy()))
    return own.auto(epsilon).fit(own.X, own.y, private=private)


def example_evaluation(model: AutoRegressor, public: Public, epsilon: float = 0.5) -> Evaluation:
    """Measure the model of :func:`example_model` on people it was not fitted to, privately.

    Parameters
    ----------
    model : AutoRegressor
    public : Public
        Its public people: their labels bound those of the private ones.
    epsilon : float, default=0.5

    Examples
    --------
    >>> example_evaluation(example_model(), public_people(both_settings()[0]))  # doctest: +SKIP
    """
    people = load_wages().iloc[both_settings()[0].private]
    test = people.iloc[_split(0, len(people))[1]]
    private = Private(test[COLUMNS], np.log(test["earnings"].to_numpy()))
    span = (float(public.y.min()), float(public.y.max()))
    most = _FAR * float(public.y.std())  # as public people say; less would cut true errors
    return evaluate(
        model,
        private,
        epsilon=epsilon,
        delta=DELTA,
        metrics=["mse"],
        label_range=span,
        largest_error=most,
    )


def evaluation_sentence(found: Evaluation) -> str:
    """Say in one sentence what a private evaluation found, beside the public model.

    Parameters
    ----------
    found : Evaluation
        With the mean squared error among its measures.

    Examples
    --------
    >>> from dpadapt.evaluation.evaluation import Measured
    >>> from dpadapt.evaluation.intervals import Interval
    >>> from dpadapt.privacy import Guarantee
    >>> error = Measured("mean squared error", Interval(0.2, 0.1, 0.3), None, None, False)
    >>> evaluation_sentence(Evaluation({"mse": error}, (), 100, 0.95, Guarantee(), ()))[-30:]
    'That cost epsilon 0 of theirs.'
    """
    error, paid = found["mse"], found.guarantee
    beside = ""
    if error.baseline is not None:
        beside = f", public data alone {error.baseline.value:.4f}: {error.verdict}"
    return (
        "what may be shown of real people: the error of this model on those it was not fitted to, "
        f"measured privately: {error.model.value:.4f} ({error.model.low:.4f} to "
        f"{error.model.high:.4f}){beside}. That cost epsilon {paid.epsilon:.2g} of theirs."
    )


def verdict(table: pd.DataFrame) -> str:
    """Say in one or two sentences what was gained in a setting.

    Parameters
    ----------
    table : DataFrame
        Lines of :func:`summarise` of that setting.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [PUBLIC_LINEAR, PUBLIC_TREES, UNLABELLED, method_name(1.0), REFERENCE]
    >>> verdict(pd.DataFrame({"method": names, "mse": [0.4, 0.5, 0.4, 0.3, 0.2],
    ...                       "gap": [0, -0.5, 0, 0.5, 1], "adapted": [1, 1, 0, 1, 1]}))
    'at epsilon 1 the error falls by 25.0 %, which is 50 % of what no privacy at all would gain. \
Without private labels it declined to adapt.'
    """
    lines = {str(row["method"]): row for row in table.to_dict("records")}
    ours, unlabelled = lines[method_name(1.0)], lines[UNLABELLED]
    public = min(lines[PUBLIC_LINEAR]["mse"], lines[PUBLIC_TREES]["mse"])
    fall = f"{100 * (1 - ours['mse'] / public):.1f} %"
    told = f"at epsilon 1 the error falls by {fall}, which is {100 * ours['gap']:.0f} % of what no "
    told += "privacy at all would gain. Without private labels "
    if unlabelled["adapted"] < 0.5:
        return told + "it declined to adapt."
    change = 100 * (unlabelled["mse"] / lines[PUBLIC_LINEAR]["mse"] - 1)
    return told + f"the error of the linear model changes by {change:+.1f} %."


def _error_of(results: pd.DataFrame, method: str) -> Any:
    """Error of one method in each line's setting and run."""
    reference = results[results["method"] == method].set_index(["setting", "run"])["mse"]
    keys = list(zip(results["setting"], results["run"], strict=True))
    return reference.loc[keys].to_numpy()


def _split(run: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng((_SPLIT_SEED, run)).permutation(n)
    cut = round(_TRAIN * n)
    return order[:cut], order[cut:]
