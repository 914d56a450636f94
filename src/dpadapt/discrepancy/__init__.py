"""Public labelled source, private unlabelled target (paper 000: Bassily, Mohri, Suresh 2023).

Here is what the default needs. The paper's algorithms, sets, theorems and certificate stand in
:mod:`dpadapt.papers.discrepancy`, and are shown here.
"""

from dpadapt._lazy import lazily
from dpadapt.learning.checks import GuaranteeWarning

from .discrepancy_regressor import DiscrepancyRegressor
from .minimisation import DiscrepancySolution, discrepancy, minimise_discrepancy
from .moments import AdaptationWarning, Moments

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
        "..papers.discrepancy.certificate": (
            "Certificate LabelDifference PrivateLabels certify label_difference"
        ),
        "..papers.discrepancy.single_stage": (
            "AdaptationObjective Ball Box GroupSimplex NoisySingleStage Simplex Vertices"
        ),
        "..papers.discrepancy.smoothing": "OneSidedSoftmax PNorm Softmax",
        "..papers.discrepancy.solvers": "FrankWolfe MirrorDescent SingleStage",
        "..papers.discrepancy.theorems": (
            "Promise Setting choose_weights corollary_2 corollary_3 corollary_4 theorem_10 "
            "theorem_11 theorem_4 weights_choice"
        ),
    },
)
