"""The best private model from two tables: public experts, their stack, one private path from it.

Everything that can be done with public rows is done first, and costs nothing: several kinds of
models, tried on public rows that they have not seen, and stacked. The stack is a good model by
itself (``public_model_``) and the start of the private step, which spends the whole budget through
one Gaussian purse: cheap statistics first, then a descent that is planned from them.
"""

from .auto_classifier import AutoClassifier
from .auto_regressor import AutoRegressor

__all__ = ["AutoClassifier", "AutoRegressor"]
