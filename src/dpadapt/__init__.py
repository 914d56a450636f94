"""Learn a predictor for a private domain with the help of public data.

With the predictor comes a differential-privacy guarantee that is computed from what really ran.
The public names stand in ``__init__.pyi``; each is imported when it is asked for, and with it
scikit-learn and pandas, only then.
"""

from ._lazy import lazily, names_of_stub

__version__ = "0.1.0"

_WHERE = names_of_stub(__file__)

__all__ = sorted(" ".join(_WHERE.values()).split())

__getattr__ = lazily(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
