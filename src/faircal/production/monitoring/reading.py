"""The pairs that ``faircal monitor`` watches: scored tables and dataset folders, checked."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing, file_digest
from faircal.data import PairStream, open_stream
from faircal.data.columns import UNKNOWN, as_arrow, as_floats, as_text, first_true, parse_genuine
from faircal.data.long_tables import TableFile, open_table
from faircal.data.tables import find_table, require_columns
from faircal.methods.clusters import model_space
from faircal.methods.prior import Shift, fitted_share
from faircal.production.monitoring import PairsInUse
from faircal.production.monitoring.pairs_in_use import Known, number_of
from faircal.production.scoring.judging import Placing

if TYPE_CHECKING:
    from faircal.methods import Method
    from faircal.model import Population


SIDES = ("left", "right")
_WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,17}")


class ScoredColumns:
    """Checked columns of a part of a table; `rows` are their numbers in the file, from 1."""

    def __init__(self, table: pa.Table, where: str, rows: NDArray[np.intp]) -> None:
        self.table, self.where, self.rows = table, where, rows

    def known(self, name: str) -> NDArray[np.bool_]:
        """Tell which rows have a value."""
        if name not in self.table.column_names:
            return np.zeros(len(self.table), bool)
        return ~np.asarray(pc.is_null(self.table[name], nan_is_null=True), dtype=bool)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return finite numbers."""
        remedy = "give a file that 'faircal score' wrote"
        values = as_floats(self.table[name], f"{self.where}, column '{name}'", remedy)
        bad = ~np.isfinite(values)
        self._check(name, bad, values, "a finite number", "score those pairs again or remove them")
        return values

    def shares(self, name: str) -> NDArray[np.float64]:
        """Return numbers from 0 to 1."""
        values = self.numbers(name)
        bad = (values < 0) | (values > 1)
        self._check(name, bad, values, "a probability in [0, 1]", "score with 'faircal score'")
        return values

    def scores(self, name: str, limits: tuple[float, float]) -> NDArray[np.float64]:
        """Return numbers that a score of the model can be."""
        values, (low, high) = self.numbers(name), limits
        bad = (values < low) | (values > high)
        expected = f"a score of MODEL, between {low:g} and {high:g}"
        self._check(name, bad, values, expected, "score with the same MODEL")
        return values

    def whole(self, name: str, below: int) -> NDArray[np.int32] | None:
        """Return whole numbers from 0 to `below`; None where the column is missing or empty."""
        if not self.known(name).any():
            return None
        values = self.numbers(name)
        bad = (values != np.round(values)) | (values < 0) | (values >= below)
        expected = f"a cluster from 0 to {below - 1}" if below else "no clusters"
        self._check(name, bad, values, expected, "score with the same MODEL")
        return values.astype(np.int32)

    def flags(self, name: str, known: NDArray[np.bool_] | None = None) -> Any:
        """Return 0/1/true/false as booleans, False where not `known`; None where all are empty."""
        if not self.known(name).any():
            return None
        array = as_arrow(self.table[name], f"{self.where}, column '{name}'")
        if known is not None and not known.all():
            text = as_text(array, f"{self.where}, column '{name}'")
            array = pc.if_else(pa.array(known), text, pa.scalar("0"))
        try:
            return parse_genuine(array, self.where, name)
        except DataError as error:
            # It counts rows from 1 in what it was given.
            raise DataError(
                re.sub(
                    r"row (\d+)", lambda m: f"row {self.rows[int(m[1]) - 1]}", str(error), count=1
                )
            ) from None

    def unshifted(self, shown: NDArray[np.float64], share: float) -> NDArray[np.float64] | None:
        """Return a service's probabilities at the share of the fit; None without a column prior.

        Each row holds for the share of genuine pairs in its `prior`: requests may differ.
        """
        if "kind" not in self.table.column_names or not self.known("prior").any():
            return None
        prior = self.numbers("prior")
        bad = (prior <= 0) | (prior >= 1)
        self._check("prior", bad, prior, "a share between 0 and 1", "export the decisions again")
        genuine = shown * (share / prior)
        moved = genuine / (genuine + (1 - shown) * ((1 - share) / (1 - prior)))
        return np.where(prior == share, shown, moved)

    def people(self) -> dict[str, Any]:
        """Return who is on each side: identities, else ids; nobody where rows are numbered."""
        there = self.table.column_names
        kind: Known = "people" if "kind" in there or "left_identity" in there else "images"
        names = [f"{s}_identity" if f"{s}_identity" in there else s for s in SIDES]
        if not set(names) <= set(there):
            return {}
        left, right = (codes(self.table[name], self.where) for name in names)
        if kind == "images" and (left == right).all():
            return {}  # a score table's rows, numbered: ids of nobody
        return {"left_person": left, "right_person": right, "known": kind}

    def _check(
        self, name: str, bad: NDArray[np.bool_], found: Any, expected: str, remedy: str
    ) -> None:
        if bad.any():
            at = first_true(bad)
            raise DataError(
                f"{self.where}, column '{name}', row {self.rows[at]}: expected {expected}, "
                f"found {found[at]:g} ({int(bad.sum())} such rows in this part); {remedy}"
            )


def codes(values: Any, where: str = "ids") -> NDArray[np.int64]:
    """Return a number for each id, the same in every file; −1 where it is empty.

    Whole numbers stand for themselves, as text or not; other text is hashed.

    >>> codes(["7", "b", "b", None])[[0, 3]], len(set(codes(["7", "b", "b"]).tolist()))
    (array([ 7, -1]), 2)
    """
    text = as_text(as_arrow(values, where), where)
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    encoded = text.dictionary_encode()
    names = [*map(_code, encoded.dictionary.to_pylist()), UNKNOWN]
    numbers: NDArray[np.int64] = np.array(names, np.int64)
    return np.take(numbers, np.asarray(encoded.indices.fill_null(UNKNOWN)))


def _code(name: str) -> int:
    return int(name) if _WHOLE_NUMBER.fullmatch(name) else number_of(name)


#: The most pairs in a part, and about how many parts a file is shown as where it is short.
_MOST, _LEAST, _PARTS = 1 << 18, 2_000, 12


class WatchedPairs(NamedTuple):
    """Pairs in the order of time, and which are known to be genuine or not.

    `genuine` has an element for each pair that is `labelled`; `shown` is the probability that users
    were given.
    """

    pairs: PairsInUse
    shown: NDArray[np.float64]
    genuine: NDArray[np.bool_]
    labelled: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """A table that ``faircal score`` or the service wrote.

    Attributes
    ----------
    path : Path
    table : TableFile
    limits : tuple of two float
        No score of the model lies beyond them.
    clusters : int
        How many the model's population has.
    shift : Shift, optional
        How probabilities in it were moved to another share of genuine pairs.
    sha256 : str
        Of the model file: decisions of another one are passed over, and `passed` says how many.
    share : float
        Share of genuine pairs that the model was fitted at, where a column `prior` needs it.
    """

    path: Path
    table: TableFile
    limits: tuple[float, float]
    clusters: int
    shift: Shift | None = None
    sha256: str = ""
    share: float = 0.5
    passed: list[int] = field(default_factory=list)

    @classmethod
    def open(
        cls,
        path: Path,
        model: Method,
        population: Population,
        shift: Shift | None,
        sha256: str = "",
    ) -> ScoredTable:
        """Open a table; one that lacks a column is refused."""
        table = open_table(path)
        require_columns(table.schema, ("score", "probability"), str(path))
        for name in ("cluster", "outside", "identity"):
            sides = [f"{side}_{name}" in table.schema.names for side in SIDES]
            if any(sides) and not all(sides):
                raise DataError(
                    f"{path}: expected left_{name} and right_{name}, found one of them; "
                    "give both or neither"
                )
        exported = {"kind", "prior"} <= set(table.schema.names)
        share = fitted_share(model, what="column prior") if exported else 0.5
        return cls(path, table, _limits(model), len(population.centers), shift, sha256, share)

    @property
    def name(self) -> str:
        """Shown in the report."""
        return self.path.name

    @property
    def digest(self) -> str:
        """Tells whether it was counted before."""
        return file_digest(self.path)

    @property
    def timed(self) -> bool:
        """Whether pairs are known to be in the order of time, as the service's decisions are."""
        return "at" in self.table.schema.names

    def __len__(self) -> int:
        return self.table.n_rows

    @property
    def notes(self) -> list[str]:
        """What cannot be watched, and how it could."""
        there = set(self.table.schema.names)
        notes = [
            f"{self.path}: no columns left_{name}, right_{name}: {what} is not watched; "
            "score with --add clusters,outside"
            for name, what in (("cluster", "cluster occupancy"), ("outside", "the share outside"))
            if f"left_{name}" not in there
        ]
        if sum(self.passed):
            notes.append(f"{self.path}: {sum(self.passed)} decisions of other models passed over")
        return notes

    def chunks(self) -> Iterator[WatchedPairs]:
        """Yield the pairs part by part."""
        there = self.table.schema.names
        columns = [*SIDES, "score", "probability", "genuine", "kind", "model", "at", "prior"]
        columns += [f"{s}_{name}" for name in ("cluster", "outside", "identity") for s in SIDES]
        start = 0
        reads = self.table.read([n for n in columns if n in there], 0, _size(len(self)))
        for read in _together(reads) if self.timed else reads:
            chunk = self._chunk(read, start)
            start += len(read)
            if len(chunk.pairs.score):
                yield chunk

    def _chunk(self, table: pa.Table, start: int) -> WatchedPairs:
        numbers = np.arange(len(table))
        if "kind" in table.column_names:
            numbers = self._verified(table)
            table = table.take(pa.array(numbers))
        of = ScoredColumns(table, str(self.path), start + numbers + 1)
        labelled = of.known("genuine")
        shown = of.shares("probability")
        unshifted = of.unshifted(shown, self.share)
        if unshifted is None:
            shift = self.shift
            unshifted = shown if shift is None else Shift(shift.prior, shift.calibrated_at)(shown)
        pairs = PairsInUse(
            score=of.scores("score", self.limits),
            probability=unshifted,
            left_cluster=of.whole("left_cluster", self.clusters),
            right_cluster=of.whole("right_cluster", self.clusters),
            left_outside=of.flags("left_outside"),
            right_outside=of.flags("right_outside"),
            **of.people(),
        )
        genuine = of.flags("genuine", labelled)
        truths = np.zeros(0, bool) if genuine is None else genuine[labelled]
        return WatchedPairs(pairs, shown, truths, labelled)

    def _verified(self, table: pa.Table) -> NDArray[np.intp]:
        """Return the rows of the service's decisions that are pairs as they come.

        Enrolments have no score; the best of many whom identification found is no pair as they
        come; and a model that was swapped had scores of its own.
        """
        pairs = ~np.asarray(table["score"].is_null())
        pairs &= np.asarray(pc.equal(table["kind"].cast(pa.string()), "verify").fill_null(False))
        if self.sha256 and "model" in table.column_names:
            ours = np.asarray(
                pc.equal(table["model"].cast(pa.string()), self.sha256).fill_null(False)
            )
            self.passed.append(int((pairs & ~ours).sum()))
            pairs &= ours
        return np.flatnonzero(pairs)


@dataclass(frozen=True, eq=False)
class PairFolder:
    """A dataset folder, whose pairs are scored on the way.

    With `shift` users are told probabilities for another share of genuine pairs.
    """

    path: Path
    model: Method
    population: Population
    stream: PairStream
    shift: Shift | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        model: Method,
        population: Population,
        feature: str | None,
        shift: Shift | None,
    ) -> PairFolder:
        """Open a folder with one feature: the one named, or the only one."""
        from faircal.data.pair_files import check_one_feature

        normalize = bool(getattr(model, "normalize_", True))
        named = [feature] if feature else None
        found = open_stream(
            path,
            features=named,
            normalize=normalize,
            score_range=model.score_range_,
            batch=_size(open_table(find_table(path, "pairs")).n_rows),
        )
        check_one_feature(found.features, path)
        space = model_space(model)
        if space is not None and found.embeddings is not None:
            space.check(found.embeddings)
        return cls(path, model, population, found, shift)

    @property
    def name(self) -> str:
        """Shown in the report."""
        return self.path.resolve().name

    @property
    def digest(self) -> str:
        """Tells whether it was counted before."""
        return self.stream.fingerprint()

    @property
    def timed(self) -> bool:
        """Whether pairs are known to be in the order of time: those of a dataset are sorted."""
        return False

    @property
    def notes(self) -> list[str]:
        """What cannot be watched, and how it could."""
        if self.stream.embeddings is None or not len(self.population.centers):
            return [f"{self.path}: no embeddings: clusters and the share outside are not watched"]
        return []

    def __len__(self) -> int:
        return len(self.stream)

    def chunks(self) -> Iterator[WatchedPairs]:
        """Yield the pairs part by part, scored."""
        placing, held = Placing.of_model(self.model), self.stream.embeddings
        who, known = self._people()
        with closing(self.stream.parts()) as parts:
            for part in parts:
                pairs = part.pairs
                by_image: list[NDArray[Any] | None] = [None, None, who]
                if placing is not None and held is not None:
                    places = placing(held, part.used_images())  # first: it tells the model
                    by_image[:2] = places.cluster, places.outside
                result = self.model.apply(part)
                cluster, outside, person = (
                    (None, None) if values is None else (values[pairs.left], values[pairs.right])
                    for values in by_image
                )
                labelled = np.full(len(pairs), pairs.genuine is not None)
                genuine = np.zeros(0, bool) if pairs.genuine is None else pairs.genuine
                in_use = PairsInUse(
                    result.score,
                    result.probability,
                    *(cluster[0], cluster[1], outside[0], outside[1], person[0], person[1], known),
                )
                shown = result.probability if self.shift is None else self.shift(result.probability)
                yield WatchedPairs(in_use, shown, genuine, labelled)

    def _people(self) -> tuple[NDArray[np.int64] | None, Known]:
        """Return who is in each image: identities, or images where they are not known."""
        images = self.stream.images
        if images is None:
            return None, "images"
        if images.identity is None:
            return codes(images.ids), "images"
        names = codes(pa.array([*images.identity.names, None], pa.string()))
        return names[images.identity.codes], "people"


def open_all(
    paths: Sequence[Path],
    model: Method,
    population: Population,
    feature: str | None,
    shift: Shift | None,
    sha256: str = "",
) -> list[ScoredTable | PairFolder]:
    """Open everything before anything is read, so that what is wrong is said first."""
    return [
        PairFolder.open(path, model, population, feature, shift)
        if existing(path).is_dir()
        else ScoredTable.open(path, model, population, shift, sha256)
        for path in paths
    ]


def _limits(model: Method) -> tuple[float, float]:
    """Return what scores of a model surely lie between: some are moved, and some probabilities."""
    low, high = model.score_range_
    span = high - low
    return min(low - span, 0.0), max(high + span, 1.0)


def _together(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the same rows, cut between moments: pairs of a batch came together, sorted perhaps."""
    held: pa.Table | None = None
    for table in tables:
        rows = table if held is None else pa.concat_tables([held, table])
        earlier = np.asarray(pc.not_equal(rows["at"], rows["at"][-1]).fill_null(False))
        end = int(np.flatnonzero(earlier)[-1]) + 1 if earlier.any() else 0
        end = end if end or len(rows) < _MOST else len(rows)
        if end:
            yield rows.slice(0, end)
        held = rows.slice(end)
    if held is not None and len(held):
        yield held


def _size(n_rows: int) -> int:
    return min(max(-(-n_rows // _PARTS), _LEAST), _MOST)


#: Pairs that are held in memory, about, and that are given at a time.
_HELD, _PART = 1 << 20, 1 << 16
#: Not a number of pairs: those are the seeds by which the watch draws places in time, and the same
#: seed twice would put pairs back where they were.
_SEED = (0, 1 << 62)
_PAIR = np.dtype(
    [
        ("score", np.float64),
        ("probability", np.float64),
        ("left_cluster", np.int32),
        ("right_cluster", np.int32),
        ("left_outside", np.int8),
        ("right_outside", np.int8),
        ("left_person", np.int64),
        ("right_person", np.int64),
        ("shown", np.float64),
        ("genuine", np.int8),  # −1 where nobody knows
    ]
)


def in_random_order(
    chunks: Iterable[WatchedPairs], n_pairs: int, held: int = _HELD
) -> Iterator[WatchedPairs]:
    """Yield all pairs in an order that is as likely as any other; the same each time.

    Above `held` pairs they are dealt to files on disk first, which hold about so many each.
    """
    rng = np.random.default_rng(_SEED)
    count = max(-(-n_pairs // held), 1)
    with tempfile.TemporaryDirectory(prefix="faircal-monitor-") as home:
        paths = [Path(home) / str(i) for i in range(count)]
        first: PairsInUse | None = None
        parts: list[NDArray[Any]] = []
        for chunk in chunks:
            first = first or chunk.pairs
            rows = _rows(chunk)
            if count == 1:
                parts.append(rows)
                continue
            dealt = rng.integers(count, size=len(rows))
            for i, path in enumerate(paths):
                with path.open("ab") as file:
                    file.write(rows[dealt == i].tobytes())
        if first is None:
            return
        for path in paths:
            rows = np.concatenate(parts) if count == 1 else np.fromfile(path, _PAIR)
            rows = rng.permutation(rows)
            parts = []
            for start in range(0, len(rows), _PART):
                yield _chunk(rows[start : start + _PART], first)


def _rows(chunk: WatchedPairs) -> NDArray[Any]:
    rows = np.full(len(chunk.labelled), -1, _PAIR)
    for name in _PAIR.names or ():
        values = getattr(chunk.pairs, name, None)
        if values is not None:
            rows[name] = values
    rows["shown"] = chunk.shown
    rows["genuine"][chunk.labelled] = chunk.genuine
    return rows


def _chunk(rows: NDArray[Any], like: PairsInUse) -> WatchedPairs:

    columns = {
        name: rows[name].copy()
        for name in _PAIR.names or ()
        if getattr(like, name, None) is not None
    }
    labelled = rows["genuine"] >= 0
    return WatchedPairs(
        PairsInUse(**columns, known=like.known),
        rows["shown"].copy(),
        rows["genuine"][labelled].astype(bool),
        labelled,
    )
