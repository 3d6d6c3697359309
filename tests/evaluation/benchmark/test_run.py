"""Running: same numbers however it is run, nothing lost when it is interrupted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import faircal
from faircal.evaluation.benchmark import BenchmarkSettings, run, run_benchmark
from faircal.evaluation.benchmark.settings import make_plan
from faircal.methods import METHODS
from faircal.metrics import Ranking, fpr_at_threshold, ks, threshold_at_fpr, tpr_at_threshold
from faircal.metrics.intervals import summarise
from faircal.metrics.results import Result, as_table

ATTRIBUTE = "ethnicity+gender"
FOLDS = 4
# `smooth` takes longer than all others together, and the benchmark knows no difference.
PLAIN = tuple(
    name
    for name, method in METHODS.items()
    if not method.needs.training and method.needs.cohort != "required" and name != "smooth"
)
SETTINGS = BenchmarkSettings(methods=PLAIN, clusters=(8,), attributes=(ATTRIBUTE,))


@pytest.fixture(scope="module")
def data(in_folds):
    drawn = faircal.simulate("small", seed=1, people=80, images=400, pairs=1500, dimension=16)
    return in_folds(drawn, FOLDS)


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    return folder, run_benchmark(data, folder, SETTINGS, jobs=1)


def pick(rows, **wanted):
    found = [row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]
    assert found, wanted
    return found


def text(folder):
    return (folder / "results.csv").read_bytes()


def test_values_are_those_of_the_method_on_the_left_out_fold(data, finished):
    cal, test = data.split(test_fold=2)
    output = faircal.FairCal(n_clusters=8).fit(cal).apply(test)
    groups = test.groups(ATTRIBUTE)
    inside = groups.pair == groups.names.index("Asian F")
    where = {"method": "faircal", "fold": "2", "group": "Asian F"}
    (row,) = pick(finished[1], metric="ks", **where)
    assert row.value == ks(output.probability[inside], test.genuine[inside])
    overall = Ranking.of(output.score, test.genuine)
    threshold = threshold_at_fpr(overall, 0.01)
    (row,) = pick(finished[1], metric="fpr", condition="global_fpr=0.01", **where)
    assert row.value == fpr_at_threshold(overall.subset(inside), threshold)
    assert (row.dataset, row.feature, row.calibrator, row.clusters, row.seed, row.attribute) == (
        "small (simulated)",
        "embedding",
        "beta",
        "8",
        "0",
        ATTRIBUTE,
    )


def test_summary_rows_are_mean_and_population_std_over_folds(finished):
    rows = pick(finished[1], method="gst", metric="fpr_aad", condition="global_fpr=0.01")
    by_fold = {row.fold: row.value for row in rows}
    values = [by_fold[str(fold)] for fold in range(1, FOLDS + 1)]
    assert by_fold["mean"] == pytest.approx(np.mean(values), abs=1e-15)
    assert by_fold["std"] == pytest.approx(np.std(values), abs=1e-15)


def test_summary_by_hand():
    # Attributes share a group's name; one has a single fold, one no value at all.
    row = Result("d", "f", "m", "beta", "", "0", "1", "gender", "global", "", "ks", 0.1)
    rows = [row, row._replace(fold="2", value=0.3), row._replace(attribute="age", value=0.7)]
    rows.append(row._replace(attribute="race", value=float("nan")))
    found = {(r.attribute, r.fold): r.value for r in summarise(rows)}
    assert len(found) == 4 + 2 * 3
    assert found["gender", "mean"] == pytest.approx(0.2)
    assert found["gender", "std"] == pytest.approx(0.1)
    assert (found["age", "mean"], found["age", "std"]) == (0.7, 0.0)
    assert np.isnan([found["race", "mean"], found["race", "std"]]).all()


def test_a_table_of_no_rows_has_its_columns():
    table = as_table([])
    assert table.num_rows == 0
    assert tuple(table.column_names) == Result._fields


def test_methods_without_clusters_leave_that_field_empty(finished):
    assert {row.clusters for row in pick(finished[1], method="oracle")} == {""}


def test_another_seed_gives_other_clusters(data, finished, tmp_path):
    settings = BenchmarkSettings(
        methods=("faircal",), clusters=(8,), attributes=(ATTRIBUTE,), seed=9
    )
    rows = run_benchmark(data, tmp_path, settings, jobs=1)
    (one,) = pick(rows, metric="auroc", group="global", fold="mean")
    (other,) = pick(finished[1], method="faircal", metric="auroc", group="global", fold="mean")
    assert one.value != other.value


def test_an_interrupted_run_goes_on_where_it_stopped(data, finished, tmp_path, monkeypatch):
    def interrupt(what, done, total, label):
        if what == "benchmark" and done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, SETTINGS, jobs=1, progress=interrupt)
    assert not (tmp_path / "results.csv").exists()
    assert not list(tmp_path.rglob("*.tmp"))
    assert not (tmp_path / "run.json").exists()
    before = set((tmp_path / "parts").glob("*/*.json"))
    assert before

    ran = []
    run_cell = run.run_cell
    monkeypatch.setattr(run, "run_cell", lambda *a: ran.append(a) or run_cell(*a))
    run_benchmark(data, tmp_path, SETTINGS, jobs=2, resume=True)
    assert len(ran) == FOLDS * len(PLAIN) - len(before)
    # The same bytes as with one job at a time, from start to end.
    assert text(tmp_path) == text(finished[0])
    assert json.loads((tmp_path / "run.json").read_text())["wall_time_s"] > 0


def test_resuming_a_finished_run_computes_nothing(data, finished, monkeypatch):
    before = text(finished[0])
    monkeypatch.setattr(run, "run_cell", lambda *a: pytest.fail("computed again"))
    run_benchmark(data, finished[0], SETTINGS, jobs=1, resume=True)
    assert text(finished[0]) == before


def test_resume_may_add_methods_but_not_change_what_the_cells_depend_on(data, tmp_path):
    first = BenchmarkSettings(methods=("baseline",), attributes=(ATTRIBUTE,))
    run_benchmark(data, tmp_path, first, jobs=1)
    more = BenchmarkSettings(methods=("baseline", "gst"), attributes=(ATTRIBUTE,))
    rows = run_benchmark(data, tmp_path, more, jobs=1, resume=True)
    assert {row.method for row in rows} == {"baseline", "gst"}
    with pytest.raises(faircal.ParameterError, match="differ from those of the run to resume"):
        other = BenchmarkSettings(methods=("baseline",), attributes=(ATTRIBUTE,), seed=1)
        run_benchmark(data, tmp_path, other, resume=True)


def test_without_resume_a_run_starts_afresh(data, tmp_path, monkeypatch):
    settings = BenchmarkSettings(methods=("baseline",))
    run_benchmark(data, tmp_path, settings, jobs=1)
    ran = []
    run_cell = run.run_cell
    monkeypatch.setattr(run, "run_cell", lambda *a: ran.append(a) or run_cell(*a))
    run_benchmark(data, tmp_path, settings, jobs=1)
    assert len(ran) == FOLDS


def test_what_an_earlier_run_left_stays_until_the_new_one_has_succeeded(
    data, tmp_path, monkeypatch
):
    run_benchmark(data, tmp_path, BenchmarkSettings(methods=("baseline",)), jobs=1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = BenchmarkSettings(methods=("baseline",), seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(run, "run_cell", lambda *_: faircal.load("/nowhere"))
        with pytest.raises(faircal.DataError, match="no such file"):
            run_benchmark(data, tmp_path, other, jobs=1)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before

    def interrupt(what, done, total, label):
        if what == "benchmark" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_benchmark(data, tmp_path, other, jobs=1, progress=interrupt)
    assert {path: path.read_bytes() for path in before} == before
    run_benchmark(data, tmp_path, other, jobs=1, resume=True)
    assert json.loads((tmp_path / "run.json").read_text())["settings"]["seed"] == 1
    assert len(list((tmp_path / "parts").iterdir())) == 1


def test_a_failing_cell_raises_its_own_error_and_writes_no_results(data, tmp_path, monkeypatch):
    def fail(*_):
        raise faircal.DataError("one cell failed")

    monkeypatch.setattr(run, "run_cell", fail)
    with pytest.raises(faircal.DataError, match="one cell failed"):
        run_benchmark(data, tmp_path / "new" / "deep", SETTINGS, jobs=2)
    assert not (tmp_path / "new").exists()
    with pytest.raises(faircal.DataError, match="one cell failed"):
        run_benchmark(data, tmp_path, SETTINGS, jobs=2)
    assert list(tmp_path.iterdir()) == []


def test_retune_fits_anew_for_each_reported_rate_only(data, finished, tmp_path):
    settings = BenchmarkSettings(
        methods=("fsn",), clusters=(8,), attributes=(ATTRIBUTE,), retune=True
    )
    rows = run_benchmark(data, tmp_path, settings, jobs=1)
    cal, test = data.split(3)
    output = faircal.FSN(n_clusters=8, target_fpr=0.01).fit(cal).apply(test)
    threshold = float(threshold_at_fpr(Ranking.of(output.score, test.genuine), 0.01))
    at = {"method": "fsn", "fold": "3", "metric": "threshold", "group": "global"}
    (row,) = pick(rows, condition="global_fpr=0.01", **at)
    assert row.value == threshold
    for same in ("global_fpr=0.001", "global_fnr=0.01"):
        assert pick(rows, condition=same, **at) == pick(finished[1], condition=same, **at)
    assert pick(rows, fold="3", metric="auroc") == pick(
        finished[1], method="fsn", fold="3", metric="auroc"
    )


def test_thresholds_from_the_calibration_folds(data, tmp_path):
    settings = BenchmarkSettings(
        methods=("baseline",), attributes=(ATTRIBUTE,), threshold_on="calibration"
    )
    rows = run_benchmark(data, tmp_path, settings, jobs=1)
    cal, test = data.split(4)
    threshold = threshold_at_fpr(Ranking.of(cal.scores, cal.genuine), 0.01)
    ranking = Ranking.of(test.scores, test.genuine)
    (row,) = pick(rows, fold="4", condition="global_fpr=0.01", metric="fpr", group="global")
    assert row.value == fpr_at_threshold(ranking, threshold)
    (row,) = pick(rows, fold="4", condition="fpr=0.01", metric="tpr")
    assert row.value == tpr_at_threshold(ranking, threshold)


def test_sweeps_over_clusters_calibrators_and_attributes(data, tmp_path):
    settings = BenchmarkSettings(
        methods=("baseline", "faircal"),
        calibrators=("beta", "isotonic"),
        clusters=(1, 4),
        attributes=("ethnicity", "gender"),
    )
    rows = run_benchmark(data, tmp_path, settings, jobs=2)
    combinations = {(r.method, r.calibrator, r.clusters, r.attribute) for r in rows}
    assert len(combinations) == (1 * 2 * 1 + 1 * 2 * 2) * 2
    # One cluster is the Baseline with calibration: the same KS to the last digit.
    for calibrator in settings.calibrators:
        (one,) = pick(
            rows,
            method="faircal",
            clusters="1",
            calibrator=calibrator,
            fold="2",
            attribute="gender",
            group="global",
            metric="ks",
        )
        (base,) = pick(
            rows,
            method="baseline",
            calibrator=calibrator,
            fold="2",
            attribute="gender",
            group="global",
            metric="ks",
        )
        assert one.value == base.value


def test_the_record_says_how_it_was_made(finished):
    record = json.loads((finished[0] / "run.json").read_text())
    assert record["settings"]["clusters"] == [8]
    assert record["simulated"] is True
    assert record["versions"]["faircal"] == faircal.__version__
    assert len(record["data_sha256"]) == 64
    fits = [fit for fit in record["fits"] if fit["method"] == "faircal"]
    assert len(fits) == FOLDS
    assert all(fit["figures"]["inertia"] > 0 for fit in fits)


def test_data_without_groups_is_measured_globally(data, tmp_path, with_attributes):
    bare = with_attributes(data)
    plan = make_plan(bare, BenchmarkSettings(clusters=(4,)))
    rivals = {"snorm", "asnorm", "falcon"}
    assert {cell.method for cell in plan.cells} == {"baseline", "fsn", "faircal", "smooth", *rivals}
    assert set(plan.left_out) == {
        "agenda",
        "pass",
        "multipass",
        "ftc",
        "gst",
        "dsn",
        "oracle",
        "cohort",
    }
    settings = BenchmarkSettings(methods=("baseline", "faircal"), clusters=(4,))
    rows = run_benchmark(bare, tmp_path, settings, jobs=1)
    assert {row.group for row in rows} == {"global"}
    assert {row.attribute for row in rows} == {""}


def test_a_file_in_the_way_of_the_parts_is_one_clear_error(data, tmp_path):
    (tmp_path / "parts").write_text("mine")
    with pytest.raises(faircal.ParameterError, match=r"cannot use .*parts.* as output folder"):
        run_benchmark(data, tmp_path, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_the_record_says_what_is_doubtful(data, tmp_path, with_attributes):
    images = data.images
    gender = images.attributes["gender"]
    values = np.array([*gender.names, ""], dtype=object)[gender.codes]
    values[:200] = ""
    attributes = {"identity": images.identity.codes, "gender": values}
    fold = data.pairs.fold % 2  # of forty people or more
    one = np.flatnonzero((fold == 1) & data.genuine)[0]
    fold[one] = 0
    doubtful = with_attributes(data, attributes, fold=fold)
    run_benchmark(doubtful, tmp_path, BenchmarkSettings(methods=("baseline",)), jobs=1)
    record = json.loads((tmp_path / "run.json").read_text())
    unknown = int(doubtful.groups("gender").unknown.sum())
    assert record["groups"]["gender"]["unknown_pairs"] == unknown > 0
    leak, share = record["notes"]
    assert leak.startswith("warning: identities that cross folds: 1 (")
    assert share.startswith(f"{unknown} of 1500 pairs (")
