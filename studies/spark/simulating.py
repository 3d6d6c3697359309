"""How even Spark's hashing is: images in blocks, pairs in tiles, tiles in partitions.

Images are hashed one by one, up to a hundred million of them. Pairs are not listed: pairs of
images drawn at random fall into tiles as a multinomial draw has it, which is drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.production.spark.blocks.tiling import SHARES
from faircal.production.spark.sizing.volumes import (
    Dealt,
    fullest,
    naive_bytes,
    row_bytes,
    tiles_of,
    vectors_read,
)
from studies.spark.hashing import blocks_of, murmur3, partitions_of, pieces_of

Ints = NDArray[np.int64]
Row = dict[str, Any]

TEMPLATES = (10**6, 10**7, 10**8)
PAIRS = (10**9, 10**10)
#: Images of a block: 128 MiB of vectors of 512 numbers.
ROWS, VECTOR = 65_536, 2048
PARTITIONS = (50, 100, 200, 500, 1000, 2500, 10_000)
#: People who are searched for among all, each in as many pairs.
PROBES = 1000
#: Shares for each partition.
SHARES_TRIED = (4, 8, 16, 32)
_AT_ONCE = 1 << 22
#: Partitions that Spark makes unless told.
_USUAL = 200


def simulate() -> Iterator[Row]:
    """Yield a line for each number of images, and for each of these and of pairs."""
    for templates in TEMPLATES:
        n_blocks = -(-templates // ROWS)
        sizes = dealt(templates, n_blocks)
        yield _blocks(templates, sizes)
        for pairs in PAIRS:
            rng = np.random.default_rng([templates, pairs])
            yield _tiles(templates, pairs, sizes, sizes, rng, "at random")
        if templates == 10**7:
            yield from _shares(sizes)
        probes = dealt(PROBES, n_blocks, start=templates)
        rng = np.random.default_rng([templates, PROBES])
        yield _tiles(templates, PAIRS[0], sizes, probes, rng, f"{PROBES:,} probes against all")


def dealt(count: int, n_blocks: int, start: int = 0) -> Ints:
    """Return how many of the images `start` … are in each block."""
    found = np.zeros(n_blocks, dtype=np.int64)
    for begin in range(start, start + count, _AT_ONCE):
        numbers = np.arange(begin, min(begin + _AT_ONCE, start + count))
        found += np.bincount(blocks_of(numbers, n_blocks), minlength=n_blocks)
    return found


def in_tiles(pairs: int, one: Ints, two: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw how many of `pairs` pairs are in each tile; return tiles' numbers and pairs.

    Parameters
    ----------
    one, two : ndarray of shape (n_blocks,)
        Images of each block that are on one side of pairs, and on the other.
    """
    n_blocks = len(one)
    both = np.outer(one / one.sum(), two / two.sum())
    share = np.triu(both + both.T) - np.diag(np.diag(both))
    i, j = np.triu_indices(n_blocks)
    return i * n_blocks + j, rng.multinomial(pairs, share[i, j] / share[i, j].sum())


def _blocks(templates: int, sizes: Ints) -> Row:
    mean = sizes.mean()
    return {
        "part": "blocks",
        "templates": templates,
        "blocks": len(sizes),
        "fullest": round(float(sizes.max() / mean), 4),
        "emptiest": round(float(sizes.min() / mean), 4),
    }


def _tiles(
    templates: int, pairs: int, sizes: Ints, others: Ints, rng: np.random.Generator, kind: str
) -> Row:
    n_blocks = len(sizes)
    tiles, counts = in_tiles(pairs, sizes, others, rng)
    spread = {str(n): _spread(n, n_blocks, tiles, counts) for n in PARTITIONS}
    return {
        "part": "tiles",
        "pairs_are": kind,
        "templates": templates,
        "pairs": pairs,
        "blocks": n_blocks,
        "tiles": len(tiles),
        "fullest_tile": round(float(counts.max() / counts.mean()), 3),
        "partitions": spread,
        "row_bytes": round(row_bytes(templates, n_blocks, kept=["genuine"]), 2),
        "shuffled": round(row_bytes(templates, n_blocks, kept=["genuine"]) * pairs),
        "with_vectors": round(naive_bytes(templates, pairs, VECTOR)),
        "read": round(vectors_read(templates, n_blocks, pairs, _USUAL, VECTOR)),
    }


def _shares(sizes: Ints) -> Iterator[Row]:
    """Yield lines with more shares for each partition than are dealt out."""
    rng = np.random.default_rng(0)
    tiles, counts = in_tiles(PAIRS[0], sizes, sizes, rng)
    n, n_blocks = _USUAL, len(sizes)
    one, two = np.divmod(tiles, n_blocks)
    for times in SHARES_TRIED:
        width = len(tiles) // (times * n)
        home = murmur3(one, two // width).astype(np.int64) % n
        held = np.bincount(home, counts, n)
        runs = len(np.unique(one * n_blocks + two // width))
        yield {
            "part": "shares",
            "templates": int(sizes.sum()),
            "partitions": n,
            "shares": times,
            "fullest": round(float(held.max() / held.mean()), 3),
            "loads": runs + len(tiles) - n_blocks,
        }


def _spread(n: int, n_blocks: int, tiles: Ints, counts: Ints) -> list[float]:
    """Return by how much the fullest of `n` partitions is above the mean: found, and expected."""
    if tiles_of(n_blocks) < SHARES * n:
        pieces, home = pieces_of(n_blocks, n)
        each = np.repeat(counts / (len(pieces) // len(tiles)), len(pieces) // len(tiles))
    else:
        home, each = partitions_of(tiles, n_blocks, n), counts.astype(np.float64)
    held = np.bincount(home, each, n)
    shares = Dealt.of(n_blocks, n).shares
    return [round(float(held.max() / held.mean()), 3), round(fullest(shares, n) / shares * n, 3)]
