"""The closed list: every class of which a model folder may hold objects, by its exact name.

A name gets on the list if its objects are plain data that compute: nothing that starts a process,
opens a file or a connection, imports by name, or calls what it was given. So there are no holders,
sessions, ledgers or extractors here (those load networks from places that a file could name).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

from .errors import ModelFolderError
from .states import STATES

__all__ = ["ESTIMATORS", "FIXED", "PARTS", "Names"]


def _under(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


ESTIMATORS = frozenset().union(
    _under("dpadapt.pipeline", "AdaptationPipeline"),
    _under("dpadapt.discrepancy.estimator", "DiscrepancyRegressor"),
    _under("dpadapt.reweighting.regressor", "ReweightingRegressor"),
    _under("dpadapt.reweighting.classifier", "ReweightingClassifier"),
    _under("dpadapt.mixing.adamix_classifier", "AdaMixClassifier"),
    _under("dpadapt.mixing.noisy_gd_classifier", "NoisyGDClassifier"),
    _under("dpadapt.kernels.regressor", "KernelRegressor"),
    _under("dpadapt.kernels.classifier", "KernelClassifier"),
    _under("dpadapt.hybrid.estimator", "HybridTilt"),
    _under("dpadapt.hybrid.str_estimator", "SubsampleTestReweigh"),
    _under("dpadapt.baselines.adassp", "AdaSSPClassifier AdaSSPRegressor"),
    _under("dpadapt.baselines.noisy_gradient", "NoisyGradientClassifier NoisyGradientRegressor"),
    _under("dpadapt.baselines.noisy_sgd", "NoisySGDRegressor"),
    _under(
        "dpadapt.baselines.objective_perturbation",
        "ObjectivePerturbationClassifier ObjectivePerturbationRegressor",
    ),
    _under("dpadapt.baselines.public_only", "PublicOnlyClassifier PublicOnlyRegressor"),
)
"""What a model folder may be: the estimators that carry a guarantee."""

PARTS = frozenset().union(
    _under("dpadapt._commands.features", "NumberCells TextCells"),
    _under("dpadapt.discrepancy.certificate", "Certificate"),
    _under("dpadapt.reweighting._units", "Units"),
    _under("dpadapt.reweighting.certificate", "Certificate"),
    _under("dpadapt.reweighting.choice", "Candidate"),
    _under("dpadapt.reweighting.horizon", "Geometry"),
    _under("dpadapt.reweighting.known_noise_plan", "Plan"),
    _under("dpadapt.mixing.features", "UnitRows"),
    _under("dpadapt.mixing.known_noise", "Horizon"),
    _under("dpadapt.kernels._setup", "Setup"),
    _under(
        "dpadapt.kernels.features",
        "FourierFeatures Kernel LinearFeatures NystroemFeatures PolynomialFeatures",
    ),
    _under("dpadapt.hybrid.certificate", "Certificate"),
    _under("dpadapt.hybrid.gradient_learner", "GradientLearner"),
    _under("dpadapt.hybrid.sgd_learner", "SGDLearner"),
    _under("dpadapt.hybrid.rules", "LinearRule"),
    _under("dpadapt.hybrid.subsample_test_reweigh", "Round"),
    _under("dpadapt.hybrid.tilt_ratio", "Cap"),
    _under("dpadapt.hybrid.tilt_trials", "Candidate"),
    _under("dpadapt.privacy.cleaning", "Cleaning"),
    _under("dpadapt.privacy.replies", "Estimate"),
    STATES,
)
"""What may be inside them: our frozen value objects, and the transformers of a pipeline.

Our estimators and value objects predict with numpy alone, which checks its bounds: the compiled
kernels of this library serve fits. Value objects derive what they can in their constructors.
"""

FIXED: Mapping[str, Mapping[str, Any]] = {
    # a cache on disk is made of pickles, which the next fit would load
    "sklearn.pipeline.Pipeline": {"memory": None},
    # the others read the files that the rows name
    "sklearn.feature_extraction.text.CountVectorizer": {"input": "content"},
    "sklearn.feature_extraction.text.TfidfVectorizer": {"input": "content"},
    "sklearn.feature_extraction.text.HashingVectorizer": {"input": "content"},
}
"""Attributes that must be what they are by default, because another value reads files."""


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
    dpadapt.modelfolder.errors.ModelFolderError: os.system is not on the list of what a model \
folder may hold, and could do anything. If you trust it and whoever made the folder, allow it by \
name: trusted=['os.system'], or --trust os.system on the command line.
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
        """Return a name if it is on the list; nothing is imported."""
        if not isinstance(name, str) or name not in ESTIMATORS | PARTS | self.trusted:
            shown = name if isinstance(name, str) else repr(name)
            raise ModelFolderError(
                f"{shown} is not on the list of what a model folder may hold, and could do "
                "anything. If you trust it and whoever made the folder, allow it by name: "
                f"trusted=[{shown!r}], or --trust {shown} on the command line."
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
        module = str(getattr(thing, "__module__", None) or "")
        own = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
        exact, public = f"{module}.{own}", f"{module.split('._')[0]}.{own}"
        for name in (exact, public, *sorted(self.trusted)):
            if name in ESTIMATORS | PARTS | self.trusted and self.find(name) is thing:
                return name
        return self.check(public if module.startswith("sklearn.") else exact)
