"""Chance: seeded noise repeats itself, secure noise never does."""

from __future__ import annotations

import numpy as np

from .search import refused, require
from .subject import Subject
from .tape import releases, taped


def check_seeded_noise_is_repeatable(subject: Subject) -> None:
    """The same seed gives the same model, bit for bit, in a new fit and in a refit."""

    def answers(state: object) -> np.ndarray:
        return subject.answers(subject.fit(subject.make(random_state=state), subject.private()))

    one, two = answers(3), answers(3)
    np.testing.assert_array_equal(one, two)
    model = subject.make(random_state=3)
    again = subject.fit(subject.fit(model, subject.private()), subject.private())
    np.testing.assert_array_equal(subject.answers(again), one)
    three, four = (answers(np.random.RandomState(5)) for _ in "ab")
    np.testing.assert_array_equal(three, four)


def check_other_seeds_give_other_answers(subject: Subject) -> None:
    """Another seed gives another model."""
    one, two = (
        subject.answers(subject.fit(subject.make(random_state=seed), subject.private()))
        for seed in (3, 4)
    )
    require(not np.array_equal(one, two), "two seeds give one model")


def check_secure_noise_is_never_repeated(subject: Subject) -> None:
    """Secure noise is new in every fit, whatever the global random state is."""
    few, made, drawn = subject.facts.few_answers, set(), set()
    for _ in range(12 if few else 3):
        np.random.seed(0)  # noqa: NPY002
        model = subject.make(noise="secure", random_state=None)
        with taped() as tape:
            answers = subject.answers(subject.fit(model, subject.private()))
        released = b"".join(np.asarray(draw.answer).tobytes() for draw in releases(tape))
        # a model that gives a move back answers as the public one: what was released tells more
        made.add(np.asarray(answers).tobytes() + released)
        if any(draw.mechanism.startswith("add_") for draw in tape):
            drawn.add(released)
    # one of few answers comes up twice by chance, but not twelve times
    require(len(made) > 1 if few else len(made) == 3, "two fits with secure noise are the same")
    require(not drawn or len(drawn) > 1, "all secure draws are the same")


def check_global_random_state_is_not_touched(subject: Subject) -> None:
    """A fit does not draw from the global random state."""
    before = _global_state()
    subject.fit(subject.make(), subject.private())
    np.testing.assert_array_equal(_global_state(), before)


def _global_state() -> np.ndarray:
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    return np.append(state["key"].astype(np.int64), state["pos"])


def check_secure_noise_refuses_a_seed(subject: Subject) -> None:
    """A seed together with secure noise is refused."""
    with refused(ValueError, r"random_state.*secure", "secure noise with a seed"):
        subject.fit(subject.make(noise="secure", random_state=0), subject.private())


def check_seeded_noise_needs_a_seed(subject: Subject) -> None:
    """Seeded noise without a seed is refused."""
    with refused(ValueError, "random_state", "seeded noise without a seed"):
        subject.fit(subject.make(noise="seeded", random_state=None), subject.private())
