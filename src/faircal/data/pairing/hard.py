"""The most similar strangers, image by image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faircal.data.pairing.imposters import Pairs, Pool, supply
from faircal.data.pairing.sampling import Ints, counting, occurrence, under_cap

#: Rows of a block of similarities, and numbers in it, at most.
_ROWS, _NUMBERS = 2048, 1 << 26
#: Ranks of a block of rows that are looked at together.
_RANKS = 128
_NOBODY = np.iinfo(np.int64).max


def nearest(pool: Pool, wanted: int, _rng: np.random.Generator) -> Pairs:
    """Take every image's nearest stranger, then every image's second nearest, and so on.

    Within a rank the most similar pair comes first; equals go by the numbers of their images.
    """
    n = len(pool)
    wanted = min(wanted, supply(pool))
    images = np.bincount(pool.person)
    crowd = (images**2).sum() / n  # images of the person in an image, on average
    # Neighbours come image by image where people are spread out, person by person (of whom the cap
    # leaves most out) where the images of each are alike; start half-way.
    depth = int(2.5 * wanted / n * max(1.0, crowd / pool.cap**0.5)) + 8
    while True:
        depth = min(depth, n)
        kept = _best(*_candidates(pool, depth), pool, wanted)
        if len(kept) == wanted or depth == n:
            return divmod(kept, n)
        depth *= 4


def _best(order: Ints, code: Ints, pool: Pool, wanted: int) -> Ints:
    """Return the first `wanted` candidates under the cap."""
    look = 3 * wanted + 1
    while look < len(order):  # most often a fraction of the candidates is enough
        front = order <= np.partition(order, look - 1)[look - 1]
        kept = _in_order(order[front], code[front], pool)
        if len(kept) >= wanted:
            return kept[:wanted]
        look *= 4
    return _in_order(order, code, pool)[:wanted]


def _in_order(order: Ints, code: Ints, pool: Pool) -> Ints:
    return under_cap(code[np.lexsort((code, order))], pool.person, pool.cap)


def _candidates(pool: Pool, depth: int) -> tuple[Ints, Ints]:
    """Return the neighbours of all images up to rank `depth`: order of preference, and code.

    The order counts by rank, then by similarity. What the cap will leave out in any case, because
    the images of one person have `cap` better neighbours in the other, is left out already.
    """
    n, found = len(pool), []
    height = min(_ROWS, _NUMBERS // n + 1)
    blocks = range(0, n, height)
    for done, begin in enumerate(blocks):
        pool.progress("looking for similar strangers", done, len(blocks), pool.label)
        rows = np.arange(begin, min(begin + height, n))
        found.append(_prune(_neighbours(pool, rows, depth), rows, pool))
    pool.progress("looking for similar strangers", len(blocks), len(blocks), pool.label)
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])


def _neighbours(pool: Pool, rows: NDArray[np.intp], depth: int) -> Ints:
    """Return the keys of the `depth` nearest strangers of each of `rows`, nearest first.

    A key is the similarity, turned into an integer that falls as it rises, and then the column:
    sorting keys sorts by both, so that equals are in order too.
    """
    if pool.vectors is None:
        raise RuntimeError("hard imposters without vectors")  # build_pairs asks for them
    distance = pool.vectors[rows] @ pool.vectors.T
    np.subtract(0, distance, out=distance)  # not −x, which gives negative zeros
    distance[pool.person[rows, None] == pool.person] = np.inf
    limit = np.partition(distance, depth - 1, axis=1)[:, depth - 1 : depth]
    row, column = np.nonzero((distance <= limit) & (distance < np.inf))
    bits = distance[row, column].view(np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF  # floats are ordered as these integers are
    _, place = counting(np.bincount(row, minlength=len(rows)))
    keys = np.full((len(rows), int(place.max(initial=0)) + 1), _NOBODY)
    keys[row, place] = (bits.astype(np.int64) << 32) | column
    keys.sort(axis=1)
    return keys[:, :depth]


def _prune(keys: Ints, rows: NDArray[np.intp], pool: Pool) -> tuple[Ints, Ints]:
    """Keep the first `cap` neighbours that a person's images have in another person."""
    n = len(pool)
    people, mine = np.unique(pool.person[rows], return_inverse=True)
    others = int(pool.person.max()) + 1
    times = np.zeros(len(people) * others, dtype=np.int32)
    found = []
    for begin in range(0, keys.shape[1], _RANKS):
        row, rank = np.nonzero(keys[:, begin : begin + _RANKS] != _NOBODY)
        key, rank = keys[row, rank + begin], rank + begin
        column = key & 0xFFFFFFFF
        couple = mine[row] * others + pool.person[column]
        free = times[couple] < pool.cap
        row, rank, key, column, couple = (x[free] for x in (row, rank, key, column, couple))
        order = (rank << 32) + (key >> 32) + (1 << 31)
        code = np.minimum(rows[row], column) * n + np.maximum(rows[row], column)
        sort = np.lexsort((code, order))
        keep = sort[occurrence(couple[sort]) + times[couple[sort]] < pool.cap]
        np.add.at(times, couple[keep], 1)
        found.append((order[keep], code[keep]))
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])
