"""From Arrow batches of a Spark frame to datasets, on the workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from faircal.data import Dataset
from faircal.data.columns import SOMEWHERE
from faircal.data.parts import TableParts
from faircal.production.spark.gallery import Whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Range = tuple[float, float]

#: Pairs of a part, about: Spark's own batches (10,000 rows unless told) are too short to be quick.
PART = 1 << 18
#: A score table's column with the number of each row, from 0.
ROW = "__row"


def gathered(batches: Iterable[pa.RecordBatch], rows: int = PART) -> Iterator[pa.Table]:
    """Put batches together until there are `rows` rows; nothing comes of none.

    Examples
    --------
    >>> batches = [pa.record_batch({"left": [1, 2]}), pa.record_batch({"left": [3]})] * 2
    >>> [table.num_rows for table in gathered(batches, rows=3)]
    [3, 3]
    """
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


class Reader(ABC):
    """Makes datasets of the Arrow batches of a frame.

    Travels to the workers, where it stays for as long as their processes do: what is costly is
    made there when first asked for, and kept.
    """

    #: Of the scores; as `Dataset.score_range`.
    score_range: Range
    feature: str

    @abstractmethod
    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of `batches`, some 2¹⁸ at a time."""

    @abstractmethod
    def local(self, table: pa.Table) -> Dataset:
        """Make one dataset of collected pairs, on the driver."""

    def arrange(self, frame: DataFrame) -> DataFrame:
        """Return `frame` with its rows where `parts` wants them."""
        return frame


class Gathered(Reader):
    """Makes parts of the pairs that follow each other, whatever they are."""

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Dataset]:
        """Yield the pairs of `batches`, some 2¹⁸ at a time."""
        return map(self.local, gathered(batches))

    def _using(self, part: Dataset) -> Dataset:
        return part if part.feature == self.feature else part.select(self.feature)


@dataclass(frozen=True, eq=False)
class Looked(Gathered):
    """Pairs of images that are looked up in a gallery within reach.

    Parameters
    ----------
    gallery : Whole
    score_range : (float, float)
    feature : str
        The one in use.
    text_folds : bool
        Whether folds are text.
    """

    gallery: Whole
    score_range: Range
    feature: str
    text_folds: bool

    def local(self, table: pa.Table) -> Dataset:
        """Make one dataset of pairs; all parts share images and embeddings."""
        parts = self.gallery.parts
        return self._using(parts.build(table, SOMEWHERE, self.text_folds, self.score_range))


@dataclass(frozen=True, eq=False)
class Tabled(Gathered):
    """Pairs of a score table; column `ROW`, where it is there, has their numbers."""

    table: TableParts
    score_range: Range
    feature: str
    text_folds: bool

    def local(self, table: pa.Table) -> Dataset:
        """Make one dataset of pairs, with images of its own."""
        rows = None
        if ROW in table.column_names:
            rows = np.asarray(table[ROW], np.int64)
            table = table.drop_columns([ROW])
        return self._using(
            self.table.build(table, SOMEWHERE, self.text_folds, self.score_range, rows)
        )
