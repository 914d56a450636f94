"""One private step of the linear classifier: against per-example gradients, Opacus and its floor.

    python benchmarks/bench_mixing.py --opacus-python <interpreter with opacus and torch>

A step of ours is the whole step of a session: scores, residuals, clipping, the sum, and noise that
is safe to publish. Its rows have one column more than the peers', the constant. Per-example
gradients are materialised in numpy, all at once and a thousand rows at a time.
Opacus trains the same layer (``nn.Linear`` without bias) on the same rows, all in one batch, with
its default hooks and with ghost clipping. The floor is the two matrix products that no
gradient can do without. Times are processor times of one thread, medians over rounds in which
what is compared takes turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Self

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # waiting threads would count as processor time

import numpy as np  # noqa: E402

from dpadapt import Private  # noqa: E402
from dpadapt.learning.softmax import residuals  # noqa: E402
from dpadapt.mixing.features import UnitRows  # noqa: E402
from dpadapt.mixing.queries import ClippedGradients  # noqa: E402
from dpadapt.papers.mixing.projection import GradientSpan, WithProducts  # noqa: E402
from dpadapt.papers.mixing.queries import ProjectedGradients  # noqa: E402
from dpadapt.privacy import RowMap, RowSum  # noqa: E402
from dpadapt.privacy.mechanisms import Gaussian  # noqa: E402

Release = Callable[[object], np.ndarray]
CLIP = 0.5
BURST = 5  # steps in a row
KINDS = {"replace-one": np.float32, "add-remove": np.float64}
OPACUS = """
import sys, time, warnings
from statistics import median
warnings.filterwarnings("ignore")
import numpy as np, torch
from opacus import PrivacyEngine
torch.set_num_threads(1)
data = np.load(sys.argv[1])
X, y = torch.from_numpy(data["X"]), torch.from_numpy(data["y"])
classes, clip = int(data["classes"]), float(data["clip"])

def trainer(mode):
    model = torch.nn.Linear(X.shape[1], classes, bias=False)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, y), batch_size=len(X))
    criterion = torch.nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0), data_loader=loader,
        criterion=criterion, noise_multiplier=20.0, max_grad_norm=clip, poisson_sampling=False,
        grad_sample_mode=mode)
    model, optimizer = made[:2]
    criterion = made[2] if mode == "ghost" else criterion

    def step():
        start = time.process_time()
        optimizer.zero_grad()
        criterion(model(X), y).backward()
        optimizer.step()
        return time.process_time() - start

    step()
    return step

steps = {mode: trainer(mode) for mode in ("ghost", "hooks")}
for line in sys.stdin:
    mode, count = line.split()
    print("seconds", median(steps[mode]() for _ in range(int(count))), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="of five steps each (default: 7)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--opacus-python", help="an interpreter with opacus and torch")
    options = parser.parse_args()
    n, d, c, n_public = (1000, 64, 10, 50) if options.quick else (10_000, 512, 50, 250)
    print(f"n={n}, d={d}, c={c}, {n_public} public rows; milliseconds of processor time a step")
    rng = np.random.default_rng(0)
    X, P = (unit(rng.normal(size=(rows, d))) for rows in (n, n_public))
    W = rng.normal(size=(d + 1, c))
    task = Task(X, rng.integers(0, c, n), P, rng.integers(0, c, n_public), W)
    if options.opacus_python:
        with Opacus(task, options.opacus_python) as peer:
            without_projection(task, options.rounds, peer)
    else:
        without_projection(task, options.rounds, None)
        print(
            "Opacus: skipped. python -m venv peer; peer/bin/pip install opacus; then "
            "--opacus-python peer/bin/python"
        )
    with_projection(task, options.rounds)


class Task:
    """Rows and labels, public and private, and the weights of a step."""

    def __init__(self, X, y, P, codes, W) -> None:
        self.X, self.y, self.codes, self.W = X, y, codes, W
        self.cleaning = UnitRows(np.zeros(X.shape[1]), np.ones(X.shape[1]), classes=W.shape[1])
        self.public = self.cleaning.rows(P)
        self.private = Private(X, y)

    def rows(self, dtype: type) -> np.ndarray:
        return self.cleaning.cast(dtype)(self.X, None)[0]


def without_projection(task: Task, rounds: int, peer: Opacus | None) -> None:
    for relation, dtype in KINDS.items():
        rows, W, cleaning = task.rows(dtype), task.W.astype(dtype), task.cleaning.cast(dtype)
        with opened(task, relation, cleaning, rounds) as release:

            def step(release=release, cleaning=cleaning) -> np.ndarray:
                return CLIP * release(ClippedGradients(task.W, CLIP, cleaning))

            def products(rows=rows, W=W) -> np.ndarray:
                return (rows @ W).T @ rows

            timers = [partial(burst, step), partial(burst, products)]
            if peer is not None:
                timers.append(partial(peer.seconds, "ghost", BURST))
            ours, floor, *ghost = in_turn(timers, rounds)
        print(
            f"{relation} ({np.dtype(dtype).name}): step {1e3 * ours:.1f}, two products "
            f"{1e3 * floor:.1f} (ours {ours / floor:.2f} x)"
        )
        if peer is not None:
            hooks = peer.seconds("hooks", 3)
            print(
                f"    Opacus: ghost clipping {1e3 * ghost[0]:.1f} ({ghost[0] / ours:.1f} x ours),"
                f" default hooks {1e3 * hooks:.0f} ({hooks / ours:.0f} x ours)"
            )


class Opacus:
    """The peer in its own interpreter, which does a number of steps when it is asked to."""

    def __init__(self, task: Task, interpreter: str) -> None:
        self._task, self._interpreter = task, interpreter

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        rows, script = (Path(self._folder.name) / name for name in ("rows.npz", "peer.py"))
        X, y = self._task.X.astype(np.float32), self._task.y
        np.savez(rows, X=X, y=y, classes=self._task.W.shape[1], clip=CLIP)
        script.write_text(OPACUS)
        pipe = subprocess.PIPE
        command = [self._interpreter, str(script), str(rows)]
        self._run = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        return self

    def seconds(self, mode: str, count: int) -> float:
        """Median processor time of some steps."""
        self._run.stdin.write(f"{mode} {count}\n")
        self._run.stdin.flush()
        for line in self._run.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise SystemExit("Opacus failed; see above.")

    def __exit__(self, *_: object) -> None:
        self._run.stdin.close()
        self._run.wait()
        self._folder.cleanup()


def with_projection(task: Task, rounds: int) -> None:
    inner, dtype = task.public @ task.public.T, np.float32
    cleaning = task.cleaning.cast(dtype)
    beside = WithProducts(cleaning, task.public)

    def span() -> GradientSpan:
        return GradientSpan.of(task.public, task.codes, task.W, inner=inner)

    rows, y = cleaning(task.X, task.y.astype(float))
    for clip_first in (False, True):
        name = "clip, then project" if clip_first else "project, then clip"
        query = ProjectedGradients(task.W, CLIP, cleaning, span(), clip_first)
        wanted = materialised(task, rows, clip_first, 1000)
        found = query.span.back(query.block(rows, y))
        apart = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
        maps = {"": cleaning} if clip_first else {"": cleaning, ", products kept": beside}
        slow = {
            how: processor_time(lambda k=k, first=clip_first: materialised(task, rows, first, k))
            for how, k in (("at once", len(rows)), ("1000 rows at a time", 1000))
        }
        for kept, used in maps.items():
            with opened(task, "replace-one", used, rounds) as release:

                def step(release=release, used=used, first=clip_first) -> np.ndarray:
                    at = span()
                    query = ProjectedGradients(task.W, CLIP, used, at, first)
                    return CLIP * at.back(release(query))

                (ours,) = in_turn([partial(burst, step)], rounds)
            others = ", ".join(
                f"{how} {1e3 * seconds:.0f} ({seconds / ours:.0f} x ours)"
                for how, seconds in slow.items()
            )
            print(
                f"{name}{kept}: step {1e3 * ours:.1f}; materialised {others}; relative "
                f"difference {apart:.0e}"
            )


@contextmanager
def opened(task: Task, relation: str, cleaning: RowMap, rounds: int) -> Iterator[Release]:
    """A session that pays for all rounds: a function that releases a query's noisy sum."""
    private = task.private.encode(np.arange(task.W.shape[1]))
    with private.open(epsilon=3.0, delta=1e-5, relation=relation) as session:
        bound = session.sensitivity(RowSum(ClippedGradients(task.W, CLIP, cleaning)))
        steps = Gaussian("gradients", bound, task.W.size, count=BURST * (rounds + 1))
        grant = session.plan(steps=steps).steps
        yield lambda query: session.release(grant, session.hide(RowSum(query), keep=True))


def materialised(task: Task, X: np.ndarray, clip_first: bool, at_once: int) -> np.ndarray:
    """The projected sum from per-example gradients, one vector of d c numbers a row."""
    shape, dtype = task.W.shape, X.dtype
    R = residuals(task.public, task.codes, task.W)
    G = np.einsum("ij,ik->ijk", task.public, R).reshape(len(R), -1)
    values, V = np.linalg.eigh(G @ G.T)
    keep = values > 1e-6 * values[-1]
    U = (G.T @ (V[:, keep] / np.sqrt(values[keep]))).astype(dtype)
    total = np.zeros(U.shape[1] if not clip_first else U.shape[0])
    for start in range(0, len(X), at_once):
        rows = X[start : start + at_once]
        R = residuals(rows, task.y[start : start + at_once], task.W)
        G = np.einsum("ij,ik->ijk", rows, R).reshape(len(rows), -1)
        each = G if clip_first else G @ U
        scales = np.minimum(1, CLIP / np.linalg.norm(each, axis=1)) / CLIP
        total += scales @ each
    return (U @ (U.T @ total if clip_first else total)).reshape(shape)


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def processor_time(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def burst(function: Callable[[], object]) -> float:
    """Median processor time of some calls in a row, as in a fit."""
    return median(processor_time(function) for _ in range(BURST))


def in_turn(timers: list[Callable[[], float]], rounds: int) -> list[float]:
    """Median of each, taken in turn after a round to warm up, so that other load hits all."""
    for timer in timers:
        timer()
    times = [[timer() for timer in timers] for _ in range(rounds)]
    return [median(found) for found in zip(*times, strict=True)]


if __name__ == "__main__":
    main()
