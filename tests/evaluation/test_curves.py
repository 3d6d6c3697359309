"""Curves: counted from rankings, kept in a file, looked up by what they are of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.data import Groups
from faircal.evaluation.curves import (
    CURVES,
    Curves,
    ScoreSource,
    as_table,
    make_curves,
    read_curves,
)
from faircal.metrics import Ranking, rates_at_threshold
from faircal.metrics.measures import Rankings
from faircal.metrics.results import write_parquet

GENUINE = np.array([1, 0, 1, 0, 1, 0, 0, 1], bool)
SCORE = np.array([0.9, 0.2, 0.7, 0.1, 0.6, 0.4, 0.8, 0.3])
CODES = np.array([0, 0, 0, 0, 1, 1, 1, -1], np.int32)


@pytest.fixture
def rankings():
    return Rankings.of(SCORE, SCORE / 2, GENUINE, Groups(("A", "B"), CODES, CODES))


def test_each_group_and_all_pairs_of_scores_and_of_probabilities(rankings):
    curves = Curves(make_curves(rankings, ScoreSource("net", "m"), (-1.0, 1.0)))
    assert curves.sources == [ScoreSource("net", "m")]
    assert curves.groups() == ["A", "B"]
    assert [curves.get(g).n_genuine for g in ("global", "A", "B")] == [4, 2, 1]
    assert [curves.get(g).n_imposter for g in ("global", "A", "B")] == [4, 2, 2]
    assert len(curves.get("A").edges) == 2001
    assert len(curves.get("A", of="probability").edges) == 1091


def test_rates_of_a_curve_are_counted_rates(rankings):
    curves = Curves(make_curves(rankings, ScoreSource(), (-1.0, 1.0)))
    for of, values in (("score", SCORE), ("probability", SCORE / 2)):
        for group, rows in (("global", slice(None)), ("A", CODES == 0), ("B", CODES == 1)):
            found = curves.get(group, of)
            counted = rates_at_threshold(Ranking.of(values[rows], GENUINE[rows]), found.edges)
            np.testing.assert_array_equal(found.fpr, counted.fpr)
            np.testing.assert_array_equal(found.fnr, counted.fnr)


def test_a_method_that_ranks_by_its_probability_has_probability_edges_in_both():
    rankings = Rankings.of(SCORE, SCORE, GENUINE, None)
    curves = Curves(make_curves(rankings, ScoreSource(), (-1.0, 1.0)))
    assert curves.groups() == []
    np.testing.assert_array_equal(curves.get(of="score").edges, curves.get(of="probability").edges)


def test_folds_are_apart_or_pooled(rankings):
    both = [
        curve
        for fold in ("1", "2")
        for curve in make_curves(rankings, ScoreSource(fold=fold), (-1.0, 1.0))
    ]
    curves = Curves(both)
    assert curves.folds == ["1", "2"]
    assert curves.sources == [ScoreSource()]
    assert curves.get("A", fold="2").n_imposter == 2
    assert curves.get("A").n_imposter == 4
    with pytest.raises(DataError, match="fold 3"):
        curves.get("A", fold="3")


def test_the_source_must_be_told_where_there_are_several(rankings):
    one = Curves(make_curves(rankings, ScoreSource(method="one"), (-1.0, 1.0)))
    two = make_curves(rankings, ScoreSource(method="two"), (-1.0, 1.0))
    both = Curves([*one.rows, *two])
    assert len(both.sources) == 2
    with pytest.raises(ParameterError, match="there are 2"):
        both.get()
    assert both.get(source=ScoreSource(method="two", fold="7")).n_genuine == 4


def test_what_is_not_there_is_one_clear_error(rankings):
    curves = Curves(
        make_curves(Rankings.of(SCORE, None, GENUINE, None), ScoreSource(), (-1.0, 1.0))
    )
    assert curves.has("score")
    assert not curves.has("probability")
    with pytest.raises(DataError, match="no histogram of the probability"):
        curves.get(of="probability")


def test_written_and_read_back(rankings, tmp_path):
    curves = Curves(
        make_curves(rankings, ScoreSource("f", "m", "beta", "5", "1", "a"), (-1.0, 1.0))
    )
    write_parquet(tmp_path / CURVES, as_table(curves.rows))
    again = read_curves(tmp_path)
    assert again.sources == curves.sources
    for first, second in zip(curves.rows, again.rows, strict=True):
        assert first[:3] == second[:3]
        for name in ("edges", "genuine", "imposter", "total"):
            np.testing.assert_array_equal(
                getattr(first.histogram, name), getattr(second.histogram, name)
            )


def test_a_folder_without_curves_has_none(tmp_path):
    assert read_curves(tmp_path).sources == []
    assert as_table([]).num_rows == 0


def test_damaged_or_foreign_files_are_one_clear_error(tmp_path):
    (tmp_path / CURVES).write_bytes(b"PAR1 no parquet")
    with pytest.raises(DataError, match=r"curves\.parquet: cannot be read"):
        read_curves(tmp_path)
    pq.write_table(pa.table({"a": [1]}), tmp_path / CURVES)
    with pytest.raises(DataError, match=r"curves\.parquet: expected columns feature"):
        read_curves(tmp_path)


def test_an_audit_has_curves():
    found = faircal.audit(
        score=100 * SCORE,
        genuine=GENUINE,
        groups=np.where(CODES == 0, "A", "B"),
        score_range=(0, 100),
        feature="net",
        attribute="g",
        dataset="d",
    )
    assert found.curves.sources == [ScoreSource(feature="net", attribute="g")]
    histogram = found.curves.get("A")
    at = histogram.edges == 15.0
    assert histogram.fpr[at] == 0.5
