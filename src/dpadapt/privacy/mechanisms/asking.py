"""The one way to a private model that is asked: a charge, or a secret file that goes with its rows.

A charge is computed and made by the session, from the constants of a mechanism of this package.
Going on without one needs the file (:mod:`.secret_state`) and the rows, labels and parameters that
it was made with, and gives answers of the model and of the noise in the file alone.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from dpadapt._types import FloatArray

from ..accounting.composition import compose_epsilon
from ..accounting.events import Event
from ..core.doors import check_door
from ..core.session import Session
from ..rows.errors import PrivacyError
from ..rows.foreign import note, noted
from .answers import Answers
from .interactive_model import InteractiveModel, check_interactive
from .secret_state import SecretState, damaged


def open_answers(
    session: Session, model: InteractiveModel, state: str | os.PathLike[str] | None = None
) -> Answers:
    """Solve for the private model, charge for all answers, and make the secret file.

    Parameters
    ----------
    session : Session
        With nothing planned.
    model : InteractiveModel
    state : path, optional
        The secret file, which must not be there. Without one, answers live as long as the process.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.privacy.statistics import Gram
    >>> from dpadapt.privacy.mechanisms.interactive_model import InteractiveModel
    >>> from dpadapt.privacy.mechanisms.path import GaussianPath
    >>> class Points:
    ...     def encode(self, table):
    ...         return [row.tobytes() for row in table.round(6)]
    ...     def decode(self, texts):
    ...         return np.array([np.frombuffer(text) for text in texts])
    >>> session = Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6)
    >>> solve = lambda table: table[:, :1]
    >>> model = InteractiveModel(Gram(np.inner, 1.0), solve, GaussianPath(0.01), Points())
    >>> answers = open_answers(session, model)
    >>> one, two = answers.ask(np.array([[0.2], [0.2]]))
    >>> bool(one == two), len(answers), round(session.guarantee.epsilon, 6)
    (True, 1, 1.0)
    """
    hidden = session.derive(session.hide(model.gram), model.solve, label="model")
    file = None
    if state is not None:
        blocks = session._part("all").rows.long_blocks()
        file = SecretState.create(state, _facts(session, model), blocks)
    try:
        grant = session.plan(answers=model.mechanism).answers
    except BaseException:
        if file is not None:
            file.discard()
        raise
    answers: Answers = session.release(grant, hidden, model=model, state=file)
    answers._write_down(hidden._value)
    return answers


def restore_answers(
    session: Session, model: InteractiveModel, state: str | os.PathLike[str]
) -> Answers:
    """Go on from a secret file, with the same rows, labels and parameters; nothing is charged.

    The model and its noise are those of the file.

    Parameters
    ----------
    session : Session
        On the same rows, with nothing planned.
    model : InteractiveModel
    state : path
        The secret file.

    Examples
    --------
    >>> from dpadapt.privacy import Private
    >>> from dpadapt.privacy.statistics import Gram
    >>> from dpadapt.privacy.mechanisms.interactive_model import InteractiveModel
    >>> from dpadapt.privacy.mechanisms.path import GaussianPath
    >>> session = Private([[0.5]] * 3).open(epsilon=1.0, delta=1e-6)
    >>> solve = lambda table: table[:, :1]
    >>> model = InteractiveModel(Gram(np.inner, 1.0), solve, GaussianPath(0.01), None)
    >>> restore_answers(session, model, "nowhere.db")
    Traceback (most recent call last):
    ...
    dpadapt.privacy.rows.errors.PrivacyError: state: there is no file nowhere.db.
    """
    rows = session._part("all").rows
    file = SecretState.open(state, _facts(session, model), rows.long_blocks())
    try:
        coefficients, scale = _written_down(file)
        session._charge(_price(session, model, scale), budgets=())  # it was charged then
        with noted(session._foreign):
            note(model.gram.kernel)  # it saw the rows then
        session._bounds.update({f"radius ({model.gram.label})": model.gram.radius})
        shaped = coefficients.reshape(rows.n_rows, -1)
        kind = type(model.mechanism)
        answers: Answers = kind._answers(model.mechanism, session, model, shaped, scale, file)
        answers._catch_up()
    except BaseException as error:
        file.close()
        if isinstance(error, (ValueError, TypeError, KeyError, sqlite3.Error)):
            raise damaged(file.path) from None
        raise
    return answers


def _price(session: Session, model: InteractiveModel, scale: float) -> tuple[Event, ...]:
    """What it costs, computed from its constants: nobody can state another price."""
    check_interactive(model.mechanism)
    check_door(model.mechanism, session._people)
    model.mechanism.check(session.relation, session._source)
    every = model.mechanism.events(scale, session._source)
    events = tuple(event.under(session.relation) for event in every)
    if compose_epsilon(events, session.delta) > session.epsilon * (1 + 1e-9):
        raise PrivacyError("the mechanism costs more than the session may spend.")
    return events


def _facts(session: Session, model: InteractiveModel) -> dict[str, Any]:
    return {
        **model.facts,
        "mechanism": type(model.mechanism).__name__,
        "constants": asdict(cast(Any, model.mechanism)),
        "radius": model.gram.radius,
        "epsilon": session.epsilon,
        "delta": session.delta,
        "relation": session.relation,
        "noise": session._source.name,
        "rows": session.n_rows,
    }


def _written_down(file: SecretState) -> tuple[FloatArray, float]:
    scale, coefficients = file.read("scale"), file.read("coefficients")
    if scale is None or coefficients is None:
        raise PrivacyError(
            f"state: {file.path} was never finished: its fit broke off. Delete it and fit again; "
            "if a charge was made for it, that charge stands."
        )
    return np.frombuffer(coefficients), float(np.frombuffer(scale)[0])
