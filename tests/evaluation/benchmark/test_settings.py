"""The plan: everything that is wrong is said before any work is done."""

from __future__ import annotations

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark.settings import BenchmarkSettings, make_plan
from faircal.methods import METHODS

TRAINED = {name for name, method in METHODS.items() if method.needs.training}
RIVALS = {"dsn", "snorm", "asnorm", "falcon"}


def scores_only(**more):
    rng = np.random.default_rng(0)
    n = 200
    return faircal.Dataset(
        pairs={
            "left": np.arange(n),
            "right": np.arange(n) + n,
            "genuine": np.arange(n) % 2,
            "score": rng.uniform(-1, 1, n),
            "fold": np.arange(n) % 5,
        },
        attributes={"group": ["a", "b"] * n},
        **more,
    )


@pytest.fixture(scope="module")
def data():
    return faircal.simulate("small", seed=0)


def test_default_methods_are_those_that_the_data_can_serve():
    plan = make_plan(scores_only(), BenchmarkSettings())
    assert list(dict.fromkeys(cell.method for cell in plan.cells)) == ["baseline", "gst", "oracle"]
    assert set(plan.left_out) == TRAINED | RIVALS | {"fsn", "faircal", "smooth", "cohort"}
    assert "embeddings" in plan.left_out["faircal"]


def test_a_method_asked_for_by_name_that_cannot_run_is_an_error():
    with pytest.raises(faircal.DataError, match="method faircal cannot run: it needs embeddings"):
        make_plan(scores_only(), BenchmarkSettings(methods=("faircal",)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("fairkal",)}, "unknown method 'fairkal'; did you mean faircal"),
        ({"calibrators": ("bta",)}, "unknown calibrator 'bta'; did you mean beta"),
        ({"features": ("x",)}, "unknown feature 'x'"),
        ({"attributes": ("etnicity",)}, "did you mean ethnicity"),
        ({"clusters": (0,)}, "clusters: expected 1 or more, found 0"),
        ({"clusters": (5, 5)}, "clusters: 5 is given twice"),
        ({"rates": (0.0,)}, "rates: expected rates between 0 and 1"),
        ({"parameters": {"faircal": {"min_pair": 3}}}, "did you mean min_pairs"),
        ({"parameters": {"fairkal": {}}}, "unknown method 'fairkal'"),
        ({"parameters": {"fsn": {"n_clusters": 3}}}, "fsn.n_clusters is set by --clusters"),
        ({"parameters": {"fsn": {"random_state": 3}}}, "fsn.random_state is set by --seed"),
        ({"parameters": {"gst": {"calibrator": "platt"}}}, "gst.calibrator is set by --calib"),
        ({"parameters": {"fsn": {"target_fpr": 2}}}, "target_fpr: expected a rate between 0 and 1"),
        ({"parameters": {"gst": {"threshold_rule": "x"}}}, "threshold_rule: unknown rule 'x'"),
        ({"parameters": {"oracle": {"min_pairs": -4}}}, "min_pairs: expected a whole number"),
        (
            {"parameters": {"gst": {"target_fpr": 0.05}}, "retune": True},
            "gst.target_fpr is what --retune sets",
        ),
        (
            {"parameters": {"gst": {"target_fpr": 0.05}}, "methods": ("baseline",)},
            "gst are set, but it is not run",
        ),
    ],
)
def test_wrong_settings(data, settings, message):
    with pytest.raises(faircal.FairCalError, match=message):
        make_plan(data, BenchmarkSettings(**settings))


def test_one_fold_is_not_enough(data):
    one = data.subset(data.pairs.fold == 1)
    with pytest.raises(faircal.DataError, match="expected two or more folds, found 1"):
        make_plan(one, BenchmarkSettings())


def test_more_clusters_than_calibration_images(data):
    with pytest.raises(faircal.ParameterError, match=r"without fold 1 there are \d+ images"):
        make_plan(data, BenchmarkSettings(clusters=(10, 5000)))
    make_plan(
        data, BenchmarkSettings(methods=("baseline",), clusters=(5000,))
    )  # it has no clusters


def test_a_class_that_lives_in_one_fold_only(data):
    one = data.subset(data.genuine == (data.pairs.fold == 3))
    with pytest.raises(faircal.DataError, match="without fold 3, expected genuine and imposter"):
        make_plan(one, BenchmarkSettings())


def test_the_fingerprint_changes_with_data_and_settings_but_not_with_methods(data):
    base = make_plan(data, BenchmarkSettings()).fingerprint
    assert make_plan(data, BenchmarkSettings(methods=("gst",))).fingerprint == base
    assert make_plan(data, BenchmarkSettings(seed=1)).fingerprint != base
    assert make_plan(data, BenchmarkSettings(threshold_on="calibration")).fingerprint != base
    assert make_plan(faircal.simulate("small", seed=1), BenchmarkSettings()).fingerprint != base


def test_cells_have_distinct_keys(data):
    plan = make_plan(data, BenchmarkSettings(clusters=(2, 3), calibrators=("beta", "platt")))
    assert len({cell.key for cell in plan.cells}) == len(plan.cells)


def test_a_column_that_makes_no_groups_leaves_the_group_methods_out(data, with_attributes):
    bare = with_attributes(data, {"path": [f"{i}.jpg" for i in range(len(data.images))]})
    plan = make_plan(bare, BenchmarkSettings(clusters=(4,)))
    assert set(plan.left_out) == TRAINED | {"gst", "dsn", "oracle", "cohort"}
    assert "no column makes groups by itself (path: " in plan.left_out["oracle"]


def test_methods_without_a_calibrator_run_once(data, monkeypatch):
    class Plain(METHODS["baseline"]):
        name = "plain"

        def __init__(self):
            pass

    monkeypatch.setitem(METHODS, "plain", Plain)
    plan = make_plan(data, BenchmarkSettings(methods=("plain",), calibrators=("beta", "platt")))
    assert {cell.calibrator for cell in plan.cells} == {""}
    assert len(plan.cells) == 5
