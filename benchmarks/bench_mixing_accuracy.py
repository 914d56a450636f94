"""AdaMixClassifier's default on real tasks: accuracy beside public data alone and no privacy.

    DPADAPT_DATA=... python -m benchmarks.bench_mixing_accuracy --tasks digits mnist covtype5

Mean and standard deviation over the seeds, in percent; delta 1e-5. Nothing is tuned.
"""

from __future__ import annotations

import argparse

import numpy as np

from dpadapt import AdaMixClassifier, Private
from reproduce.mixing.tasks import TASKS, draw, non_private, public_only

EPSILONS = (0.25, 0.5, 1.0, 3.0, 8.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    names = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    print(f"| task | relation | public only | {names} | no privacy |")
    print("|---" * (len(EPSILONS) + 4) + "|")
    for task in options.tasks:
        samples = [draw(TASKS[task], seed) for seed in range(3, 3 + options.seeds)]
        ends = [
            spread([1 - measure(each) for each in samples])
            for measure in (public_only, non_private)
        ]
        for relation in ("add-remove", "replace-one"):
            cells = [
                spread([accuracy(each, epsilon, relation) for each in samples])
                for epsilon in EPSILONS
            ]
            print(
                f"| {task} | {relation} | {ends[0]} | {' | '.join(cells)} | {ends[1]} |", flush=True
            )


def accuracy(sample, epsilon: float, relation: str) -> float:
    model = AdaMixClassifier(
        epsilon=epsilon, delta=1e-5, relation=relation, noise="seeded", random_state=sample.seed
    )
    private = Private(sample.X_private, sample.y_private)
    model.fit(sample.X_public, sample.y_public, private=private)
    return model.score(sample.X_test, sample.y_test)


def spread(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"


if __name__ == "__main__":
    main()
