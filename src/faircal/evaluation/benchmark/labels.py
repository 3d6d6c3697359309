"""Drawing the pairs that somebody labels in a new population: whole people, more and more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ParameterError
from faircal.data import Dataset
from faircal.data.folds import people_of

#: Steps of the curve unless told, up to the pairs that are there.
STEPS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
#: Fewer labelled pairs than this say nothing.
LEAST = 10

Rows = NDArray[np.intp]


def label_counts(pool: int, wanted: Sequence[int] = ()) -> tuple[int, ...]:
    """Return how many labelled pairs to try, ascending, without 0, which needs no label.

    Parameters
    ----------
    pool : int
        Pairs that can be labelled.
    wanted : sequence of int
        What was asked for; unless told, round steps and then all of the pool.

    Examples
    --------
    >>> label_counts(2_000), label_counts(2_000, (0, 50))
    ((100, 300, 1000, 2000), (50,))
    """
    if not wanted:
        # A last step that differs little from the whole is left out.
        return (*(step for step in STEPS if step < 0.6 * pool), pool)
    for count in wanted:
        if count and not LEAST <= count <= pool:
            raise ParameterError(
                f"labels: expected 0, or {LEAST} to {pool} (the pairs of people who are not tested)"
                f", found {count}; choose other numbers (--labels)"
            )
    counts = sorted({int(count) for count in wanted} - {0})
    if not counts:
        raise ParameterError("labels: expected a number above 0; name one (--labels 100,1000)")
    return tuple(counts)


def draw_labelled(pool: Dataset, counts: Sequence[int], seed: int) -> list[Rows]:
    """Draw pairs of `pool` to be labelled, for each of `counts` (ascending).

    People come in a random order. For n pairs as many of the first people are taken as have, among
    themselves, pairs enough of both classes; n of those pairs are drawn, with the pool's share of
    genuine ones. (All pairs of few people would not do: with half of the people half of the
    genuine pairs are left, but a quarter of the imposters.) What is drawn for n is part of what is
    drawn for more.

    Parameters
    ----------
    pool : Dataset
        Labelled pairs, of both classes.
    counts : sequence of int
        From 2 to the pairs of the pool.
    seed : int

    Returns
    -------
    list of ndarray of shape (n,), intp
        Rows of `pool`, ascending.

    Examples
    --------
    >>> import faircal
    >>> pool, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> few, many = draw_labelled(pool, (30, 300), seed=0)
    >>> int(pool.genuine[few].sum()), set(few) <= set(many), float(pool.genuine.mean().round(2))
    (10, True, 0.33)
    """
    rng = np.random.default_rng(seed)
    people, _ = people_of(pool.pairs, pool.images)
    place = rng.permutation(int(people.max()) + 1)[people]
    known = np.maximum(place[pool.pairs.left], place[pool.pairs.right])  # when both are there
    chance = rng.permutation(len(pool))
    classes = [np.flatnonzero(pool.genuine == label) for label in (True, False)]
    drawn = np.zeros(len(pool), dtype=bool)
    found = []
    for count in counts:
        sizes = _sizes(count, *map(len, classes))
        last = max(
            np.partition(known[rows], size - 1)[size - 1]
            for rows, size in zip(classes, sizes, strict=True)
        )
        for rows, size in zip(classes, sizes, strict=True):
            new = rows[(known[rows] <= last) & ~drawn[rows]]
            more = size - int(drawn[rows].sum())
            drawn[new[np.argsort(chance[new])[:more]]] = True
        found.append(np.flatnonzero(drawn))
    return found


def _sizes(count: int, genuine: int, imposter: int) -> tuple[int, int]:
    """Share `count` between the classes as the pool has them, one of each at least."""
    size = round(count * genuine / (genuine + imposter))
    size = min(max(size, 1, count - imposter), genuine, count - 1)
    return size, count - size


def count_people(pool: Dataset, rows: Rows) -> int | None:
    """Return how many people are in the pairs `rows`; None where nobody knows who is who."""
    if pool.images.identity is None:
        return None
    people, _ = people_of(pool.pairs, pool.images)
    return len(np.unique(people[np.concatenate([pool.pairs.left[rows], pool.pairs.right[rows]])]))
