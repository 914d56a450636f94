"""The guarantee is true: events, noise and neighbours."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from contracts.hostile import HOSTILE_LABELS, HOSTILE_ROWS
from contracts.sample import Sample
from contracts.tape import Draw, distance, paid_by, planned, releases, taped
from dpadapt import Guarantee, Private
from independent_accountant import recompute_epsilon

_FIRST: dict[Any, list[Draw]] = {}  # tapes of the first of two neighbours, by contract and row


class GuaranteeChecks(Sample):
    """What a fit claims is what it did."""

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (8.0, 1e-9)]
    )
    def test_guarantee_is_what_an_independent_accountant_finds(self, epsilon, delta):
        model = self.fit(self.make(epsilon=epsilon, delta=delta), self.private())
        guarantee = model.guarantee_
        low, high = recompute_epsilon(guarantee.events, guarantee.delta)
        assert low * (1 - 1e-9) <= guarantee.epsilon <= 1.01 * high
        assert guarantee.epsilon <= epsilon * (1 + 1e-9)
        assert guarantee.epsilon >= self.least_spent * epsilon
        assert guarantee.delta <= delta

    def test_guarantee_survives_json(self):
        guarantee = self.fit(self.make(), self.private()).guarantee_
        assert Guarantee.from_dict(json.loads(guarantee.to_json())) == guarantee
        assert guarantee.noise == "seeded"
        assert guarantee.relation == "replace-one"

    @pytest.mark.parametrize("noise", ["seeded", "secure"])
    def test_noise_is_the_noise_of_the_events(self, noise):
        model = self.make(noise=noise, random_state=0 if noise == "seeded" else None)
        with taped() as tape:
            events = self.fit(model, self.private()).guarantee_.events
        drawn = releases(tape)
        assert drawn, "noise was charged for, but none was drawn"
        assert all(paid_by(draw, events) for draw in drawn), "a release that no event stands for"
        for plan in planned(events):
            same = [
                p for p in planned(events) if (p.mechanism, p.scale) == (plan.mechanism, plan.scale)
            ]
            count = sum(plan in paid_by(draw, events) for draw in drawn)
            paid = sum(p.count for p in same)
            assert count <= paid, "more releases than were charged"
            assert count == paid or not self.releases_all or paid == math.inf

    def test_noise_has_the_scale_that_it_claims(self):
        seen = []
        for seed in range(60):
            with taped() as tape:
                self.fit(self.make(random_state=seed), self.private())
            for draw in releases(tape):
                if draw.mechanism in ("add_gaussian", "add_laplace"):
                    unit = (np.asarray(draw.answer) - draw.value).ravel() / draw.scale
                    law = stats.norm if draw.mechanism == "add_gaussian" else stats.laplace
                    seen.append(stats.norm.ppf(np.clip(law.cdf(unit), 1e-15, 1 - 1e-15)))
            if sum(map(len, seen)) >= 20_000:  # as many as are looked at
                break
        if seen:
            squares = np.concatenate(seen)[:20_000] ** 2
            for tail in (stats.chi2.cdf, stats.chi2.sf):  # one false alarm in a million
                assert tail(squares.sum(), squares.size) > 5e-7
            assert squares.size >= 100, "too few draws to notice noise that is 0.7 times too small"

    def test_events_depend_on_public_facts_only(self):
        one = self.fit(self.make(), self.private()).guarantee_
        wild = self.rows(seed=1) * 1e4
        two = self.fit(self.make(), self.private(wild)).guarantee_
        three = self.fit(self.make(), self.private(np.zeros_like(wild))).guarantee_
        assert one == two == three

    @pytest.mark.parametrize("after", HOSTILE_ROWS)
    def test_one_replaced_row_moves_no_release_beyond_its_sensitivity(self, after):
        for before in ("usual", "huge norm", "zero"):
            self._compare_neighbours(
                [HOSTILE_ROWS.get(before, self.rows()[0]), HOSTILE_ROWS[after]],
                [None, None],
            )

    @pytest.mark.parametrize("label", HOSTILE_LABELS)
    def test_one_replaced_label_moves_no_release_beyond_its_sensitivity(self, label):
        if not self.needs_labels:
            pytest.skip("private labels are not read")
        self._compare_neighbours([self.rows()[0], HOSTILE_ROWS["huge norm"]], [None, label])
        self._compare_neighbours([HOSTILE_ROWS["huge norm"]] * 2, [-label, label])

    def _compare_neighbours(self, rows: list[Any], labels: list[Any]) -> None:
        key = (type(self), repr(rows[0]), repr(labels[0]))
        if key not in _FIRST:  # a seeded fit: once is enough
            _FIRST[key] = self._tape(self._neighbour(rows[0], labels[0]), None)[0]
        first = _FIRST[key]
        self._compare(first, *self._tape(self._neighbour(rows[1], labels[1]), first))

    def _compare(self, first: Sequence[Draw], second: Sequence[Draw], events: Any) -> None:
        assert len(first) == len(second), "private values change the number of releases"
        for one, two in zip(releases(first), releases(second), strict=True):
            assert math.isclose(one.scale, two.scale, rel_tol=1e-12), "noise depends on the rows"
            allowed = max((plan.sensitivity for plan in paid_by(one, events)), default=0.0)
            assert distance(one.mechanism, one.value, two.value) <= allowed * (1 + 1e-9)

    def _neighbour(self, row: Any, label: Any) -> Private:
        """Rows of which the fifth is this one."""
        X = self.rows(n=12)
        y = self.labels(X)
        X[4] = row
        if y is not None and label is not None:
            y[4] = label
        return self.private(X, y)

    def _tape(self, private: Private, replay: Any) -> tuple[list[Draw], Any]:
        """Tape and events of a fit."""
        with taped(replay=replay) as tape:
            model = self.fit(self.make(), private)
        return tape, model.guarantee_.events

    def test_refit_has_a_guarantee_of_its_own(self):
        model = self.fit(self.make(), self.private())
        first = model.guarantee_
        path = f"{self.prefix}epsilon"
        second = self.fit(model.set_params(**{path: 0.5}), self.private()).guarantee_
        assert first.epsilon > second.epsilon
        assert self.fit(model, None).guarantee_.epsilon == 0

    @pytest.mark.parametrize("empty", [False, True])
    def test_nothing_private_costs_nothing(self, empty):
        private = self.private(self.rows(n=0)) if empty else None
        with taped() as tape:
            model = self.fit(self.make(), private)
        assert model.guarantee_.epsilon == 0
        assert model.guarantee_.events == ()
        assert tape == []
        assert private is None or private.spent(1e-6).epsilon == 0
        assert np.isfinite(model.predict(self.public()[0])).all()

    def test_public_only_fit_needs_no_seed(self):
        self.fit(self.make(noise="seeded", random_state=None), None)
        self.fit(self.make(noise="secure", random_state=3), None)
