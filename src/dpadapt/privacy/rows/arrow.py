"""Cells of Arrow record batches. The type of a column depends on what the writer of a file saw.

So it says nothing here: every cell means what it means by itself (:mod:`.cells`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cells import Cells, cells_of, each
from .tables import ColumnBlock

# names of types whose cells are texts or bytes
TEXTS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
TEXTS |= {"fixed_size_binary"}


class ArrowBlock(ColumnBlock):
    """A record batch whose columns are read when they are needed.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    names : tuple of str
        The columns, in this order.
    """

    def __init__(self, batch: Any, names: tuple[str, ...]) -> None:
        self._columns = [batch.column(batch.schema.get_field_index(name)) for name in names]
        self._batch, self.names = batch, names
        self.shape = (int(batch.num_rows), len(names))

    def __getitem__(self, rows: slice) -> ArrowBlock:
        return ArrowBlock(self._batch[rows], self.names)

    def column(self, position: int) -> Cells:
        """Cells of one column."""
        return arrow_cells(self._columns[position])

    def exact(self, position: int) -> Cells:
        """Cells of one column, whole numbers as whole numbers."""
        import pyarrow as pa

        column = self._columns[position]
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        return column.to_pylist() if pa.types.is_integer(column.type) else arrow_cells(column)

    def at(self, places: Any) -> ArrowBlock:
        """Rows at these places, in this order."""
        import pyarrow as pa

        return ArrowBlock(self._batch.take(pa.array(places)), self.names)

    def chosen(self, positions: Sequence[int]) -> ArrowBlock:
        """Return some of the columns."""
        return ArrowBlock(self._batch, tuple(self.names[i] for i in positions))


def arrow_cells(column: Any) -> Cells:
    """Cells of a record batch's column: floats if they are all numbers, else objects."""
    import pyarrow as pa

    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return cells_of(column.to_numpy(zero_copy_only=False))
    if str(kind).split("[")[0] in TEXTS:
        return list(column.cast(pa.large_binary()).to_numpy(zero_copy_only=False))
    if pa.types.is_null(kind):
        return [None] * len(column)
    return each(column.to_pylist, lambda i: column[i].as_py(), len(column))
