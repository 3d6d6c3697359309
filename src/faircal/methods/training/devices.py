"""The device that a training or a scoring has, and its random numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_info

#: One training at a time on a GPU: recording a step allows no other work beside it.
_GPU = threading.Lock()


def new_generator(device: torch.device, seed: int) -> torch.Generator:
    """Return a source of random numbers; a seed of more than 63 bits is cut."""
    return torch.Generator(device).manual_seed(int(seed) % 2**63)


def describe(device: torch.device) -> str:
    """Return a device in words."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


@contextmanager
def working_on(device: torch.device) -> Iterator[None]:
    """Hold `device`: alone on a GPU; on the CPU with as many threads as BLAS may use."""
    if device.type == "cuda":
        with _GPU:
            yield
    else:
        with _THREADS:
            yield


class _Threads:
    """Sets PyTorch's number of threads, and puts it back when the last to need it has gone.

    The number is one for the whole process, so one of several trainings side by side must not
    change it under the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = self._number = 1

    def __enter__(self) -> None:
        limits = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        with self._lock:
            if not self._holders:
                self._before = torch.get_num_threads()
                self._number = min(limits, default=self._before)
            self._holders += 1
            torch.set_num_threads(self._number)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                torch.set_num_threads(self._before)


_THREADS = _Threads()
