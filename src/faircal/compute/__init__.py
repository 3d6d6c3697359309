"""Where the heavy work is done: K-means, scores of pairs, calibration; on the processor or a GPU.

`Engine` is what both can do. The processor's inner loops are in `kernels`, its threads in
`threads`; `device` is PyTorch's.
"""

from __future__ import annotations

from functools import cache

from faircal.compute.engine import CPU, Engine
from faircal.compute.kmeans import Clustering

__all__ = ["CPU", "Clustering", "Engine", "engine"]


@cache
def engine(device: str) -> Engine:
    """Return what works on `device`: ``cpu``, ``cuda``, ``cuda:1``."""
    if device == "cpu":
        return CPU
    from faircal.compute.device import TorchEngine

    return TorchEngine(device)
