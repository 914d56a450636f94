"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023).

Here is what the default needs. The paper's algorithms, sets, theorems and certificate stand in
:mod:`dpadapt.papers.discrepancy`, and are shown here.
"""

from dpadapt._lazy import lazily

from .discrepancy_regressor import AdaptationWarning, DiscrepancyRegressor, GuaranteeWarning
from .minimisation import DiscrepancySolution, discrepancy, minimise_discrepancy
from .moments import Moments

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

__getattr__ = lazily(
    __name__,
    {
        "..papers.discrepancy.certificate": "Certificate PrivateLabels certify",
        "..papers.discrepancy.label_difference": "LabelDifference label_difference",
        "..papers.discrepancy.selection": "choose_weights weights_choice",
        "..papers.discrepancy.sets": "Ball Box GroupSimplex Simplex Vertices",
        "..papers.discrepancy.single_stage": "AdaptationObjective NoisySingleStage",
        "..papers.discrepancy.smoothing": "OneSidedSoftmax PNorm Softmax",
        "..papers.discrepancy.solvers": "FrankWolfe MirrorDescent SingleStage",
        "..papers.discrepancy.theorems": (
            "Promise Setting corollary_2 corollary_3 corollary_4 theorem_4 theorem_10 theorem_11"
        ),
    },
)
