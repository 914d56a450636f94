"""Paper 000 (Bassily, Mohri, Suresh 2023): what is run again, and how far it is the paper's."""

from __future__ import annotations

from functools import partial

from reproduce.page import Experiment, Paper

from .crossover import crossover_findings, draw_crossover, run_crossover
from .curves import draw_figure, figure_findings, summarise_figure
from .figures_1_and_2 import run_figures
from .methods import RADIUS, RIDGE, TEST_ROWS
from .style import summarise
from .wind_and_gas import draw_errors, real_findings, run_gas, run_wind

__all__ = ["PAPER"]

_CURVES = (
    '"Printed" takes the noise as the paper prints it; "tight" calibrates the same algorithm (for '
    "mirror descent: with the noise on the matrix) to exactly epsilon; "
    '"own K" also lets it choose the number of steps by its bound. "Moments" is the default of '
    "dpadapt. The error bars are standard deviations over repeats. The legend tells the epsilon "
    "that the printed constants truly give."
)
_REAL = (
    "Not in the paper. Half of the private rows, unlabelled, are used by the methods; errors are "
    "those on the labelled other half, over five random halves with five noises, epsilon 1, delta "
    "1e-6, labels in units of the public standard deviation. Target labels serve for testing only."
)

PAPER = Paper(
    number="000",
    title="R. Bassily, M. Mohri, A. T. Suresh: Principled approaches for private adaptation from "
    "a public source (AISTATS 2023)",
    stated=[
        "data: d = 10, two spherical Gaussians of variance 1/(9d), 25% of the public rows from the "
        "target's, labels x.u or half of it, no label noise",
        "m = 1000 public rows, n = 1000 to 8000 private rows, ten repeats",
        "K = 1000 steps, lambda = 0.001, delta = 1/8000 (also for n below 8000)",
    ],
    unstated={
        "mu (sharpness of the softmax)": "the minimiser of the algorithm's proved bound, from "
        "public facts only. For printed Frank-Wolfe also the best of {5, 15, 50, 150} in hindsight "
        "at four settings; that is an oracle's choice, marked as such, and not private",
        "r (bound on private rows)": "the largest norm of a public row; longer ones are shrunk",
        "Lambda (bound on coefficients)": f"{RADIUS:g}",
        "penalty of the second stage": f"ridge {RIDGE:g}",
        "size of the test sample": f"{TEST_ROWS:,} fresh target rows",
        "values of epsilon": "0.5, 1, 3 and 10 at n = 1000 and 8000; 1 and 10 at n = 2000 and 4000",
        "intercept, scaling to the unit ball": "neither",
        "the numbers behind its figures": "not printed, so that no comparison point by point is "
        "possible; we compare what its text says of them",
    },
    differences=[
        "Algorithm 1 returns its last iterate: the paper's choice of an iterate has no privacy "
        "proof",
        "Algorithm 3 makes the step of a Bregman divergence: the printed one is none",
        "Algorithm 2 returns the weights after the last step; the paper throws the last one away",
    ],
    experiments=[
        Experiment(
            "1",
            "Figure 1: discrepancy of the weights",
            "Spectral norm of the difference between the private second moment and that of the "
            f"weighted public rows. {_CURVES}",
            run_figures,
            partial(summarise_figure, column="discrepancy"),
            partial(draw_figure, column="discrepancy"),
            partial(figure_findings, column="discrepancy"),
        ),
        Experiment(
            "2",
            "Figure 2: error on the target",
            f"Mean squared error, times 10,000, on fresh target rows. {_CURVES}",
            run_figures,
            partial(summarise_figure, column="mse"),
            partial(draw_figure, column="mse"),
            partial(figure_findings, column="mse"),
        ),
        Experiment(
            "crossover",
            "Where one noisy matrix must lose",
            "Not in the paper. Its data with more columns d, m = 500, small n epsilon. Frank-Wolfe "
            "is the tight one with its own mu and K. By the bounds the matrix should lose where d "
            "is above about (n epsilon)^(4/3), the vertical line. Up to ten runs for a point up to "
            "d = 200 (three for the last setting), fewer beyond, where a step costs d^3 (a single "
            "run, which shows nothing by itself, at d = 2000). The weights for the noisy matrix "
            "get at most 100 passes; at n epsilon = 1000 and d from 200 on these may not suffice, "
            "so that part of what is seen there is the cap and not the noise.",
            run_crossover,
            partial(summarise, keys=["n", "epsilon", "d", "method"], column="discrepancy"),
            draw_crossover,
            crossover_findings,
        ),
        Experiment(
            "wind",
            "Wind speed at Dublin: winter is public, summer is private",
            _REAL,
            run_wind,
            partial(summarise, keys=["method"], column="mse"),
            draw_errors,
            real_findings,
        ),
        Experiment(
            "gas",
            "Gas concentration from drifting sensors: batches 1-5, 8, 9 are public, 6 is private",
            f"{_REAL} Log concentration from the first 20 principal components of the public rows.",
            run_gas,
            partial(summarise, keys=["method"], column="mse"),
            draw_errors,
            real_findings,
        ),
    ],
    verdicts={
        "1": "holds in part: Frank-Wolfe improves smoothly with n and epsilon (0.370 at n = "
        "1000, epsilon 1; 0.159 at n = 8000, epsilon 10; 0.0017 without noise); that "
        "mirror descent is much worse is not seen (0.117 against 0.159).",
        "2": "holds in part without noise, fails here with the printed noise: at epsilon "
        "infinity and n = 8000 (error x 10,000) Frank-Wolfe has 3.81 and mirror descent "
        "3.33, alike as the paper says; the single stage has 6.86 with the mu and step "
        "of its least objective, 3.38 with the best ones in hindsight, where private "
        "labels have 2.61 and the paper says that the two are the same; public data "
        "alone have 9.50. At epsilon 10 the printed algorithms have 9.20, 10.60 and "
        "8.77.",
        "crossover": "not in the paper: no setting was found in which Frank-Wolfe is clearly "
        "lower than the noisy matrix, which has 0.065 against 0.326 at n epsilon = 1000, d = 400; "
        "beyond the predicted crossover neither learns much. One run a point; up to ten of an "
        "earlier version of the code said the same.",
        "wind": "not in the paper: at epsilon 1 ours changes the error of public data alone by "
        "-4.1% (0.1445 against 0.1508; lower on 5 of 5 splits), plain discrepancy minimisation "
        "without privacy by -2.8%.",
        "gas": "not in the paper: matching does not help here even without privacy (discrepancy "
        "minimisation +174%, kernel means +50%), and ours stays with the public model (0.1580).",
    },
)
