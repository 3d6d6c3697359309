"""Pairs wherever they are, one interface: in memory, in files read part by part, on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.build import MOST_GROUPS
from faircal.data.cohort import Cohort
from faircal.data.columns import Column
from faircal.data.dataset import Dataset, Memo, no_such_feature, no_such_fold, why_no_groups
from faircal.data.pair_sources import FolderParts, TableParts
from faircal.data.types import Embeddings, Images, cross

Range = tuple[float, float]
Names = tuple[str, ...]
TallyState = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class Tally(Protocol):
    """What is counted of parts, and adds up: in any order, or in that of the parts."""

    def add(self, part: Dataset) -> None:
        """Count a part."""

    def merge(self, other: Self) -> None:
        """Add what another one has counted of other parts."""

    def state(self) -> TallyState:
        """Return all as JSON and arrays: for a checkpoint, or to travel."""

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""


T = TypeVar("T", bound=Tally)
C = TypeVar("C", contravariant=True)
#: Called with pairs done and pairs in all; nothing is known of the latter where it is 1.
PartProgress = Callable[[int, int], None]


class KeptTally(Protocol[C]):
    """Where a tally is kept while a stream is gone through, to go on from when interrupted."""

    def restore(self, tally: C) -> int:
        """Have `tally` go on from what was kept; return of how many pairs that is."""

    def keep(self, tally: C, done: int, *, now: bool = False) -> None:
        """Keep what was counted of the first `done` pairs, if it is time to, or `now`."""


class OccurringGroups:
    """Which values of attributes occur together in a score table, on either side of a pair.

    Parameters
    ----------
    crossed : sequence of sequences of str
        Attributes, to be crossed.
    most : int, optional
        Nobody needs to know more groups of each than one more than this.
    """

    def __init__(self, crossed: Sequence[Sequence[str]], most: int | None = None) -> None:
        self._crossed, self._most = crossed, most
        self.groups: list[set[Names]] = [set() for _ in crossed]

    def add(self, part: Dataset) -> None:
        """Look through a part."""
        columns = part.images.attributes
        for names, keys in zip(self.groups, self._crossed, strict=True):
            if self._most is None or len(names) <= self._most:
                names |= combinations([columns[key] for key in keys])

    def merge(self, other: OccurringGroups) -> None:
        """Add what occurs in other parts."""
        self.groups = [names | more for names, more in zip(self.groups, other.groups, strict=True)]

    def state(self) -> TallyState:
        """Return all as JSON and arrays."""
        return {"groups": [sorted(names) for names in self.groups]}, {}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: ARG002
        """Go on from what `state` gave."""
        self.groups = [set(map(tuple, names)) for names in header["groups"]]


def combinations(columns: Sequence[Column]) -> set[Names]:
    """Return the combinations of names that occur in columns side by side."""
    every = np.logical_and.reduce([column.codes >= 0 for column in columns])
    if not every.any():
        return set()
    shape = [len(column.names) for column in columns]
    flat = np.ravel_multi_index([column.codes[every] for column in columns], shape)
    codes = np.unravel_index(np.unique(flat), shape)
    return {
        tuple(column.names[code] for column, code in zip(columns, each, strict=True))
        for each in zip(*codes, strict=True)
    }


class StoredPairs(ABC):
    """Pairs that are not in memory: what is known of them, and ways to go through them all.

    Attributes
    ----------
    source : FolderParts or TableParts
        Makes parts of rows, and knows what all rows have in common.
    feature : str
        The one in use; `select` gives the pairs with another.
    """

    source: FolderParts | TableParts
    feature: str
    _memo: Memo

    @property
    def name(self) -> str:
        """Shown in tables and reports."""
        return self.source.name

    @property
    def where(self) -> str:
        """Where the data is, for messages."""
        return self.source.where

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` said, where there was one."""
        return self.source.provenance

    @property
    def features(self) -> Mapping[str, Embeddings | None]:
        """The embeddings of each feature; None where there are only scores."""
        return self.source.features

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the feature in use; None where there are only scores."""
        return self.features[self.feature]

    @property
    def images(self) -> Images | None:
        """What is known of the images; None for a score table."""
        return self.source.images

    @property
    def has_images(self) -> bool:
        """Whether images are known: in a score table each side of a pair stands for its own."""
        return self.images is not None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return self.source.attributes

    @property
    def cohort(self) -> Cohort | None:
        """People of known groups to compare with; all parts have it."""
        return self.source.cohort

    # ---------------------------------------------------------------- groups

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named: a score table is read to tell."""
        source = self.source
        if isinstance(source, FolderParts):
            return source.images.crossed
        keys = source.layout.grouping
        groups = self._memo("crossed", lambda: self._groups([[key] for key in keys], MOST_GROUPS))
        few = (len(names) for names in groups)
        return tuple(key for key, n in zip(keys, few, strict=True) if 0 < n <= MOST_GROUPS)

    @property
    def default_attribute(self) -> str | None:
        """All attribute columns crossed, as for a `Dataset`."""
        return "+".join(self.crossed) or None

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute` in all parts, in the order a `Dataset` has them.

        The groups of a part may be fewer where there are no images: ``groups.renamed(names)``
        brings them in line. A score table is read once to tell.
        """
        attribute = attribute or self.default_attribute
        if attribute is None:
            raise DataError(f"{self.where}: {self.why_no_groups()}")
        if isinstance(self.source, FolderParts):
            return cross(self.source.images.attributes, attribute, self.where).names
        keys = attribute.split("+")
        for key in keys:
            if key not in self.attributes:
                hint = did_you_mean(key, self.attributes)
                raise DataError(f"{self.where}: attribute '{key}' is not in the data; {hint}")
        (groups,) = self._groups([keys])
        return tuple(" ".join(names) for names in groups)

    def _groups(
        self, crossed: Sequence[Sequence[str]], most: int | None = None
    ) -> list[list[Names]]:
        """Return the values that occur, sorted, of each list of attributes of a score table."""
        keys = {key for each in crossed for key in each}
        if not keys or isinstance(self.source, FolderParts):
            return [[] for _ in crossed]
        # As of a dataset, groups are those of all folds.
        everything = self._all_folds(replace(self.source, crossed=()))
        tally = everything.reduce(partial(OccurringGroups, crossed, most), keys)
        return [sorted(names) for names in tally.groups]

    def source_of(self, columns: Collection[str]) -> FolderParts | TableParts:
        """Return what makes parts of rows with these columns: it knows which make groups.

        Where no attribute is read, nobody needs to know.
        """
        source = self.source
        if isinstance(source, FolderParts) or source.crossed is not None:
            return source
        attributes = source.layout.attributes_in(columns)
        return replace(source, crossed=self.crossed) if attributes else source

    def why_no_groups(self) -> str:
        """Say why there is no default attribute, and what to do."""
        return why_no_groups(self.attributes)

    # --------------------------------------------------------------- derived

    def select(self, feature: str) -> Self:
        """Return the pairs with another feature in use."""
        if feature not in self.features:
            raise no_such_feature(feature, self.features, self.where)
        return self._with_feature(feature)

    def with_cohort(self, cohort: Cohort | None) -> Self:
        """Return the pairs with a cohort of their networks, or with none."""
        if cohort is not None:
            cohort = cohort.like(self.features, self.where)
        return self._with_source(replace(self.source, cohort=cohort))

    def only(self, fold: Any) -> Self:
        """Return the pairs of `fold`, named as it is printed."""
        return self._picked(str(fold), keep=True)

    def without(self, fold: Any) -> Self:
        """Return the pairs of all folds but `fold`."""
        return self._picked(str(fold), keep=False)

    def _picked(self, fold: str, keep: bool) -> Self:
        if not self.has_folds:
            raise DataError(
                f"{self.source.table}: has no column 'fold' to tell the pairs of fold {fold!r} by; "
                "add it"
            )
        if fold not in map(str, self.fold_names):
            raise no_such_fold(fold, self.fold_names, self.where)
        if not keep and len(self.fold_names) == 1:
            raise DataError(f"{self.where}: no pairs are left but those of fold {fold!r}")
        return self._with_fold(fold, keep)

    @property
    @abstractmethod
    def has_folds(self) -> bool:
        """Whether the pairs have a column ``fold``."""

    @property
    @abstractmethod
    def fold_names(self) -> Sequence[Any]:
        """The folds that occur, in order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def score_range(self) -> Range:
        """The range of scores."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return what tells whether this is the same data as another time."""

    @abstractmethod
    def head(self) -> Dataset:
        """Return some of the pairs, which tell what all come with."""

    @abstractmethod
    def parts(
        self, start: int = 0, columns: Collection[str] | None = None
    ) -> Generator[Dataset, None, None]:
        """Yield the pairs from number `start` on, a part at a time."""

    @abstractmethod
    def reduce(
        self,
        start: Callable[[], T],
        columns: Collection[str] | None = None,
        *,
        progress: PartProgress | None = None,
        kept: KeptTally[T] | None = None,
    ) -> T:
        """Return what `start()`, a tally of nothing yet, comes to when all pairs were added.

        Parameters
        ----------
        start : callable
            Gives a tally; on a cluster it travels, and is called for each of its tasks.
        columns : collection of str, optional
            What is needed besides scores, of ``genuine``, ``fold``, ``probability``, ``identity``
            and the attributes of a score table; everything by default.
        progress : callable, optional
        kept : KeptTally, optional
            Lets a stream go on after an interruption; a cluster has no use for it.
        """

    @abstractmethod
    def _with_source(self, source: FolderParts | TableParts) -> Self:
        """Return the pairs with parts made by `source`."""

    @abstractmethod
    def _all_folds(self, source: FolderParts | TableParts) -> Self:
        """Return the pairs of all folds, with parts made by `source`."""

    @abstractmethod
    def _with_feature(self, feature: str) -> Self: ...

    @abstractmethod
    def _with_fold(self, fold: str, keep: bool) -> Self: ...


#: Pairs that can be gone through by ``parts()`` and ``reduce(start)``. Fits, audits and the rest
#: are written once, against these; who calls a tally differs: this thread with all pairs
#: (`Dataset`) or part by part (`PairStream`), or the workers of a cluster (`SparkPairs`).
PairParts: TypeAlias = Dataset | StoredPairs
