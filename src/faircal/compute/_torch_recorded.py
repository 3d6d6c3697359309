"""Steps that a GPU records once and replays: many small kernels without a wait for each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch

#: PyTorch allows one recording at a time in a process, and all use the same stream.
_RECORDING = threading.Lock()


class Recorded:
    """A step that is taken many times over the same tensors.

    Parameters
    ----------
    step : callable
        Changes tensors that it holds, in place; reads nothing of the host's that changes, and
        waits for nothing.
    device : torch.device
        A step on the CPU is taken as it is.
    """

    def __init__(self, step: Callable[[], None], device: torch.device) -> None:
        self._step, self._device = step, device
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
            room, here = _room(self._device), torch.cuda.current_stream()
            room.stream.wait_stream(here)
            with torch.cuda.stream(room.stream):
                self._step()
                graph = _record(self._step, room.anchor.pool())
            here.wait_stream(room.stream)
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


def _record(step: Callable[[], object], pool: Any) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    # torch.cuda.graph() would also empty the allocator, which takes longer than all the rest.
    graph.capture_begin(pool, capture_error_mode="thread_local")
    try:
        step()
    finally:
        graph.capture_end()
    return graph
