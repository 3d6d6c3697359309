"""Scored pairs whose figures can be worked out from the raw scores, and stores of small runs."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.report.store import ResultsFolder


class Scored:
    """Raw scores of pairs in groups, and the curves of their audit.

    Scores lie on edges of the histograms, so histograms lose nothing.
    """

    def __init__(self, names, n=1000, seed=0):
        rng = np.random.default_rng(seed)
        self.groups = np.array([names[i % len(names)] for i in range(n)])
        self.genuine = rng.random(n) < 0.5
        shift = np.array([0.05 * names.index(name) for name in self.groups])
        raw = rng.normal(0.3 + 0.35 * self.genuine + shift, 0.15)
        self.score = np.round(np.clip(raw, 0, 1), 2)
        self.genuine = self.genuine.copy()

    def audit(self, **more):
        given = {"score": self.score, "genuine": self.genuine, "groups": self.groups.tolist()}
        return faircal.audit(**{**given, **more})

    def of(self, group, genuine):
        return self.score[(self.groups == group) & (self.genuine == genuine)]


@pytest.fixture
def scored():
    return Scored


@pytest.fixture
def four():
    return Scored(["A", "B", "C", "D"])


def _run(folder, data, **settings):
    run_benchmark(data, folder, BenchmarkSettings(**settings), jobs=1)
    return ResultsFolder.read(folder)


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A benchmark that sweeps clusters and calibrators, with members of clusters."""
    sizes = {"people": 280, "images": 1400, "pairs": 3000, "dimension": 16}
    data = faircal.simulate("small", seed=0, **sizes)
    return _run(
        tmp_path_factory.mktemp("figures") / "run",
        data,
        methods=("baseline", "fsn", "faircal", "oracle"),
        clusters=(4, 2),
        calibrators=("beta", "isotonic"),
        rates=(0.001, 0.01, 0.1),
        also_by=("ethnicity",),
        members=6,
    )


@pytest.fixture
def texts():
    """All that is written on a Matplotlib figure."""
    pytest.importorskip("matplotlib")
    from matplotlib.text import Text

    return lambda canvas: [text.get_text() for text in canvas.findobj(Text)]
