"""The errors of the trusted core. None ever depends on a private value."""

from __future__ import annotations

import builtins
from typing import Any

# What leaves foreign code as it is. Everything else may speak of a private value, and is withheld:
# also what is no Exception, as a panic of a library written in Rust.
LET_THROUGH = (KeyboardInterrupt, SystemExit, GeneratorExit)


class PrivacyError(Exception):
    """Something was asked of private rows that would break the guarantee.

    Examples
    --------
    >>> issubclass(BudgetExceeded, PrivacyError)
    True
    """


def kind_of(error: BaseException) -> str:
    """Name of a built-in error, in brackets; nothing for others, whose name may be made up.

    Examples
    --------
    >>> kind_of(KeyError("a secret")), kind_of(type("secret", (Exception,), {})())
    (' (KeyError)', '')
    """
    name = type(error).__name__
    return f" ({name})" if getattr(builtins, name, None) is type(error) else ""


def unreadable(error: BaseException) -> PrivacyError:
    """Say that a block could not be processed, without a word of what was in it."""
    return PrivacyError(
        f"the private rows could not be read or reduced{kind_of(error)}; the reason is withheld, "
        "because it may depend on private values. Nothing was released."
    )


class LedgerError(PrivacyError):
    """The durable ledger could not be read or written; nothing was charged or released."""


class StorageError(PrivacyError):
    """Rows find no room, in memory or on a disk, to be kept for the next sum.

    Sizes alone decide. Where it can be foreseen, it is told before anything is charged.

    Examples
    --------
    >>> issubclass(StorageError, PrivacyError)
    True
    """


class BudgetExceeded(PrivacyError):
    """A charge would pass the budget: refused before any noise was drawn.

    Parameters
    ----------
    spent, asked, left : float
        Epsilons at the budget's delta: of what was charged before, of the refused charge alone,
        and of the largest single Gaussian release that would still fit.
    budget_epsilon, budget_delta : float
        The whole budget.

    Examples
    --------
    >>> print(BudgetExceeded(spent=0.8, asked=0.5, left=0.3, budget_epsilon=1.0, budget_delta=1e-6))
    the budget of epsilon 1 at delta 1e-06 would be passed: spent 0.8, asked 0.5, left 0.3 \
(epsilons at that delta; they compose tightly, so they need not add up). Nothing was released. \
Ask for at most what is left: a budget is for a data set's whole life, nothing raises it.
    """

    def __init__(
        self,
        *,
        spent: float,
        asked: float,
        left: float,
        budget_epsilon: float,
        budget_delta: float,
    ) -> None:
        self.spent, self.asked, self.left = spent, asked, left
        self.budget_epsilon, self.budget_delta = budget_epsilon, budget_delta
        super().__init__(
            f"the budget of epsilon {budget_epsilon:.4g} at delta {budget_delta:.4g} would be "
            f"passed: spent {spent:.4g}, asked {asked:.4g}, left {left:.4g} (epsilons at that "
            "delta; they compose tightly, so they need not add up). Nothing was released. Ask for "
            "at most what is left: a budget is for a data set's whole life, nothing raises it."
        )

    def __reduce__(self) -> Any:
        names = ("spent", "asked", "left", "budget_epsilon", "budget_delta")
        return (_budget_exceeded, (tuple((name, getattr(self, name)) for name in names),))


def _budget_exceeded(facts: tuple[tuple[str, float], ...]) -> BudgetExceeded:
    return BudgetExceeded(**dict(facts))
