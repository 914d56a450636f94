"""What people would use instead: the methods that this library's own are compared with.

Private ones follow the conventions of the library. Those that read the target in the clear
(``NonPrivate*``, ``KMM*``, ``DiscrepancyMinimisationRegressor``) are yardsticks: they take plain
arrays, never a ``Private``. They stand in :mod:`dpadapt.papers.baselines`.
"""

from ._lazy import lazily

_WHERE = {
    ".papers.baselines.adassp": "AdaSSPClassifier AdaSSPRegressor",
    ".papers.baselines.discrepancy_minimisation": "DiscrepancyMinimisationRegressor",
    ".papers.baselines.kernel_mean_matching": (
        "KMMClassifier KMMRegressor MatchingSolution kernel_mean_matching"
    ),
    ".papers.baselines.noisy_gradient": "NoisyGradientClassifier NoisyGradientRegressor",
    ".papers.baselines.noisy_sgd": "NoisySGDRegressor",
    ".papers.baselines.objective_perturbation": (
        "ObjectivePerturbationClassifier ObjectivePerturbationRegressor"
    ),
    ".papers.baselines.pooled": "NonPrivateClassifier NonPrivateRegressor",
    ".papers.baselines.public_only": "PublicOnlyClassifier PublicOnlyRegressor",
}

__all__ = sorted(" ".join(_WHERE.values()).split())

__getattr__ = lazily("dpadapt", _WHERE)
