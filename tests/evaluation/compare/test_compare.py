"""Comparing runs: what is put beside what, verdicts, gates, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.evaluation.compare import (
    ComparedRun,
    Estimate,
    compare,
    differences,
    no_worse,
    non_inferior,
    notes,
    write_differences,
)
from faircal.evaluation.compare.runs import ScoreKey
from faircal.evaluation.compare.verdicts import improvement_sign
from faircal.metrics.results import (
    Replicated,
    Result,
    read_results,
    write_replicates,
    write_results,
    write_run,
)
from faircal.report.store import ResultsFolder

POINT = "global_fpr=0.01"
ENOUGH = {"global": 90.0, "F": 40.0, "M": 40.0, "few": 9.0}


def noise(name):
    return np.random.default_rng(len(name)).normal(0, 0.001, 400).astype(np.float32)


def estimates(**fpr):
    """FPR by group, each within 0.2 points, with noise of its own, the same in every run."""
    return {
        (group, POINT, "fpr"): Estimate(v, v - 0.00196, v + 0.00196, noise(group))
        for group, v in fpr.items()
    }


def run(name, people=ENOUGH, *, feature="f", attribute="sex", data="1", **methods):
    found = {ScoreKey(feature, key, "", "", attribute): value for key, value in methods.items()}
    return ComparedRun(name, {"effective_people": people, "data_sha256": data}, found)


OLD = run("old", m=estimates(F=0.010, M=0.012))


def test_verdicts_follow_the_direction_of_the_metric():
    assert (
        improvement_sign("ks")
        == improvement_sign("fpr")
        == improvement_sign("nll")
        == improvement_sign("tpr_gap")
        == -1
    )
    assert (
        improvement_sign("auroc")
        == improvement_sign("tpr")
        == improvement_sign("fdr")
        == improvement_sign("auroc_mean")
        == 1
    )
    new = run("new", m=estimates(F=0.012, M=0.0115))
    found = {each.group: each for each in compare(OLD, new)}
    assert found["F"].verdict == "worse"  # the same noise in both: any difference shows
    assert found["M"].verdict == "better"
    assert [each.verdict for each in compare(OLD, new, paired=False)] == ["not told apart"] * 2
    tolerant = compare(OLD, new, tolerance=0.0021)
    assert [each.verdict for each in tolerant] == ["not told apart"] * 2


def test_p_values_are_corrected_for_what_is_told():
    new = run("new", m=estimates(F=0.0131, M=0.012))
    apart = compare(OLD, new, paired=False)
    alone = apart[0].p
    assert 0.025 < alone < 0.05  # told apart by itself, not as one of two
    assert apart[0].p_holm == pytest.approx(2 * alone)
    assert apart[0].family == 2
    assert apart[0].verdict == "not told apart"


def test_what_may_not_be_shown_is_not_compared_and_people_are_the_fewest_of_both():
    values = estimates(F=0.01, M=0.012)
    few = {key: replace(each, people=9.0, withheld="only 9") for key, each in values.items()}
    known = {key: replace(each, people=40.0) for key, each in values.items()}
    (one, _) = untold = compare(run("a", m=known), run("b", m=few))
    assert (one.verdict, one.people, one.family) == ("not enough data", 9, 0)
    assert one.record()["difference"] is None
    assert no_worse(untold).passed
    assert not non_inferior(untold, 1.0).passed
    (one, _) = compare(run("a", m=known), run("b", m=known))
    assert (one.verdict, one.people) == ("not told apart", 40)


def test_nothing_compared_is_refused_not_passed():
    with_all = estimates(**{"global": 0.01})
    a, b = (run(name, attribute="", m=with_all) for name in "ab")
    with pytest.raises(ParameterError, match="the FPR of all pairs is what the operating point se"):
        compare(a, b, metrics=["fpr"])
    auroc = {("global", "", "auroc"): Estimate(0.9, 0.8, 0.95, noise("x"))}
    a, b = (run(name, attribute="", m=auroc) for name in "ab")
    with pytest.raises(ParameterError, match="none of fpr, fnr, ks is in both runs"):
        compare(a, b)
    tpr = {("global", "", "tpr"): Estimate(0.9, 0.8, 0.95, noise("x"))}
    a, b = (run(name, attribute="", m=tpr | with_all) for name in "ab")
    with pytest.raises(ParameterError, match="no TPR at an operating point of both runs"):
        compare(a, b, metrics=["tpr"])


@pytest.mark.parametrize("size", [math.nan, math.inf, -0.1])
def test_sizes_that_are_none_are_refused(size):
    with pytest.raises(ParameterError, match="tolerance: expected a number from 0 on"):
        compare(OLD, run("new", m=estimates(F=0.01, M=0.012)), tolerance=size)
    with pytest.raises(ParameterError, match="margin: expected a number above 0"):
        non_inferior([], size)


def test_an_audit_is_not_compared_with_itself():
    audit = ComparedRun("audit", {}, {ScoreKey("f", "", "", "", "sex"): estimates(F=0.01)})
    with pytest.raises(ParameterError, match="an audit has one set of scores; give another run"):
        compare(audit, audit)


def test_gates():
    same = compare(OLD, run("new", m=estimates(F=0.010, M=0.012)), paired=False)
    assert no_worse(same).passed
    reach = same[0].high
    assert reach == pytest.approx(0.00196 * math.sqrt(2), rel=0.01)
    assert non_inferior(same, reach + 1e-4).passed
    assert not non_inferior(same, reach - 1e-4).passed
    z = 2.2414 + 0.8416  # of 1 − 0.025 / 2 and of 0.8
    assert same[0].detectable == pytest.approx(0.001 * math.sqrt(2) * z, rel=0.02)
    worse = compare(OLD, run("new", m=estimates(F=0.02, M=0.012)), paired=False)
    assert [each.group for each in no_worse(worse).against] == ["F"]


def test_a_rate_that_is_set_is_not_compared():
    with_all = estimates(F=0.01, M=0.012) | estimates(**{"global": 0.01})
    found = compare(run("a", m=with_all), run("b", m=with_all))
    assert [each.group for each in found] == ["F", "M"]


def test_only_ones_are_compared_whatever_their_names():
    new = run("new", feature="g", other=estimates(F=0.01, M=0.012))
    (first, _) = compare(OLD, new)
    assert (first.feature, first.method_a, first.method_b) == ("f → g", "m", "other")


def test_two_methods_of_one_run():
    both = run("r", m=estimates(F=0.010, M=0.012), n=estimates(F=0.010, M=0.014))
    found = compare(both, both, methods=("m", "n"))
    assert [(each.group, each.verdict) for each in found] == [
        ("F", "not told apart"),
        ("M", "worse"),
    ]
    with pytest.raises(ParameterError, match="name two of its methods: --method m,n"):
        compare(both, both)
    with pytest.raises(ParameterError, match="has no method 'k'"):
        compare(both, both, methods=("m", "k"))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (run("b", m=estimates(F=0.01, X=0.01)), "b: lacks the groups M of old"),
        (run("b", m=estimates(F=0.01)), "b: lacks the groups M of old"),
        (run("b", m=estimates(F=0.01, M=0.01, N=0.01)), "old: lacks the groups N of b"),
        (run("b", attribute="age", m=estimates(F=0.01)), "no attribute in common: sex"),
        (
            run("b", n=estimates(F=0.01), k=estimates(F=0.01)),
            "no method in common: m in the one, n, k in the other; name one of each",
        ),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(other, says):
    with pytest.raises(DataError, match=says):
        compare(OLD, other)


def test_other_operating_points_are_refused():
    moved = {(g, "global_fpr=0.1", m): e for (g, _, m), e in estimates(F=0.1, M=0.1).items()}
    with pytest.raises(DataError, match=r"lacks the operating points global_fpr=0.01 of old"):
        compare(OLD, run("b", m=moved))


def test_a_metric_must_be_there():
    with pytest.raises(ParameterError, match="'auroc' is not in both runs; known: fpr"):
        compare(OLD, run("b", m=estimates(F=0.01, M=0.01)), metrics=["auroc"])


def test_notes_say_what_is_to_be_known():
    assert notes(OLD, OLD) == []
    other = run("new", people=None, data="2", m=estimates(F=0.01, M=0.01))
    unknown, data = notes(OLD, other)
    assert unknown.startswith("who is in the pairs is not known")
    assert "people of the same name are taken for the same person" in data


def benchmark(folder):
    """A folder of a benchmark with two methods that share all noise but a little."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    common = rng.normal(0, 0.01, 500)
    replicates, rows = [], []
    for method, value in (("baseline", 0.90), ("faircal", 0.93)):
        front = ("f", method, "", "", "sex", "global", "", "auroc")
        own = (common + rng.normal(0, 0.002, 500)).astype(np.float32)
        replicates.append(Replicated(*front, value, own))
        row = Result("d", "f", method, "", "", "0", "mean", *front[4:], value)
        rows.append(row._replace(low=value - 0.02, high=value + 0.02, level=0.95))
    write_results(folder, rows)
    write_run(folder, {"kind": "benchmark"})
    write_replicates(folder / "replicates.parquet", replicates)
    return folder


def test_differences_to_a_reference(tmp_path):
    folder = benchmark(tmp_path / "run")
    run = ComparedRun.read(folder)
    (found,) = differences(run)
    assert (found.method_a, found.method_b, found.metric) == ("baseline", "faircal", "auroc")
    assert found.verdict == "better"
    assert found.high - found.low < 0.02  # either alone is 0.04 wide
    assert differences(run, reference="oracle") == []
    write_differences(folder, {}, read_results(folder))
    assert repr(ResultsFolder.read(folder).comparisons) == repr([found])


def test_replicates_that_are_damaged_or_gone(tmp_path):
    folder = benchmark(tmp_path / "run")
    damaged = folder / "replicates.parquet"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(DataError, match=r"replicates.parquet: cannot be read"):
        ComparedRun.read(folder)
    damaged.unlink()
    with pytest.raises(DataError, match=r"no replicates.parquet.* again with this version"):
        ComparedRun.read(folder)
    write_differences(folder, {}, read_results(folder))
    assert ResultsFolder.read(folder).comparisons == []
