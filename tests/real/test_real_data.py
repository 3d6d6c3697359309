"""Real faces, where the data is there: the figures of an independent implementation.

The data is never part of this repository; without it these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run_benchmark
from faircal.methods import make_method
from faircal.metrics import Ranking, auroc, tpr_at_fpr

DATA = Path(__file__).parents[3] / "shared" / "data"
METHODS = ("baseline", "gst", "oracle")
ATTRIBUTE = "ethnicity+gender"

# Long enough to learn something, short enough to wait for.
DEBIASING = {
    "width": 64,
    "identity_epochs": 3,
    "identity_rate": 5e-3,
    "episodes": 1,
    "discriminator_epochs": 1,
    "debias_epochs": 1,
    "update_epochs": 1,
}
TRAINED = {
    "ftc": {"epochs": 1, "hidden": (1,)},
    "agenda": DEBIASING,
    "pass": DEBIASING,
    "multipass": DEBIASING,
}

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
def lfw_data():
    folder = DATA / "lfw-mobilefacenet"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}")
    return faircal.load(folder)


@pytest.fixture(scope="module")
def lfw(lfw_data, tmp_path_factory):
    settings = BenchmarkSettings(methods=METHODS, attributes=(ATTRIBUTE,))
    found = means(run_benchmark(lfw_data, tmp_path_factory.mktemp("lfw"), settings, jobs=1))
    return lfw_data, found


@pytest.fixture(scope="module")
def rfw(tmp_path_factory):
    table = DATA / "rfw-scores" / "scores.csv"
    if not table.is_file():
        pytest.skip(f"no real data at {table}")
    settings = BenchmarkSettings(methods=METHODS, attributes=("ethnicity",))
    data = faircal.load(table)
    return data, means(run_benchmark(data, tmp_path_factory.mktemp("rfw"), settings, jobs=1))


def test_imposters_at_random_cost_what_another_implementation_says(lfw_data, tmp_path):
    settings = BenchmarkSettings(
        methods=("baseline",), attributes=(ATTRIBUTE,), calibration_imposters="random"
    )
    found = means(run_benchmark(lfw_data, tmp_path, settings, jobs=1))
    values = [found["embedding", "baseline", *column] for column in COLUMNS]
    # Which were drawn moves KS by some hundredths; ranks are those of the test pairs alone.
    assert values[3:5] == pytest.approx([0.64, 2.05], abs=0.06)
    assert values[:3] + values[8:] == pytest.approx(
        LFW["baseline"][:3] + LFW["baseline"][8:], abs=6e-3
    )


class TestLFW:
    def test_size(self, lfw):
        data, _ = lfw
        assert (len(data.images), len(data), int(data.genuine.sum())) == (11_627, 50_250, 10_784)
        assert data.fold_names == [1, 2, 3, 4, 5]
        assert not data.groups(ATTRIBUTE).cross.any()

    @pytest.mark.parametrize("column", range(len(COLUMNS)), ids=lambda i: " ".join(COLUMNS[i]))
    @pytest.mark.parametrize("method", LFW)
    def test_figures(self, lfw, method, column):
        metric = COLUMNS[column][2]
        within = 0.01 if metric.startswith(("auroc", "ks")) else 0.05
        found = lfw[1]["embedding", method, *COLUMNS[column]]
        assert found == pytest.approx(LFW[method][column], abs=within)


class TestTrainedOnLFW:
    @pytest.mark.parametrize("method", TRAINED)
    def test_a_short_training_beats_chance(self, lfw_data, method):
        pytest.importorskip("torch")
        cal, test = lfw_data.split(test_fold=5)
        with threadpool_limits(1):  # two do not help networks as small as these
            model = make_method(method, attribute=ATTRIBUTE, **TRAINED[method]).fit(cal)
            output = model.apply(test)
        ranking = Ranking.of(output.score, test.genuine)
        assert auroc(ranking) > 0.95
        assert tpr_at_fpr(ranking, 0.01) > 0.5
        assert faircal.metrics.ks(output.probability, test.genuine) < 0.03
        if model.needs.identities:
            people = np.bincount(cal.images.identity.take(cal.used_images()))
            share = people[people > 0] / people.sum()
            by_share_alone = -(share * np.log(share)).sum()
            assert model.diagnostics_.figures["stage_3_identity"] < by_share_alone - 0.5


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
