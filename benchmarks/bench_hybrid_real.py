"""HybridTilt's default on real people: error beside either side alone and beside no privacy.

    DPADAPT_DATA=... python -m benchmarks.bench_hybrid_real --tasks "wages by age" "votes by race"

Error in percent on held-out people of the target, mean and standard deviation over splits (seeds);
delta 1e-6, linear features. "covered": in how many splits the held-out error is at most the
certificate's bound. Curator alone and agents alone are HybridTilt with one side missing, at the
same budget. Subsample-Test-Reweigh divides its agents among its five rounds and returns the best
rule, since its own default asks for more agents than there are. Nothing is tuned.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpadapt import Agents, HybridTilt, Private, SubsampleTestReweigh
from dpadapt.hybrid import BitTest, NotCertified, TightSchedule
from dpadapt.privacy.local.poll import NotEnoughAgents
from reproduce.hybrid.real_tasks import TASKS, load_task

DELTA, MANY = 1e-6, 20_000  # so many agents speak at epsilon 1 only
ROUNDS = 5
NAMES = ("HybridTilt", "curator alone", "agents alone", "reweigh", "no privacy: curator", "target")
FIRST_SEED = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--agent-epsilons", nargs="+", type=float)
    parser.add_argument("--features", default="linear")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotCertified)
    print("| task | columns | n | agents | of an agent | majority | "
          f"{' | '.join(NAMES)} | covered | seconds |")  # fmt: skip
    print("|---" * (len(NAMES) + 8) + "|")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name in options.tasks:
        task = load_task(name)
        n_agents = len(task.split(0)[1])
        given = options.agent_epsilons or ((1.0,) if n_agents >= MANY else (1.0, 2.0, 4.0))
        for agent_epsilon in given:
            found = [
                measure(task, seed, options.epsilon, agent_epsilon, options.features)
                for seed in seeds
            ]
            cells = [spread([each[what] for each in found]) for what in ("majority", *NAMES)]
            inside = [each["covered"] for each in found if each["covered"] is not None]
            print(
                f"| {name} | {task.X.shape[1]} | {len(task.y):,} | {n_agents:,} | {agent_epsilon:g}"
                f" | {' | '.join(cells)} | {sum(inside)}/{len(inside)}"
                f" | {np.mean([each['seconds'] for each in found]):.1f} |",
                flush=True,
            )


def measure(task, seed: int, epsilon: float, agent_epsilon: float, features: str) -> dict:
    """Errors of all methods on one split."""
    X_agents, y_agents, X_test, y_test = task.split(seed)
    common = {"epsilon": epsilon, "delta": DELTA, "agent_epsilon": agent_epsilon}
    common |= {"features": features, "classes": [0.0, 1.0], "noise": "seeded"}
    common["random_state"] = seed

    def error(model) -> float:
        return float(np.mean(model.predict(X_test) != y_test))

    def fitted(model, curator: bool, asked: bool) -> float:
        try:
            model.fit(
                private=Private(task.X, task.y) if curator else None,
                agents=Agents(X_agents, y_agents) if asked else None,
            )
        except NotEnoughAgents:
            return float("nan")
        return error(model)

    ours, start = HybridTilt(**common), time.perf_counter()
    found: dict = {"HybridTilt": fitted(ours, True, True)}
    found["seconds"] = time.perf_counter() - start
    found["covered"] = None
    if hasattr(ours, "certificate_"):
        found["covered"] = found["HybridTilt"] <= ours.certificate_.upper
    found["curator alone"] = fitted(HybridTilt(**common), True, False)
    found["agents alone"] = fitted(HybridTilt(**common), False, True)
    loop = SubsampleTestReweigh(
        **common,
        schedule=TightSchedule(rounds=ROUNDS),
        test=BitTest(batch=len(y_agents) // ROUNDS, agnostic=True),
    )
    found["reweigh"] = fitted(loop, True, True)
    line = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=1000))
    found["no privacy: curator"] = error(line.fit(task.X, task.y))
    found["target"] = error(line.fit(X_agents, y_agents))
    found["majority"] = float(np.mean(y_test != (y_agents.mean() > 0.5)))
    return found


def spread(values: list[float]) -> str:
    if np.isnan(values).any():
        return "too few agents"
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"


if __name__ == "__main__":
    main()
