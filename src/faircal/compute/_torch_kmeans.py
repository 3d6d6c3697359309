"""K-means on tensors: all starts side by side, with few waits for the device.

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

from faircal.compute._torch_recorded import Recorded
from faircal.compute.kmeans import Found

#: Points whose sum is of float32: enough blocks to keep a GPU busy, few enough to add up.
_BLOCK = 512
#: Distances at a time (256 MB).
_DISTANCES = 2**26
#: Iterations between two looks at what has come to its end.
_PATIENCE = 5
#: What a start has of its own, by the names in `_Lloyd`.
_STATE = ("centers", "labels", "travelled", "inertia", "n_iter", "hollow", "halted")


def kmeans(points: Tensor, first: Tensor, lots: Tensor, max_iter: int, shift: float) -> Found:
    """Return the best of R starts.

    Parameters
    ----------
    points : Tensor of shape (n, d), float32
    first : Tensor of shape (R,), int64
        The point that each start begins with.
    lots : Tensor of shape (R, K − 1, trials), float64
        Uniform random numbers, by which candidates for the other centres are drawn.
    max_iter, shift
        As in `faircal.compute.kmeans.kmeans`.
    """
    with torch.inference_mode(), _no_tf32():
        squares = _squares(points)
        chosen = _start(points, squares, first, lots)
        return _Lloyd(points, squares, points[chosen], max_iter, shift).run()


def nearest(vectors: Tensor, centers: Tensor) -> Tensor:
    """Return the number of the nearest of `centers` (K, d) for each of `vectors`, (n,), int32."""
    with torch.inference_mode(), _no_tf32():
        labels: Tensor = _halves(vectors, centers).argmin(1).int()
    return labels


def _squares(vectors: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=1)
    return norms.square_()


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


def _start(points: Tensor, squares: Tensor, first: Tensor, lots: Tensor) -> Tensor:
    """Choose points by greedy k-means++, the best of several draws each; shape (R, K)."""
    (n_starts, more), n = lots.shape[:2], len(points)
    # Chances are whole numbers that add up to less than 2^52: sums are exact in any order.
    most = squares.max().double().clamp_(min=1e-30)
    scale = 2.0**50 / (n * most)

    def to(rows: Tensor) -> Tensor:
        """Squared distance of every point to the points `rows`, shape (*rows.shape, n)."""
        flat = rows.flatten()
        part = torch.addmm(squares, points[flat], points.T, alpha=-2)
        part += squares[flat, None]
        return part.clamp_(min=0).view(*rows.shape, n)

    near = to(first).scatter_(1, first[:, None], 0)
    chosen = first[:, None].repeat(1, more + 1)
    at = torch.zeros(1, dtype=torch.int64, device=points.device)

    def step() -> None:
        cumulative = (near * scale).long().cumsum_(1)
        draws = (lots.index_select(1, at)[:, 0] * cumulative[:, -1:]).long()
        candidates = torch.searchsorted(cumulative, draws, right=True).clamp_(max=n - 1)
        distance = torch.minimum(to(candidates), near[:, None])
        best = distance.sum(2, dtype=torch.float64).argmin(1, keepdim=True)  # (R, 1)
        choice = candidates.gather(1, best)
        torch.gather(distance, 1, best[..., None].expand(n_starts, 1, n), out=near[:, None])
        near.scatter_(1, choice, 0)
        at.add_(1)
        chosen.index_copy_(1, at, choice)

    _recorded(step, points, n_starts * lots.shape[2]).take(more)
    return chosen


def _recorded(step: Callable[[], None], points: Tensor, width: int) -> Recorded:
    """Record a step that works out `width` distances a point, where it takes but a moment."""
    small = len(points) * width <= _DISTANCES
    return Recorded(step, points.device if small else torch.device("cpu"))


class _Lloyd:
    """Points that go to the nearest centre, and centres that go to the mean of their points."""

    def __init__(
        self, points: Tensor, squares: Tensor, centers: Tensor, max_iter: int, shift: float
    ) -> None:
        n_starts, n, device = len(centers), len(points), points.device
        self.squares, self.centers = squares, centers
        self.max_iter, self.shift = max_iter, shift
        # Zeros after the last point make the last block a whole one and change no sum.
        self.padded = points.new_zeros((-(-n // _BLOCK) * _BLOCK, points.shape[1]))
        self.padded[:n] = points
        self.labels = torch.full((n_starts, n), -1, device=device)
        self.travelled = torch.full((n_starts,), torch.inf, dtype=torch.float64, device=device)
        self.inertia = self.travelled.clone()
        self.n_iter = torch.zeros(n_starts, dtype=torch.int64, device=device)
        # A start is hollow while it waits for empty clusters to be filled, halted then or for good.
        self.hollow = torch.zeros(n_starts, dtype=torch.bool, device=device)
        self.halted = self.hollow.clone()

    def run(self) -> Found:
        """Iterate until no start has anything left to do; return the best."""
        found: list[tuple[float, int, int, Tensor]] = []
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
            ended = zip(halted, self.inertia.tolist(), numbers, self.n_iter.tolist(), strict=True)
            found += [(*one, c) for (end, *one), c in zip(ended, self.centers, strict=True) if end]
            numbers = [number for number, end in zip(numbers, halted, strict=True) if not end]
            self._keep(~self.halted)
            recorded = self._record()
        inertia, _, n_iter, centers = min(found, key=lambda one: one[:2])
        return Found(centers.cpu().numpy(), inertia, n_iter)

    def _record(self) -> Recorded:
        # Not kept here: it holds us, and memory should not wait for the garbage collector.
        return _recorded(self._iterate, self.padded, self.centers.shape[0] * self.centers.shape[1])

    def _keep(self, which: Tensor) -> None:
        """Go on with the starts `which`, a mask of shape (R,)."""
        for name in _STATE:
            setattr(self, name, getattr(self, name)[which])

    def _iterate(self) -> None:
        """Move the centres of each start once, unless it has halted."""
        labels, near, sums = self._pass(self.centers)
        counts = _counts(labels, self.centers.shape[1])
        torch.sum(near, 1, dtype=torch.float64, out=self.inertia)
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

    def _pass(self, centers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return labels (R, n), squared distances (R, n) and sums (R, K, d) in float64."""
        n_starts, n_clusters, d = centers.shape
        n, flat = len(self.squares), centers.reshape(-1, d)
        clusters = torch.arange(n_clusters, device=centers.device)[:, None]
        sums = torch.zeros(flat.shape, dtype=torch.float64, device=centers.device)
        step = max(1, _DISTANCES // (len(flat) * _BLOCK)) * _BLOCK
        labels, halves = [], []
        for start in range(0, len(self.padded), step):
            points = self.padded[start : start + step]
            half, label = _halves(points, flat).view(-1, n_starts, n_clusters).min(2)
            blocks = label.view(-1, _BLOCK, n_starts).mT.contiguous()
            one_hot = (blocks[:, :, None] == clusters).float().view(-1, len(flat), _BLOCK)
            sums += torch.bmm(one_hot, points.view(-1, _BLOCK, d)).sum(0, dtype=torch.float64)
            labels.append(label)
            halves.append(half)
        near = torch.cat(halves)[:n].T.mul(2).add_(self.squares).clamp_(min=0)
        return torch.cat(labels)[:n].T, near, sums.view(centers.shape)

    def _fill_empty(self, at: int) -> None:
        """Give each empty cluster of a start the point farthest from its centre; go on."""
        labels, near, sums = self._pass(self.centers[at : at + 1])
        counts = _counts(labels, self.centers.shape[1])
        label, count = labels[0].cpu().numpy(), counts[0].cpu().numpy()
        farthest = iter(np.argsort(-near[0].cpu().numpy(), kind="stable"))
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
