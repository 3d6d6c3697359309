"""Real faces, where the data is there: the figures of an independent implementation.

The data is never part of this repository; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import faircal
from faircal.benchmark import Settings, run_benchmark

DATA = Path(__file__).parents[2] / "shared" / "data"
METHODS = ("baseline", "gst", "oracle")

# Percent, mean over five folds, eight ethnicity × gender groups, beta calibration. These three
# methods have no randomness.
COLUMNS = (
    ("global", "", "auroc"),
    ("global", "fpr=0.001", "tpr"),
    ("global", "fpr=0.01", "tpr"),
    ("global", "", "ks"),
    ("all", "", "ks_mean"),
    ("all", "", "ks_aad"),
    ("all", "", "ks_mad"),
    ("all", "", "ks_std"),
    ("all", "global_fpr=0.001", "fpr_aad"),
    ("all", "global_fpr=0.01", "fpr_aad"),
    ("all", "global_fpr=0.01", "fpr_mad"),
)
LFW = {
    "baseline": (99.290, 94.184, 96.929, 0.267, 1.510, 0.926, 2.604, 1.177, 0.375, 1.793, 5.788),
    "oracle": (99.382, 94.944, 97.069, 0.258, 0.590, 0.245, 0.506, 0.296, 0.222, 0.477, 1.011),
    "gst": (99.334, 94.702, 97.023, 0.253, 0.937, 0.421, 0.927, 0.502, 0.170, 0.664, 1.600),
}


def means(rows):
    return {
        (row.feature, row.method, row.group, row.condition, row.metric): 100 * row.value
        for row in rows
        if row.fold == "mean"
    }


@pytest.fixture(scope="module")
def lfw(tmp_path_factory):
    folder = DATA / "lfw-mobilefacenet"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}")
    settings = Settings(methods=METHODS, attributes=("ethnicity+gender",))
    data = faircal.load(folder)
    return data, means(run_benchmark(data, tmp_path_factory.mktemp("lfw"), settings, jobs=1))


@pytest.fixture(scope="module")
def rfw(tmp_path_factory):
    table = DATA / "rfw-scores" / "scores.csv"
    if not table.is_file():
        pytest.skip(f"no real data at {table}")
    settings = Settings(methods=METHODS, attributes=("ethnicity",))
    data = faircal.load(table)
    return data, means(run_benchmark(data, tmp_path_factory.mktemp("rfw"), settings, jobs=1))


class TestLFW:
    def test_size(self, lfw):
        data, _ = lfw
        assert (len(data.images), len(data), int(data.genuine.sum())) == (11_627, 50_250, 10_784)
        assert data.fold_names == [1, 2, 3, 4, 5]
        assert not data.groups("ethnicity+gender").cross.any()

    @pytest.mark.parametrize("column", range(len(COLUMNS)), ids=lambda i: " ".join(COLUMNS[i]))
    @pytest.mark.parametrize("method", LFW)
    def test_figures(self, lfw, method, column):
        metric = COLUMNS[column][2]
        within = 0.01 if metric.startswith(("auroc", "ks")) else 0.05
        found = lfw[1]["embedding", method, *COLUMNS[column]]
        assert found == pytest.approx(LFW[method][column], abs=within)


class TestRFW:
    def test_size(self, rfw):
        data, _ = rfw
        assert len(data) == 24_000
        assert data.genuine.mean() == 0.5
        assert set(data.features) == {"iresnet34", "iresnet50"}
        assert data.default_attribute == "ethnicity"

    @pytest.mark.parametrize("feature", ["iresnet34", "iresnet50"])
    @pytest.mark.parametrize("method", METHODS)
    def test_runs(self, rfw, feature, method):
        _, found = rfw
        assert 80 < found[feature, method, "global", "", "auroc"] < 100
        for group in ("African", "Asian", "Caucasian", "Indian"):
            assert 0 < found[feature, method, group, "", "ks"] < 10

    def test_calibrated_overall_but_not_by_group(self, rfw):
        _, found = rfw
        assert found["iresnet34", "baseline", "global", "", "ks"] < 0.5
        for group in ("African", "Asian"):
            assert found["iresnet34", "baseline", group, "", "ks"] > 2

    @pytest.mark.parametrize("feature", ["iresnet34", "iresnet50"])
    def test_a_map_for_each_group_repairs_it(self, rfw, feature):
        _, found = rfw
        baseline, oracle = (
            found[feature, method, "all", "", "ks_mean"] for method in ("baseline", "oracle")
        )
        assert oracle < baseline / 2
