"""What the tests of both estimators share: a thinner battery, and plans that are made once."""

from __future__ import annotations

import functools

import pytest

from dpadapt.reweighting import known_noise, known_noise_plan

DEPENDS_ON_THE_SOLVER = {
    "test_guarantee_is_what_an_independent_accountant_finds",
    "test_noise_is_the_noise_of_the_events",
    "test_noise_has_the_scale_that_it_claims",
    "test_events_depend_on_public_facts_only",
    "test_one_replaced_row_moves_no_release_beyond_its_sensitivity",
    "test_one_replaced_label_moves_no_release_beyond_its_sensitivity",
    "test_nothing_private_costs_nothing",
    "test_nothing_private_stays_in_the_model",
    "test_nothing_private_is_written_to_a_file",
    "test_model_folder_can_be_read",
    "test_no_private_values_raise",
    "test_odd_private_samples_are_taken",
    "test_inputs_are_not_modified",
    "test_seeded_noise_is_repeatable",
    "test_other_seeds_give_other_answers",
    "test_secure_noise_is_never_repeated",
    "test_global_random_state_is_not_touched",
    "test_labels_are_asked_for_where_they_are_needed",
    "test_a_refused_charge_draws_no_noise_and_fits_nothing",
    "test_charge_comes_before_noise",
}


def thin(contract):
    """The part of a battery that depends on the solver; the default solver has all of it."""

    class Thin(contract):
        @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6)])
        def test_guarantee_is_what_an_independent_accountant_finds(self, epsilon, delta):
            super().test_guarantee_is_what_an_independent_accountant_finds(epsilon, delta)

    for name in dir(contract):
        if name.startswith("test_") and name not in DEPENDS_ON_THE_SOLVER:
            setattr(Thin, name, None)
    return Thin


@pytest.fixture(scope="class")
def quick_plans():
    """Each plan is made once (a function of public facts), and has ten steps rather than 100."""
    right, known = known_noise.plan, {}

    @functools.wraps(right)
    def plan(problem, n_rows, mu):
        facts = (problem.rows, problem.labels, problem.model)
        key = (*(fact.tobytes() for fact in facts), n_rows, mu)
        if key not in known:
            known[key] = right(problem, n_rows, mu)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_noise, "plan", plan)
        patch.setattr(known_noise_plan, "_LEAST_STEPS", 10)
        yield
