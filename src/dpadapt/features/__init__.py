"""From tables, images and texts to rows of numbers: transformers that treat every row on its own.

``table_features`` is for tables of any cells (what ``dpadapt fit`` puts before its estimator),
``TorchFeatures`` and ``SentenceFeatures`` are for images and texts, with the weights of a frozen
public model that the user has. All go into :class:`~dpadapt.AdaptationPipeline`, beside those of
scikit-learn.

An extractor is a *row-wise* map: what an item becomes depends on that item and on public data,
never on another item. Otherwise one person's photograph would change the features of all, and no
bound on a single row's influence would hold. Three things could break this, and do not here.

- *Layers that look at a batch.* Batch normalisation in training mode takes means over the batch.
  A copy of the module is put into evaluation mode, and a few public items must give the same
  features together as alone: what still mixes rows (or is random) is refused.
- *Items that fail.* An item that cannot be read keeps its place in the batch, filled with zeros
  (texts: with an empty one), and its features are NaN, which cleaning turns into a public value.
  Nothing is raised, and no other item changes its place.
- *Rounding.* Libraries of matrix products choose another order of summation for a batch of another
  size. Torch batches are therefore filled up to a multiple of 16 items, which gave the same
  features to the last bit on the processors tried. Text encoders pad to the longest text of a call,
  which moves the last bits of the others: texts go one by one. ``batch_size=1`` is always exact.

The weights must come from public data: the guarantee does not cover what a model learned from
private items before.
"""

from .cells import DateCells, NumberCells, TextCells, table_features
from .columns import Role, column_roles
from .extractors import FeatureExtractor, SentenceFeatures, TorchFeatures

__all__ = [
    "DateCells",
    "FeatureExtractor",
    "NumberCells",
    "Role",
    "SentenceFeatures",
    "TextCells",
    "TorchFeatures",
    "column_roles",
    "table_features",
]
