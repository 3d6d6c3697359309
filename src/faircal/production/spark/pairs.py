"""Pairs in a Spark frame, with what is known of their images."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data import Dataset
from faircal.data.build import ScoreColumns
from faircal.data.dataset import check_feature, no_such_fold, why_no_groups
from faircal.data.pair_sources import ROW, FolderParts, TableParts
from faircal.data.types import Embeddings, Images, cross
from faircal.production.spark.parts import PartReader
from faircal.production.spark.session import errors_in_one_line
from faircal.production.spark.tables import groups_in

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from faircal._base.jobs import Job
    from faircal.data.summary import DataSummary
    from faircal.methods.streaming import CountedFitting, FitRequest

#: What a pair of images may come with.
_OPTIONAL = ("genuine", "fold", "score")
#: Pairs that are looked at before any work is done.
_HEAD = 16


@dataclass(frozen=True, eq=False)
class SparkPairs:
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
    def feature(self) -> str:
        """The feature in use."""
        return self.reader.feature

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores."""
        return self.reader.score_range

    @property
    def name(self) -> str:
        """Shown in tables and reports."""
        return self.reader.here.name

    @property
    def where(self) -> str:
        """Where the data is, for messages."""
        return self.reader.here.where

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` said, where there was one."""
        return {} if self._folder is None else self._folder.provenance

    @property
    def _folder(self) -> FolderParts | None:
        here = self.reader.here
        return here if isinstance(here, FolderParts) else None

    @property
    def layout(self) -> ScoreColumns | None:
        """The columns of a score table."""
        here = self.reader.here
        return here.layout if isinstance(here, TableParts) else None

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        if self.layout is not None:
            return self.layout.scores
        return tuple(self._folder.embeddings if self._folder is not None else ()) or ("score",)

    @property
    def embeddings(self) -> Embeddings | None:
        """Those of the feature in use."""
        return None if self._folder is None else self._folder.embeddings.get(self.feature)

    @property
    def images(self) -> Images | None:
        """What is known of the images; None for a score table."""
        return None if self._folder is None else self._folder.images

    @property
    def has_images(self) -> bool:
        """Whether images are known: in a score table each side of a pair stands for its own."""
        return self._folder is not None

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
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        if self.layout is not None:
            return tuple(self.layout.attributes)
        return () if self.images is None else tuple(self.images.attributes)

    @property
    def default_attribute(self) -> str | None:
        """All attribute columns crossed, as for a `Dataset`."""
        here = self.reader.here
        crossed = here.images.crossed if isinstance(here, FolderParts) else here.crossed
        return "+".join(crossed) or None

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute`, in the order a `Dataset` has them; a job may tell."""
        attribute = attribute or self.default_attribute
        if attribute is None:
            raise DataError(f"{self.where}: {self.why_no_groups()}")
        if self.images is not None:
            return cross(self.images.attributes, attribute, self.where).names
        keys = attribute.split("+")
        for key in keys:
            if key not in self.attributes:
                hint = did_you_mean(key, self.attributes)
                raise DataError(f"{self.where}: attribute '{key}' is not in the data; {hint}")
        if self.layout is None:
            return ()
        # As of a dataset, groups are those of all folds.
        frame = self.frame if self.all_folds is None else self.all_folds
        (groups,) = groups_in(frame, self.layout, [keys], self.where)
        return tuple(" ".join(names) for names in groups)

    def why_no_groups(self) -> str:
        """Say why there is no default attribute, and what to do."""
        return why_no_groups(self.attributes)

    def fingerprint(self) -> str:
        """Return what tells whether this is the same data as another time."""
        return self.mark

    # --------------------------------------------------------------- derived

    def select(self, feature: str) -> SparkPairs:
        """Return the pairs with another feature in use."""
        check_feature(feature, self.features, self.where)
        return replace(self, reader=replace(self.reader, feature=feature))

    def only(self, fold: Any) -> SparkPairs:
        """Return the pairs of `fold`, named as it is printed."""
        return self._picked(str(fold), keep=True)

    def without(self, fold: Any) -> SparkPairs:
        """Return the pairs of all folds but `fold`."""
        return self._picked(str(fold), keep=False)

    def _picked(self, fold: str, keep: bool) -> SparkPairs:
        if not self.has_folds:
            raise DataError(
                f"{self.where}: the pairs have no column 'fold'; add it: on a cluster folds are "
                "not drawn"
            )
        if fold not in self.fold_names:
            raise no_such_fold(fold, self.fold_names, self.where)
        if not keep and len(self.fold_names) == 1:
            raise DataError(f"{self.where}: no pairs are left but those of fold {fold!r}")
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
        there = self.frame.columns
        if self.layout is not None:
            names = self.layout.columns(columns)
            names += [ROW] if columns is not None and "row" in columns and ROW in there else []
        else:
            optional = [n for n in _OPTIONAL if columns is None or n in columns or n == "score"]
            names = [name for name in ("left", "right", *optional) if name in there]
        return self.frame.select(names)

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

    @cached_property
    def summary(self) -> DataSummary:
        """Who is in the pairs; a job counts."""
        from faircal.production.spark.fitting import summarise

        return summarise(self)

    def fitting(self, request: FitRequest, job: Job) -> CountedFitting:
        """Return what a method is fitted on; see `Method.fit`."""
        from faircal.production.spark.fitting import distributed

        return distributed(self, request, job)
