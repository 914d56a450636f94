"""Agents are opaque, answer once, and what their replies say is what it should be."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sklearn

from dpadapt.hybrid.questions import Below, Loss, Mistake, Slope, Within
from dpadapt.hybrid.rules import FunctionRule, LinearRule
from dpadapt.privacy import PrivacyError
from dpadapt.privacy.local import AgentAskedTwice, Agents, NotEnoughAgents
from dpadapt.privacy.local.holders import signs
from dpadapt.privacy.local.randomisers import BallResponse, BinaryResponse, GaussianResponse
from dpadapt.privacy.local.replies import Replies, agents_needed, estimate

SECRET = 271828.1828  # a value to look for in everything that is said


def below(count, threshold=0.0, coordinate=0):
    return Below(np.full(count, coordinate), np.full(count, threshold))


def rule(d=2, coefficients=None, classes=(0, 1), features="linear"):
    v = np.eye(d + 1)[0] if coefficients is None else coefficients
    return LinearRule(features, np.zeros(d), np.ones(d), v, classes)


def population(n=40_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


# Opaque ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_agents_cannot_be_pickled(protocol):
    agents = Agents(np.full((3, 2), SECRET))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(agents, protocol)


@pytest.mark.parametrize(
    "use", [len, list, np.asarray, lambda a: a[0], lambda a: a.shape, lambda a: a.n_rows, vars]
)
def test_agents_have_no_items(use):
    agents = Agents(np.full((3, 2), SECRET), [SECRET] * 3)
    if use is np.asarray:
        assert np.asarray(agents).dtype == object
        return
    with pytest.raises((TypeError, AttributeError)):
        use(agents)


def test_copies_are_the_same_agents():
    agents = Agents(np.zeros((3, 2)))
    assert copy.copy(agents) is agents
    assert copy.deepcopy({"a": agents})["a"] is agents
    assert sklearn.clone(agents, safe=False) is agents


def test_sizes_are_public_and_values_are_not_told():
    agents = Agents(np.full((3, 2), SECRET), [SECRET] * 3)
    assert (agents.n_agents, agents.n_left, agents.n_columns, agents.labelled) == (3, 3, 2, True)
    with agents.open(epsilon=1.0) as poll:
        poll.ask(below(1))
    said = f"{agents!r} {poll!r} {poll.guarantee.to_json()}"
    assert "271828" not in said
    assert repr(agents) == "Agents(3 agents, 2 left, 2 columns, labelled)"


def test_labels_must_be_as_many_as_rows():
    with pytest.raises(ValueError, match="one label for each of the 3 agents"):
        Agents(np.zeros((3, 1)), [0, 1])


# Once ------------------------------------------------------------------------------------------


def test_nobody_is_asked_twice_across_polls():
    agents, seen = Agents(np.zeros((100, 1))), []
    for seed in range(5):
        with agents.open(epsilon=1.0, noise="seeded", random_state=seed) as poll:
            seen += [poll.ask(below(10)).asked, poll.ask(below(10)).asked]
    everyone = np.concatenate(seen)
    assert len(np.unique(everyone)) == len(everyone) == 100
    assert agents.n_left == 0


def test_agents_that_forget_would_be_noticed(monkeypatch):
    agents = Agents(np.zeros((100, 1)))
    monkeypatch.setattr(Agents, "_asked", property(lambda self: np.zeros(100, dtype=bool)))
    seen = [agents.open(epsilon=1.0).ask(below(60)).asked for _ in range(2)]
    assert len(np.unique(np.concatenate(seen))) < 120


def test_an_id_used_twice_is_an_error_and_asks_nobody():
    agents = Agents(np.zeros((10, 1)))
    with agents.open(epsilon=1.0) as poll:
        assert list(poll.ask(below(2), ids=[4, 2]).asked) == [4, 2]
        for ids in ([5, 4], [7, 7]):
            with pytest.raises(AgentAskedTwice, match="answers once"):
                poll.ask(below(2), ids=ids)
        for ids in ([-1], [10]):
            with pytest.raises(ValueError, match="between 0 and 9"):
                poll.ask(below(1), ids=ids)
        assert agents.n_left == 8
        poll.ask(below(2), ids=[5, 7])
    assert agents.n_left == 6


def test_too_few_left_says_how_many():
    agents = Agents(np.zeros((10, 1)))
    poll = agents.open(epsilon=1.0)
    poll.ask(below(7))
    with pytest.raises(NotEnoughAgents, match="4 agents are needed, but only 3 are left") as caught:
        poll.ask(below(4))
    assert (caught.value.needed, caught.value.left) == (4, 3)
    assert pickle.loads(pickle.dumps(caught.value)).needed == 4
    assert agents.n_left == 3


def test_once_under_threads():
    agents, barrier = Agents(np.zeros((4000, 1))), threading.Barrier(8)

    def work(seed):
        barrier.wait()
        with agents.open(epsilon=1.0) as poll:
            return np.concatenate([poll.ask(below(50)).asked for _ in range(10)])

    with ThreadPoolExecutor(8) as pool:
        everyone = np.concatenate(list(pool.map(work, range(8))))
    assert len(np.unique(everyone)) == len(everyone) == 4000
    with pytest.raises(NotEnoughAgents):
        agents.open(epsilon=1.0).ask(below(1))


def test_fresh_agents_are_chosen_where_no_other_thread_enters():
    agents, held = Agents(np.zeros((5, 1))), []

    class Watched:
        def choice(self, fresh, count, replace):
            held.append(agents._lock.locked())
            return fresh[:count]

    with agents.open(epsilon=1.0) as poll:
        poll._order = Watched()
        poll.ask(below(2))
    assert held == [True]


def test_agents_are_spent_even_if_the_question_fails():
    class Broken(Below):
        def values(self, X, y):
            raise RuntimeError(f"secret {X[0, 0]}")

    agents = Agents(np.full((5, 1), SECRET))
    with agents.open(epsilon=1.0) as poll, pytest.raises(PrivacyError) as caught:
        poll.ask(Broken([0, 0], [0.0, 0.0]))
    assert "271828" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert agents.n_left == 3


def test_refusals_before_anybody_is_asked():
    agents = Agents(np.zeros((10, 2)))
    poll = agents.open(epsilon=1.0)
    with pytest.raises(ValueError, match="made for 3 agents, not for 4"):
        poll.ask(below(3), 4)
    with pytest.raises(ValueError, match="count must say"):
        poll.ask(Mistake(rule()))
    with pytest.raises(ValueError, match="count or ids"):
        poll.ask(below(1), 1, ids=[0])
    with pytest.raises(ValueError, match="agents have none"):
        poll.ask(Mistake(rule()), 3)
    with pytest.raises(ValueError, match="coordinates must lie"):
        poll.ask(below(3, coordinate=2))
    with pytest.raises(ValueError, match="features"):
        Agents(np.zeros((3, 2)), [0, 1, 0]).open(epsilon=1.0).ask(Mistake(rule(3)), 1)
    with poll, pytest.raises(ValueError, match="whole number"):
        poll.ask(Mistake(rule()), -1)
    with pytest.raises(PrivacyError, match="closed"):
        poll.ask(below(1))
    assert agents.n_left == 10


def test_a_seed_fixes_order_and_answers_and_sorted_rows_are_mixed():
    X = np.arange(1000.0)[:, None]
    first, second = (
        Agents(X).open(epsilon=1.0, noise="seeded", random_state=3).ask(below(200, 500.0))
        for _ in range(2)
    )
    assert np.array_equal(first.asked, second.asked)
    assert np.array_equal(first.values, second.values)
    assert 400 < first.asked.mean() < 600
    secure = [Agents(X).open(epsilon=1.0).ask(below(200, 500.0)).asked for _ in range(2)]
    assert not np.array_equal(*secure)


def test_the_order_does_not_go_with_the_noise():
    """The seed of both is the same; their streams must not be."""
    poll = Agents(np.zeros((10, 1))).open(epsilon=1.0, noise="seeded", random_state=5)
    assert poll._order.random() != poll._source.uniform(1)[0]


# What they say ---------------------------------------------------------------------------------


def test_each_agent_answers_its_own_part():
    X = np.arange(50.0)[:, None]
    thresholds = np.where(np.arange(50) % 2, -1.0, 100.0)
    replies = Agents(X).open(epsilon=50.0).ask(Below(np.zeros(50, int), thresholds))
    assert np.array_equal(replies.values, thresholds > 0)  # a lie in 1e21
    near = Within(np.zeros(50, int), replies.asked.astype(float), np.full(50, 0.5))
    again = Agents(X).open(epsilon=50.0).ask(near, ids=list(replies.asked))
    assert again.values.all()  # the i-th part went to the i-th of those asked


def test_blocks_do_not_change_answers(monkeypatch):
    X, y = population(1000)
    whole = Agents(X, y).open(epsilon=60.0).ask(Mistake(rule()), ids=range(1000)).values
    monkeypatch.setattr("dpadapt.privacy.local.holders._BLOCK", 7)
    assert np.array_equal(
        whole, Agents(X, y).open(epsilon=60.0).ask(Mistake(rule()), ids=range(1000)).values
    )


@pytest.mark.parametrize("response", ["binary", "gaussian", "paper-gaussian"])
def test_estimates_cover_the_truth(response):
    X, y = population()
    delta = 0.0 if response == "binary" else 1e-4
    with Agents(X, y).open(epsilon=2.0, delta=delta, response=response) as poll:
        found = estimate(poll.ask(Mistake(rule()), 40_000), beta=1e-6)
    truth = np.mean((X[:, 0] > 0) != y)
    assert found.low < truth < found.high
    assert found.high < 0.5 or response != "binary"  # it says something


def test_losses_are_divided_by_their_bound():
    X, y = population()
    chosen = rule(2, np.array([3.0, 0.0, 0.0]))
    with Agents(X, y).open(epsilon=3.0) as poll:
        found = estimate(poll.ask(Loss(chosen, bound=4.0), 40_000), beta=1e-6)
    truth = np.clip(chosen.losses(X, 2.0 * y - 1), 0, 4).mean() / 4
    assert found.low < truth < found.high


def test_slopes_are_unbiased():
    X, y = population()
    chosen = rule(2, np.array([0.5, -0.5, 0.1]))
    with Agents(X, y).open(epsilon=4.0) as poll:
        sent = poll.ask(Slope(chosen), 40_000).values
    truth = chosen.slopes(X, 2.0 * y - 1).mean(axis=0)
    error = sent.std(axis=0) / math.sqrt(len(sent))
    assert np.abs((sent.mean(axis=0) - truth) / error).max() < 5.5


def test_labels_of_any_kind():
    assert signs(["b", "a", "c", None, b"a"], ("a", "b")) == pytest.approx([1, -1, 0, 0, -1])
    assert signs(pd.Series([3, 5, 4]), (3, 5)) == pytest.approx([-1, 1, 0])
    assert signs(np.array([0.0, 1.0, np.nan]), (0, 1)) == pytest.approx([-1, 1, 0])
    assert signs(np.array([True, False]), (False, True)) == pytest.approx([1, -1])
    X, y = population(300)
    chosen = rule(classes=("no", "yes"))
    text = Agents(X, np.array(["no", "yes"])[y]).open(epsilon=60.0)
    number = Agents(X, y).open(epsilon=60.0)
    assert np.array_equal(
        text.ask(Mistake(chosen), ids=range(300)).values,
        number.ask(Mistake(rule()), ids=range(300)).values,
    )


def test_odd_rows_never_raise():
    odd = [[None, "x"], [np.nan, np.inf], [1e308, -1e308], [10**400, b"\xff"], [True, 2]]
    labels = [None, "x", 1, 10**400, np.nan]
    agents = Agents(odd, labels)
    with agents.open(epsilon=1.0) as poll:
        poll.ask(below(1))
        poll.ask(Mistake(rule()), 1)
        poll.ask(Loss(rule(), 2.0), 1)
        poll.ask(Slope(rule(2)), 1)
        poll.ask(Mistake(FunctionRule(lambda X: 1 / 0, (0, 1))), 1)
    assert agents.n_left == 0


def test_any_predictor_can_be_asked_about_in_memory():
    X, y = population(2000)
    chosen = FunctionRule(lambda rows: (rows[:, 0] > 0).astype(int), (0, 1))
    with Agents(pd.DataFrame(X), y).open(epsilon=60.0) as poll:
        replies = poll.ask(Mistake(chosen), 2000)
    assert replies.values.mean() == np.mean((X[:, 0] > 0) != y)


# What it costs ---------------------------------------------------------------------------------


def test_the_guarantee_is_that_of_one_answer():
    agents = Agents(*population(100))
    with agents.open(epsilon=0.7) as poll:
        assert poll.guarantee.epsilon == 0.0
        for _ in range(5):
            poll.ask(below(10))
        poll.ask(Slope(rule()), 10)
    assert poll.guarantee.epsilon == pytest.approx(0.7)  # not 6 times as much
    assert poll.guarantee.delta == 0.0
    assert poll.guarantee.bounds == {"agents asked": 60.0}
    assert any("pays both" in each for each in poll.guarantee.caveats)
    assert type(poll.guarantee).from_dict(poll.guarantee.to_dict()) == poll.guarantee


def test_seeded_noise_is_told_and_rounding_only_where_it_matters():
    agents = Agents(np.zeros((10, 1)))
    seeded = agents.open(epsilon=1.0, noise="seeded", random_state=0)
    seeded.ask(below(1))
    assert any("seeded" in each for each in seeded.guarantee.caveats)
    bits = agents.open(epsilon=1.0)
    bits.ask(below(1))
    assert not any("float64" in each for each in bits.guarantee.caveats)
    numbers = agents.open(epsilon=1.0, delta=1e-5, response="gaussian")
    numbers.ask(below(1))
    assert any("float64" in each for each in numbers.guarantee.caveats)
    assert numbers.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_papers_gaussian_states_what_it_really_gives():
    agents = Agents(*population(30))
    low = agents.open(epsilon=0.5, delta=1e-4, response="paper-gaussian")
    low.ask(below(1))
    assert low.guarantee.epsilon < 0.35
    high = agents.open(epsilon=12.0, delta=1e-4, response="paper-gaussian")
    high.ask(below(1))
    high.ask(Slope(rule()), 1)
    assert high.guarantee.epsilon > 12.0
    assert any("printed constants" in each for each in high.guarantee.caveats)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1e-4}, "delta must be 0"),
        ({"epsilon": 1.0, "response": "gaussian"}, "delta"),
        ({"epsilon": 1.0, "response": "other"}, "response"),
        ({"epsilon": 1.0, "random_state": 1}, "random_state"),
    ],
)
def test_arguments_of_open(arguments, match):
    with pytest.raises(ValueError, match=match):
        Agents(np.zeros((1, 1))).open(**arguments)


# Estimates -------------------------------------------------------------------------------------


def of(values, randomiser):
    places = np.arange(len(values))
    return Replies(np.asarray(values, dtype=float), places, places, randomiser)


def test_estimate_by_hand():
    p = 1 / (1 + math.e)
    found = estimate(of([1, 1, 0, 1], BinaryResponse(1.0)), beta=0.1)
    assert found.value == pytest.approx((0.75 - p) / (1 - 2 * p))
    assert found.low == pytest.approx(
        max(0.0, found.value - math.sqrt(math.log(20) / 8) / (1 - 2 * p))
    )
    assert (found.high, found.count) == (1.0, 4)


def test_estimate_without_replies_and_of_vectors():
    nothing = estimate(of([], BinaryResponse(1.0)), beta=0.1)
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0.0, 1.0)
    with pytest.raises(TypeError, match="vectors"):
        estimate(of(np.zeros((2, 3)), BallResponse(1.0, 3)), beta=0.1)


def coverage(randomiser, factor=1.0, runs=400, m=400, truth=0.5):
    """Share of runs in which the interval, made narrower by ``factor``, holds the truth."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(runs):
        value = (rng.random(m) < truth).astype(float)
        if isinstance(randomiser, BinaryResponse):
            sent = (rng.random(m) < randomiser.probability(value)).astype(float)
        else:
            sent = value + randomiser.scale * rng.normal(size=m)
        found = estimate(of(sent, randomiser), beta=0.05)
        middle, half = found.value, factor * (found.high - found.low) / 2
        inside += abs(middle - truth) <= half
    return inside / runs


@pytest.mark.parametrize("randomiser", [BinaryResponse(2.0), GaussianResponse(4.0, 1e-3)])
def test_intervals_cover_and_narrower_ones_do_not(randomiser):
    assert coverage(randomiser) >= 0.95
    assert coverage(randomiser, factor=0.5) < 0.93


def test_agents_needed_is_the_inverse_of_the_interval():
    for epsilon in (0.5, 1.0, 3.0):
        n = agents_needed(0.05, epsilon, 0.01)
        p = 1 / (1 + math.exp(epsilon))
        assert n == math.ceil(math.log(200) / (2 * 0.05**2 * (1 - 2 * p) ** 2) - 1e-9)
        half = math.sqrt(math.log(200) / (2 * n)) / (1 - 2 * p)
        assert 0.0499 < half <= 0.05 * (1 + 1e-12)


# Parquet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [("no", "yes"), (4, 2)])
def test_parquet_gives_what_memory_gives(tmp_path, classes):
    X, y = population(5000)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=np.array(classes)[y])
    for part in range(3):
        cut = frame.iloc[part * 2000 : (part + 1) * 2000]
        cut.to_parquet(tmp_path / f"{part}.parquet", row_group_size=300)
    files = Agents.from_parquet(tmp_path, label="y")
    assert (files.n_agents, files.n_columns, files.labelled) == (5000, 2, True)
    memory = Agents(X, frame["y"])
    ids = np.random.default_rng(1).permutation(5000)[:3000]
    thresholds = np.linspace(-1, 1, 3000)
    questions = [Below(np.arange(3000) % 2, thresholds), Mistake(rule(classes=classes))]
    for question, some in zip(questions, (ids[:1500], ids[1500:]), strict=True):
        asked = question.at(np.arange(1500))
        with files.open(epsilon=60.0) as one, memory.open(epsilon=60.0) as two:
            first, second = one.ask(asked, ids=some), two.ask(asked, ids=some)
        assert np.array_equal(first.values, second.values)
    assert files.n_left == 2000


def test_parquet_reads_the_asked_rows_only(tmp_path):
    n = 200_000
    file = tmp_path / "people.parquet"
    pd.DataFrame({"a": np.arange(n, dtype=float)}).to_parquet(file)
    agents = Agents.from_parquet(file)
    largest = []

    class Watch(Below):
        def values(self, X, y):
            largest.append(len(X))
            return super().values(X, y)

    replies = agents.open(epsilon=60.0).ask(Watch(np.zeros(100, int), np.full(100, n / 2)))
    assert sum(largest) == 100
    assert np.array_equal(replies.values == 1, replies.asked <= n / 2)
