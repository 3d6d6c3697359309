"""Calibrated on other imposters, or beside a cohort: test pairs stay, and so does the rest."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, Moving, run, run_benchmark
from faircal.evaluation.benchmark.settings import make_plan
from faircal.methods import METHODS
from faircal.metrics import ks

A = "ethnicity"
SETTINGS = BenchmarkSettings(
    methods=("baseline", "faircal", "oracle"),
    clusters=(5,),
    attributes=(A,),
    calibration_imposters="random",
    draw_cohort=4,
    seed=3,
)


@pytest.fixture(scope="module")
def data(in_folds):
    drawn = faircal.simulate("small", seed=1, people=80, images=400, pairs=1500, dimension=16)
    return in_folds(drawn, 3)


def ranked(rows, **wanted):
    return [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]


@pytest.mark.parametrize("imposters", ["given", "random", "matched"])
def test_folds(data, imposters):
    settings = BenchmarkSettings(
        clusters=(5,), attributes=(A,), calibration_imposters=imposters, draw_cohort=4
    )
    plan, person = make_plan(data, settings), data.images.identity
    for fold in data.fold_names:
        calibration, test = plan.split(data, fold)
        assert plan.split(data, fold)[0] is calibration  # it is drawn once
        given, of_fold = data.split(fold)
        np.testing.assert_array_equal(test.pairs.left, of_fold.pairs.left)
        np.testing.assert_array_equal(test.scores, of_fold.scores)
        assert test.cohort is None
        calibrated, tested = (
            {person.names[code] for code in person.codes[part.used_images()]}
            for part in (calibration, test)
        )
        assert len(calibration.cohort.identity.names) == 4 * 4
        assert not set(calibration.cohort.identity.names) & (calibrated | tested)
        assert not calibrated & tested
        assert calibrated <= {person.names[code] for code in person.codes[given.used_images()]}
        if imposters != "given":
            # As many for each genuine pair as before.
            assert calibration.genuine.mean() == pytest.approx(given.genuine.mean(), abs=1e-3)


def test_numbers_are_those_of_the_method_on_such_a_fold_however_it_is_run(
    data, tmp_path, monkeypatch
):
    settings = replace(SETTINGS, methods=("faircal",))
    rows = run_benchmark(data, tmp_path, settings, jobs=1)
    cal, test = make_plan(data, settings).split(data, 2)
    output = faircal.FairCal(n_clusters=5, random_state=3).fit(cal).apply(test)
    (row,) = ranked(rows, method="faircal", metric="ks", group="global", fold="2")
    assert row.value == ks(output.probability, test.genuine)
    before = (tmp_path / "results.csv").read_bytes()
    monkeypatch.setattr(run, "run_cell", lambda *_: pytest.fail("computed again"))
    run_benchmark(data, tmp_path, settings, jobs=2, resume=True)
    assert (tmp_path / "results.csv").read_bytes() == before
    monkeypatch.undo()
    run_benchmark(data, tmp_path / "again", settings, jobs=2)
    assert (tmp_path / "again" / "results.csv").read_bytes() == before
    other = replace(settings, draw_cohort=5)
    with pytest.raises(faircal.ParameterError, match="differ from those of the run to resume"):
        run_benchmark(data, tmp_path, other, resume=True)


def test_a_method_without_pairs_of_a_group_is_left_out_with_a_note(data, tmp_path):
    # Four people of a group in all: of those that calibrate nobody is left.
    few = data.images.attributes[A].codes == 0
    named = data.images.identity.codes[few]
    many = np.isin(data.images.identity.codes, np.unique(named)[4:])
    kept = data.subset(~(many[data.pairs.left] | many[data.pairs.right]))
    settings = replace(SETTINGS, calibration_imposters="given")
    rows = run_benchmark(kept, tmp_path, settings, jobs=1)
    assert {row.method for row in rows} == {"baseline", "faircal"}
    record = json.loads((tmp_path / "run.json").read_text())
    group = data.group_names(A)[0]
    assert record["left_out"]["oracle"].endswith(f"the cohort leaves not both classes of {group}")
    assert f"fewer, which are all there are, of {group} (" in record["notes"][0]
    assert (record["settings"]["draw_cohort"], record["settings"]["seed"]) == (4, 3)
    alone = replace(settings, methods=("oracle",))
    with pytest.raises(faircal.DataError, match="no method can run: it needs calibration pairs of"):
        make_plan(kept, alone)


def test_methods_that_take_a_cohort_see_the_drawn_one(data, tmp_path, monkeypatch):
    seen = []

    class Looks(METHODS["baseline"]):
        name = "looks"
        needs = faircal.methods.Needs(cohort="required")

        def _fit(self, inputs):
            seen.append((len(inputs.cohort.vectors), inputs.cohort.group_names))
            super()._fit(inputs)

    monkeypatch.setitem(METHODS, "looks", Looks)
    plain = BenchmarkSettings(methods=("looks",), attributes=(A,))
    with pytest.raises(faircal.DataError, match="method looks cannot run: it needs a cohort"):
        make_plan(data, plain)
    run_benchmark(data, tmp_path, replace(plain, draw_cohort=4), jobs=1)
    assert len(seen) == 3
    assert {names for _, names in seen} == {data.group_names(A)}


def test_what_does_not_go_together_is_said(data):
    with_one = data.with_cohort(make_plan(data, SETTINGS).split(data, 1)[0].cohort)
    with pytest.raises(faircal.ParameterError, match="give one of --cohort and --draw-cohort"):
        make_plan(with_one, SETTINGS)
    source = faircal.simulate("small", seed=2, people=80, images=400, pairs=1500, dimension=16)
    with pytest.raises(faircal.ParameterError, match="are for calibration folds, and methods are"):
        make_plan(data, SETTINGS, Moving(source))
