"""How dear is calibration? ``python benchmarks/bench_accounting.py`` prints ratios.

The plan: 1,000 Gaussian and 1,000 pure releases. The unit is one evaluation of a privacy loss
distribution by dp-accounting itself on the same events, each composed as it comes.
"""

import multiprocessing
import time

import dp_accounting
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from dpadapt.privacy.accounting import pld as _pld
from dpadapt.privacy.accounting.calibration import calibrate
from dpadapt.privacy.accounting.composition import compose_epsilon
from dpadapt.privacy.accounting.events import Event, GaussianEvent, PureEvent

EPSILON, DELTA, CAP = 1.0, 1e-6, 60.0  # seconds after which dp-accounting's search is cut off
SENSITIVITIES = np.linspace(1.0, 2.0, 1000)


def ours(noise: float) -> list[Event]:
    normal = [GaussianEvent("g", float(s), noise) for s in SENSITIVITIES]
    return [*normal, *(PureEvent("p", 1.0 / noise) for _ in SENSITIVITIES)]


def theirs(noise: float) -> dp_event.DpEvent:
    # Laplace noise stands for the pure releases: dp-accounting has no event for them that counts
    normal = [dp_event.GaussianDpEvent(noise / float(s)) for s in SENSITIVITIES]
    pure = dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(noise), len(SENSITIVITIES))
    return dp_event.ComposedDpEvent([*normal, pure])


def timed(function):
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def their_calibration() -> None:
    def event(noise: float) -> dp_event.DpEvent:
        return theirs(noise) if noise > 0 else dp_event.NonPrivateDpEvent()

    dp_accounting.calibrate_dp_mechanism(PLDAccountant, event, EPSILON, DELTA)


def main() -> None:
    calibrate(lambda z: ours(z)[-1:], EPSILON, DELTA)  # imports and caches
    built = []
    original = _pld.distribution
    _pld.distribution = lambda events: (built.append(1), original(events))[1]
    noise, seconds = timed(lambda: calibrate(ours, EPSILON, DELTA))
    _pld.distribution = original
    _, once = timed(lambda: compose_epsilon(ours(noise), DELTA))
    epsilon, unit = timed(lambda: PLDAccountant().compose(theirs(noise)).get_epsilon(DELTA))
    print(f"plan: 1,000 Gaussian (all different) + 1,000 pure, ({EPSILON:g}, {DELTA:g})-DP")
    print(f"our noise {noise:.4f}; dp-accounting finds epsilon {epsilon:.4f} for it")
    print(f"one evaluation: ours / dp-accounting's PLD            {once / unit:8.3f}")
    print(f"calibration ({len(built)} PLDs): ours / one of its evaluations {seconds / unit:8.3f}")
    process = multiprocessing.get_context("spawn").Process(target=their_calibration)
    start = time.perf_counter()
    process.start()
    process.join(CAP)
    spent = time.perf_counter() - start
    cut = f" (cut off after {CAP:g} s, so at least)" if process.is_alive() else ""
    process.terminate()
    print(f"calibration: dp-accounting's default bracket / ours{cut} {spent / seconds:8.1f}")


if __name__ == "__main__":
    main()
