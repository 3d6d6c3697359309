"""Leave-one-fold-out benchmarks: methods × calibrators × clusters × features × attributes."""

from faircal.evaluation.benchmark.experiments import EXPERIMENTS, Experiment, paper_settings
from faircal.evaluation.benchmark.populations import Moving, move
from faircal.evaluation.benchmark.run import run_benchmark
from faircal.evaluation.benchmark.settings import BenchmarkSettings, Sweep

__all__ = [
    "EXPERIMENTS",
    "BenchmarkSettings",
    "Experiment",
    "Moving",
    "Sweep",
    "move",
    "paper_settings",
    "run_benchmark",
]
