"""Chance: seeded noise repeats itself, secure noise never does."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.sample import Sample
from contracts.tape import releases, taped


class ChanceChecks(Sample):
    """What is random is random, and nothing else is."""

    def test_seeded_noise_is_repeatable(self):
        one, two = (self.answers(self.fit(self.make(random_state=3), self.private())) for _ in "ab")
        np.testing.assert_array_equal(one, two)
        model = self.make(random_state=3)
        again = self.answers(self.fit(self.fit(model, self.private()), self.private()))
        np.testing.assert_array_equal(again, one)
        states = (np.random.RandomState(5), np.random.RandomState(5))
        three, four = (
            self.answers(self.fit(self.make(random_state=s), self.private())) for s in states
        )
        np.testing.assert_array_equal(three, four)

    def test_other_seeds_give_other_answers(self):
        one, two = (self.fit(self.make(random_state=seed), self.private()) for seed in (3, 4))
        assert not np.array_equal(self.answers(one), self.answers(two))

    def test_secure_noise_is_never_repeated(self):
        made = []
        with taped() as tape:
            for _ in range(12 if self.chosen_from else 3):
                np.random.seed(0)  # noqa: NPY002
                model = self.fit(self.make(noise="secure", random_state=None), self.private())
                made.append(self.answers(model))
        different = len({np.asarray(each).tobytes() for each in made})
        # one of few answers comes up twice by chance, but not twelve times
        assert different > 1 if self.chosen_from else different == 3
        drawn = [np.asarray(draw.answer).tobytes() for draw in releases(tape)]
        first = [d for d in releases(tape) if d.mechanism.startswith("add_")]
        assert not first or len(set(drawn)) > 1

    def test_global_random_state_is_not_touched(self):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        self.fit(self.make(), self.private())
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002

    def test_secure_noise_refuses_a_seed(self):
        with pytest.raises(ValueError, match=r"random_state.*secure"):
            self.fit(self.make(noise="secure", random_state=0), self.private())

    def test_seeded_noise_needs_a_seed(self):
        with pytest.raises(ValueError, match="random_state"):
            self.fit(self.make(noise="seeded", random_state=None), self.private())
