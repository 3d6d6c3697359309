"""Leave-one-fold-out benchmarks: methods × calibrators × clusters × features × attributes."""

from faircal.benchmark.experiments import EXPERIMENTS, Experiment, paper_settings
from faircal.benchmark.populations import Moving, move
from faircal.benchmark.run import run_benchmark
from faircal.benchmark.settings import Settings, Sweep

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Moving",
    "Settings",
    "Sweep",
    "move",
    "paper_settings",
    "run_benchmark",
]
