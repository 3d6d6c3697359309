"""K-means on the processor: greedy k-means++, then Lloyd's iterations, in blocks on all cores.

What makes it fast, besides matrix products on cache-sized blocks:

- Centres are drawn by k-means++ exactly, but many at a time: candidates come from the distribution
  of a moment ago and are thinned by rejection, so that one large product replaces many thin ones.
- Bounds on distances (Elkan's) tell which points can have changed their cluster; only those are
  multiplied again, gathered into blocks.
- A cluster's sum is changed by the points that come and go; it is not summed anew.

Starting centres are chosen here for a device, too: random numbers are drawn and choices made here,
distances are worked out by `CandidatePoints`, where the points are. So one seed starts with the
same points anywhere, as far as rounding allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from faircal._base.jobs import Progress, silent
from faircal.compute.kernels import doubtful, settle
from faircal.compute.threads import each, one_blas_thread

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Points, at least, among which starting centres are chosen.
_SAMPLE, _SAMPLE_A_CLUSTER = 8192, 40
#: Most distances to candidates at a time (128 MB).
_MOST_DRAWN = 2**25
#: Points a block, where nothing depends on their number.
_BLOCK = 1024
#: Points times centres of a block: they stay in the cache.
_BLOCK_PRODUCTS = 2**16
#: Points that change their clusters and are copied at a time.
_CHANGED = 4096
#: Most bounds (512 MB); beyond, there are none, and every point is multiplied in each iteration.
_MOST_KEPT = 2**27


class Clustering(NamedTuple):
    """A fitted K-means; `Engine.assign` finds the nearest of its centres.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, d), float32
    inertia : float
        The objective: sum of squared distances to the nearest centre.
    n_iter : int
        Lloyd's iterations of the best start.
    """

    centers: Float32
    inertia: float
    n_iter: int


def kmeans(
    points: Float32,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
    max_iter: int,
    shift: float,
    progress: Progress = silent,
) -> Clustering:
    """Return the best of `n_init` starts.

    Parameters
    ----------
    points : ndarray of shape (n, d), float32
        Near the origin: far from it float32 products would drown the distances.
    n_clusters, n_init, max_iter : int
    rng : numpy.random.Generator
    shift : float
        An iteration that moves the centres by no more, summed squares, is the last.
    progress : callable
        Called as each start begins.
    """
    squares = np.einsum("ij,ij->i", points, points)
    best: Clustering | None = None
    with one_blas_thread():
        for start in range(n_init):
            progress("K-means", start, n_init, f"K = {n_clusters}")
            chosen = starting_rows(
                len(points),
                n_clusters,
                rng,
                lambda rows: _CandidatesInMemory(points[rows], squares[rows]),
            )
            result = _Lloyd(points, squares, points[chosen]).run(max_iter, shift)
            if best is None or result.inertia < best.inertia:
                best = result
    if best is None:
        raise ValueError("n_init: expected 1 or more")
    return best


# ------------------------------------------------------------------- starting


class StartingSizes(NamedTuple):
    """How much is done to choose starting centres."""

    points: int  # to choose among
    trials: int  # candidates for each centre
    steps: int  # centres, at most, that candidates are drawn for at a time
    candidates: int  # at most at a time


def sizes(n: int, n_clusters: int) -> StartingSizes:
    """Return how much is done to choose `n_clusters` of `n` points.

    Examples
    --------
    >>> sizes(16_000, 100)
    StartingSizes(points=8192, trials=6, steps=100, candidates=675)
    """
    points = min(n, max(_SAMPLE, _SAMPLE_A_CLUSTER * n_clusters))
    # As scikit-learn tries: 2 + log K candidates a centre (Arthur and Vassilvitskii, 2007).
    trials = 2 + int(np.log(n_clusters))
    steps = max(1, min(n_clusters, _MOST_DRAWN // (points * trials)))
    # An eighth more than needed: some are refused.
    return StartingSizes(points, trials, steps, steps * trials * 9 // 8)


class CandidatePoints(Protocol):
    """Points to choose among, and how far each is from the nearest that was chosen."""

    @property
    def nearest(self) -> Float32:
        """The squared distance of each point to the nearest chosen, shape (n,)."""

    def measure(self, rows: Rows) -> None:
        """Take the points `rows`, shape (c,), as candidates: measure how far all are from them."""

    def choose(self, which: Rows) -> tuple[int, Float32]:
        """Choose of the candidates `which`, shape (trials,), the one that leaves the least sum.

        Returns its place in `which`, and how far all candidates now are from the nearest chosen,
        squared, shape (c,).
        """


def starting_rows(
    n: int,
    n_clusters: int,
    rng: np.random.Generator,
    sample_of: Callable[[Rows | slice], CandidatePoints],
) -> Rows:
    """Choose which of `n` points to start with: the best of 2 + log K draws each; shape (K,).

    Among very many points, those of a sample: it has next to no effect on where K-means ends. A
    point drawn with a chance in proportion to its squared distance D² of before, and kept with a
    chance of now / before, is drawn in proportion to its D² of now; so candidates for several
    centres are drawn, and measured, at a time.
    """
    size, trials, most, _ = sizes(n, n_clusters)
    subset = np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))
    sample = sample_of(slice(None) if size == n else subset)
    chosen = [int(rng.integers(size))]
    sample.measure(np.array(chosen))
    sample.choose(np.zeros(trials, dtype=np.intp))
    steps = 8  # how many centres to draw candidates for
    while len(chosen) < n_clusters:
        steps = min(steps, n_clusters - len(chosen), most)
        nearest = sample.nearest
        cumulative = np.cumsum(nearest, dtype=np.float64)
        if not cumulative[-1] > 0:  # every point is chosen already, or equal to one that is
            chosen.append(int(rng.integers(size)))
            continue
        count = steps * trials + (steps - 1) * trials // 8  # some more than needed
        # Inverse transform sampling: a chance in proportion to D².
        drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
        drawn = np.minimum(drawn, size - 1)
        coins = rng.random(count)
        sample.measure(drawn)
        before = now = nearest[drawn]
        at, goal = 0, len(chosen) + steps
        while len(chosen) < goal:
            kept = at + np.flatnonzero(coins[at:] * before[at:] < now[at:])[:trials]
            if len(kept) < trials:
                break
            at = int(kept[-1]) + 1
            best, now = sample.choose(kept)
            chosen.append(int(drawn[kept[best]]))
        # Many refused: the distribution had moved on; draw fewer at a time.
        steps = steps * 2 if len(chosen) == goal else max(1, len(chosen) - goal + steps)
    return subset[chosen]


class _CandidatesInMemory:
    """Points to choose starting centres among; see `faircal.compute.kmeans`."""

    def __init__(self, points: Float32, squares: Float32) -> None:
        self.points, self.squares = points, squares
        self.nearest = np.full(len(points), np.inf, dtype=np.float32)

    def measure(self, rows: NDArray[np.intp]) -> None:
        to = self.points[rows]
        self.rows, self.away = rows, np.empty((len(rows), len(self.points)), dtype=np.float32)

        def work(block: slice) -> None:
            part = to @ self.points[block].T
            # ‖x − y‖² = ‖x‖² − 2 x·y + ‖y‖²: one matrix product in place of n differences.
            part *= -2
            part += self.squares[rows, None]
            part += self.squares[block]
            np.maximum(part, 0, out=self.away[:, block])

        each(work, len(self.points), _BLOCK)

    def choose(self, which: NDArray[np.intp]) -> tuple[int, Float32]:
        left = np.minimum(self.away[which], self.nearest)
        best = int(left.sum(axis=1).argmin())
        self.nearest = left[best]
        self.nearest[self.rows[which[best]]] = 0
        return best, self.nearest[self.rows]


# --------------------------------------------------------------------- moving


def sums_of(
    points: NDArray[Any],
    labels: NDArray[np.integer],
    n_labels: int,
    rows: NDArray[np.integer] | None = None,
) -> Float64:
    """Sum the points of each label, such as a cluster or a person, in float64: (n_labels, d).

    `labels` are of `rows`, of all points by default.
    """
    rows = np.arange(len(labels)) if rows is None else rows
    belongs = csr_array((np.ones(len(labels)), (labels, rows)), shape=(n_labels, len(points)))
    return np.asarray(belongs @ points.astype(np.float64, copy=False))


class _Lloyd:
    """Points that go to the nearest centre, and centres that go to the mean of their points.

    Kept for each point: `upper`, at least its distance to its own centre; `lower`, at most its
    distance to each other centre; and `second`, at most the least of those. As a centre moves by
    δ, distances change by no more than δ. Where `second` stays above `upper` the point stays where
    it is, and no product is needed. So that `lower` need not be touched in every iteration, it is
    stored with all that the centre had travelled until then.
    """

    def __init__(self, points: Float32, squares: Float32, centers: Float32) -> None:
        n, n_clusters = len(points), len(centers)
        self.points, self.squares, self.centers = points, squares, centers
        self.labels = np.zeros(n, dtype=np.int32)
        self.upper = np.empty(n, dtype=np.float32)
        self.second = np.empty(n, dtype=np.float32)
        kept = n_clusters > 1 and n * n_clusters <= _MOST_KEPT
        self.lower = np.empty((n, n_clusters), dtype=np.float32) if kept else None
        self.everyone = np.arange(n)
        self.travel = np.zeros(n_clusters, dtype=np.float32)
        self.block = max(256, min(2048, _BLOCK_PRODUCTS // n_clusters))
        self.reach = float(np.sqrt(squares.max()))
        self.sums = np.zeros(centers.shape)

    def run(self, max_iter: int, shift: float) -> Clustering:
        """Iterate until no point changes its cluster, or next to nothing moves."""
        n_clusters = len(self.centers)
        self._look_at(self.everyone)
        # Sums of a block take no more room than its points.
        for part in each(
            lambda block: sums_of(self.points[block], self.labels[block], n_clusters),
            len(self.points),
            max(_BLOCK, 2 * n_clusters),
        ):
            self.sums += part
        moved, iteration = np.inf, 1
        while moved > shift and iteration < max_iter:
            counts = np.bincount(self.labels, minlength=n_clusters)
            if not counts.all():
                self._fill_empty(counts)
            # Lloyd: centres go to the means. Sums are float64: who leaves leaves nothing behind,
            # and points may come and go for ever.
            new = (self.sums / counts[:, None]).astype(np.float32)
            way = new - self.centers
            drift = np.sqrt(np.einsum("ij,ij->i", way, way))
            moved = float(np.square(drift, dtype=np.float64).sum())
            self.centers, before = new, self.labels.copy()
            self._look_at(self._doubtful(drift))
            iteration += 1
            changed = np.flatnonzero(self.labels != before)
            if not len(changed):
                break
            for start in range(0, len(changed), _CHANGED):
                rows = changed[start : start + _CHANGED]
                # A column a point: 1 in the row of the cluster it came to, −1 in that it left.
                signs = np.repeat([1.0, -1.0], len(rows))
                clusters = np.concatenate([self.labels[rows], before[rows]])
                places = np.tile(np.arange(len(rows)), 2)
                change = csr_array((signs, (clusters, places)), shape=(n_clusters, len(rows)))
                self.sums += change @ self.points[rows].astype(np.float64)
        self._measure()
        inertia = float(np.square(self.upper, dtype=np.float64).sum())
        return Clustering(self.centers, inertia, iteration)

    def _doubtful(self, drift: Float32) -> NDArray[np.intp]:
        """Move the bounds along with the centres; return the points that they leave open."""
        lower = self.lower
        if lower is None:
            return self.everyone
        self.travel += drift
        # What float32 may take from a bound, and more: a needless product does no harm.
        slack = 1e-5 * (self.reach + float(self.travel.max()))
        first, most = np.argsort(drift)[-1], np.full_like(drift, drift.max())
        most[first] = np.delete(drift, first).max()  # of the other centres
        self.upper += drift[self.labels]
        self.second -= most[self.labels]
        rows = np.flatnonzero(self.second < self.upper + slack)
        squares = np.einsum("ij,ij->i", self.centers, self.centers)
        still = np.empty(len(rows), dtype=bool)

        def work(block: slice) -> None:
            still[block] = doubtful(
                rows[block],
                self.points,
                self.squares,
                self.centers,
                squares,
                self.travel,
                slack,
                self.labels,
                self.upper,
                self.second,
                lower,
            )

        each(work, len(rows), _BLOCK)
        return np.asarray(rows[still])

    def _look_at(self, rows: NDArray[np.intp]) -> None:
        """Find the nearest centres of the points `rows`, and their bounds."""
        columns = np.ascontiguousarray(self.centers.T)
        squares = np.einsum("ij,ij->i", self.centers, self.centers)
        everyone, lower = len(rows) == len(self.points), self.lower

        def work(block: slice) -> None:
            products = self.points[block if everyone else rows[block]] @ columns
            if lower is None:
                products -= squares / 2
                labels = self.labels[block] = products.argmax(axis=1)
                nearest = self.squares[block] - 2 * products[np.arange(len(labels)), labels]
                self.upper[block] = np.sqrt(np.maximum(nearest, 0))
                return
            settle(
                rows[block],
                products,
                self.squares,
                squares,
                self.travel,
                self.labels,
                self.upper,
                self.second,
                lower,
            )

        each(work, len(rows), self.block)

    def _measure(self) -> None:
        """Make `upper` what it bounds: the distance of each point to its own centre."""

        def work(block: slice) -> None:
            away = self.points[block] - self.centers[self.labels[block]]
            self.upper[block] = np.sqrt(np.einsum("ij,ij->i", away, away))

        each(work, len(self.points), _BLOCK)

    def _fill_empty(self, counts: NDArray[np.intp]) -> None:
        """Give each empty cluster the point that is farthest from its centre, in place."""
        self._measure()
        farthest = iter(np.argsort(-self.upper, kind="stable"))
        for cluster in np.flatnonzero(counts == 0):
            row = next(row for row in farthest if counts[self.labels[row]] > 1)
            old = self.labels[row]
            self.sums[old] -= self.points[row]
            self.sums[cluster] = self.points[row]
            counts[old] -= 1
            counts[cluster] = 1
            self.labels[row] = cluster
            self.second[row] = -np.inf  # so that it is looked at again
            if self.lower is not None:
                self.lower[row] = -np.inf
