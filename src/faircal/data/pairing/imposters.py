"""Drawing imposter pairs evenly, at most so many of the same two people.

Think of all allowed image pairs in random order: a pair is taken unless its two people have been
paired `cap` times already, until there are enough. Two ways lead to exactly that distribution.
*Drawing*: pairs one after the other, repeats left out; fast while few of many are needed.
*Listing* couples of people (never pairs of images): each image pair comes at a random time, and
the first `cap` times of a couple with N image pairs are order statistics, which can be drawn
directly. Which way is taken depends on counts only, never on what was drawn, so nothing is biased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress, silent
from faircal.data.pairing.people import (
    Ints,
    choose,
    counting,
    couple,
    occurrence,
    share,
    under_cap,
)

#: Pairs drawn at a time, at most.
_BATCH = 1 << 22
#: Pairs are drawn from cells that people share where each could give so many times its share.
_FEW = 4
_TURNS = 50

Floats = NDArray[np.float64]
Pairs = tuple[Ints, Ints]
NONE: Pairs = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Pool:
    """The images of a fold that imposter pairs are made of; at least one.

    `person` and `cell` (group, cluster) are those of each image, `vectors` their embeddings where
    these decide; `label` names the fold for `progress`.
    """

    person: Ints
    cell: Ints
    cap: int
    vectors: NDArray[np.float32] | None = None
    progress: Progress = silent
    label: str = ""

    def __len__(self) -> int:
        return len(self.person)


def within(pool: Pool, needed: int, rng: np.random.Generator) -> Pairs:
    """Draw pairs of strangers in one cell; cells give in proportion to their images."""
    cells, cell, images = np.unique(pool.cell, return_inverse=True, return_counts=True)
    if len(cells) == 1:
        return _draw(pool, needed, False, rng)
    rows = _split(cell, images)
    parts = [Pool(pool.person[row], pool.cell[row], pool.cap) for row in rows]
    most = np.array([_supply(*_couples(part, False), part.cap) for part in parts])
    shares = share(needed, images, most)
    homes = np.unique(pool.person * len(cells) + cell) // len(cells)
    if len(homes) > len(np.unique(homes)):
        # The cap on two people joins the cells that they share.
        few = bool((_FEW * shares <= most).all())
        rejected = _reject_in_cells(pool, shares, rows, rng) if few else None
        # Their first pairs count, from whichever cell, even those for which it has no room.
        return _list(pool, needed, False, rng) if rejected is None else rejected
    drawn = [_draw(part, int(n), False, rng) for part, n in zip(parts, shares, strict=True)]
    left = [row[pair[0]] for row, pair in zip(rows, drawn, strict=True)]
    right = [row[pair[1]] for row, pair in zip(rows, drawn, strict=True)]
    return np.concatenate(left), np.concatenate(right)


def across(pool: Pool, needed: int, rng: np.random.Generator) -> Pairs:
    """Draw pairs of strangers in two different cells."""
    return _draw(pool, needed, True, rng)


def supply(pool: Pool) -> int:
    """Return how many pairs of strangers the cap allows, cells aside."""
    return _supply(
        *_couples(Pool(pool.person, np.zeros_like(pool.cell), pool.cap), False), pool.cap
    )


def _draw(pool: Pool, needed: int, crossing: bool, rng: np.random.Generator) -> Pairs:
    """Draw from a pool whose cells all are one, or are all to be crossed."""
    if not needed:
        return NONE
    number, each = _couples(pool, crossing)
    most = _supply(number, each, pool.cap)
    if 2 * needed <= most and _trials(number, each, pool, needed) <= most:
        return _reject(pool, needed, crossing, rng)
    return _list(pool, needed, crossing, rng)


def _couples(pool: Pool, crossing: bool) -> tuple[Floats, Floats]:
    """Return how many couples of people have so many image pairs, without listing couples.

    A person in several cells counts with their largest share only, so that the numbers are lower
    bounds then.
    """
    n = len(pool) + 1
    _, cell = np.unique(pool.cell, return_inverse=True)
    block, size = np.unique(pool.person * n + cell, return_counts=True)
    person, cell = divmod(block, n)
    order = np.lexsort((-size, person))
    order = order[occurrence(person[order]) == 0]
    kind, people = np.unique(cell[order] * n + size[order], return_counts=True)
    cell, size = divmod(kind, n)
    number = np.triu(np.outer(people, people).astype(np.float64), 1)
    number[np.diag_indices(len(people))] = people * (people - 1) / 2
    if crossing:
        number[cell[:, None] == cell] = 0
    crossable = number > 0
    return number[crossable], np.outer(size, size)[crossable].astype(np.float64)


def _supply(number: Floats, each: Floats, cap: int) -> int:
    return int((number * np.minimum(each, cap)).sum())


def _trials(number: Floats, each: Floats, pool: Pool, needed: int) -> float:
    """Return about how many draws of two images give `needed` pairs (less than the supply)."""
    pairs = float((number * each).sum())
    draws = float(needed)
    while (number * np.minimum(pool.cap, -each * np.expm1(-draws / pairs))).sum() < needed:
        draws *= 2
    return draws * len(pool) ** 2 / (2 * pairs)  # not all are strangers


def _reject(pool: Pool, needed: int, crossing: bool, rng: np.random.Generator) -> Pairs:
    n = len(pool)
    kept, rate = np.empty(0, dtype=np.int64), 1.0
    while len(kept) < needed:
        before = len(kept)
        size = int(min(1.1 * (needed - before) / rate + 100, _BATCH))
        one, two = rng.integers(n, size=(2, size))
        allowed = pool.person[one] != pool.person[two]
        if crossing:
            allowed &= pool.cell[one] != pool.cell[two]
        code = np.minimum(one, two) * n + np.maximum(one, two)
        kept = under_cap(np.concatenate([kept, code[allowed]]), pool.person, pool.cap)
        rate = max((len(kept) - before) / size, 1e-3)
    return divmod(kept[:needed], n)


def _reject_in_cells(
    pool: Pool, shares: Ints, rows: list[NDArray[np.intp]], rng: np.random.Generator
) -> Pairs | None:
    """Draw from all cells by turns, with one cap for all; None where that takes too long."""
    n, count = len(pool), np.array([len(row) for row in rows])
    start, image = np.cumsum(count) - count, np.concatenate(rows)
    cell = np.empty(n, dtype=np.int64)
    cell[image] = np.repeat(np.arange(len(rows)), count)
    kept = np.empty(0, dtype=np.int64)
    for _ in range(_TURNS):
        shortfall = shares - np.bincount(cell[kept // n], minlength=len(rows))
        if not shortfall.any():
            return divmod(kept, n)
        home = np.repeat(
            np.arange(len(rows)), np.where(shortfall > 0, 1.2 * shortfall + 10, 0).astype(int)
        )
        one, two = (image[start[home] + rng.integers(count[home])] for _ in range(2))
        different = pool.person[one] != pool.person[two]
        code = (np.minimum(one, two) * n + np.maximum(one, two))[different]
        kept = under_cap(np.concatenate([kept, rng.permutation(code)]), pool.person, pool.cap)
        home = cell[kept // n]
        kept = kept[occurrence(home) < shares[home]]
    return None


def _list(pool: Pool, needed: int, crossing: bool, rng: np.random.Generator) -> Pairs:
    # A block is what a person has in a cell: a run of images once they are in order.
    _, cell, images = np.unique(pool.cell, return_inverse=True, return_counts=True)
    image = np.lexsort((pool.person, cell))
    person, cell = pool.person[image], cell[image]
    new = np.ones(len(image), dtype=bool)
    new[1:] = (person[1:] != person[:-1]) | (cell[1:] != cell[:-1])
    start = np.flatnonzero(new)
    size = np.diff(start, append=len(image))
    person, cell = person[start], cell[start]

    # All pairs of blocks, those of the same two people next to each other.
    after = np.searchsorted(cell, cell, side="right")
    first = after if crossing else np.arange(1, len(start) + 1)
    one, two = counting((len(start) if crossing else after) - first)
    two += first[one]
    different = person[one] != person[two]
    one, two = one[different], two[different]
    code = couple(person[one], person[two], person)
    order = np.argsort(code, kind="stable")
    one, two, code = one[order], two[order], code[order]
    if not len(code):
        return NONE
    each = size[one] * size[two]
    head = np.flatnonzero(np.diff(code, prepend=-1))
    number, time = _first(np.add.reduceat(each, head), pool.cap, rng)

    # Number counts image pairs, block pair after block pair.
    before = np.cumsum(each) - each
    block = np.searchsorted(before, number, side="right") - 1
    home = np.zeros_like(block) if crossing else cell[one[block]]
    take = _earliest(home, time, needed, images[:1] if crossing else images)
    block, number = block[take], number[take] - before[block[take]]
    one, two = one[block], two[block]
    left, right = image[start[one] + number // size[two]], image[start[two] + number % size[two]]
    return np.minimum(left, right), np.maximum(left, right)


def _earliest(home: Ints, time: Floats, needed: int, images: Ints) -> Ints:
    """Choose the pairs that come first in each cell; cells give in proportion to `images`."""
    pairs = np.bincount(home, minlength=len(images))
    shares = share(needed, images, pairs)
    taken = []
    for rows, n in zip(_split(home, pairs), shares.tolist(), strict=True):
        part = rows if n == len(rows) else rows[np.argpartition(time[rows], n)[:n]]
        taken.append(part)
    return np.concatenate(taken)


def _split(cell: Ints, number: Ints) -> list[NDArray[np.intp]]:
    """Return the rows of each cell 0, 1, …, of which there are so many."""
    small = cell.astype(np.min_scalar_type(len(number)))  # up to two bytes are sorted by radix
    return np.split(np.argsort(small, kind="stable"), np.cumsum(number)[:-1])


def _first(pairs: Ints, cap: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw for each couple the `cap` image pairs that come first, and when they come.

    Couple i has the image pairs numbered before[i] … before[i] + pairs[i] − 1, where before is the
    sum of `pairs` so far. Times are exponential.
    """
    before = np.cumsum(pairs) - pairs
    many = pairs > cap
    couples, number = counting(np.where(many, 0, pairs))
    number += before[couples]
    time = rng.standard_exponential(len(number))
    if not many.any():
        return number, time
    drawn = choose(pairs[many], cap, rng) + before[many, None]
    # Of k pairs that have not come yet, the next one comes after an exponential time / k.
    waiting = rng.standard_exponential(drawn.shape) / (pairs[many, None] - np.arange(cap))
    times = rng.permuted(np.cumsum(waiting, axis=1), axis=1)
    return np.concatenate([number, drawn.ravel()]), np.concatenate([time, times.ravel()])


#: Rows of a block of similarities, and numbers in it, at most.
_ROWS, _NUMBERS = 2048, 1 << 26
#: Ranks of a block of rows that are looked at together.
_RANKS = 128
_NOBODY = np.iinfo(np.int64).max


def nearest(pool: Pool, needed: int, _rng: np.random.Generator) -> Pairs:
    """Take every image's nearest stranger, then every image's second nearest, and so on.

    Within a rank the most similar pair comes first; equals go by the numbers of their images.
    """
    n = len(pool)
    needed = min(needed, supply(pool))
    images = np.bincount(pool.person)
    images_each = (images**2).sum() / n  # images of the person in an image, on average
    # Neighbours come image by image where people are spread out, person by person (of whom the cap
    # leaves most out) where the images of each are alike; start half-way.
    depth = int(2.5 * needed / n * max(1.0, images_each / pool.cap**0.5)) + 8
    while True:
        depth = min(depth, n)
        kept = _best(*_candidates(pool, depth), pool, needed)
        if len(kept) == needed or depth == n:
            return divmod(kept, n)
        depth *= 4


def _best(order: Ints, code: Ints, pool: Pool, needed: int) -> Ints:
    """Return the first `needed` candidates under the cap."""
    look = 3 * needed + 1
    while look < len(order):  # most often a fraction of the candidates is enough
        front = order <= np.partition(order, look - 1)[look - 1]
        kept = _in_order(order[front], code[front], pool)
        if len(kept) >= needed:
            return kept[:needed]
        look *= 4
    return _in_order(order, code, pool)[:needed]


def _in_order(order: Ints, code: Ints, pool: Pool) -> Ints:
    return under_cap(code[np.lexsort((code, order))], pool.person, pool.cap)


def _candidates(pool: Pool, depth: int) -> tuple[Ints, Ints]:
    """Return the neighbours of all images up to rank `depth`: order of preference, and code.

    The order counts by rank, then by similarity. What the cap will leave out in any case, because
    the images of one person have `cap` better neighbours in the other, is left out already.
    """
    n, parts = len(pool), []
    height = min(_ROWS, _NUMBERS // n + 1)
    blocks = range(0, n, height)
    for done, begin in enumerate(blocks):
        pool.progress("looking for similar strangers", done, len(blocks), pool.label)
        rows = np.arange(begin, min(begin + height, n))
        parts.append(_prune(_neighbours(pool, rows, depth), rows, pool))
    pool.progress("looking for similar strangers", len(blocks), len(blocks), pool.label)
    return np.concatenate([one for one, _ in parts]), np.concatenate([two for _, two in parts])


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
    people, person = np.unique(pool.person[rows], return_inverse=True)
    others = int(pool.person.max()) + 1
    times = np.zeros(len(people) * others, dtype=np.int32)
    parts = []
    for begin in range(0, keys.shape[1], _RANKS):
        row, rank = np.nonzero(keys[:, begin : begin + _RANKS] != _NOBODY)
        key, rank = keys[row, rank + begin], rank + begin
        column = key & 0xFFFFFFFF
        couple = person[row] * others + pool.person[column]
        free = times[couple] < pool.cap
        row, rank, key, column, couple = (x[free] for x in (row, rank, key, column, couple))
        order = (rank << 32) + (key >> 32) + (1 << 31)
        code = np.minimum(rows[row], column) * n + np.maximum(rows[row], column)
        sort = np.lexsort((code, order))
        keep = sort[occurrence(couple[sort]) + times[couple[sort]] < pool.cap]
        np.add.at(times, couple[keep], 1)
        parts.append((order[keep], code[keep]))
    return np.concatenate([one for one, _ in parts]), np.concatenate([two for _, two in parts])
