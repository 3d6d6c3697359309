"""Pairs of any number, read part by part in bounded memory."""

from __future__ import annotations

import copy
import hashlib
import queue
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.checkpoints import uninterrupted
from faircal._base.errors import ParameterError
from faircal._base.files import existing, stamp
from faircal.data.build import ScoreColumns
from faircal.data.cohort import Cohort
from faircal.data.cohort_overlap import join_cohort
from faircal.data.columns import Span, parse_fold, parse_scores
from faircal.data.dataset import COSINE_RANGE, Dataset, Memo, check_range, join_scores
from faircal.data.dataset_folder import as_cohort
from faircal.data.long_tables import TableFile, open_table
from faircal.data.pair_sources import FolderParts, TableParts
from faircal.data.parts import KeptTally, PartProgress, StoredPairs, T
from faircal.data.tables import find_table, is_table, require_columns, table_files

Item = TypeVar("Item")
Range = tuple[float, float]

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


class PairStream(StoredPairs):
    """Face pairs that are read when they are needed; `faircal.data.open_stream` makes one.

    `len` is the number of pairs, of the fold asked for where one is. Streams that `select`, `only`
    and `without` give share what was learnt by reading files.

    Attributes
    ----------
    source : FolderParts or TableParts
        Makes parts of rows.
    table : TableFile
        The pairs.
    files : tuple of Path
        All that is read.
    feature : str
        The one in use; `select` gives the stream with another.
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

    def __init__(
        self,
        source: FolderParts | TableParts,
        table: TableFile,
        files: tuple[Path, ...],
        batch: int,
    ) -> None:
        self.source, self.table, self.files, self.batch = source, table, files, batch
        self.feature = next(iter(self.features))
        self._score_columns = source.score_columns(table.schema.names)
        self._memo = Memo({})
        self._filter: FoldFilter | None = None

    def __len__(self) -> int:
        return self.table.n_rows if self._filter is None else int(self._kept().sum())

    def __repr__(self) -> str:
        return f"<PairStream {self.name!r}: {len(self)} pairs, features {', '.join(self.features)}>"

    # ---------------------------------------------------------------- scores

    @property
    def score_range(self) -> Range:
        """The range of scores; where any is taken, that found (all scores are then read once)."""
        if not self._score_columns:
            return COSINE_RANGE
        if self.source.limits is not None:
            return self.source.limits
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
        names, where = self._score_columns, str(self.table.path)
        every = max(1, self.table.n_rows // _SAMPLED)
        least, greatest = dict.fromkeys(names, np.inf), dict.fromkeys(names, -np.inf)
        samples: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        for span, table in self.read(names) if names else ():
            for name in names:
                scores = parse_scores(table[name], name, where, self.source.limits, span)
                least[name] = min(least[name], float(scores.min()))
                greatest[name] = max(greatest[name], float(scores.max()))
                samples[name].append(scores[-span.start % every :: every])
        return {
            name: ScoreSummary(least[name], greatest[name], np.concatenate(samples[name]))
            for name in names
        }

    # ----------------------------------------------------------------- views

    def fingerprint(self) -> str:
        """SHA-256 over how the pairs are read, and what tells whether a file was changed.

        That is path, size and time of all files: quick, as none is read; one that is merely
        copied counts as changed.
        """
        sha = hashlib.sha256()
        vectors = [held and (held.normalize, held.device) for held in self.features.values()]
        sha.update(f"{self._filter}\0{vectors}\0{self.source.limits}\0".encode())
        for table in self.files:
            for path in table_files(table):
                sha.update(stamp(path))
        if self.cohort is not None:
            sha.update(self.cohort.fingerprint().encode())
        return sha.hexdigest()

    def _with_feature(self, feature: str) -> PairStream:
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

    def _with_source(self, source: FolderParts | TableParts) -> PairStream:
        stream = copy.copy(self)
        stream.source = source
        return stream

    def _all_folds(self, source: FolderParts | TableParts) -> PairStream:
        stream = self._with_source(source)
        stream._filter = None
        return stream

    def _with_fold(self, fold: str, keep: bool) -> PairStream:
        if self._filter is not None:
            raise ParameterError(
                f"{self.where}: a fold is picked already; pick from the whole stream"
            )
        stream = copy.copy(self)
        stream._filter = FoldFilter(fold, keep)
        return stream

    def _text_folds(self) -> bool:
        """Whether the names of folds are text: one that is makes all of them."""
        schema = self.table.schema
        if "fold" not in schema.names or pa.types.is_integer(schema.field("fold").type):
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
            and the attributes of a score table; everything by default.
        """
        return ahead(self._parts(start, columns))

    def head(self) -> Dataset:
        """Return the first part."""
        with closing(self.parts()) as parts:
            return next(parts)

    def reduce(
        self,
        start: Callable[[], T],
        columns: Collection[str] | None = None,
        *,
        progress: PartProgress | None = None,
        kept: KeptTally[T] | None = None,
    ) -> T:
        """Add all parts, one after the other, to one tally; see `StoredPairs.reduce`."""
        tally, done = start(), 0
        if kept is not None:
            done = kept.restore(tally)
        try:
            with closing(self.parts(done, columns)) as parts:
                for part in parts:
                    with uninterrupted():  # what is counted, and how far, belong together
                        tally.add(part)
                        done += len(part)
                    if progress is not None:
                        progress(done, len(self))
                    if kept is not None:
                        kept.keep(tally, done)
        except KeyboardInterrupt:
            if kept is not None:
                kept.keep(tally, done, now=True)
            raise
        return tally

    def _parts(self, start: int, columns: Collection[str] | None) -> Iterator[Dataset]:
        names = self.source.columns(columns, self.table.schema.names)
        source, score_range = self.source_of(names), self.score_range
        if self._filter is not None and "fold" not in names:
            names = [*names, "fold"]
        text = "fold" in names and self._text_folds()
        kept = (
            [name for name in self.fold_names if self._filter.keeps(name)] if self._filter else []
        )
        row, skip = start, 0  # to read from, and pairs kept after it to pass over
        if self._filter is not None:
            ends = np.cumsum(self._kept())
            batch = int(np.searchsorted(ends, start, side="right"))
            row, skip = batch * self.batch, start - (int(ends[batch - 1]) if batch else 0)
        for span, table in self.read(names, row):
            part = source.build(table, span, text, score_range)
            if part.feature != self.feature:
                part = part.select(self.feature)
            if self._filter is not None and part.pairs.fold is not None:
                part = part.subset(np.isin(part.pairs.fold, kept))
            if skip:
                part, skip = part.subset(np.arange(skip, len(part))), 0
            if len(part):
                yield part


def open_stream(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    normalize: bool = True,
    device: str = "cpu",
    score_range: tuple[float, float] | None = COSINE_RANGE,
    batch: int | None = None,
    fold: Any = None,
    leave_out: Any = None,
    cohort: Cohort | str | Path | None = None,
) -> PairStream:
    r"""Open a dataset folder or a score table, to go through its pairs part by part.

    What `load` refuses is refused here too, part by part, with rows counted in the whole file. A
    CSV file is gone through once on opening, to find the types of its columns.

    Parameters
    ----------
    path, features, normalize, device, score_range
        As for `load`.
    batch : int, optional
        The most pairs in a part: memory is a multiple of it, whatever the number of pairs. A
        million by default.
    fold, leave_out : optional
        Keep only the pairs of this fold, or those of all others; the pairs need a column ``fold``.
    cohort : Cohort or path, optional
        As for `load`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "scores.csv"
    ...     _ = table.write_text("genuine,score\n1,0.9\n0,0.2\n1,0.7\n")
    ...     [part.scores.tolist() for part in open_stream(table, batch=2).parts()]
    [[0.9, 0.2], [0.7]]
    """
    path = existing(path)
    batch = Dataset.BATCH if batch is None else batch
    if batch < 1:
        raise ParameterError(f"batch: expected at least 1 pair, found {batch}")
    if fold is not None and leave_out is not None:
        raise ParameterError("fold and leave_out: expected one of them, found both")
    limits = None if score_range is None else check_range(score_range)
    if is_table(path):
        table, where = open_table(path), str(path)
        layout = ScoreColumns.of(table.schema, features, where)
        scored = TableParts(layout, path.stem, where, limits, table.n_rows)
        stream = PairStream(scored, table, (path,), batch)
    else:
        images = find_table(path, "images")  # else it is no dataset folder, whatever is in it
        table = open_table(find_table(path, "pairs"))
        where = str(table.path)
        source = FolderParts.read(path, features, normalize, limits, where, device)
        require_columns(table.schema, ("left", "right"), where)
        scores = np.empty(0) if source.score_columns(table.schema.names) else None
        join_scores(source.embeddings, scores, where)  # one of them, clearly
        vectors = [Path(held.where) for held in source.embeddings.values()]
        files = [table.path, images, path / "dataset.json", *vectors]
        stream = PairStream(source, table, tuple(file for file in files if file.exists()), batch)
    if cohort is not None:
        stream = join_cohort(stream, as_cohort(cohort))
    if fold is not None:
        return stream.only(fold)
    return stream if leave_out is None else stream.without(leave_out)


def ahead(items: Iterable[Item], depth: int = 2) -> Generator[Item, None, None]:
    """Yield what `items` yields, made by a thread that is up to `depth` items ahead.

    An error in `items` comes out here. Closing the generator early ends the thread, and closes
    `items` where that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    made: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(depth)
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
