"""Leave-one-fold-out benchmarks: methods × calibrators × clusters × features × attributes."""

from faircal.benchmark.run import run_benchmark
from faircal.benchmark.settings import Settings, Sweep

__all__ = ["Settings", "Sweep", "run_benchmark"]
