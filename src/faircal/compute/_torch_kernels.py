"""Inner products of pairs, sums of many logistic regressions, and recorded steps, on tensors.

Products are one fused kernel on a GPU, written in Triton, which comes with PyTorch for GPUs; else
rows are gathered first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from subprocess import CalledProcessError
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Float64 = NDArray[np.float64]

#: PyTorch allows one recording at a time in a process, and all use the same stream.
_RECORDING = threading.Lock()

#: Numbers that are gathered at a time where there is no fused kernel.
_GATHERED = 2**24
#: Columns of a row that are multiplied at a time, and products that one program holds: the best
#: of all that were tried on an H200, for rows of 128 to 2048 numbers of either kind.
_COLUMNS = 128
_PRODUCTS = 1024
_WARPS = 4

#: The kernel, compiled for what it is called with; None without Triton.
_fused_kernel: Any = None

if find_spec("triton") is not None:
    triton: Any = import_module("triton")
    tl: Any = import_module("triton.language")
    constexpr: Any = tl.constexpr  # Triton looks for this word in annotations

    # What a kernel is written in looks like Python and has other types.
    @triton.jit  # type: ignore[untyped-decorator]
    def _fused_kernel(  # type: ignore[no-untyped-def]
        vectors, left, right, out, m, d, pairs: constexpr, columns: constexpr
    ):
        # One program works out `pairs` inner products, `columns` numbers of each row at a time.
        pair = tl.program_id(0) * pairs + tl.arange(0, pairs)
        valid = pair < m
        a = tl.load(left + pair, mask=valid, other=0).to(tl.int64) * d
        b = tl.load(right + pair, mask=valid, other=0).to(tl.int64) * d
        products = tl.zeros((pairs, columns), dtype=tl.float32)
        for start in range(0, d, columns):
            column = start + tl.arange(0, columns)
            inside = valid[:, None] & (column < d)[None, :]
            x = tl.load(vectors + a[:, None] + column[None, :], mask=inside, other=0.0)
            y = tl.load(vectors + b[:, None] + column[None, :], mask=inside, other=0.0)
            products += x.to(tl.float32) * y.to(tl.float32)
        tl.store(out + pair, tl.sum(products, axis=1), mask=valid)


def dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the inner products of rows `left` and `right` of `vectors`, shape (m,), float32.

    One kernel on a GPU: rows are read once and nothing is written but the result.

    Parameters
    ----------
    vectors : Tensor of shape (n, d), float16 or float32, contiguous
    left, right : Tensor of shape (m,), int32 or int64
        From 0 to n − 1; this is not checked.
    """
    if vectors.is_cuda and _has_fused(vectors.device):
        return _fused_dots(vectors, left, right)
    return gathered_dots(vectors, left, right)


def _fused_dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    m, d = len(left), vectors.shape[1]
    columns = min(_COLUMNS, triton.next_power_of_2(d))
    pairs = _PRODUCTS // columns
    out = torch.empty(m, dtype=torch.float32, device=vectors.device)
    if m:
        grid = (triton.cdiv(m, pairs),)
        with torch.cuda.device_of(vectors):  # type: ignore[no-untyped-call]
            _fused_kernel[grid](vectors, left, right, out, m, d, pairs, columns, num_warps=_WARPS)
    return out


def gathered_dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the same without a fused kernel: rows are copied together, then multiplied."""
    out = torch.empty(len(left), dtype=torch.float32, device=vectors.device)
    step = max(1, _GATHERED // vectors.shape[1])
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        a, b = (vectors.index_select(0, rows[part]).float() for rows in (left, right))
        out[part] = a.mul_(b).sum(1)
    return out


@cache
def _has_fused(device: torch.device) -> bool:
    """Say whether Triton is here and can compile; it needs a C compiler at run time."""
    if _fused_kernel is None:
        return False
    rows = torch.zeros(1, dtype=torch.int32, device=device)
    try:
        _fused_dots(torch.zeros((1, 1), device=device), rows, rows)
    except (RuntimeError, OSError, CalledProcessError):
        return False
    return True


#: Points that are added up on the device; sets are made of whole blocks.
_BLOCK = 512
#: Blocks at a time: 2 million points.
_BLOCKS = 2**12


class LogisticSums:
    """The log-loss of each set, its gradient and its Hessian, at parameters of its own.

    The points of a set are cut in blocks, of which the last is filled up with points of no mass.
    Blocks are added up on the device, sets from their blocks in order: the same bits every time.

    Parameters
    ----------
    features : Tensor of shape (m, n)
    target, mass : Tensor of shape (n,)
    starts : ndarray of shape (K + 1,)
        Set k has the points from ``starts[k]`` to ``starts[k + 1]``.
    """

    def __init__(
        self, features: Tensor, target: Tensor, mass: Tensor, starts: NDArray[np.integer]
    ) -> None:
        starts = np.asarray(starts, dtype=np.int64)
        self._device = features.device
        self._blocks = -(-np.diff(starts) // _BLOCK)  # of each set
        self._first = np.cumsum(self._blocks) - self._blocks
        owner = np.repeat(np.arange(len(self._blocks)), self._blocks)
        begins = starts[owner] + _BLOCK * (np.arange(len(owner)) - self._first[owner])
        at = self._on_device(begins)[:, None] + torch.arange(_BLOCK, device=self._device)
        inside = at < self._on_device(starts[1:][owner])[:, None]
        at.clamp_(max=max(0, len(target) - 1))
        # (blocks, m + 1, _BLOCK): the last of the rows is the intercept's
        self._rows = torch.stack([*(x[at] for x in features), inside.double()], dim=1)
        self._target = target[at]
        self._mass = mass[at] * inside

    def __call__(
        self, theta: Float64, which: NDArray[np.integer]
    ) -> tuple[Float64, Float64, Float64]:
        """Return loss (k,), gradient (k, m + 1) and Hessian (k, m + 1, m + 1) of k of the sets.

        Parameters
        ----------
        theta : ndarray of shape (k, m + 1)
            The intercept last.
        which : ndarray of shape (k,), integer
        """
        count, n = self._blocks[which], self._rows.shape[1]
        ends = np.cumsum(count)
        owner = np.repeat(np.arange(len(count)), count)
        blocks = np.arange(len(owner)) + (self._first[which] - ends + count)[owner]
        parts = [np.empty((0, 1 + n + n * n))]
        for start in range(0, len(blocks), _BLOCKS):
            part = slice(start, start + _BLOCKS)
            coefficients = self._on_device(np.asarray(theta, dtype=np.float64)[owner[part]])
            parts.append(self._sums(coefficients, self._on_device(blocks[part])).cpu().numpy())
        sums = np.zeros((len(count), 1 + n + n * n))
        filled = np.flatnonzero(count)
        if len(filled):
            sums[filled] = np.add.reduceat(np.concatenate(parts), (ends - count)[filled])
        loss, gradient, hessian = np.split(sums, [1, 1 + n], axis=1)
        return loss[:, 0], gradient, hessian.reshape(-1, n, n)

    def _sums(self, theta: Tensor, blocks: Tensor) -> Tensor:
        """Return loss, gradient and Hessian of `blocks`, side by side."""
        rows, target, mass = self._rows[blocks], self._target[blocks], self._mass[blocks]
        eta = torch.bmm(theta[:, None], rows)[:, 0]
        probability = torch.sigmoid(eta)
        # log(1 + e^η) − y·η, written so that nothing overflows.
        loss = eta.clamp(min=0) - target * eta + torch.log1p(torch.exp(-eta.abs()))
        gradient = torch.bmm(rows, (mass * (probability - target))[..., None])
        curvature = mass * probability * (1 - probability)
        # Σ m p (1 − p) x xᵀ
        hessian = torch.bmm(rows * curvature[:, None], rows.mT)
        total = (mass * loss).sum(1, keepdim=True)
        return torch.cat([total, gradient[..., 0], hessian.flatten(1)], dim=1)

    def _on_device(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._device)


# ------------------------------------------------------------------ recording


class Recorded:
    """A step that is taken many times over the same tensors.

    Parameters
    ----------
    step : callable
        Changes tensors that it holds, in place; reads nothing of the host's that changes, and
        waits for nothing.
    device : torch.device
        A step on the CPU is taken as it is.
    generator : torch.Generator, optional
        What the step draws random numbers with: a replay goes on with it.
    """

    def __init__(
        self,
        step: Callable[[], None],
        device: torch.device,
        generator: torch.Generator | None = None,
    ) -> None:
        self._step, self._device, self._generator = step, device, generator
        self._graph: torch.cuda.CUDAGraph | None = None

    def take(self, times: int) -> None:
        """Take the step `times` times."""
        if self._device.type != "cuda":
            for _ in range(times):
                self._step()
            return
        with torch.cuda.device(self._device):
            if self._graph is None and times:
                self._graph = self._record()
                times -= 1
            for _ in range(times):
                self._graph.replay()  # type: ignore[union-attr]

    def _record(self) -> torch.cuda.CUDAGraph:
        """Take the step once as it is, so that libraries set themselves up, and record it."""
        with _RECORDING:
            room, stream = _room(self._device), torch.cuda.current_stream()
            room.stream.wait_stream(stream)
            with torch.cuda.stream(room.stream):
                self._step()
                graph = _record(self._step, room.anchor.pool(), self._generator)
            stream.wait_stream(room.stream)
        return graph


class _Room(NamedTuple):
    """Where recordings are made; memory stays there as long as one is left, so one always is."""

    stream: torch.cuda.Stream
    anchor: torch.cuda.CUDAGraph


@cache
def _room(device: torch.device) -> _Room:
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        return _Room(stream, _record(lambda: torch.zeros(1, device=device).add_(1), None))


def _record(
    step: Callable[[], object], pool: Any, generator: torch.Generator | None = None
) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    if generator is not None:
        graph.register_generator_state(generator)
    # torch.cuda.graph() would also empty the allocator, which takes longer than all the rest.
    graph.capture_begin(pool, capture_error_mode="thread_local")
    try:
        step()
    finally:
        graph.capture_end()
    return graph
