"""One small benchmark that reports are made of, for all who only read it."""

from __future__ import annotations

import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.report.store import ResultsFolder


@pytest.fixture(scope="session")
def benchmarked(tmp_path_factory):
    """A benchmark that sweeps clusters and calibrators, with members of clusters."""
    folder = tmp_path_factory.mktemp("benchmark") / "run"
    sizes = {"people": 280, "images": 1400, "pairs": 3000, "dimension": 16}
    settings = BenchmarkSettings(
        methods=("baseline", "fsn", "faircal", "oracle"),
        clusters=(4, 2),
        calibrators=("beta", "isotonic"),
        rates=(0.001, 0.01, 0.1),
        also_by=("ethnicity",),
        members=6,
    )
    run_benchmark(faircal.simulate("small", seed=0, **sizes), folder, settings, jobs=1)
    return ResultsFolder.read(folder)
