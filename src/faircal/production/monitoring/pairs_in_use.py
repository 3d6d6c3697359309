"""Pairs in use, as monitoring gets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import UNKNOWN, as_arrow, as_text
from faircal.production.monitoring.counts import Bool, Float64, Int64, buckets_of

#: What the numbers of people stand for.
IdentifiedBy = Literal["people", "images"]

#: Pairs in a row that share a bucket where nobody is identified: calls of one user may come
#: together.
_IN_A_ROW = 16
_WHOLE_NUMBER = re.compile(r"0|[1-9]\d{0,17}")


@dataclass(frozen=True, eq=False)
class PairsInUse:
    """Pairs that a model was used on; an element of each array a pair. No embedding is in it.

    Pairs of one `PairsInUse` came together: their order means nothing.

    Attributes
    ----------
    score, probability : array-like of float, shape (n_pairs,)
        What the model ranks by, and P(genuine) as users were given it, at whatever share of
        genuine pairs.
    left_cluster, right_cluster : array-like of int, optional
        Nearest centres (`Places.cluster`); None where unknown.
    left_outside, right_outside : array-like of bool, optional
        Whether the images are outside of the calibration population (`Places.outside`).
    left_person, right_person : array-like of int64, optional
        Numbers of the people (or of the images), equal where they are the same, −1 where unknown;
        hashes will do. Where one side only is identified, give that one.
    identified_by : {"people", "images"}
        What those numbers stand for. Identities and templates are people.
    genuine : array-like of int, optional
        Labels that came with the pairs: 0 or 1, −1 where there is none.

    Examples
    --------
    >>> len(PairsInUse([0.2, 0.9], [0.01, 0.99]))
    2
    """

    score: Any
    probability: Any
    left_cluster: Any = None
    right_cluster: Any = None
    left_outside: Any = None
    right_outside: Any = None
    left_person: Any = None
    right_person: Any = None
    identified_by: IdentifiedBy = "people"
    genuine: Any = None

    def __len__(self) -> int:
        return len(self.score)

    def sides(self, what: str) -> Int64:
        """Return ``cluster``, ``outside`` or ``person`` of left and right, (2, n); −1: unknown."""
        columns = (getattr(self, f"{side}_{what}") for side in ("left", "right"))
        return np.stack(
            [
                np.full(len(self), UNKNOWN) if column is None else np.asarray(column)
                for column in columns
            ]
        ).astype(np.int64)

    def labels(self) -> tuple[Float64, Bool, Int64 | None]:
        """Return of labelled pairs P(genuine), whether they are, and a person of each."""
        if self.genuine is None:
            return np.zeros(0), np.zeros(0, bool), None
        rows = np.flatnonzero(np.asarray(self.genuine) >= 0)
        person = None if self.left_person is None else np.asarray(self.left_person)[rows]
        genuine = np.asarray(self.genuine)[rows].astype(bool)
        return np.asarray(self.probability)[rows], genuine, person

    def take(self, rows: NDArray[np.intp]) -> PairsInUse:
        """Return some of the pairs."""
        columns: dict[str, Any] = {}
        for name, value in vars(self).items():
            is_constant = value is None or name == "identified_by"
            columns[name] = value if is_constant else np.asarray(value)[rows]
        return PairsInUse(**columns)

    @classmethod
    def join(cls, parts: Sequence[PairsInUse]) -> PairsInUse:
        """Return the pairs of all parts (at least one) as one.

        It is identified by people where all parts are that identify anybody.
        """
        by_image = any(
            part.identified_by == "images" and (part.sides("person") != UNKNOWN).any()
            for part in parts
        )
        columns: dict[str, Any] = {"identified_by": "images" if by_image else "people"}
        for name in vars(parts[0]).keys() - columns.keys():
            values = [getattr(part, name) for part in parts]
            if all(value is None for value in values):
                continue
            # What one part lacks is unknown of its pairs only; the others keep theirs.
            columns[name] = np.concatenate(
                [
                    np.full(len(part), UNKNOWN, np.int8) if value is None else value
                    for part, value in zip(parts, values, strict=True)
                ]
            )
        return cls(**columns)

    def check(self, clusters: int) -> None:
        """Raise `DataError` unless all arrays are as long as the scores, and within bounds."""
        score = np.asarray(self.score, np.float64)
        if score.ndim != 1 or not np.isfinite(score).all():
            raise DataError("score: expected finite numbers, one per pair; leave out what has none")
        for name, value in vars(self).items():
            if name == "identified_by" or value is None or np.shape(value) == score.shape:
                continue
            raise DataError(
                f"{name}: expected {len(score)} values, one per pair, found {np.shape(value)}"
            )
        cluster = self.sides("cluster")
        if len(score) and not (cluster.min() >= -1 and cluster.max() < clusters):
            raise DataError(f"cluster: expected 0 to {clusters - 1}, or -1 where unknown")

    def identified(self) -> Int64:
        """Return 0 where people are identified, 1 where images are, 2 where neither is, (n,)."""
        unidentified = (self.sides("person") == UNKNOWN).all(axis=0)
        return np.where(unidentified, 2, int(self.identified_by == "images"))

    def buckets(self, start: int, buckets: int) -> Int64:
        """Return the bucket of each side, (2, n), of pairs that are numbered from `start`."""
        number = start + np.arange(len(self))
        left, right = self.sides("person")
        # A side that is not identified goes along with the other.
        sides = np.stack(
            [np.where(left == UNKNOWN, right, left), np.where(right == UNKNOWN, left, right)]
        )
        in_a_row = (number // _IN_A_ROW) % buckets
        return np.where(sides == UNKNOWN, in_a_row, buckets_of(sides, buckets))


def number_of(name: str) -> int:
    """Return a number for whoever is called `name`: the same for the same, in every process.

    It lies from 2⁶² to 2⁶³ − 1: above ids that are numbers themselves, and never below 0, which
    would be unknown.
    """
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 2 | 1 << 62


def numbers_of(ids: Any, where: str = "ids") -> Int64:
    """Return a number for each id, the same in every file; −1 where it is empty.

    Whole numbers stand for themselves, as text or not; other text is hashed.

    >>> numbers_of(["7", "b", "b", None])[[0, 3]], len(set(numbers_of(["7", "b", "b"]).tolist()))
    (array([ 7, -1]), 2)
    """
    text = as_text(as_arrow(ids, where), where)
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    encoded = text.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    numbers = [int(name) if _WHOLE_NUMBER.fullmatch(name) else number_of(name) for name in names]
    table: Int64 = np.array([*numbers, UNKNOWN], np.int64)
    return np.take(table, np.asarray(encoded.indices.fill_null(UNKNOWN)))
