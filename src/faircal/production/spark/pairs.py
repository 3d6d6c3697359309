"""Pairs in a Spark frame, with what is known of their images."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset
from faircal.data.pair_sources import FolderParts, TableParts
from faircal.data.parts import KeptTally, PartProgress, StoredPairs, T
from faircal.production.spark.running import (
    PartReader,
    PartWork,
    as_bytes,
    map_parts,
    reduce_parts,
)
from faircal.production.spark.session import errors_in_one_line
from faircal.production.spark.tables import groups_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Pairs that are looked at before any work is done.
_HEAD = 16


@dataclass(frozen=True, eq=False)
class SparkPairs(StoredPairs):
    """Pairs of any number in a Spark frame: what a `PairStream` is on one machine.

    `open_pairs` makes one of files, `pairs_of` of your own frame. It works in the
    session that its frame is of, and changes none of its settings.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        What `reader` makes parts of.
    reader : PartReader
    mark : str
        Tells whether this is the same data as another time.
    all_folds : pyspark.sql.DataFrame or None
        The pairs of all folds, where one was picked.
    """

    frame: DataFrame
    reader: PartReader
    mark: str
    all_folds: DataFrame | None = None

    def __len__(self) -> int:
        return self._counted

    @cached_property
    def _counted(self) -> int:
        with errors_in_one_line():
            return int(self.frame.count())

    def __repr__(self) -> str:
        return f"<SparkPairs {self.name!r}: features {', '.join(self.features)}>"

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.frame.sparkSession

    @property
    def source(self) -> FolderParts | TableParts:  # type: ignore[override]
        """What makes parts of rows."""
        return self.reader.source

    @property
    def feature(self) -> str:  # type: ignore[override]
        """The feature in use."""
        return self.reader.feature

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores."""
        return self.reader.score_range

    @property
    def has_folds(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return "fold" in self.frame.columns

    @cached_property
    def fold_names(self) -> tuple[str, ...]:
        """The folds that occur, as they are printed; a job tells."""
        if not self.has_folds:
            return ()
        with errors_in_one_line():
            folds = self.frame.select(self._fold.alias("fold")).distinct().toArrow()
        names = folds["fold"].to_pylist()
        if None in names:
            raise DataError(
                f"{self.where}, column 'fold': empty in some rows; give every row a fold"
            )
        return tuple(sorted(names))

    @property
    def _fold(self) -> Column:
        """The fold of each pair as it is printed: 1.0 as 1, as integers with gaps arrive."""
        from pyspark.sql import functions as F  # noqa: N812

        fold = self.frame["fold"]
        if self.frame.schema["fold"].dataType.typeName() not in ("float", "double"):
            return fold.cast("string")
        integer = fold.try_cast("long")
        return F.when(fold == integer, integer.cast("string")).when(
            ~F.isnan(fold), fold.cast("string")
        )

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named, as found on opening."""
        source = self.source
        return source.images.crossed if isinstance(source, FolderParts) else source.crossed

    def _groups(
        self, crossed: Sequence[Sequence[str]], most: int | None = None
    ) -> list[list[tuple[str, ...]]]:
        """Return the values that occur, sorted, of each list of attributes: a job tells."""
        if isinstance(self.source, FolderParts):
            return [[] for _ in crossed]
        # As of a dataset, groups are those of all folds.
        frame = self.frame if self.all_folds is None else self.all_folds
        return groups_in(frame, self.source.layout, crossed, self.where, most)

    def fingerprint(self) -> str:
        """Return what tells whether this is the same data as another time."""
        return self.mark

    def _with_feature(self, feature: str) -> SparkPairs:
        return replace(self, reader=replace(self.reader, feature=feature))

    def _with_fold(self, fold: str, keep: bool) -> SparkPairs:
        here = self._fold == fold
        mark = f"{self.mark} {'only' if keep else 'without'} {fold}"
        picked = self.frame.where(here if keep else ~here)
        all_folds = self.frame if self.all_folds is None else self.all_folds
        return replace(self, frame=picked, mark=mark, all_folds=all_folds)

    # ------------------------------------------------------------------ work

    def needed(self, columns: Collection[str] | None = None) -> DataFrame:
        """Return the frame with what is needed of the pairs.

        Parameters
        ----------
        columns : collection of str, optional
            Of ``genuine``, ``fold``, ``probability``, ``identity``, attributes of a score table,
            and ``row``, the number of its rows; everything but the last unless told. Scores are
            always read.
        """
        return self.frame.select(self.source.columns(columns, self.frame.columns))

    def head(self) -> Dataset:
        """Return a few pairs, here, to check a model against."""
        with errors_in_one_line():
            rows = self.frame.take(_HEAD)  # looks at one partition, where a limit looks at all
        return self._local(self.spark.createDataFrame(rows, self.frame.schema))

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return about `most` pairs, here: all where there are no more, else some at random."""
        from pyspark.sql import functions as F  # noqa: N812

        share = most / max(len(self), 1)
        if share >= 1:
            return self._local(self.frame)
        # By a hash of what is in a row: so the same are drawn however a cluster divides them.
        drawn = F.pmod(F.xxhash64(*self.frame.columns, F.lit(seed)), F.lit(1 << 52))
        return self._local(self.frame.where(drawn < int(share * (1 << 52))))

    def _local(self, frame: DataFrame) -> Dataset:
        with errors_in_one_line():
            table: pa.Table = replace(self, frame=frame).needed().toArrow()
        if not table.num_rows:
            raise DataError(f"{self.where}: expected at least one pair, found none")
        return self.reader.dataset(table)

    def parts(
        self, start: int = 0, columns: Collection[str] | None = None
    ) -> Generator[Dataset, None, None]:
        """Yield all pairs here, partition by partition: for data that one machine can go through.

        Their order is Spark's, so they can't be gone on with: `start` is 0.
        """
        if start:
            raise ParameterError(f"{self.where}: pairs on Spark have no numbers to go on from")
        with errors_in_one_line():
            for row in self.needed(columns).mapInArrow(as_bytes, "part binary").toLocalIterator():
                yield self.reader.dataset(pa.ipc.open_stream(bytes(row.part)).read_all())

    def map(
        self, make: Callable[[], PartWork], schema: Any, columns: Collection[str] | None = None
    ) -> DataFrame:
        """Return a frame with what the workers make of the parts; see `map_parts`."""
        return map_parts(self.needed(columns), self.reader, make, schema)[0]

    def reduce(
        self,
        start: Callable[[], T],
        columns: Collection[str] | None = None,
        *,
        progress: PartProgress | None = None,
        kept: KeptTally[T] | None = None,  # noqa: ARG002
    ) -> T:
        """Have the workers add parts to tallies, and add these up; see `PairParts.reduce`.

        There is no checkpoint: what a lost worker had counted is counted again by another.
        """
        if progress is not None:
            progress(0, 1)
        return reduce_parts(self.needed(columns), self.reader, start)
