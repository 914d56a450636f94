"""Fit and evaluation from one private file: people in one part are not in the other."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .evaluate import say_evaluation
from .outputs import refuse_out, report_charge_on_error, write_paid
from .screens import fall_back_to_stderr, say
from .tables import TableError

if TYPE_CHECKING:
    from dpadapt.evaluation import Evaluation
    from dpadapt.privacy import Guarantee, Private
    from dpadapt.privacy.ledger.ledger import Account

    from .public_table import PublicTable


@dataclass(frozen=True)
class HoldOut:
    """Which share is held out, what its evaluation may cost, and where it is written.

    Examples
    --------
    >>> HoldOut.from_options(0.2, None, None, usual=1.0, delta=1e-6, model=Path("model")).out.name
    'model.evaluation.json'
    """

    share: float
    epsilon: float
    delta: float
    out: Path

    @classmethod
    def from_options(
        cls,
        share: float | None,
        epsilon: float | None,
        out: Path | None,
        *,
        model: Path,
        usual: float,
        delta: float,
    ) -> HoldOut | None:
        """What the command line asks for, by default at the usual epsilon; None if nothing."""
        from dpadapt import _validate

        if share is None:
            if epsilon is not None or out is not None:
                raise typer.BadParameter("--holdout-epsilon and --evaluation-out need --holdout.")
            return None
        most = usual if epsilon is None else epsilon
        _validate.fraction("--holdout", share)
        _validate.epsilon(most)
        return cls(share, most, delta, out or Path(f"{model}.evaluation.json"))

    def refuse(self, *inputs: Path, model: Path, ledger: str | None, force: bool) -> None:
        """Refuse a file for the evaluation that must not be written, or cannot be."""
        option = "--evaluation-out"
        refuse_out(self.out, *inputs, model=model, ledger=ledger, option=option)
        if not self.out.absolute().parent.is_dir():
            raise TableError(f"{option}: there is no folder {self.out.absolute().parent}.")
        if self.out.exists() and not (force and self.out.is_file()):
            raise TableError(f"{option}: {self.out} exists; use --force to replace it.")

    def parts(self, private: Private, account: Account | None) -> tuple[Private, Private]:
        """Both parts of a private sample; the first fit charges the account for both."""
        from dpadapt.evaluation import hold_out

        if not private.labelled:
            raise TableError("--holdout needs private labels: error is measured against them.")
        train, test = hold_out(
            private, self.share, epsilon=self.epsilon, delta=self.delta, ledger=account
        )
        return train, test

    def foresee(
        self, test: Private, public: PublicTable, model: Any, *, who: str = "private rows"
    ) -> None:
        """Say which difference can be seen on those held out, before a model is fitted."""
        from dpadapt.evaluation import outlook_of

        from .public_table import Task, error_bounds

        numbers = public.task is Task.regression
        told = outlook_of(
            test.n_people,
            None if numbers else dict(sorted(Counter(public.labels).items())),
            epsilon=self.epsilon,
            delta=self.delta,
            probabilities=hasattr(model, "predict_proba"),
            **(error_bounds(public.labels) if numbers else {}),
        )
        for number, sentence in enumerate(replace(told, who=who).sentences):
            say("" if number else "held out", sentence)

    def evaluated(
        self, model: Any, digest: str, test: Any, account: Account | None, **options: Any
    ) -> Evaluation:
        """Measure a model, saved under a digest, on those held out."""
        from dpadapt.evaluation import evaluate

        with report_charge_on_error(account):
            found = evaluate(model, test, epsilon=self.epsilon, delta=self.delta, **options)
        return replace(found, model=digest, held_out=True)

    def tell(self, found: Evaluation, private: Private, fitted: Guarantee) -> None:
        """Write an evaluation; show it, and what it has cost together with the fit."""
        try:
            write_paid(self.out, found.to_json() + "\n")
        finally:
            with fall_back_to_stderr(f"The evaluation is in {self.out}."):
                self._show(found, private, fitted)

    def _show(self, found: Evaluation, private: Private, fitted: Guarantee) -> None:
        own, both = found.guarantee, private.spent(self.delta)
        say_evaluation(
            found, f"epsilon {own.epsilon:.4g} at delta {own.delta:g}, of those held out"
        )
        if math.isclose(both.epsilon, fitted.epsilon, rel_tol=1e-6) and both.delta == fitted.delta:
            told = "the guarantee above is that of fit and evaluation together: nobody is in both"
            facts = f"epsilon = {both.epsilon:.4g}, delta = {both.delta:g}, {both.relation}"
            say("together", f"{told} ({facts}).")
        else:
            say("together", both.sentence, style="bold green")
        say("wrote", f"{self.out}; the report in the model folder shows it, too")


def rehearsal(model: Any, public: PublicTable, bounds: dict[str, Any]) -> dict[str, Any]:
    """How far a model and its public model are apart on public rows, for a model folder."""
    from dpadapt.evaluation import public_facts

    if not hasattr(model, "predict"):
        return {}
    known = public_facts(model, public.features, public.labels, **bounds)
    return {"on_public": known.to_dict()}


def as_options(reading: dict[str, Any]) -> dict[str, Any]:
    """What a fit knows of public labels and rows, as arguments of ``evaluate``.

    Examples
    --------
    >>> as_options({"form": {}, "largest_error": 2.0})
    {'largest_error': 2.0}
    """
    from dpadapt.evaluation import OnPublic

    others = ("form", "held_out", "on_public")
    options = {name: value for name, value in reading.items() if name not in others}
    known = reading.get("on_public")
    return options if known is None else {**options, "public": OnPublic.from_dict(known)}
