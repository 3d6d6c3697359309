"""The pairs that ``faircal monitor`` watches: scored tables and dataset folders, checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.files import existing, file_digest
from faircal.data import open_stream
from faircal.data.columns import (
    UNKNOWN,
    Span,
    as_arrow,
    as_floats,
    as_text,
    first_true,
    parse_genuine,
)
from faircal.data.long_tables import open_table
from faircal.data.pair_files import check_one_feature
from faircal.data.tables import find_table, require_columns
from faircal.methods import Method
from faircal.methods.clusters import model_space
from faircal.methods.prior import fitted_share
from faircal.production.monitoring.counts import Bool, Float64, Int64
from faircal.production.monitoring.pairs_in_use import IdentifiedBy, PairsInUse, numbers_of
from faircal.production.scoring.judging import Placing

_SIDES = ("left", "right")
_BY_SIDE = ("cluster", "outside", "identity")
#: The most pairs in a part, the fewest, and about how many parts a file is shown as.
_MOST, _LEAST, _PARTS = 1 << 18, 2_000, 12


class WatchedModel(NamedTuple):
    """A model, how its file is identified, and the share of genuine pairs it is used at.

    `prior` is None where that is the share of the fit.
    """

    model: Method
    sha256: str = ""
    prior: float | None = None


class ScoredTable:
    """A table that ``faircal score`` or the service wrote.

    Decisions of another model are passed over, and `notes` says how many.
    """

    def __init__(self, path: Path, watched: WatchedModel) -> None:
        self.path, self.name, self._watched = path, path.name, watched
        self._table = open_table(path)
        there = set(self._table.schema.names)
        require_columns(self._table.schema, ("score", "probability"), str(path))
        for name in _BY_SIDE:
            if len(there & {f"left_{name}", f"right_{name}"}) == 1:
                raise DataError(
                    f"{path}: expected left_{name} and right_{name}, found one of them; "
                    "give both or neither"
                )
        by_row = {"kind", "prior"} <= there  # an export says the share of each decision
        self._share = 0.5
        if by_row or watched.prior is not None:
            what = "column prior" if by_row else "--prior"
            self._share = fitted_share(watched.model, what=what)
        self._passed_over = 0
        #: Whether pairs are in the order of time, as the service's decisions are.
        self.timed = "at" in there

    def __len__(self) -> int:
        return self._table.n_rows

    @property
    def digest(self) -> str:
        """Tells whether it was counted before."""
        return file_digest(self.path)

    @property
    def notes(self) -> list[str]:
        """What cannot be watched, and how it could."""
        notes = [
            f"{self.path}: no columns left_{name}, right_{name}: {what} is not watched; "
            "score with --add clusters,outside"
            for name, what in (("cluster", "cluster occupancy"), ("outside", "the share outside"))
            if f"left_{name}" not in self._table.schema.names
        ]
        if self._passed_over:
            notes.append(f"{self.path}: {self._passed_over} decisions of other models passed over")
        return notes

    def parts(self) -> Iterator[PairsInUse]:
        """Yield the pairs part by part."""
        columns = [*_SIDES, "score", "probability", "genuine", "kind", "model", "at", "prior"]
        columns += [f"{side}_{name}" for name in _BY_SIDE for side in _SIDES]
        there = [name for name in columns if name in self._table.schema.names]
        read, start = self._table.read(there, 0, _size(len(self))), 0
        for table in cut_between_moments(read) if self.timed else read:
            pairs = self._pairs(table, start)
            start += len(table)
            if len(pairs):
                yield pairs

    def _pairs(self, table: pa.Table, start: int) -> PairsInUse:
        counted = self._counted(table)
        of = _CheckedColumns(table, str(self.path), Span(start, start + len(table)), counted)
        low, high = _score_limits(self._watched.model)
        clusters = len(self._watched.model.about_.population.centers)  # type: ignore[union-attr]
        columns: dict[str, Any] = {}
        for side in _SIDES:
            columns[f"{side}_cluster"] = of.whole(f"{side}_cluster", clusters)
            columns[f"{side}_outside"] = of.flags(f"{side}_outside")
        score = of.numbers("score", low, high, f"a score of MODEL, between {low:g} and {high:g}")
        shown = of.numbers("probability", 0, 1, "a probability in [0, 1]")
        return PairsInUse(
            score,
            _moved(shown, of.priors(self._watched.prior), self._share),
            **columns,
            **of.people(),
            genuine=of.flags("genuine"),
            shown=shown,
        ).take(np.flatnonzero(counted))

    def _counted(self, table: pa.Table) -> Bool:
        """Return which rows are pairs as they come.

        Of the service's decisions enrolments have no score; the best of many whom identification
        returned is no pair as they come; and a model that was swapped had scores of its own.
        """
        if "kind" not in table.column_names:
            return np.ones(len(table), bool)
        verified = pc.equal(table["kind"].cast(pa.string()), "verify").fill_null(False)
        rows: Bool = np.asarray(verified) & np.asarray(table["score"].is_valid())
        if self._watched.sha256 and "model" in table.column_names:
            same = pc.equal(table["model"].cast(pa.string()), self._watched.sha256)
            ours = np.asarray(same.fill_null(False))
            self._passed_over += int((rows & ~ours).sum())
            rows &= ours
        return rows


class _CheckedColumns(NamedTuple):
    """Columns of a part of a table; only rows that are `counted` are checked."""

    table: pa.Table
    where: str
    span: Span
    counted: Bool

    def _filled(self, name: str) -> Bool:
        """Return which rows have a value."""
        if name not in self.table.column_names:
            return np.zeros(len(self.table), bool)
        return ~np.asarray(pc.is_null(self.table[name], nan_is_null=True), dtype=bool)

    def numbers(
        self, name: str, low: float, high: float, expected: str, needed: Bool | None = None
    ) -> Float64:
        """Return numbers from `low` to `high`; of rows that are not `needed`, whatever is there."""
        column = f"{self.where}, column '{name}'"
        values = as_floats(self.table[name], column, "give a file that 'faircal score' wrote")
        bad = ~((values >= low) & (values <= high)) & (self.counted if needed is None else needed)
        if bad.any():
            raise DataError(
                f"{column}, {self.span.row(bad)}: expected {expected}, found "
                f"{values[first_true(bad)]:g} ({self.span.such(int(bad.sum()))}); "
                "score those pairs again with the same MODEL"
            )
        return values

    def whole(self, name: str, below: int) -> NDArray[np.int32] | None:
        """Return whole numbers from 0 to `below`, −1 where empty; None where all are."""
        needed = self._filled(name) & self.counted
        if not needed.any():
            return None
        expected = f"a cluster from 0 to {below - 1}" if below else "no clusters"
        values = self.numbers(name, 0, below - 1, expected, needed)
        return np.where(needed, values, UNKNOWN).astype(np.int32)

    def flags(self, name: str) -> NDArray[np.int8] | None:
        """Return 0/1/true/false as 0 and 1, −1 where empty; None where all are."""
        needed = self._filled(name) & self.counted
        if not needed.any():
            return None
        array = as_arrow(self.table[name], f"{self.where}, column '{name}'")
        if not needed.all():
            text = as_text(array, f"{self.where}, column '{name}'")
            array = pc.if_else(pa.array(needed), text, pa.scalar("0"))
        values = parse_genuine(array, self.where, name, self.span)
        return np.where(needed, values, UNKNOWN).astype(np.int8)

    def priors(self, prior: float | None) -> Float64 | float | None:
        """Return the share of genuine pairs that each probability is for; requests may differ."""
        if "kind" not in self.table.column_names or not self._filled("prior").any():
            return prior
        tiny = np.finfo(np.float64).tiny
        return self.numbers("prior", tiny, 1 - 1e-16, "a share between 0 and 1")

    def people(self) -> dict[str, Any]:
        """Return who is on each side: identities, else ids; nobody where rows are numbered."""
        there = self.table.column_names
        by: IdentifiedBy = "people" if "kind" in there or "left_identity" in there else "images"
        names = [f"{s}_identity" if f"{s}_identity" in there else s for s in _SIDES]
        if not set(names) <= set(there):
            return {}
        left, right = (numbers_of(self.table[name], self.where) for name in names)
        if by == "images" and (left == right).all():
            return {}  # a score table's rows, numbered: ids of nobody
        return {"left_person": left, "right_person": right, "identified_by": by}


def _moved(probability: Float64, at: Float64 | float | None, to: float) -> Float64:
    """Return probabilities that hold `at` a share of genuine pairs, each row its own, for another.

    As `shift_prior` does; None: they are for that share already.
    """
    if at is None:
        return probability
    genuine = probability * (to / at)
    moved = genuine / (genuine + (1 - probability) * ((1 - to) / (1 - at)))
    return np.where(at == to, probability, moved)


def _score_limits(model: Method) -> tuple[float, float]:
    """Return what scores of a model surely lie between: some are moved, and some probabilities."""
    low, high = model.score_range_
    span = high - low
    return min(low - span, 0.0), max(high + span, 1.0)


def _size(n_rows: int) -> int:
    return min(max(-(-n_rows // _PARTS), _LEAST), _MOST)


def cut_between_moments(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
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


class PairFolder:
    """A dataset folder with one feature, the one named or the only one; scored on the way."""

    #: Pairs of a dataset are sorted, but not by time.
    timed = False

    def __init__(self, path: Path, watched: WatchedModel, feature: str | None) -> None:
        model = watched.model
        self.path, self.name, self._watched = path, path.resolve().name, watched
        self._share = 0.5 if watched.prior is None else fitted_share(model)
        self._stream = open_stream(
            path,
            features=[feature] if feature else None,
            normalize=bool(getattr(model, "normalize_", True)),
            score_range=model.score_range_,
            batch=_size(open_table(find_table(path, "pairs")).n_rows),
        )
        check_one_feature(self._stream.features, path)
        space, embeddings = model_space(model), self._stream.embeddings
        if space is not None and embeddings is not None:
            space.check(embeddings)
        self._placing = None if embeddings is None else Placing.of_model(model)

    def __len__(self) -> int:
        return len(self._stream)

    @property
    def digest(self) -> str:
        """Tells whether it was counted before."""
        return self._stream.fingerprint()

    @property
    def notes(self) -> list[str]:
        """What cannot be watched."""
        if self._placing is None:
            return [f"{self.path}: no embeddings: clusters and the share outside are not watched"]
        return []

    def parts(self) -> Iterator[PairsInUse]:
        """Yield the pairs part by part, scored."""
        embeddings = self._stream.embeddings
        person, by = self._people()
        with closing(self._stream.parts()) as parts:
            for part in parts:
                by_image: dict[str, NDArray[Any] | None] = {"person": person}
                if self._placing is not None and embeddings is not None:
                    # Before scoring: the model then need not look for the clusters again.
                    places = self._placing(embeddings, part.used_images())
                    by_image |= {"cluster": places.cluster, "outside": places.outside}
                columns: dict[str, Any] = {
                    f"{side}_{what}": values[getattr(part.pairs, side)]
                    for what, values in by_image.items()
                    if values is not None
                    for side in _SIDES
                }
                result = self._watched.model.apply(part)
                yield PairsInUse(
                    result.score,
                    result.probability,
                    **columns,
                    identified_by=by,
                    genuine=part.pairs.genuine,
                    shown=_moved(
                        result.probability, self._share, self._watched.prior or self._share
                    ),
                )

    def _people(self) -> tuple[Int64 | None, IdentifiedBy]:
        """Return who is in each image: identities, or images where they are not known."""
        images = self._stream.images
        if images is None:
            return None, "images"
        if images.identity is None:
            return numbers_of(images.ids), "images"
        names = numbers_of(pa.array([*images.identity.names, None], pa.string()))
        return names[images.identity.codes], "people"


def open_all(
    paths: Sequence[Path], watched: WatchedModel, feature: str | None = None
) -> list[ScoredTable | PairFolder]:
    """Open everything before anything is read, so that what is wrong is said first."""
    return [
        PairFolder(path, watched, feature)
        if existing(path).is_dir()
        else ScoredTable(path, watched)
        for path in paths
    ]
