"""Where K-means starts: greedy k-means++, one way for the processor and for a device.

Centres are drawn by k-means++ exactly, but many at a time: candidates come from the distribution
of a moment ago and are thinned by rejection, so that one large product replaces many thin ones.

Random numbers are drawn and choices made here. Distances are worked out by a `Sample`, where the
points are; so one seed starts with the same points anywhere, as far as rounding allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Rows = NDArray[np.intp]

#: Points, at least, among which starting centres are chosen.
_SAMPLE, _SAMPLE_A_CLUSTER = 8192, 40
#: Most distances to candidates at a time (128 MB).
_MOST_DRAWN = 2**25


class Sizes(NamedTuple):
    """How much is done to choose starting centres."""

    points: int  # to choose among
    trials: int  # candidates for each centre
    steps: int  # centres, at most, that candidates are drawn for at a time
    candidates: int  # at most at a time


def sizes(n: int, n_clusters: int) -> Sizes:
    """Return how much is done to choose `n_clusters` of `n` points.

    Examples
    --------
    >>> sizes(16_000, 100)
    Sizes(points=8192, trials=6, steps=100, candidates=674)
    """
    points = min(n, max(_SAMPLE, _SAMPLE_A_CLUSTER * n_clusters))
    trials = 2 + int(np.log(n_clusters))
    steps = max(1, min(n_clusters, _MOST_DRAWN // (points * trials)))
    return Sizes(points, trials, steps, _candidates(steps, trials))


def _candidates(steps: int, trials: int) -> int:
    """Return how many to draw for `steps` centres: some more than needed, as some are refused."""
    return steps * trials + (steps - 1) * trials // 8


class Sample(Protocol):
    """Points to choose among, and how far each is from the nearest that was chosen."""

    def nearest(self) -> Float32:
        """Return the squared distance of each point to the nearest chosen, shape (n,)."""

    def measure(self, rows: Rows) -> None:
        """Take the points `rows`, shape (c,), as candidates: measure how far all are from them."""

    def choose(self, which: Rows) -> tuple[int, Float32]:
        """Choose of the candidates `which`, shape (trials,), the one that leaves the least sum.

        Returns its place in `which`, and how far all candidates now are from the nearest chosen,
        squared, shape (c,).
        """


def starting_rows(
    n: int, n_clusters: int, rng: np.random.Generator, sample_of: Callable[[Rows | slice], Sample]
) -> Rows:
    """Choose which of `n` points to start with: the best of 2 + log K draws each; shape (K,).

    Among very many points, those of a sample: it has next to no effect on where K-means ends.
    """
    size, trials, most, _ = sizes(n, n_clusters)
    some = np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))
    sample = sample_of(slice(None) if size == n else some)
    chosen = [int(rng.integers(size))]
    sample.measure(np.array(chosen))
    sample.choose(np.zeros(trials, dtype=np.intp))
    steps = 8  # how many centres to draw candidates for
    while len(chosen) < n_clusters:
        steps = min(steps, n_clusters - len(chosen), most)
        before = len(chosen)
        chosen += _draws(sample, steps, trials, rng)
        # Many refused: the distribution had moved on; draw fewer at a time.
        steps = steps * 2 if len(chosen) - before == steps else max(1, len(chosen) - before)
    return some[chosen]


def _draws(sample: Sample, steps: int, trials: int, rng: np.random.Generator) -> Iterator[int]:
    """Choose up to `steps` points, and give their rows.

    A point drawn with a chance in proportion to its distance of before, and kept with a chance of
    now / before, is drawn in proportion to its distance of now.
    """
    nearest = sample.nearest()
    cumulative = np.cumsum(nearest, dtype=np.float64)
    if not cumulative[-1] > 0:  # every point is chosen already, or equal to one that is
        yield int(rng.integers(len(nearest)))
        return
    count = _candidates(steps, trials)
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    drawn = np.minimum(drawn, len(nearest) - 1)
    coins = rng.random(count)
    sample.measure(drawn)
    before = now = nearest[drawn]
    at = 0
    for _ in range(steps):
        kept = at + np.flatnonzero(coins[at:] * before[at:] < now[at:])[:trials]
        if len(kept) < trials:
            return
        at = int(kept[-1]) + 1
        best, now = sample.choose(kept)
        yield int(drawn[kept[best]])
