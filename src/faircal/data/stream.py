"""Work ahead in a background thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, existing, stamp
from faircal.data.columns import parse_fold
from faircal.data.dataset import (
    COSINE_RANGE,
    Dataset,
    check_feature,
    check_range,
    no_such_fold,
    why_no_groups,
)
from faircal.data.pair_sources import FolderPairs, PairSource, TablePairs
from faircal.data.tables import is_table, table_files
from faircal.data.types import Embeddings, Feature, Images

T = TypeVar("T")


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
            close = getattr(items, "close", None)
            if close is not None:
                close()
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
        thread.join()


@dataclass(frozen=True)
class FoldFilter:
    """The fold to keep, or to leave out, as it is printed."""

    fold: str
    keep: bool


class StreamFolds:
    """The folds of a stream, found by reading their column alone, once, where need be."""

    def __init__(self, origin: PairSource, pick: FoldFilter | None = None) -> None:
        self._origin = origin
        self.pick = pick

    @property
    def there(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return "fold" in self._origin.table.schema.names

    def picking(self, fold: str, keep: bool) -> StreamFolds:
        """Return the same folds with one to keep or to leave out; it must leave something."""
        where = self._origin.where
        if self.pick is not None:
            raise ParameterError(f"{where}: a fold is picked already; pick from the whole stream")
        if not self.there:
            raise DataError(
                f"{self._origin.table.path}: has no column 'fold' to tell the pairs of fold "
                f"{fold!r} by; add it"
            )
        if fold not in map(str, self.names):
            raise no_such_fold(fold, self.names, where)
        picked = StreamFolds(self._origin, FoldFilter(fold, keep))
        picked.text, picked.names, picked._counts = self.text, self.names, self._counts
        if not picked.kept.sum():
            raise DataError(f"{where}: no pairs are left but those of fold {fold!r}")
        return picked

    @cached_property
    def text(self) -> bool:
        """Whether the names of folds are text: one that is makes all of them."""
        if not self.there or pa.types.is_integer(self._origin.table.schema.field("fold").type):
            return False  # and nothing need be read to tell
        return any(fold.dtype.kind == "U" for fold in self._read(text=False))

    @cached_property
    def _counts(self) -> list[dict[Any, int]]:
        """How many pairs of each fold are in each batch."""
        found = (np.unique(fold, return_counts=True) for fold in self._read(self.text))
        return [dict(zip(names.tolist(), n.tolist(), strict=True)) for names, n in found]

    def _read(self, text: bool) -> Iterator[NDArray[Any]]:
        where = str(self._origin.table.path)
        for span, table in self._origin.read(["fold"]):
            yield parse_fold(table["fold"], where, span, text)

    @cached_property
    def names(self) -> list[Any]:
        """The folds that occur, in order: all numbers or all text."""
        return sorted({name for counts in self._counts for name in counts})

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """How many pairs of each batch are kept, where a fold is asked for."""
        return np.array([self._kept(counts) for counts in self._counts], dtype=np.int64)

    def _kept(self, counts: Mapping[Any, int]) -> int:
        if self.pick is None:
            return sum(counts.values())
        fold, keep = self.pick.fold, self.pick.keep
        return sum(n for name, n in counts.items() if (str(name) == fold) == keep)

    def mask(self, fold: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which pairs are kept."""
        if self.pick is None:
            return np.ones(len(fold), dtype=bool)
        named = [name for name in self.names if str(name) == self.pick.fold]
        return np.asarray(np.isin(fold, named) == self.pick.keep)


#: Pairs in a part, unless told.
BATCH = 1 << 20


def open_stream(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    device: str = "cpu",
    score_range: tuple[float, float] | None = COSINE_RANGE,
    batch: int = BATCH,
    fold: Any = None,
    leave_out: Any = None,
) -> PairStream:
    r"""Open a dataset folder or a score table, to go through its pairs part by part.

    What `load` refuses is refused here too, part by part, with rows counted in the whole file. A
    CSV file is gone through once on opening, to find the types of its columns.

    Parameters
    ----------
    path, features, normalize, device, score_range
        As for `load`.
    batch : int
        The most pairs in a part: memory is a multiple of it, whatever the number of pairs.
    fold, leave_out : optional
        Keep only the pairs of this fold, or those of all others; the pairs need a column ``fold``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "scores.csv"
    ...     _ = table.write_text("genuine,score\n1,0.9\n0,0.2\n1,0.7\n")
    ...     [part.scores.tolist() for part in open_stream(table, batch=2).parts()]
    [[0.9, 0.2], [0.7]]
    """
    source = existing(path)
    if batch < 1:
        raise ParameterError(f"batch: expected at least 1 pair, found {batch}")
    if fold is not None and leave_out is not None:
        raise ParameterError("fold and leave_out: expected one of them, found both")
    limits = None if score_range is None else check_range(score_range)
    origin: PairSource
    if is_table(source):
        origin = TablePairs(source, features, limits, batch)
    else:
        origin = FolderPairs(source, features, normalize, device, limits, batch)
    stream = PairStream(origin, next(iter(origin.features)), StreamFolds(origin))
    if fold is not None:
        return stream.only(fold)
    return stream if leave_out is None else stream.without(leave_out)


@dataclass(frozen=True, eq=False)
class PairStream:
    """Face pairs that are read when they are needed; `open_stream` makes one.

    `len` is the number of pairs, of the fold asked for where one is.

    Attributes
    ----------
    feature : str
        The one in use; `select` gives the stream with another.
    folds
        What is known of the folds.

    Examples
    --------
    >>> import tempfile
    >>> import faircal
    >>> from faircal.data.dataset_folder import save_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_dataset(faircal.simulate("small", seed=0), Path(folder) / "faces")
    ...     stream = open_stream(path, batch=5000)
    ...     model = faircal.FairCal(n_clusters=20).fit(stream)
    ...     [len(model.predict_proba(part)) for part in stream.parts()]
    [5000, 3000]
    """

    origin: PairSource
    feature: str
    folds: StreamFolds

    def __len__(self) -> int:
        if self.folds.pick is None:
            return self.origin.table.n_rows
        return int(self.folds.kept.sum())

    def __repr__(self) -> str:
        return f"<PairStream {self.name!r}: {len(self)} pairs, features {', '.join(self.features)}>"

    @property
    def name(self) -> str:
        """Shown in tables and reports."""
        return self.origin.name

    @property
    def where(self) -> str:
        """The folder or file, for messages."""
        return self.origin.where

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What ``dataset.json`` says."""
        return self.origin.provenance

    @property
    def features(self) -> Mapping[str, Feature]:
        """By name, without scores: ready-made ones come with the parts."""
        return self.origin.features

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the feature in use; None where there are only scores."""
        return self.features[self.feature].embeddings

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores; where any is taken, that found (all scores are then read once)."""
        return self.origin.score_range

    def sample(self) -> NDArray[np.float64] | None:
        """Return some hundred thousand ready-made scores, evenly picked; None where there are none.

        All of them are read once to tell.
        """
        seen = self.origin.seen
        # A folder has one such column, whatever its feature is called.
        of = seen.get(self.feature) or next(iter(seen.values()), None)
        return None if of is None else of.sample

    @property
    def images(self) -> Images | None:
        """What is known of the images; None for a score table."""
        return self.origin.images

    @property
    def has_images(self) -> bool:
        """Whether images are known: in a score table each side of a pair stands for its own."""
        return self.images is not None

    @property
    def has_folds(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return self.folds.there

    @property
    def fold_names(self) -> list[Any]:
        """The folds that occur, in order: their column is read once to tell."""
        return list(self.folds.names) if self.has_folds else []

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return self.origin.attributes

    @property
    def default_attribute(self) -> str | None:
        """All attribute columns crossed, as for a `Dataset`; a score table is read once to tell."""
        return "+".join(self.origin.crossed) or None

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute` in all parts, in the order a `Dataset` has them.

        The groups of a part may be fewer where there are no images: ``groups.renamed(names)``
        brings them in line. A score table is read once to tell.
        """
        attribute = attribute or self.default_attribute
        if attribute is None:
            raise DataError(f"{self.where}: {self.why_no_groups()}")
        return self.origin.group_names(attribute)

    def why_no_groups(self) -> str:
        """Say why there is no default attribute, and what to do."""
        return why_no_groups(self.attributes)

    def fingerprint(self) -> str:
        """SHA-256 over how the pairs are read, and what tells whether a file was changed.

        That is path, size and time of all files: quick, as none is read; one that is merely
        copied counts as changed.
        """

        def feed(update: Any) -> None:
            held = [feature.embeddings for feature in self.features.values()]
            vectors = [found and (found.normalize, found.device) for found in held]
            update(f"{self.folds.pick}\0{vectors}\0{self.origin.limits}\0".encode())
            for path in table_files(self.origin.files):
                update(stamp(path))

        return digest(feed)

    def select(self, feature: str) -> PairStream:
        """Return the stream with another feature in use."""
        check_feature(feature, self.features, self.where)
        return replace(self, feature=feature)

    def only(self, fold: Any) -> PairStream:
        """Return the stream of the pairs of `fold`, named as it is printed."""
        return replace(self, folds=self.folds.picking(str(fold), keep=True))

    def without(self, fold: Any) -> PairStream:
        """Return the stream of the pairs of all folds but `fold`."""
        return replace(self, folds=self.folds.picking(str(fold), keep=False))

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
        origin, folds = self.origin, self.folds
        wanted = origin.columns(columns)
        if folds.pick is not None and "fold" not in wanted:
            wanted = [*wanted, "fold"]
        text = "fold" in wanted and folds.text
        batch, skip = self._seek(start)
        for span, table in origin.read(wanted, batch):
            part = origin.build(table, span, text, origin.score_range)
            if part.feature != self.feature:
                part = part.select(self.feature)
            if folds.pick is not None and part.pairs.fold is not None:
                part = part.subset(folds.mask(part.pairs.fold))
            if skip:
                part, skip = part.subset(np.arange(skip, len(part))), 0
            if len(part):
                yield part

    def _seek(self, start: int) -> tuple[int, int]:
        """Return the row to read from, and how many of the pairs kept after it to pass over."""
        if self.folds.pick is None:
            return start, 0
        ends = np.cumsum(self.folds.kept)
        batch = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[batch - 1]) if batch else 0
        return batch * self.origin.batch, start - before


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
