"""More columns of scored pairs: what they hold, and what a model may lack for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.calibrators.prior import SHARE_FIGURE
from faircal.methods.prior import Shift
from faircal.production.scoring import Adding, score_part
from faircal.production.scoring.run import COLUMNS


def test_all_columns_in_the_order_asked_for(model, halves):
    test = halves[1]
    names = ["decision", "outside", "similarity", "clusters", "log_likelihood_ratio"]
    share = model.diagnostics_.figures[SHARE_FIGURE]
    adding = Adding.of(model, [*names, "decision"])
    table = score_part(model, test, ["genuine"], Shift(share, 0.001), adding)
    columns = [column for name in names for column in COLUMNS[name]]
    expected = ["left", "right", "score", "probability", *columns, "prior", "genuine"]
    expected += ["left_identity", "right_identity"]  # who is in them, where that is known
    assert table.column_names == expected
    said = model.apply(test)
    np.testing.assert_array_equal(table["similarity"], test.scores)
    np.testing.assert_array_equal(table["decision"], said.score >= 0.6)
    ratio = faircal.log_likelihood_ratio(said.probability, calibrated_at=share)
    np.testing.assert_array_equal(table["log_likelihood_ratio"], ratio)  # whatever the prior
    images, clusters, distance = model.image_clusters(test)
    reach = model.about_.population.reach
    for side in ("left", "right"):
        where = np.searchsorted(images, getattr(test.pairs, side))
        np.testing.assert_array_equal(table[f"{side}_cluster"], clusters[where])
        outside = (distance > reach[clusters])[where]
        np.testing.assert_array_equal(table[f"{side}_outside"], outside)


def test_scores_stay_the_same(model, halves):
    """Clusters that are told to the model are those that it would have found."""
    test = halves[1]
    expected = model.apply(test)
    table = score_part(model, test.subset(np.arange(900)), adding=Adding.of(model, ["clusters"]))
    np.testing.assert_array_equal(table["probability"], expected.probability[:900])


def test_nothing_asked_for(model, halves):
    test = halves[1]
    assert score_part(model, test, adding=Adding.of(model, ())).equals(score_part(model, test))


@pytest.mark.parametrize("name", ["clusters", "outside"])
def test_no_population(name, make):
    with pytest.raises(ParameterError, match=f"--add {name}: the model says nothing of the images"):
        Adding.of(make("baseline", population=False), [name])


def test_no_embeddings(make, halves, tmp_path):
    model = make("baseline")
    test = halves[1]
    table = pa.table({"genuine": test.genuine, "score": test.scores})
    pq.write_table(table, tmp_path / "scores.parquet")
    scores = faircal.load(tmp_path / "scores.parquet")
    with pytest.raises(DataError, match="has no embeddings"):
        score_part(model, scores, adding=Adding.of(model, ["outside"]))
    found = score_part(model, scores, adding=Adding.of(model, ["similarity"]))
    np.testing.assert_array_equal(found["similarity"], test.scores)


def test_no_operating_point(make):
    model = make("baseline")
    model.about_ = replace(model.about_, operating_point=None)
    with pytest.raises(ParameterError, match="no operating point; give it one with 'faircal thres"):
        Adding.of(model, ["decision"])


def test_no_share(make):
    model = make("baseline")
    del model.diagnostics_.figures[SHARE_FIGURE]
    with pytest.raises(ParameterError, match="--add log_likelihood_ratio: the model does not say"):
        Adding.of(model, ["log_likelihood_ratio"])


def test_unknown_columns(model):
    with pytest.raises(ParameterError, match="--add cluster: no such column; did you mean"):
        Adding.of(model, ["cluster"])
