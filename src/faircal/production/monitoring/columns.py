"""Columns of scored tables, checked on the way in: numbers, flags, who is in the pairs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import UNKNOWN, as_arrow, as_floats, as_text, first_true, parse_genuine
from faircal.production.monitoring.pairs_in_use import Known, number_of

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
        found = as_floats(self.table[name], f"{self.where}, column '{name}'", remedy)
        bad = ~np.isfinite(found)
        self._check(name, bad, found, "a finite number", "score those pairs again or remove them")
        return found

    def shares(self, name: str) -> NDArray[np.float64]:
        """Return numbers from 0 to 1."""
        found = self.numbers(name)
        bad = (found < 0) | (found > 1)
        self._check(name, bad, found, "a probability in [0, 1]", "score with 'faircal score'")
        return found

    def scores(self, name: str, limits: tuple[float, float]) -> NDArray[np.float64]:
        """Return numbers that a score of the model can be."""
        found, (low, high) = self.numbers(name), limits
        bad = (found < low) | (found > high)
        expected = f"a score of MODEL, between {low:g} and {high:g}"
        self._check(name, bad, found, expected, "score with the same MODEL")
        return found

    def whole(self, name: str, below: int) -> NDArray[np.int32] | None:
        """Return whole numbers from 0 to `below`; None where the column is missing or empty."""
        if not self.known(name).any():
            return None
        found = self.numbers(name)
        bad = (found != np.round(found)) | (found < 0) | (found >= below)
        expected = f"a cluster from 0 to {below - 1}" if below else "no clusters"
        self._check(name, bad, found, expected, "score with the same MODEL")
        return found.astype(np.int32)

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

    def unshifted(self, told: NDArray[np.float64], share: float) -> NDArray[np.float64] | None:
        """Return a service's probabilities at the share of the fit; None without a column prior.

        Each row holds for the share of genuine pairs in its `prior`: requests may differ.
        """
        if "kind" not in self.table.column_names or not self.known("prior").any():
            return None
        prior = self.numbers("prior")
        bad = (prior <= 0) | (prior >= 1)
        self._check("prior", bad, prior, "a share between 0 and 1", "export the decisions again")
        genuine = told * (share / prior)
        found = genuine / (genuine + (1 - told) * ((1 - share) / (1 - prior)))
        return np.where(prior == share, told, found)

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
    found: NDArray[np.int64] = np.array(names, np.int64)
    return np.take(found, np.asarray(encoded.indices.fill_null(UNKNOWN)))


def _code(name: str) -> int:
    return int(name) if _WHOLE_NUMBER.fullmatch(name) else number_of(name)
