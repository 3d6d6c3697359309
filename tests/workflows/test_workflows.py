"""What commands do, as functions: from files to files, with the numbers of the packages below."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import faircal
from faircal.metrics.results import read_results, read_run

FOLD = "5"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A dataset folder, and a model that was fitted without one of its folds."""
    home = tmp_path_factory.mktemp("workflows")
    data = faircal.simulate("small", seed=0, people=120, images=600, pairs=3000, dimension=16)
    faircal.save_dataset(data, home / "faces")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        yield home


@pytest.fixture(scope="module")
def fitted(home):
    return faircal.fit_model(
        home / "faces", home / "m.faircal", clusters=5, leave_out=FOLD, intended_use="tests"
    )


@pytest.fixture(scope="module")
def audited(home, fitted):
    return faircal.audit_folder(
        home / "faces", home / "audit", model=fitted.out, fold=FOLD, attribute="ethnicity"
    )


@pytest.fixture(scope="module")
def split(home):
    return faircal.load(home / "faces").split(test_fold=5)


def test_a_fit_is_that_of_the_method_on_the_other_folds(fitted, split):
    model = faircal.FairCal(n_clusters=5, random_state=0).fit(split[0])
    read = faircal.load_model(fitted.out)
    np.testing.assert_array_equal(read.predict_proba(split[1]), model.predict_proba(split[1]))
    assert read.about_.provenance.settings["leave_out"] == FOLD
    assert faircal.model_card(fitted.out).facts["intended_use"] == "tests"


def test_a_parameter_that_a_method_lacks_is_refused(home):
    with pytest.raises(faircal.ParameterError, match="method baseline takes no --clusters"):
        faircal.fit_model(home / "faces", home / "b.faircal", method="baseline", clusters=3)
    assert not (home / "b.faircal").exists()


def test_scores_are_those_of_the_model(home, fitted, split):
    scored = faircal.score_file(
        fitted.out, home / "faces", home / "s.parquet", fold=FOLD, keep=["genuine"], prior=0.1
    )
    table = pq.read_table(scored.out)
    share = scored.record["calibrated_at"]
    expected = faircal.shift_prior(
        fitted.model.predict_proba(split[1]),
        calibrated_at=share,
        prior=0.1,
        bounds=fitted.model.about_.evidence,
    )
    assert scored.pairs == len(table) == len(split[1])
    np.testing.assert_allclose(table["probability"], expected, rtol=1e-12)
    np.testing.assert_array_equal(table["genuine"], split[1].genuine)
    assert scored.record["prior"] == 0.1


def test_an_audit_leaves_the_numbers_it_gives(home, audited):
    result, report = audited
    (audit,) = result.audits
    rows = read_results(home / "audit")
    values = {(row.metric, row.group, row.condition): row.value for row in rows}
    groups = {row.group for row in rows} - {"all", "global"}
    assert groups
    for group in groups:
        condition = "global_fpr=0.01"
        expected = audit.value("fpr", group=group, condition=condition)
        np.testing.assert_equal(values["fpr", group, condition], expected)
    assert read_run(home / "audit")["pairs"] == result.record["pairs"]
    assert (home / "audit/report.html").stat().st_size > 10_000
    assert report.paths["report"] == str(home / "audit/report.html")
    assert "matplotlib" in report.missing


def test_streamed_pairs_have_the_same_numbers(home, audited):
    whole, _ = audited
    streamed, _ = faircal.audit_folder(
        home / "faces",
        home / "streamed",
        model=home / "m.faircal",
        fold=FOLD,
        attribute="ethnicity",
        stream=True,
    )
    assert streamed.record["streamed"]
    assert streamed.record["pairs"] == whole.record["pairs"]
    for one, two in zip(streamed.audits[0].rows, whole.audits[0].rows, strict=True):
        np.testing.assert_allclose(one[11:19], two[11:19], 1e-9, 1e-12, err_msg=str(one.what))


def test_a_report_is_made_again_from_the_numbers(home, audited):
    page = (home / "audit/report.html").read_bytes()
    (home / "audit/report.html").unlink()
    faircal.make_report(home / "audit")
    assert (home / "audit/report.html").read_bytes() == page


def test_a_run_is_the_same_as_itself(home, audited):
    shutil.copytree(home / "audit", home / "same")
    compared = faircal.compare_runs(home / "audit", home / "same", gate="worse")
    assert compared.gate.passed
    assert all(each.a == each.b for each in compared.comparisons if each.reportable)
    with pytest.raises(faircal.ParameterError, match="--gate noninferior and --margin go together"):
        faircal.compare_runs(home / "audit", home / "same", gate="noninferior")


def test_a_threshold_is_kept_in_the_model_file(home, fitted):
    result = faircal.find_threshold(
        home / "faces", fpr=0.1, model=fitted.out, fold=FOLD, out=home / "point.faircal"
    )
    point = faircal.load_model(home / "point.faircal").about_.operating_point
    assert point.threshold == result.chosen.threshold
    assert result.own_people is False
    assert result.written == home / "point.faircal"
    (overall, *_) = result.rates
    assert overall.fpr <= 0.1


def test_a_benchmark_of_two_methods(home, split):
    report = faircal.benchmark(
        home / "faces", home / "bench", methods=["baseline", "faircal"], clusters=[5], jobs=1
    )
    assert {row.method for row in read_results(home / "bench")} == {"baseline", "faircal"}
    assert report.store.run["settings"]["clusters"] == [5]


def test_a_model_is_quiet_on_its_own_people(home, fitted):
    monitored, paths = faircal.monitor(fitted.out, [home / "faces"], out=home / "watch")
    assert not monitored.verdict.due
    assert monitored.sources == {str(home / "faces"): 3000}
    assert json.loads(paths["record"].read_text())["due"] is False


def test_a_folder_is_described_and_gets_other_pairs(home):
    checked = faircal.check_data(home / "faces", "gender")
    assert (checked.facts["pairs"], checked.errors) == (3000, [])
    built, path = faircal.make_pairs(home / "faces", home / "pairs.csv", genuine=2, seed=3)
    assert path == home / "pairs.csv"
    assert len(path.read_text().splitlines()) == len(built) + 1
