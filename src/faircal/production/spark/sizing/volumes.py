"""Bytes that are moved, and how even hashing makes them: closed forms, no Spark.

Each is compared with Spark itself, or with a simulation of its hashing, in ``studies/spark``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from faircal.production.spark.blocks.tiling import FEW, SHARES

#: Spark writes a row as words of eight bytes and compresses them (LZ4): of a whole number there
#: remain the bytes that say something, and about so much to say that the others are as before.
_WORD = 2.5
#: What columns that go with a pair add to its row.
_KEPT = {"genuine": 2.2, "fold": 2.6, "score": 7.9}


def row_bytes(templates: int, blocks: int, *, text: int = 0, kept: Sequence[str] = ()) -> float:
    """Return the bytes that Spark writes for a pair when pairs are sorted to tiles.

    Parameters
    ----------
    templates, blocks : int
    text : int
        Characters in which ids differ; 0: they are whole numbers.
    kept : sequence of str
        Columns that go with the pairs: ``genuine``, ``fold``, ``score``; others count as
        ``score``.

    Examples
    --------
    >>> round(row_bytes(10_000_000, 153, kept=["genuine"]), 1)
    17.3
    """
    side = text or math.log2(max(templates, 2)) / 8
    tile = 2 * math.log2(max(blocks, 1)) / 8
    more = sum(_KEPT.get(name, _KEPT["score"]) for name in kept)
    return 2 * (side + _WORD) + tile + _WORD + more


def naive_bytes(templates: int, pairs: int, vector: float) -> float:
    """Return the bytes that two joins write which bring each pair its vectors.

    Vectors go once for each join, and each pair goes once alone and once with its first vector,
    which can't be compressed.
    """
    alone = 2 * (math.log2(max(templates, 2)) / 8 + _WORD)
    return 2 * templates * vector + pairs * (2 * alone + vector)


def tiles_of(blocks: int) -> int:
    """Return how many tiles there are: each two blocks, and each block with itself."""
    return blocks * (blocks + 1) // 2


@dataclass(frozen=True)
class Dealt:
    """How tiles are dealt to partitions by `faircal.production.spark.blocks.tiling`.

    Attributes
    ----------
    shares : int
        What a hash deals out: runs of tiles with the same first block, or pieces of tiles.
    loads : int
        How often a block is loaded, all shares together; less where shares with a block in common
        come to one partition.
    """

    shares: int
    loads: int

    @classmethod
    def of(cls, blocks: int, partitions: int) -> Dealt:
        """Work out how many shares there are, some for each partition.

        Examples
        --------
        >>> Dealt.of(153, 200), Dealt.of(2, 1)
        (Dealt(shares=923, loads=12551), Dealt(shares=6, loads=8))
        """
        tiles, wanted = tiles_of(blocks), SHARES * partitions
        if tiles < wanted:
            pieces = -(-wanted // tiles)
            return cls(tiles * pieces, pieces * (2 * tiles - blocks))
        width = tiles // wanted
        first = np.arange(blocks) // width
        shares = int((first[-1] - first + 1).sum())
        # The first block of a share once, the second of each tile, unless it is the first.
        return cls(shares, shares + tiles - blocks)


def vectors_read(
    templates: int, blocks: int, pairs: float, partitions: int, vector: float
) -> float:
    """Return the bytes of vectors that all tasks together read.

    Of tiles with few pairs only the images in these are read.
    """
    if FEW * pairs < 2 * templates / blocks * tiles_of(blocks):
        return 2 * pairs * vector
    return Dealt.of(blocks, partitions).loads * templates / blocks * vector


def fullest(things: int, bins: int) -> int:
    """Return about how many of equal things the fullest of `bins` has, when a hash deals them.

    Examples
    --------
    >>> fullest(1000, 1000), fullest(100_000, 100)
    (6, 1082)
    """
    if bins <= 1:
        return things
    return int(binom.isf(0.5 / bins, things, 1 / bins))
