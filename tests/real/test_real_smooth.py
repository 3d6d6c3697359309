"""SmoothFairCal on real faces, where the data is there: the bars that it was built to clear.

The data is never part of this repository; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark

DATA = Path(__file__).parents[3] / "shared" / "data" / "lfw-mobilefacenet"
SETTINGS = BenchmarkSettings(
    methods=("baseline", "faircal", "smooth", "oracle"), attributes=("ethnicity+gender",)
)

KS_MEAN = "all", "", "ks_mean"
FPR_AAD = "all", "global_fpr=0.01", "fpr_aad"
AUROC = "global", "", "auroc"
TPR = "global", "fpr=0.01", "tpr"
STRICT_TPR = "global", "fpr=0.001", "tpr"
NLL = "global", "", "nll"


@pytest.fixture(scope="module")
def value(tmp_path_factory):
    """A function that gives a figure of a method, the mean of five folds."""
    if not DATA.is_dir():
        pytest.skip(f"no real data at {DATA}")
    rows = run_benchmark(faircal.load(DATA), tmp_path_factory.mktemp("lfw"), SETTINGS, jobs=1)
    found = {
        (row.method, row.group, row.condition, row.metric): row.value
        for row in rows
        if row.fold == "mean"
    }
    return lambda method, figure: found[method, *figure]


@pytest.mark.parametrize(("figure", "part"), [(KS_MEAN, 0.9), (FPR_AAD, 0.75)])
def test_most_of_what_knowing_the_groups_would_gain(value, figure, part):
    """From one map for all to a map for each group: how much of the way, without the groups."""
    baseline, smooth, oracle = (value(one, figure) for one in ("baseline", "smooth", "oracle"))
    assert oracle < baseline
    assert baseline - smooth >= part * (baseline - oracle)


@pytest.mark.parametrize("figure", [AUROC, TPR])
def test_no_less_accurate_than_clusters(value, figure):
    assert value("smooth", figure) >= value("faircal", figure)


def test_no_greater_loss_than_clusters(value):
    assert value("smooth", NLL) <= value("faircal", NLL)


def test_no_less_accurate_than_one_map_where_false_positives_are_few(value):
    assert value("smooth", STRICT_TPR) >= value("baseline", STRICT_TPR)
