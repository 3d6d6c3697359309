"""Pairs of any number, read part by part in bounded memory."""

from __future__ import annotations

import copy
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, stamp
from faircal.data.columns import Span, parse_fold, parse_scores
from faircal.data.dataset import (
    COSINE_RANGE,
    Dataset,
    Memo,
    check_feature,
    no_such_fold,
    why_no_groups,
)
from faircal.data.long_tables import TableFile
from faircal.data.tables import table_files
from faircal.data.types import Embeddings, Feature, Images

T = TypeVar("T")
Range = tuple[float, float]

#: Pairs in a part, unless told.
BATCH = 1 << 20
#: About so many scores are looked at to tell how they are spread.
_SAMPLED = 1 << 18


class FoldFilter(NamedTuple):
    """The fold to keep, or to leave out, as it is printed."""

    fold: str
    keep: bool

    def keeps(self, name: Any) -> bool:
        """Whether pairs of the fold `name` are kept."""
        return (str(name) == self.fold) == self.keep


class ScoreSummary(NamedTuple):
    """What the scores of a column look like."""

    least: float
    greatest: float
    sample: NDArray[np.float64]  # evenly picked


class PairStream(ABC):
    """Face pairs that are read when they are needed; `faircal.data.open_stream` makes one.

    `len` is the number of pairs, of the fold asked for where one is. Streams that `select`, `only`
    and `without` give share what was found by reading files.

    Attributes
    ----------
    name, where, provenance
        As a `Dataset` has them.
    table : TableFile
        The pairs.
    files : tuple of Path
        All that is read.
    features : mapping from name to Feature
        Without scores: ready-made ones come with the parts.
    feature : str
        The one in use; `select` gives the stream with another.
    images : Images or None
        None for a score table.
    attributes : tuple of str
    limits : (float, float) or None
        Where ready-made scores must lie; None: anywhere.
    batch : int
        The most pairs in a part.

    Examples
    --------
    >>> import tempfile
    >>> import faircal
    >>> from faircal.data import open_stream, save_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_dataset(faircal.simulate("small", seed=0), Path(folder) / "faces")
    ...     stream = open_stream(path, batch=5000)
    ...     model = faircal.FairCal(n_clusters=20).fit(stream)
    ...     [len(model.predict_proba(part)) for part in stream.parts()]
    [5000, 3000]
    """

    name: str
    where: str
    provenance: Mapping[str, Any]
    table: TableFile
    files: tuple[Path, ...]
    features: Mapping[str, Feature]
    feature: str
    images: Images | None
    attributes: tuple[str, ...]
    limits: Range | None
    batch: int

    def __init__(self, limits: Range | None, batch: int) -> None:
        self.limits, self.batch = limits, batch
        self._memo = Memo({})
        self._filter: FoldFilter | None = None

    def __len__(self) -> int:
        return self.table.n_rows if self._filter is None else int(self._kept().sum())

    def __repr__(self) -> str:
        return f"<PairStream {self.name!r}: {len(self)} pairs, features {', '.join(self.features)}>"

    # ------------------------------------------------------- folder or table

    @property
    @abstractmethod
    def crossed(self) -> tuple[str, ...]:
        """The attributes that make groups when none is named."""

    @abstractmethod
    def columns(self, names: Collection[str] | None) -> list[str]:
        """Return the table's columns for what is in `names` besides scores; None: for all."""

    @abstractmethod
    def build(self, table: pa.Table, span: Span, text_folds: bool) -> Dataset:
        """Make and check the part `span` of the pairs."""

    @abstractmethod
    def _group_names(self, attribute: str) -> tuple[str, ...]: ...

    @abstractmethod
    def _score_columns(self) -> list[str]: ...

    # ----------------------------------------------------------------- views

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the feature in use; None where there are only scores."""
        return self.features[self.feature].embeddings

    @property
    def has_images(self) -> bool:
        """Whether images are known: in a score table each side of a pair stands for its own."""
        return self.images is not None

    @property
    def score_range(self) -> Range:
        """The range of scores; where any is taken, that found (all scores are then read once)."""
        if not self._score_columns():
            return COSINE_RANGE
        if self.limits is not None:
            return self.limits
        ends = [end for column in self._summaries().values() for end in column[:2]]
        return min(COSINE_RANGE[0], *ends), max(COSINE_RANGE[1], *ends)

    def sample(self) -> NDArray[np.float64] | None:
        """Return some hundred thousand ready-made scores, evenly picked; None where there are none.

        All of them are read once to tell.
        """
        columns = self._summaries()
        # A folder has one such column, whatever its feature is called.
        summary = columns.get(self.feature) or next(iter(columns.values()), None)
        return None if summary is None else summary.sample

    def _summaries(self) -> dict[str, ScoreSummary]:
        """Return what ready-made scores look like, by column: all are read once."""
        return self._memo("summaries", self._summarise)

    def _summarise(self) -> dict[str, ScoreSummary]:
        names, where = self._score_columns(), str(self.table.path)
        every = max(1, self.table.n_rows // _SAMPLED)
        least, greatest = dict.fromkeys(names, np.inf), dict.fromkeys(names, -np.inf)
        some: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        for span, table in self.read(names) if names else ():
            for name in names:
                scores = parse_scores(table[name], name, where, self.limits, span)
                least[name] = min(least[name], float(scores.min()))
                greatest[name] = max(greatest[name], float(scores.max()))
                some[name].append(scores[-span.start % every :: every])
        return {
            name: ScoreSummary(least[name], greatest[name], np.concatenate(some[name]))
            for name in names
        }

    @property
    def default_attribute(self) -> str | None:
        """All attribute columns crossed, as for a `Dataset`; a score table is read once to tell."""
        return "+".join(self.crossed) or None

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute` in all parts, in the order a `Dataset` has them.

        The groups of a part may be fewer where there are no images: ``groups.renamed(names)``
        brings them in line. A score table is read once to tell.
        """
        attribute = attribute or self.default_attribute
        if attribute is None:
            raise DataError(f"{self.where}: {self.why_no_groups()}")
        return self._group_names(attribute)

    def why_no_groups(self) -> str:
        """Say why there is no default attribute, and what to do."""
        return why_no_groups(self.attributes)

    def fingerprint(self) -> str:
        """SHA-256 over how the pairs are read, and what tells whether a file was changed.

        That is path, size and time of all files: quick, as none is read; one that is merely
        copied counts as changed.
        """

        def feed(update: Any) -> None:
            vectors = [
                (held.normalize, held.device) if (held := feature.embeddings) else None
                for feature in self.features.values()
            ]
            update(f"{self._filter}\0{vectors}\0{self.limits}\0".encode())
            for path in table_files(self.files):
                update(stamp(path))

        return digest(feed)

    def select(self, feature: str) -> PairStream:
        """Return the stream with another feature in use."""
        check_feature(feature, self.features, self.where)
        stream = copy.copy(self)
        stream.feature = feature
        return stream

    # ----------------------------------------------------------------- folds

    @property
    def has_folds(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return "fold" in self.table.schema.names

    @property
    def fold_names(self) -> list[Any]:
        """The folds that occur, in order, all numbers or all text: read once to tell."""
        if not self.has_folds:
            return []
        return sorted({name for counts in self._fold_counts() for name in counts})

    def only(self, fold: Any) -> PairStream:
        """Return the stream of the pairs of `fold`, named as it is printed."""
        return self._filtered(str(fold), keep=True)

    def without(self, fold: Any) -> PairStream:
        """Return the stream of the pairs of all folds but `fold`."""
        return self._filtered(str(fold), keep=False)

    def _filtered(self, fold: str, keep: bool) -> PairStream:
        if self._filter is not None:
            raise ParameterError(
                f"{self.where}: a fold is picked already; pick from the whole stream"
            )
        if not self.has_folds:
            raise DataError(
                f"{self.table.path}: has no column 'fold' to tell the pairs of fold {fold!r} by; "
                "add it"
            )
        if fold not in map(str, self.fold_names):
            raise no_such_fold(fold, self.fold_names, self.where)
        stream = copy.copy(self)
        stream._filter = FoldFilter(fold, keep)
        if not len(stream):
            raise DataError(f"{self.where}: no pairs are left but those of fold {fold!r}")
        return stream

    def _text_folds(self) -> bool:
        """Whether the names of folds are text: one that is makes all of them."""
        if not self.has_folds or pa.types.is_integer(self.table.schema.field("fold").type):
            return False  # and nothing need be read to tell
        return self._memo(
            "text folds", lambda: any(fold.dtype.kind == "U" for fold in self._folds(text=False))
        )

    def _fold_counts(self) -> list[dict[Any, int]]:
        """Return how many pairs of each fold are in each batch."""

        def count() -> list[dict[Any, int]]:
            counts = (np.unique(f, return_counts=True) for f in self._folds(self._text_folds()))
            return [dict(zip(names.tolist(), n.tolist(), strict=True)) for names, n in counts]

        return self._memo("fold counts", count)

    def _folds(self, text: bool) -> Iterator[NDArray[Any]]:
        for span, table in self.read(["fold"]):
            yield parse_fold(table["fold"], str(self.table.path), span, text)

    def _kept(self) -> NDArray[np.int64]:
        """Return how many pairs of each batch are kept, where a fold is asked for."""
        keeps = self._filter.keeps if self._filter else bool
        counts = [sum(n for name, n in of.items() if keeps(name)) for of in self._fold_counts()]
        return np.array(counts, dtype=np.int64)

    # ----------------------------------------------------------------- parts

    def read(self, columns: Sequence[str], start: int = 0) -> Iterator[tuple[Span, pa.Table]]:
        """Yield the table batch by batch from row `start` on, with the rows each one is."""
        for table in self.table.read(columns, start, self.batch):
            stop = start + len(table)
            yield Span(start, stop if stop < self.table.n_rows else None), table
            start = stop

    def parts(
        self, start: int = 0, columns: Collection[str] | None = None
    ) -> Generator[Dataset, None, None]:
        """Yield the pairs from number `start` on, each part a `Dataset` of at most `batch` pairs.

        A thread reads ahead; closing the generator ends it. Can be called again. Parts have no
        drawn folds: without a column ``fold``, ``pairs.fold`` is None. Parts of a folder share
        images and embeddings. Those of a score table have images of their own, whose ids are those
        that `load` gives.

        Parameters
        ----------
        start : int
        columns : collection of str, optional
            What is needed besides scores, of ``genuine``, ``fold``, ``probability``, ``identity``
            and the attributes of a score table; everything unless told.
        """
        return ahead(self._parts(start, columns))

    def _parts(self, start: int, columns: Collection[str] | None) -> Iterator[Dataset]:
        names = self.columns(columns)
        if self._filter is not None and "fold" not in names:
            names = [*names, "fold"]
        text = "fold" in names and self._text_folds()
        kept = (
            [name for name in self.fold_names if self._filter.keeps(name)] if self._filter else []
        )
        row, skip = self._seek(start)
        for span, table in self.read(names, row):
            part = self.build(table, span, text)
            if part.feature != self.feature:
                part = part.select(self.feature)
            if self._filter is not None and part.pairs.fold is not None:
                part = part.subset(np.isin(part.pairs.fold, kept))
            if skip:
                part, skip = part.subset(np.arange(skip, len(part))), 0
            if len(part):
                yield part

    def _seek(self, start: int) -> tuple[int, int]:
        """Return the row to read from, and how many of the pairs kept after it to pass over."""
        if self._filter is None:
            return start, 0
        ends = np.cumsum(self._kept())
        batch = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[batch - 1]) if batch else 0
        return batch * self.batch, start - before


@dataclass(frozen=True, eq=False)
class Cut:
    """A dataset in memory that is gone through part by part, as a stream is."""

    data: Dataset
    batch: int = BATCH

    def __len__(self) -> int:
        return len(self.data)

    def parts(
        self,
        start: int = 0,
        columns: Collection[str] | None = None,  # noqa: ARG002
    ) -> Generator[Dataset, None, None]:
        """Yield the pairs from number `start` on, as `PairStream.parts` does."""
        for begin in range(start, len(self.data), self.batch):
            yield self.data.subset(np.arange(begin, min(begin + self.batch, len(self.data))))


def ahead(items: Iterable[T], depth: int = 2) -> Generator[T, None, None]:
    """Yield what `items` yields, made by a thread that is up to `depth` items ahead.

    An error in `items` comes out here. Closing the generator early ends the thread, and closes
    `items` where that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    made: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(depth)
    stop = threading.Event()

    def make() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                if stop.is_set():
                    break
                made.put((item,))
        except BaseException as error:  # raised where the items are taken
            end = error
        finally:
            getattr(items, "close", lambda: None)()
        if not stop.is_set():
            made.put(end)

    thread = threading.Thread(target=make, name="faircal-ahead", daemon=True)
    thread.start()
    try:
        while isinstance(got := made.get(), tuple):
            yield got[0]
            del got  # an item may be large, and the next is waited for
        if got is not None:
            raise got
    finally:
        stop.set()
        while not made.empty():  # room for what the thread is just putting there
            made.get_nowait()
        # The garbage collector may close us in any thread, in this one, too.
        if thread is not threading.current_thread():
            thread.join()
