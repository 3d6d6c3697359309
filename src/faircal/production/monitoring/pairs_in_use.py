"""Pairs in use, as monitoring gets them, and their counts block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import UNKNOWN
from faircal.model import Population
from faircal.production.monitoring.comparing import LOTS, CountLayout
from faircal.production.monitoring.shares import Int64, count_images, lots_of, rank_in

#: What the numbers of people stand for.
Known = Literal["people", "images"]


@dataclass(frozen=True, eq=False)
class PairsInUse:
    """Pairs that a model was used on; an element of each array a pair. No embedding is in it.

    Pairs of one `PairsInUse` came together: their order means nothing.

    Attributes
    ----------
    score, probability : array-like of float, shape (n_pairs,)
        What the model ranks by, and P(genuine) as the model gave it: not shifted to another share
        of genuine pairs.
    left_cluster, right_cluster : array-like of int, optional
        Nearest centres (`Places.cluster`); None where unknown.
    left_outside, right_outside : array-like of bool, optional
        Whether the images are outside of the calibration population (`Places.outside`).
    left_person, right_person : array-like of int64, optional
        Numbers of the people (or of the images, see `known`), equal where they are the same, −1
        where unknown; hashes will do. Where one side only is known, give that one.
    known : {"people", "images"}
        What those numbers stand for. Identities and templates are people.

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
    known: Known = "people"

    def __len__(self) -> int:
        return len(self.score)


def number_of(name: str) -> int:
    """Return a number for whoever is called `name`: the same for the same, in every process.

    It lies from 2⁶² to 2⁶³ − 1: above ids that are numbers themselves, and never below 0, which
    would be unknown.
    """
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 2 | 1 << 62


#: Pairs in a row that share a lot where nobody tells who is in them: calls of one user may come
#: together.
_IN_A_ROW = 16
_FIELDS = tuple(
    f"{side}_{what}" for what in ("cluster", "outside", "person") for side in ("left", "right")
)


@dataclass(frozen=True, eq=False)
class PairArrays:
    """Pairs as arrays: −1 stands for an unknown cluster, flag or person."""

    score: NDArray[np.float64]
    cluster: NDArray[np.int64]
    outside: NDArray[np.int64]
    person: NDArray[np.int64]
    images: NDArray[np.bool_]
    slot: NDArray[np.int64]

    @classmethod
    def join(cls, parts: Sequence[PairsInUse], seed: int) -> PairArrays:
        """Join what was seen bit by bit; `slot` is each pair's place in time.

        It is drawn among pairs that came together: a batch that is sorted by group or label must
        not look like a change.
        """

        def sides(name: str) -> Int64:
            return np.stack([_joined(parts, f"{side}_{name}") for side in ("left", "right")])

        score = np.concatenate([np.asarray(part.score, np.float64) for part in parts])
        images = np.repeat(
            [part.known == "images" for part in parts], [len(part) for part in parts]
        )
        slot, rng = np.arange(len(score)), np.random.default_rng(seed)
        ends = np.cumsum([len(part) for part in parts])
        for start, end in zip(ends - [len(part) for part in parts], ends, strict=True):
            if end - start > 1:
                slot[start:end] = start + rng.permutation(end - start)
        return cls(score, sides("cluster"), sides("outside"), sides("person"), images, slot)

    def __len__(self) -> int:
        return len(self.score)


def _joined(pairs: Sequence[PairsInUse], name: str) -> Int64:
    """Return one column of all pairs; −1 where it is unknown."""
    columns = [(getattr(each, name), len(each)) for each in pairs]
    return np.concatenate(
        [
            np.full(n, -1, np.int64) if column is None else np.asarray(column).astype(np.int64)
            for column, n in columns
        ]
    )


def check_pairs(pairs: PairsInUse, clusters: int) -> None:
    """Raise `DataError` unless all arrays of `pairs` are as long as scores, and within bounds."""
    score = np.asarray(pairs.score, np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise DataError("score: expected finite numbers, one per pair; leave out what has none")
    shape = score.shape
    for name in _FIELDS:
        value: Any = getattr(pairs, name)
        if value is not None and getattr(value, "shape", None) != shape != np.shape(value):
            raise DataError(
                f"{name}: expected {len(score)} values, one per pair, found {np.shape(value)}"
            )
    if not len(score):
        return
    for value in (pairs.left_cluster, pairs.right_cluster):
        if value is not None and not _within(value, clusters):
            raise DataError(f"cluster: expected 0 to {clusters - 1}, or -1 where unknown")


def _within(value: Any, clusters: int) -> bool:
    if len(value) == 1:  # of a service, 500 times a second
        return bool(-1 <= value[0] < clusters)
    return bool(np.min(value) >= -1 and np.max(value) < clusters)


def count_pairs(columns: PairArrays, population: Population, start: int, block: int) -> Int64:
    """Count pairs in the blocks they belong to, when `start` pairs were seen before.

    Returns
    -------
    ndarray of shape (n_blocks, size), int64
        The first block is the one that pair number `start` belongs to.
    """
    layout = CountLayout.of(population)
    number = start + np.arange(len(columns))
    of = (start + columns.slot) // block - start // block
    blocks = int(number[-1]) // block - start // block + 1
    lots = _lots(columns, number)
    of_all = np.searchsorted(population.ranked_edges[0], columns.score, side="right")
    rows = np.flatnonzero((columns.cluster >= 0).all(axis=0))
    region = population.region[columns.cluster[:, rows]] if len(rows) else columns.cluster[:, rows]
    flagged = np.flatnonzero((columns.outside >= 0).all(axis=0))
    nobody = (columns.person == UNKNOWN).all(axis=0)
    who = np.where(nobody, 2, columns.images.astype(np.int64))
    in_strata = rows if population.stratified else rows[:0]
    stratum = population.stratum[region[0], region[1]][: len(in_strata)]
    by_stratum = rank_in(population.ranked_edges, stratum, columns.score[in_strata])
    ranked = [
        _rank(of, lots, of_all, blocks, layout.bins),
        _rank(of[in_strata], lots[:, in_strata], by_stratum, blocks, layout.bins),
    ]
    tables = [
        *(counts for counts, _ in ranked),
        *(by_lot for _, by_lot in ranked),
        *count_images(of[rows], lots[:, rows], region, blocks, LOTS, layout.regions),
        *count_images(of[flagged], lots[:, flagged], columns.outside[:, flagged], blocks, LOTS, 2),
        np.bincount(of * 3 + who, minlength=blocks * 3),
    ]
    return np.concatenate([table.reshape(blocks, -1) for table in tables], axis=1)


def _rank(of: Int64, lots: Int64, ranked: Int64, blocks: int, bins: int) -> tuple[Int64, Int64]:
    """Count pairs by block and bin, and by block, lot and bin: in the lots of both people."""
    both = lots[0] != lots[1]
    cells = (of * LOTS + lots) * bins + ranked
    touched = np.concatenate([cells[0], cells[1][both]])
    return _tally(of * bins + ranked, blocks, bins), _tally(touched, blocks, LOTS * bins)


def _tally(cells: Int64, blocks: int, size: int) -> Int64:
    return np.bincount(cells, minlength=blocks * size).reshape(blocks, size)


def _lots(columns: PairArrays, number: Int64) -> Int64:
    """Return the lot of each side, (2, n)."""
    left, right = columns.person
    sides = np.stack(
        [np.where(left == UNKNOWN, right, left), np.where(right == UNKNOWN, left, right)]
    )
    unknown = sides[0] == UNKNOWN
    if unknown.all():
        return np.tile((number // _IN_A_ROW) % LOTS, (2, 1))
    lots = lots_of(sides, LOTS)
    lots[:, unknown] = (number[unknown] // _IN_A_ROW) % LOTS
    return lots
