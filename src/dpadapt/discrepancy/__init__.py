"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023)."""

from .certificate import Certificate, certify
from .discrepancy_regressor import AdaptationWarning, DiscrepancyRegressor, GuaranteeWarning
from .label_difference import LabelDifference, PrivateLabels, label_difference
from .minimisation import DiscrepancySolution, discrepancy, minimise_discrepancy
from .moments import Moments
from .selection import choose_weights, weights_choice
from .sets import Ball, Box, GroupSimplex, Simplex, Vertices
from .single_stage import AdaptationObjective, NoisySingleStage
from .smoothing import OneSidedSoftmax, PNorm, Softmax
from .solvers import FrankWolfe, MirrorDescent, SingleStage
from .theorems import (
    Promise,
    Setting,
    corollary_2,
    corollary_3,
    corollary_4,
    theorem_4,
    theorem_10,
    theorem_11,
)

__all__ = [
    "AdaptationObjective",
    "AdaptationWarning",
    "Ball",
    "Box",
    "Certificate",
    "DiscrepancyRegressor",
    "DiscrepancySolution",
    "FrankWolfe",
    "GroupSimplex",
    "GuaranteeWarning",
    "LabelDifference",
    "MirrorDescent",
    "Moments",
    "NoisySingleStage",
    "OneSidedSoftmax",
    "PNorm",
    "PrivateLabels",
    "Promise",
    "Setting",
    "Simplex",
    "SingleStage",
    "Softmax",
    "Vertices",
    "certify",
    "choose_weights",
    "corollary_2",
    "corollary_3",
    "corollary_4",
    "discrepancy",
    "label_difference",
    "minimise_discrepancy",
    "theorem_4",
    "theorem_10",
    "theorem_11",
    "weights_choice",
]
