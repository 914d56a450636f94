"""The closed list: every class of which a model folder may hold objects, by its exact name.

A name gets on the list if its objects are plain data that compute: nothing that starts a process,
opens a file or a connection, imports by name, or calls what it was given. So there are no holders,
sessions, ledgers or extractors here (those load networks from places that a file could name).
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import numpy as np
from scipy import special

from .files import ModelFolderError
from .states import STATES


def _under(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


ESTIMATORS = frozenset().union(
    _under("dpadapt.pipeline", "AdaptationPipeline"),
    _under("dpadapt.auto.auto_classifier", "AutoClassifier"),
    _under("dpadapt.auto.auto_regressor", "AutoRegressor"),
    _under("dpadapt.discrepancy.discrepancy_regressor", "DiscrepancyRegressor"),
    _under("dpadapt.reweighting.reweighting_regressor", "ReweightingRegressor"),
    _under("dpadapt.reweighting.reweighting_classifier", "ReweightingClassifier"),
    _under("dpadapt.mixing.adamix_classifier", "AdaMixClassifier"),
    _under("dpadapt.papers.mixing.noisy_gd", "NoisyGDClassifier"),
    _under("dpadapt.kernels.kernel_regressor", "KernelRegressor"),
    _under("dpadapt.kernels.kernel_classifier", "KernelClassifier"),
    _under("dpadapt.hybrid.hybrid_tilt", "HybridTilt"),
    _under("dpadapt.papers.hybrid.subsample_test_reweigh", "SubsampleTestReweigh"),
    _under("dpadapt.papers.baselines.adassp", "AdaSSPClassifier AdaSSPRegressor"),
    _under(
        "dpadapt.papers.baselines.noisy_gradient", "NoisyGradientClassifier NoisyGradientRegressor"
    ),
    _under("dpadapt.papers.baselines.noisy_gradient", "NoisySGDRegressor"),
    _under(
        "dpadapt.papers.baselines.objective_perturbation",
        "ObjectivePerturbationClassifier ObjectivePerturbationRegressor",
    ),
    _under("dpadapt.papers.baselines.non_private", "PublicOnlyClassifier PublicOnlyRegressor"),
)
"""What a model folder may be: the estimators that carry a guarantee."""

PARTS = frozenset().union(
    _under("dpadapt.auto.auto_classifier", "DirectionScores"),
    _under("dpadapt.auto.auto_regressor", "ErrorQuantiles"),
    _under("dpadapt.auto.classification_inference", "ClassNoHarm"),
    _under("dpadapt.auto.classification_step", "ClassScores"),
    _under("dpadapt.auto.curves", "Curves Leaves"),
    _under("dpadapt.auto.experts", "Centred FourierExpert LinearExpert Own Sum Trees Waves"),
    _under("dpadapt.auto.regression_facts", "PathFeatures"),
    _under("dpadapt.auto.regression_step", "Correction NoHarm"),
    _under("dpadapt.auto.releases", "ReleaseRecord"),
    _under("dpadapt.auto.stacking", "PublicStack Reader"),
    _under("dpadapt.rare", "ClassErrors"),
    _under("dpadapt.features.cells", "NumberCells TextCells"),
    _under("dpadapt.features.cells", "DateCells"),
    _under("dpadapt.kernels.constants", "KernelFacts"),
    _under("dpadapt.papers.discrepancy.certificate", "Certificate PrivateLabels"),
    _under("dpadapt.discrepancy.moments", "Moments"),
    _under("dpadapt.papers.discrepancy.smoothing", "PNorm Softmax"),
    _under("dpadapt.papers.discrepancy.solvers", "FrankWolfe MirrorDescent SingleStage"),
    _under("dpadapt.papers.reweighting.certificate", "ReweightingCertificate"),
    _under("dpadapt.papers.reweighting.choice", "Candidate"),
    _under("dpadapt.learning.descent", "Geometry"),
    _under("dpadapt.reweighting.known_noise", "KnownNoise"),
    _under("dpadapt.reweighting.moments", "MomentCourse"),
    _under("dpadapt.reweighting.plan", "Course"),
    _under("dpadapt.reweighting.problem", "Units"),
    _under("dpadapt.papers.reweighting.regression_solvers", "ConvexGradient Profiled Statistics"),
    _under("dpadapt.papers.reweighting.classification_solvers", "GeneralGradient ProfiledLogistic"),
    _under("dpadapt.papers.mixing.adamix", "AdaMix AdaptiveClip FixedClip Theory"),
    _under("dpadapt.mixing.features", "UnitRows"),
    _under("dpadapt.mixing.known_noise", "Horizon KnownNoise"),
    _under("dpadapt.papers.mixing.noisy_gd", "NoisyGD StepsAtNoise"),
    _under("dpadapt.papers.mixing.projection", "FeatureProjection GradientProjection"),
    _under("dpadapt.mixing.solver", "Steps"),
    _under("dpadapt.kernels._setup", "Setup"),
    _under(
        "dpadapt.kernels.features",
        "Fourier FourierFeatures LinearFeatures Nystroem NystroemFeatures PolynomialFeatures",
    ),
    _under(
        "dpadapt.kernels.kernel", "Chi2 Cosine InnerProduct Kernel Laplacian Linear Polynomial RBF"
    ),
    _under("dpadapt.kernels.release", "GaussianProcess"),
    _under("dpadapt.papers.kernels.tddl", "TDDL"),
    _under("dpadapt.papers.kernels.tdil", "TDIL"),
    _under("dpadapt.hybrid._classifier", "AgentsCertificate FeatureUnits"),
    _under("dpadapt.papers.hybrid.learners", "GradientLearner SGDLearner"),
    _under("dpadapt.hybrid.rules", "LinearRule"),
    _under("dpadapt.papers.hybrid.rounds", "BitTest PaperSchedule PaperTest Round TightSchedule"),
    _under("dpadapt.hybrid.tilt.ratio", "Cap"),
    _under("dpadapt.hybrid.tilt.trials", "Trial"),
    _under("dpadapt.privacy.core.cleaning", "Cleaning"),
    _under("dpadapt.privacy.local.replies", "Estimate"),
    STATES,
)
"""What may be inside them: our frozen value objects, and the transformers of a pipeline.

Our estimators and value objects predict with numpy alone, which checks its bounds: the compiled
kernels of this library serve fits. Value objects derive what they can in their constructors.
"""


_PAPERS = {  # chapters of papers/, and the files that they were
    "baselines": {
        "adassp": "adassp",
        "non_private": "public_only",
        "noisy_gradient": "noisy_gradient noisy_sgd",
        "objective_perturbation": "objective_perturbation",
    },
    "discrepancy": {
        "certificate": "certificate label_difference",
        "smoothing": "smoothing",
        "solvers": "solvers",
    },
    "hybrid": {
        "learners": "gradient_learner sgd_learner",
        "rounds": "agent_tests rounds schedules",
        "subsample_test_reweigh": "subsample_test_reweigh",
    },
    "kernels": {"tddl": "tddl", "tdil": "tdil"},
    "mixing": {
        "adamix": "adamix clipping theory",
        "noisy_gd": "noisy_gd noisy_gd_classifier",
        "projection": "projection",
    },
    "reweighting": {
        "certificate": "certificate",
        "choice": "choice",
        "classification_solvers": "classification_solvers",
        "regression_solvers": "regression_solvers",
    },
}

MOVED = {
    "dpadapt.auto.classification_few": "dpadapt.auto.auto_classifier",
    "dpadapt.auto.classification_noise": "dpadapt.auto.classification_inference",
    "dpadapt.auto.classification_step.Scores": "dpadapt.auto.classification_step.ClassScores",
    "dpadapt.auto.experts.Fourier": "dpadapt.auto.experts.FourierExpert",
    "dpadapt.auto.experts.Linear": "dpadapt.auto.experts.LinearExpert",
    "dpadapt.auto.path_features": "dpadapt.auto.regression_facts",
    "dpadapt.auto.public_model.PublicModel": "dpadapt.auto.stacking.PublicStack",
    "dpadapt.auto.reading": "dpadapt.auto.stacking",
    "dpadapt.auto.regression_outlook.NoHarm": "dpadapt.auto.regression_step.NoHarm",
    "dpadapt.auto.regression_outlook.Outlook": "dpadapt.auto.auto_regressor.ErrorQuantiles",
    "dpadapt.auto.releases.Release": "dpadapt.auto.releases.ReleaseRecord",
    "dpadapt.auto.trees": "dpadapt.auto.experts",
    **{
        f"dpadapt.{before}{method}.{old}": f"dpadapt.papers.{method}.{chapter}"
        for method, chapters in _PAPERS.items()
        for chapter, files in chapters.items()
        for old in files.split()
        for before in ("", "papers.")
        if not (before and old == chapter)
    },
    "dpadapt.kernels.kernel_facts": "dpadapt.kernels.constants",
    "dpadapt.mixing.horizon": "dpadapt.mixing.known_noise",
    "dpadapt.mixing.steps": "dpadapt.mixing.solver",
    "dpadapt.features.dates": "dpadapt.features.cells",
    "dpadapt.rare.errors": "dpadapt.rare",
    "dpadapt.mixing.steps.StepsAtNoise": "dpadapt.papers.mixing.noisy_gd.StepsAtNoise",
    "dpadapt.papers.mixing.steps": "dpadapt.papers.mixing.noisy_gd",
    "dpadapt.reweighting.horizon": "dpadapt.learning.descent",
    "dpadapt.reweighting.known_noise_course": "dpadapt.reweighting.plan",
    "dpadapt.reweighting.known_noise_moments": "dpadapt.reweighting.moments",
    "dpadapt.reweighting.known_noise_solver": "dpadapt.reweighting.known_noise",
    "dpadapt.reweighting._units": "dpadapt.reweighting.problem",
    "dpadapt.hybrid.certificate": "dpadapt.hybrid._classifier",
    "dpadapt.hybrid.units": "dpadapt.hybrid._classifier",
    "dpadapt.hybrid.tilt.trials.Candidate": "dpadapt.hybrid.tilt.trials.Trial",
}
"""Where modules and classes that folders name have gone: a folder from before loads as ever."""


def _now(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    return MOVED.get(name, f"{MOVED.get(module, module)}.{attribute}")


class Names:
    """The names that one load or save accepts: the closed list and those that the caller adds.

    Parameters
    ----------
    trusted : collection of str
        Dotted names of classes or functions, such as "numpy.log1p".

    Examples
    --------
    >>> import numpy as np
    >>> names = Names()
    >>> names.find("sklearn.preprocessing.StandardScaler").__name__
    'StandardScaler'
    >>> names.find("os.system")
    Traceback (most recent call last):
    ...
    dpadapt.modelfolder.files.ModelFolderError: os.system is not on the list of what a model \
folder may hold, and could do anything. If you trust it and its maker, allow it by name: \
trusted=['os.system'], or --trust os.system.
    >>> Names(["numpy.log1p"]).of(np.log1p)
    'numpy.log1p'
    """

    def __init__(self, trusted: Collection[str] = ()) -> None:
        if isinstance(trusted, str) or not all(
            isinstance(name, str) and "." in name for name in trusted
        ):
            raise ModelFolderError(
                "trusted must be a list of dotted names, such as ['my_package.MyTransformer']; "
                f"got {trusted!r}."
            )
        self.trusted = frozenset(trusted)

    def check(self, name: Any) -> str:
        """Return a name if it is on the list, as it is now; nothing is imported."""
        if isinstance(name, str) and name not in self.trusted:
            name = _now(name)
        if not isinstance(name, str) or name not in ESTIMATORS | PARTS | self.trusted:
            shown = name if isinstance(name, str) else repr(name)
            raise ModelFolderError(
                f"{shown} is not on the list of what a model folder may hold, and could do "
                "anything. If you trust it and its maker, allow it by name: "
                f"trusted=[{shown!r}], or --trust {shown}."
            )
        return name

    def find(self, name: Any) -> Any:
        """Return the class or function of a name on the list."""
        module, _, attribute = self.check(name).rpartition(".")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            raise ModelFolderError(
                f"the model needs {name}, which is not installed here, or not in this version."
            ) from None

    def of(self, thing: Any) -> str:
        """Name of a class or function on the list; the inverse of :meth:`find`."""
        module = str(getattr(thing, "__module__", None) or _home(thing))
        own = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
        exact, public = f"{module}.{own}", f"{module.split('._')[0]}.{own}"
        for name in (exact, public, *sorted(self.trusted)):
            if name in ESTIMATORS | PARTS | self.trusted and self.find(name) is thing:
                return name
        return self.check(public if module.startswith("sklearn.") else exact)


def _home(thing: Any) -> str:
    """Module of a compiled function that names none: of numpy before 2.2, and of scipy."""
    name = getattr(thing, "__name__", "")
    return next((m.__name__ for m in (np, special) if name and vars(m).get(name) is thing), "")
