"""All checks together, made one by one or as tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from . import chance, guarantees, leaks, neighbours, sklearn_rules
from .subject import Facts, Subject


def _checks_of(module: ModuleType) -> dict[str, Callable[[Subject], None]]:
    own = {name: thing for name, thing in vars(module).items() if name.startswith("check_")}
    return {name: thing for name, thing in own.items() if thing.__module__ == module.__name__}


CHECKS: dict[str, Callable[[Subject], None]] = {
    name: check
    for module in (guarantees, neighbours, leaks, chance, sklearn_rules)
    for name, check in _checks_of(module).items()
}


@dataclass(frozen=True)
class Check:
    """One promise of one estimator; a call fails if the promise is not kept."""

    name: str
    subject: Subject

    @property
    def promise(self) -> str:
        """The promise, in a sentence."""
        return (CHECKS[self.name].__doc__ or "").split("\n")[0]

    def __call__(self) -> None:
        try:
            CHECKS[self.name](self.subject)
        except Exception as error:
            how = str(error).strip() if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(
                f"{self.subject.name} breaks a promise. {self.promise}\n{self.name}: {how}"
            ) from error


def private_checks(
    estimator: Any, *, facts: Facts | None = None, public: Any = None, private: Any = None
) -> Iterator[tuple[str, Check]]:
    """Names and checks of every promise that a private estimator makes.

    A check is called without arguments, and raises AssertionError if the promise is broken. Checks
    of one call share their usual fit.

    Parameters
    ----------
    estimator, facts, public, private
        As in :func:`check_private_estimator`.

    Yields
    ------
    name : str
    check : callable

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> checks = dict(private_checks(DiscrepancyRegressor(epsilon=1.0, delta=1e-6)))
    >>> checks["check_charge_comes_before_noise"].promise
    'The ledger is charged once, with the events of the guarantee, before any noise.'
    >>> checks["check_charge_comes_before_noise"]()
    """
    subject = (
        estimator
        if isinstance(estimator, Subject)
        else Subject(estimator, facts, public=public, private=private)
    )
    subject.core(subject.make())  # an estimator without a budget is refused at once
    unknown = subject.facts.left_out.keys() - CHECKS.keys()
    if unknown:
        raise ValueError(f"left_out: there is no check {', '.join(sorted(unknown))}.")
    for name in CHECKS:
        if name not in subject.facts.left_out:
            yield name, Check(name, subject)


def check_private_estimator(
    estimator: Any, *, facts: Facts | None = None, public: Any = None, private: Any = None
) -> None:
    """Check that an estimator keeps the promises of a private estimator.

    About fifty checks, some hundred fits: the guarantee is recomputed by a second accountant, the
    noise that is drawn is compared with the events that are charged, one person is replaced by
    hostile ones, and nothing private may be found in the model, in files, errors and logs.

    Parameters
    ----------
    estimator : estimator or Subject
        Not fitted. The battery sets epsilon, delta, noise, random_state and ledger itself.
    facts : Facts, optional
        What is special about the estimator: whether it reads private labels, which checks are
        left out and why.
    public : tuple (X, y), optional
        Public rows and labels to fit to, if the battery's own do not suit.
    private : array or tuple (X, y), optional
        Made-up rows that play the private ones; never real ones.

    Raises
    ------
    AssertionError
        At the first promise that is broken, with the promise and what was found.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> check_private_estimator(Ridge())
    Traceback (most recent call last):
    ...
    TypeError: Ridge has no parameter epsilon: is it a private estimator?
    """
    for _, check in private_checks(estimator, facts=facts, public=public, private=private):
        check()


def parametrize_with_private_checks(estimators: Iterable[Any]) -> Any:
    """Make a test of every check of every estimator; needs pytest.

    Parameters
    ----------
    estimators : iterable of estimator, Subject or pytest.param of one
        Marks and the id of a ``pytest.param`` go to all tests of its estimator.

    Returns
    -------
    decorator
        For a test function with the argument ``check``, to be called without arguments.

    Examples
    --------
    >>> from dpadapt import DiscrepancyRegressor
    >>> @parametrize_with_private_checks([DiscrepancyRegressor(epsilon=1.0, delta=1e-6)])
    ... def test_promises(check):
    ...     check()
    """
    import pytest

    params = []
    for given in estimators:
        marked = isinstance(given, type(pytest.param()))
        one, marks = (given.values[0], given.marks) if marked else (given, ())
        for name, check in private_checks(one):
            called = (given.id if marked else None) or check.subject.name
            params.append(pytest.param(check, marks=marks, id=f"{called}-{name}"))
    return pytest.mark.parametrize("check", params)
