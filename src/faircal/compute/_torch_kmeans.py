"""K-means on tensors: starts are drawn in turn and go on side by side.

Sums are products with matrices of zeros and ones, in float32 within a block of points and float64
between blocks: no order of arrival can change them. Iterations are asked for several at a time; a
start that has come to its end within them stands still. Iterations are recorded and replayed:
at BFW size a GPU would wait for the processor otherwise most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from faircal._base.jobs import Progress, silent
from faircal.compute._torch_kernels import Recorded
from faircal.compute.kmeans import Clustering, Float32, Rows, sizes, starting_rows

#: Points whose sum is of float32: enough blocks to keep a GPU busy, few enough to add up.
_BLOCK = 512
#: Distances at a time (256 MB).
_DISTANCES = 2**26
#: Labels at a time (512 MB): starts beyond wait for their turn.
_LABELS = 2**26
#: By how much, relatively, the objective of the same clusters may differ.
_ROUNDING = 1e-7
#: Iterations between two looks at what has come to its end.
_PATIENCE = 5
#: What a start has of its own, by the names in `_LloydOnDevice`.
_STATE = ("centers", "labels", "travelled", "n_iter", "hollow", "halted")


def kmeans(
    points: Tensor,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.Generator,
    max_iter: int,
    shift: float,
    progress: Progress = silent,
) -> Clustering:
    """Return the best of `n_init` starts; as `faircal.compute.kmeans.kmeans`, up to rounding."""
    results: list[Clustering] = []
    at_once = max(1, _LABELS // len(points))
    with torch.inference_mode(), _no_tf32():
        sample = _CandidatesOnDevice(points, _squares(points), n_clusters)
        for first in range(0, n_init, at_once):
            chosen = []
            for start in range(first, min(first + at_once, n_init)):
                progress("K-means", start, n_init, f"K = {n_clusters}")
                chosen.append(starting_rows(len(points), n_clusters, rng, sample.among))
            rows = torch.from_numpy(np.stack(chosen)).to(points.device)
            results += _LloydOnDevice(points, points[rows], max_iter, shift).run()
    # Starts that end in the same clusters differ by rounding: as on the processor, the first.
    least = min(one.inertia for one in results)
    return next(one for one in results if one.inertia <= least * (1 + _ROUNDING))


def nearest(vectors: Tensor, centers: Tensor) -> Tensor:
    """Return the number of the nearest of `centers` (K, d) for each of `vectors`, (n,), int32."""
    with torch.inference_mode(), _no_tf32():
        labels: Tensor = _halves(vectors, centers).argmin(1).int()
    return labels


def _squares(vectors: Tensor) -> Tensor:
    # By way of norms there would be no squares to store, but those of whole numbers not exact.
    parts = torch.split(vectors, max(1, _DISTANCES // vectors.shape[1]))
    return torch.cat([part.square().sum(1) for part in parts])


def _halves(vectors: Tensor, centers: Tensor) -> Tensor:
    """Return ½|c|² − x·c: the squared distance, halved, less ½|x|², shape (n, K)."""
    return torch.addmm(_squares(centers) / 2, vectors, -centers.T)


@contextmanager
def _no_tf32() -> Iterator[None]:
    """Hold float32 products at float32, should somebody have allowed less."""
    before = torch.get_float32_matmul_precision()
    if before != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if before != "highest":
            torch.set_float32_matmul_precision(before)


class _CandidatesOnDevice:
    """Points to choose starting centres among; see `faircal.compute.kmeans`.

    One serves all starts, so that a choice is recorded once.
    """

    def __init__(self, points: Tensor, squares: Tensor, n_clusters: int) -> None:
        n, trials, _, most = sizes(len(points), n_clusters)
        self.all, self.points, self.squares = (points, squares), points, squares
        self.count, self.near, self.away = 0, points.new_empty(n), points.new_empty((most, n))
        self.rows = torch.zeros(most, dtype=torch.int64, device=points.device)
        self.which, self.outcome = self.rows.new_empty(trials), points.new_empty(1 + most)
        step = _choice(self.away, self.near, self.rows, self.which, self.outcome)
        self.recorded = _recorded(step, self.near, trials)

    def among(self, rows: Rows | slice) -> _CandidatesOnDevice:
        """Begin a start, among the points `rows`."""
        chosen = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.rows.device)
        self.points, self.squares = (of[chosen] for of in self.all)
        self.near.fill_(torch.inf)
        return self

    @property
    def nearest(self) -> Float32:
        return np.asarray(self.near.cpu().numpy())

    def measure(self, rows: Rows) -> None:
        self.count = len(rows)
        row, away = self.rows[: self.count], self.away[: self.count]
        row.copy_(torch.from_numpy(rows))
        norms, to = self.squares[row, None], self.points[row]
        torch.addmm(norms, to, self.points.T, alpha=-2, out=away)
        # Whatever rounding leaves of it, a point's distance to itself is 0.
        away.add_(self.squares).clamp_(min=0).scatter_(1, row[:, None], 0)

    def choose(self, which: Rows) -> tuple[int, Float32]:
        self.which.copy_(torch.from_numpy(which))
        self.recorded.take(1)
        outcome = self.outcome.cpu().numpy()
        return int(outcome[0]), outcome[1 : 1 + self.count]


def _choice(
    away: Tensor, near: Tensor, rows: Tensor, which: Tensor, outcome: Tensor
) -> Callable[[], None]:
    """Return the step that chooses among the candidates `which`.

    It changes `near`, and leaves in `outcome` what the host has to know: one copy, one wait.
    """

    def step() -> None:
        left = torch.minimum(away[which], near)
        best = left.sum(1, dtype=torch.float64).argmin(0, keepdim=True)
        near.copy_(left[best][0])
        outcome[:1].copy_(best)
        outcome[1:].copy_(near[rows])

    return step


def _recorded(step: Callable[[], None], points: Tensor, width: int) -> Recorded:
    """Record a step that works out `width` distances a point, where it takes but a moment."""
    small = len(points) * width <= _DISTANCES
    return Recorded(step, points.device if small else torch.device("cpu"))


class _LloydOnDevice:
    """Points that go to the nearest centre, and centres that go to the mean of their points."""

    def __init__(self, points: Tensor, centers: Tensor, max_iter: int, shift: float) -> None:
        n_starts, n, device = len(centers), len(points), points.device
        self.centers, self.max_iter, self.shift = centers, max_iter, shift
        # Zeros after the last point make the last block a whole one and change no sum.
        self.padded = points.new_zeros((-(-n // _BLOCK) * _BLOCK, points.shape[1]))
        self.padded[:n] = points
        self.labels = torch.full((n_starts, n), -1, device=device)
        self.travelled = torch.full((n_starts,), torch.inf, dtype=torch.float64, device=device)
        self.n_iter = torch.zeros(n_starts, dtype=torch.int64, device=device)
        # A start is hollow while it waits for empty clusters to be filled, halted then or for good.
        self.hollow = torch.zeros(n_starts, dtype=torch.bool, device=device)
        self.halted = self.hollow.clone()

    def run(self) -> list[Clustering]:
        """Iterate until no start has anything left to do; return what each came to."""
        results: dict[int, Clustering] = {}
        numbers, recorded = list(range(len(self.centers))), self._record()
        while numbers:
            recorded.take(_PATIENCE)
            hollow, halted = torch.stack((self.hollow, self.halted)).tolist()
            for at in np.flatnonzero(hollow).tolist():
                self._fill_empty(at)
                halted[at] = False
            # Those that have ended stand still beside the others until they are the greater part.
            if 2 * sum(halted) < len(halted):
                continue
            results |= {numbers[at]: self._result(at) for at in np.flatnonzero(halted).tolist()}
            numbers = [number for number, end in zip(numbers, halted, strict=True) if not end]
            self._keep(~self.halted)
            recorded = self._record()
        return [results[number] for number in sorted(results)]

    def _result(self, at: int) -> Clustering:
        """Return what a start that has ended came to."""
        inertia = self._distances_to_own(at).double().square_().sum()
        return Clustering(self.centers[at].cpu().numpy(), float(inertia), int(self.n_iter[at]))

    def _distances_to_own(self, at: int) -> Tensor:
        """Return the distance of each point of a start to its own centre, shape (n,)."""
        centers, step = self.centers[at], max(1, _DISTANCES // self.padded.shape[1])
        parts = zip(*(torch.split(of, step) for of in (self.padded, self.labels[at])), strict=False)
        norm = torch.linalg.vector_norm
        return torch.cat([norm(p[: len(k)] - centers[k], dim=1) for p, k in parts])

    def _record(self) -> Recorded:
        # Not kept here: it holds us, and memory should not wait for the garbage collector.
        return _recorded(self._iterate, self.padded, self.centers.shape[0] * self.centers.shape[1])

    def _keep(self, which: Tensor) -> None:
        """Go on with the starts `which`, a mask of shape (R,)."""
        for name in _STATE:
            setattr(self, name, getattr(self, name)[which])

    def _iterate(self) -> None:
        """Move the centres of each start once, unless it has halted."""
        labels, sums = self._pass(self.centers)
        counts = _counts(labels, self.centers.shape[1])
        self.n_iter += ~self.halted
        finished = (labels == self.labels).all(1)
        finished |= self.travelled <= self.shift
        finished |= self.n_iter >= self.max_iter
        self.hollow |= (counts == 0).any(1) & ~(finished | self.halted)
        self.halted |= finished
        self.halted |= self.hollow
        self.labels.copy_(labels)
        self._move(sums, counts, ~self.halted)

    def _move(self, sums: Tensor, counts: Tensor, which: Tensor) -> None:
        """Set the centres of the starts `which`, a mask of shape (R,), to the means."""
        new = (sums / counts[..., None]).float()
        travelled = (new - self.centers).square_().sum((1, 2), dtype=torch.float64)
        self.travelled.copy_(torch.where(which, travelled, self.travelled))
        self.centers.copy_(torch.where(which[:, None, None], new, self.centers))

    def _pass(self, centers: Tensor) -> tuple[Tensor, Tensor]:
        """Return labels (R, n) and sums (R, K, d) in float64."""
        n_starts, n_clusters, d = centers.shape
        n, flat = self.labels.shape[1], centers.reshape(-1, d)
        clusters = torch.arange(n_clusters, device=centers.device)[:, None]
        sums = torch.zeros(flat.shape, dtype=torch.float64, device=centers.device)
        step = max(1, _DISTANCES // (len(flat) * _BLOCK)) * _BLOCK
        labels = []
        for start in range(0, len(self.padded), step):
            points = self.padded[start : start + step]
            label = _halves(points, flat).view(-1, n_starts, n_clusters).argmin(2)
            blocks = label.view(-1, _BLOCK, n_starts).mT.contiguous()
            one_hot = (blocks[:, :, None] == clusters).float().view(-1, len(flat), _BLOCK)
            sums += torch.bmm(one_hot, points.view(-1, _BLOCK, d)).sum(0, dtype=torch.float64)
            labels.append(label)
        return torch.cat(labels)[:n].T, sums.view(centers.shape)

    def _fill_empty(self, at: int) -> None:
        """Give each empty cluster of a start the point farthest from its centre; go on."""
        labels, sums = self._pass(self.centers[at : at + 1])
        counts = _counts(labels, self.centers.shape[1])
        label, count = labels[0].cpu().numpy(), counts[0].cpu().numpy()
        farthest = iter(np.argsort(-self._distances_to_own(at).cpu().numpy(), kind="stable"))
        for cluster in np.flatnonzero(count == 0):
            row = next(row for row in farthest if count[label[row]] > 1)
            point, old = self.padded[row].double(), label[row]
            sums[0, old] -= point
            sums[0, cluster] = point
            count[old] -= 1
            count[cluster] = 1
            label[row] = cluster
        self.labels[at] = torch.from_numpy(label).to(labels.device)
        which = torch.arange(len(self.centers), device=labels.device) == at
        self._move(sums, torch.from_numpy(count).to(labels.device)[None], which)
        self.hollow[at] = self.halted[at] = False


def _counts(labels: Tensor, n_clusters: int) -> Tensor:
    """Return the number of points in each cluster of each start, shape (R, K)."""
    counts = labels.new_zeros((len(labels), n_clusters))
    return counts.scatter_add_(1, labels, labels.new_ones(()).expand(labels.shape))
