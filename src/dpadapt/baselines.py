"""What people would use instead: the methods that this library's own are compared with.

Private ones follow the conventions of the library. Those that read the target in the clear
(``NonPrivate*``, ``KMM*``, ``DiscrepancyMinimisationRegressor``) are yardsticks: they take plain
arrays, never a ``Private``. They stand in :mod:`dpadapt.papers.baselines`.
"""

from ._lazy import lazily

_WHERE = {
    ".papers.baselines.adassp": "AdaSSPClassifier AdaSSPRegressor",
    ".papers.baselines.kernel_mean_matching": (
        "KMMClassifier KMMRegressor MatchingSolution kernel_mean_matching"
    ),
    ".papers.baselines.noisy_gradient": (
        "NoisyGradientClassifier NoisyGradientRegressor NoisySGDRegressor"
    ),
    ".papers.baselines.non_private": (
        "DiscrepancyMinimisationRegressor NonPrivateClassifier NonPrivateRegressor "
        "PublicOnlyClassifier PublicOnlyRegressor"
    ),
    ".papers.baselines.objective_perturbation": (
        "ObjectivePerturbationClassifier ObjectivePerturbationRegressor"
    ),
}

__all__ = sorted(" ".join(_WHERE.values()).split())

__getattr__ = lazily("dpadapt", _WHERE)
