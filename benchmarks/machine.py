"""The machine's own limits, measured."""

from __future__ import annotations

import time

import numpy as np


def copy_bandwidth() -> float:
    """Bytes read per second by a plain copy of 256 MB, one thread."""
    source = np.ones(2**26, dtype=np.float32)
    target = np.empty_like(source)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return source.nbytes / best


def sgemm_rate() -> float:
    """Floating-point operations per second of a float32 matrix product, all threads."""
    a = np.ones((2048, 2048), dtype=np.float32)
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * 2048**3 / best
