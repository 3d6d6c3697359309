"""Spark's two hashes of whole numbers, in NumPy: where its images and tiles go.

``xxhash64`` deals images to blocks, and Murmur3 rows to partitions; both start from 42. A test asks
Spark for the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faircal.production.spark.blocks.tiling import SHARES
from faircal.production.spark.sizing.volumes import tiles_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def _turned(words: Words, bits: int) -> Words:
    turned: Words = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return turned


def xxhash64(numbers: Ints) -> Ints:
    """Return ``xxhash64`` of whole numbers, shape (n,).

    Examples
    --------
    >>> xxhash64(np.array([0, 1])).tolist()
    [-5252525462095825812, -7001672635703045582]
    """
    words = numbers.astype(np.int64).view(np.uint64)
    found = _turned(words * _P2, 31) * _P1
    found ^= np.uint64(_SEED) + _P5 + np.uint64(8)
    found = _turned(found, 27) * _P1 + _P4
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    return (found ^ (found >> np.uint64(32))).view(np.int64)


def murmur3(*columns: Ints) -> NDArray[np.int32]:
    """Return Murmur3, as of the SQL function ``hash``, of columns of whole numbers, shape (n,).

    Examples
    --------
    >>> murmur3(np.array([0, 1])).tolist()
    [-1670924195, -1712319331]
    """
    found = np.full(len(columns[0]), _SEED, np.uint32)
    for numbers in columns:
        words = numbers.astype(np.int64).view(np.uint64)
        for half in (words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)):
            word = half.astype(np.uint32) * np.uint32(0xCC9E2D51)
            word = (word << np.uint32(15)) | (word >> np.uint32(17))
            found ^= word * np.uint32(0x1B873593)
            found = (found << np.uint32(13)) | (found >> np.uint32(19))
            found = found * np.uint32(5) + np.uint32(0xE6546B64)
        found ^= np.uint32(8)
        found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        found ^= found >> np.uint32(16)
    return found.view(np.int32)


def blocks_of(numbers: Ints, n_blocks: int) -> Ints:
    """Return the block of each image."""
    return xxhash64(numbers) % n_blocks


def partitions_of(tiles: Ints, n_blocks: int, n_partitions: int) -> Ints:
    """Return the partition that each tile goes to (`arranged` of `spark.blocks.tiling`).

    There must be more tiles than shares; where there are fewer, a tile is in several partitions.
    """
    width = tiles_of(n_blocks) // (SHARES * n_partitions)
    first, second = np.divmod(tiles, n_blocks)
    return murmur3(first, second // width).astype(np.int64) % n_partitions


def pieces_of(n_blocks: int, n_partitions: int) -> tuple[Ints, Ints]:
    """Return all pieces of tiles, where there are fewer tiles than shares, and their partitions."""
    one, two = np.triu_indices(n_blocks)
    pieces = -(-SHARES * n_partitions // tiles_of(n_blocks))
    tiles = np.repeat(one * n_blocks + two, pieces)
    number = np.tile(np.arange(pieces), len(one))
    return tiles, murmur3(tiles, number).astype(np.int64) % n_partitions
