"""Audits count: thresholds lie between two scores, errors are whole, ties are named."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import faircal
from faircal.data import load, open_stream
from faircal.evaluation.audit import audit_parts, collected
from faircal.metrics import Ranking, counted_threshold
from faircal.metrics.error_rates import between
from faircal.report.wording import exact

RATES = (0.01, 0.2)
#: A score, and whether it is of a scale with steps.
SCALES = {
    "whole": st.integers(0, 20).map(float),
    "rounded": st.integers(-1000, 1000).map(lambda n: n / 1000),
    "single": st.floats(-1, 1, width=32),
    "double": st.floats(-1, 1),
}


def errors(audit, condition, kind="fpr"):
    """Errors, and pairs, of all pairs and of each group; the FNR alone where that was set."""
    return {
        (row.group, row.metric): (row.errors, row.trials)
        for row in audit.measures
        if (row.condition, row.trials > 0) == (condition, True) and row.metric in ("fnr", kind)
    }


@pytest.mark.parametrize("scale", SCALES)
@settings(max_examples=50)
@given(data=st.data(), rate=st.sampled_from([0.001, 0.03, 0.1, 0.35, 0.99]))
def test_an_audit_at_a_threshold_that_one_printed_counts_the_same(scale, data, rate):
    n = data.draw(st.integers(2, 60))
    score = np.array(data.draw(st.lists(SCALES[scale], min_size=n, max_size=n)))
    genuine = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    groups = np.resize(["A", "B", "B"], n)
    pairs = {"score": score, "genuine": genuine, "groups": groups, "score_range": (-1, 20)}
    first = faircal.audit(**pairs, rates=[rate])
    for kind, of_kind in (("fpr", ~genuine), ("fnr", genuine)):
        under = f"global_{kind}={rate:g}"
        at = first.value("threshold", condition=under)
        if not of_kind.any():
            assert np.isnan(at)
            continue
        counted = errors(first, under, kind)
        again = faircal.audit(**pairs, rates=[rate], threshold=float(exact(at)))
        assert counted == errors(again, "", kind)
        assert all(wrong == int(wrong) for wrong, _ in counted.values())
        # Of all that decide differently the last one that keeps to the rate.
        cuts = np.unique(np.append(score, np.inf))
        wrong = [((score >= cut) == (kind == "fpr"))[of_kind].mean() for cut in cuts]
        kept = cuts[np.array(wrong) <= rate]
        best = kept.min() if kind == "fpr" else kept.max()
        np.testing.assert_array_equal(score >= at, score >= best)


@given(
    low=st.floats(-1e6, 1e6),
    high=st.floats(-1e6, 1e6),
)
def test_what_is_between_parts_the_two(low, high):
    low, high = min(low, high), max(low, high)
    if low < high:
        assert low < between(low, high) <= high


def test_by_hand():
    score = [90, 80, 80, 80, 70, 60, 50, 40]
    genuine = [1, 0, 0, 1, 1, 0, 1, 0]
    audit = faircal.audit(score=score, genuine=genuine, rates=[0.5, 0.25], score_range=(0, 100))
    assert audit.value("threshold", condition="global_fpr=0.5") == 65  # 2 of 4, and 60 would be 3
    assert audit.value("fpr", condition="global_fpr=0.5") == 0.5
    assert audit.value("threshold", condition="global_fpr=0.25") == 85  # two are tied at 80
    assert audit.value("fpr", condition="global_fpr=0.25") == 0
    assert audit.value("tpr", condition="fpr=0.25") == 0.25
    assert audit.value("threshold", condition="global_fnr=0.25") == 65  # 50 alone is missed
    assert audit.ties == {"global_fpr=0.25": 2}


def test_all_tied_at_the_top_none_is_accepted():
    ranking = Ranking.of([100, 100, 100, 50], [0, 0, 1, 0])
    (at,) = counted_threshold(ranking, "fpr", [0.1])
    assert at > 100
    assert counted_threshold(ranking, "fpr", 0.7) == 75


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = 2000
    genuine = rng.random(n) < 0.4
    columns = {
        "genuine": genuine,
        "score": rng.normal(0.4 * genuine, 0.2),
        "g": rng.choice(["A", "B"], n),
        "left_identity": rng.integers(0, 90, n),
        "right_identity": rng.integers(0, 90, n),
    }
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


@pytest.mark.parametrize("most", [2000, 1999])
def test_in_memory_streamed_or_in_bins(table, most, monkeypatch):
    """More pairs than are kept are counted in bins, whose edges thresholds then are."""
    monkeypatch.setattr(collected, "MOST_EXACT", most)
    how = {"attribute": "g", "rates": RATES}
    (one,) = audit_parts(open_stream(table, batch=300), ["score"], **how).audits
    (two,) = audit_parts(load(table), ["score"], **how).audits
    for kind in ("fpr", "fnr"):
        for rate in RATES:
            under = f"global_{kind}={rate:g}"
            at = one.value("threshold", condition=under)
            (again,) = audit_parts(load(table), ["score"], **how, threshold=at).audits
            assert errors(one, under, kind) == errors(again, "", kind)
            if most == 2000:
                assert at == two.value("threshold", condition=under)
