"""The pairs that ``faircal monitor`` watches: scored tables and dataset folders, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import logit

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
from faircal.production.monitoring.counts import Bool, Float64
from faircal.production.monitoring.pairs_in_use import IdentifiedBy, PairsInUse, numbers_of
from faircal.production.scoring.judging import Placing
from faircal.production.scoring.run import Adding, score_part

_SIDES = ("left", "right")
_BY_SIDE = ("cluster", "outside", "identity")
#: The most pairs in a part, the fewest, and about how many parts a file is shown as.
_MOST, _LEAST, _PARTS = 1 << 18, 2_000, 12


@dataclass
class WatchedSource:
    """Where pairs come from.

    Attributes
    ----------
    path : Path
    model : Method
    sha256 : str
        Of the model file: decisions of another one are passed over.
    pairs : int
        How many there are at most.
    digest : str
        Tells whether they were counted before.
    tables : callable
        Gives them scored, part by part, as ``faircal score`` writes them.
    timed : bool
        Whether pairs are in the order of time.
    notes : list of str
        What cannot be watched, and how it could; complete when all parts were read.
    """

    path: Path
    model: Method
    sha256: str
    pairs: int
    digest: str
    tables: Callable[[], Iterable[pa.Table]]
    timed: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Shown in the report."""
        return self.path.name or self.path.resolve().name

    def parts(self) -> Iterator[PairsInUse]:
        """Yield the pairs part by part."""
        start = passed_over = 0
        for table in self.tables():
            counted = np.ones(len(table), bool)
            if "kind" in table.column_names:
                # Of the service's decisions enrolments have no score; the best of many whom
                # identification returned is no pair as they come; and a model that was swapped had
                # scores of its own.
                verified = pc.equal(table["kind"].cast(pa.string()), "verify").fill_null(False)
                counted = np.asarray(verified) & np.asarray(table["score"].is_valid())
                if self.sha256 and "model" in table.column_names:
                    same = pc.equal(table["model"].cast(pa.string()), self.sha256)
                    ours = counted & np.asarray(same.fill_null(False))
                    passed_over += int((counted & ~ours).sum())
                    counted = ours
            where = Span(start, start + len(table))
            start += len(table)
            if counted.any():
                columns = _CheckedColumns(table, str(self.path), where, counted)
                yield self._pairs(columns).take(np.flatnonzero(counted))
        if passed_over:
            self.notes.append(f"{self.path}: {passed_over} decisions of other models passed over")

    def _pairs(self, of: _CheckedColumns) -> PairsInUse:
        # Scores of some methods are moved, and those of others probabilities.
        low, high = self.model.score_range_
        span = high - low
        low, high = min(low - span, 0.0), max(high + span, 1.0)
        population = self.model.about_.population
        clusters = 0 if population is None else len(population.centers)
        columns: dict[str, Any] = of.people()
        for side in _SIDES:
            columns[f"{side}_cluster"] = of.clusters(f"{side}_cluster", clusters)
            columns[f"{side}_outside"] = of.flags(f"{side}_outside")
        score = of.numbers("score", low, high, f"a score of MODEL, between {low:g} and {high:g}")
        probability = of.numbers("probability", 0, 1, "a probability in [0, 1]")
        genuine = of.flags("genuine")
        if genuine is not None:
            # Evidence may be far stronger than was said: such labels tell nothing of probabilities.
            genuine[self._at_bound(of, probability)] = UNKNOWN
        return PairsInUse(score, probability, **columns, genuine=genuine)

    def _at_bound(self, of: _CheckedColumns, probability: Float64) -> Bool:
        """Say where evidence is at a bound: where probabilities were given for a share."""
        bounds = self.model.about_.evidence
        if bounds is None or "prior" not in of.table.column_names:
            return np.zeros(len(probability), bool)
        share = of.numbers("prior", 0, 1, "a share", np.zeros(len(probability), bool))
        return bounds.reached(logit(probability) - logit(share))


def _open_table(path: Path, model: Method, sha256: str) -> WatchedSource:
    """Open a table that ``faircal score`` or the service wrote."""
    table = open_table(path)
    present = set(table.schema.names)
    require_columns(table.schema, ("score", "probability"), str(path))
    for name in _BY_SIDE:
        if len(present & {f"left_{name}", f"right_{name}"}) == 1:
            raise DataError(
                f"{path}: expected left_{name} and right_{name}, found one of them; "
                "give both or neither"
            )
    notes = [
        f"{path}: no columns left_{name}, right_{name}: {what} is not watched; "
        "score with --add clusters,outside"
        for name, what in (("cluster", "cluster occupancy"), ("outside", "the share outside"))
        if f"left_{name}" not in present
    ]
    columns = [*_SIDES, "score", "probability", "genuine", "kind", "model", "at", "prior"]
    columns += [f"{side}_{name}" for name in _BY_SIDE for side in _SIDES]
    needed, timed = [name for name in columns if name in present], "at" in present

    def tables() -> Iterable[pa.Table]:
        read = table.read(needed, 0, _size(table.n_rows))
        return cut_between_moments(read) if timed else read

    digest = file_digest(path)
    return WatchedSource(path, model, sha256, table.n_rows, digest, tables, timed, notes)


def _open_folder(path: Path, model: Method, sha256: str, feature: str | None) -> WatchedSource:
    """Open a dataset folder with one feature, the one named or the only one, to be scored."""
    stream = open_stream(
        path,
        features=[feature] if feature else None,
        normalize=bool(getattr(model, "normalize_", True)),
        score_range=model.score_range_,
        batch=_size(open_table(find_table(path, "pairs")).n_rows),
    )
    check_one_feature(stream.features, path)
    space, adding, notes = model_space(model), None, []
    if space is not None and stream.embeddings is not None:
        space.check(stream.embeddings)
    if stream.embeddings is not None and Placing.of_model(model) is not None:
        adding = Adding.of(model, ("clusters", "outside"))
    else:
        notes.append(f"{path}: no embeddings: clusters and the share outside are not watched")
    keep = ["identity"] if stream.images is not None and stream.images.identity is not None else []

    def tables() -> Iterator[pa.Table]:
        with closing(stream.parts()) as parts:
            for part in parts:
                labels = [] if part.pairs.genuine is None else ["genuine"]
                yield score_part(model, part, labels + keep, None, adding)

    digest = stream.fingerprint()
    return WatchedSource(path, model, sha256, len(stream), digest, tables, notes=notes)


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
        self,
        name: str,
        low: float,
        high: float,
        expected: str,
        needed: Bool | None = None,
        *,
        integer: bool = False,
    ) -> Float64:
        """Return numbers from `low` to `high`; of rows that are not `needed`, whatever is there."""
        column = f"{self.where}, column '{name}'"
        values = as_floats(self.table[name], column, "give a file that 'faircal score' wrote")
        bad = ~((values >= low) & (values <= high))
        if integer:
            bad |= values != np.round(values)
        bad &= self.counted if needed is None else needed
        if bad.any():
            raise DataError(
                f"{column}, {self.span.row(bad)}: expected {expected}, found "
                f"{values[first_true(bad)]:g} ({self.span.such(int(bad.sum()))}); "
                "score those pairs again with the same MODEL"
            )
        return values

    def clusters(self, name: str, below: int) -> NDArray[np.int32] | None:
        """Return whole numbers from 0 to `below`, −1 where empty; None where all are."""
        needed = self._filled(name) & self.counted
        if not needed.any():
            return None
        expected = f"a cluster from 0 to {below - 1}" if below else "no clusters"
        values = self.numbers(name, 0, below - 1, expected, needed, integer=True)
        return np.where(needed, values, UNKNOWN).astype(np.int32)

    def flags(self, name: str) -> NDArray[np.int8] | None:
        """Return 0/1/true/false as 0 and 1, −1 where empty; None where all are."""
        needed = self._filled(name) & self.counted
        if not needed.any():
            return None
        array = as_arrow(self.table[name], f"{self.where}, column '{name}'")
        if not needed.all():
            text = as_text(array, f"{self.where}, column '{name}'")
            # Empty cells pass for 0, which the parser knows; they become unknown below.
            array = pc.if_else(pa.array(needed), text, pa.scalar("0"))
        values = parse_genuine(array, self.where, name, self.span)
        return np.where(needed, values, UNKNOWN).astype(np.int8)

    def people(self) -> dict[str, Any]:
        """Return who is on each side: identities, else ids; nobody where rows are numbered."""
        present = self.table.column_names
        by: IdentifiedBy = "people" if "kind" in present or "left_identity" in present else "images"
        names = [f"{s}_identity" if f"{s}_identity" in present else s for s in _SIDES]
        if not set(names) <= set(present):
            return {}
        left, right = (numbers_of(self.table[name], self.where) for name in names)
        if by == "images" and (left == right).all():
            return {}  # a score table's rows, numbered: ids of nobody
        return {"left_person": left, "right_person": right, "identified_by": by}


def _size(n_rows: int) -> int:
    return min(max(-(-n_rows // _PARTS), _LEAST), _MOST)


def cut_between_moments(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the same rows, cut between moments: pairs of a batch came together, sorted perhaps."""
    held: pa.Table | None = None
    for table in tables:
        rows = table if held is None else pa.concat_tables([held, table])
        earlier = np.asarray(pc.not_equal(rows["at"], rows["at"][-1]).fill_null(False))
        end = int(np.flatnonzero(earlier)[-1]) + 1 if earlier.any() else 0
        # A moment longer than the largest part is cut all the same: memory is bounded.
        end = end if end or len(rows) < _MOST else len(rows)
        if end:
            yield rows.slice(0, end)
        held = rows.slice(end)
    if held is not None and len(held):
        yield held


def open_source(
    path: Path, model: Method, sha256: str = "", feature: str | None = None
) -> WatchedSource:
    """Open a scored table or a dataset folder; what can't be used is refused."""
    if existing(path).is_dir():
        return _open_folder(path, model, sha256, feature)
    return _open_table(path, model, sha256)
