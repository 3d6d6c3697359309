"""Tables and decisions read for monitoring, and the order that pairs come in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.calibrators.prior import shift_prior
from faircal.methods.prior import fitted_share
from faircal.production.monitoring.pairs_in_use import PairArrays, PairsInUse
from faircal.production.monitoring.reading import (
    ScoredTable,
    WatchedPairs,
    _together,
    codes,
    in_random_order,
)


@pytest.fixture(scope="module")
def model():
    data = faircal.simulate("small", seed=0, people=100, pairs=1000)
    found = faircal.Baseline().fit(data)
    faircal.survey(found, data)
    return found


def opened(model, tmp_path, /, **columns):
    path = tmp_path / "decisions.csv"
    pacsv.write_csv(pa.table(columns), path)
    return ScoredTable.open(path, model, model.about_.population, None, "ours")


def test_only_verifications_of_this_model_count(model, tmp_path):
    source = opened(
        model,
        tmp_path,
        at=[f"2026-01-01T00:00:0{i}" for i in range(6)],
        kind=["verify", "identify", "enrol", "delete", "verify", "verify"],
        model=["ours", "ours", "ours", "ours", "theirs", "ours"],
        score=[0.1, 0.9, None, None, 0.3, 0.4],
        probability=[0.1, 0.9, None, None, 0.3, 0.4],
        genuine=[None, 1, None, None, 1, 0],
        left_cluster=[1, None, None, None, 99, 0],
        right_cluster=[2, None, None, None, 99, 3],
        left_outside=[0, None, None, None, 0, 1],
        right_outside=[0, None, None, None, 0, 0],
    )
    chunks = list(source.chunks())
    assert [score for chunk in chunks for score in chunk.pairs.score] == [0.1, 0.4]
    assert [label for chunk in chunks for label in chunk.genuine] == [False]
    assert [place for chunk in chunks for place in chunk.pairs.left_cluster] == [1, 0]
    assert [flag for chunk in chunks for flag in chunk.pairs.left_outside] == [False, True]
    assert any("1 decisions of other models passed over" in text for text in source.notes)
    assert not any("--add" in text for text in source.notes)  # no remedy for an export


def test_each_row_holds_for_the_share_of_its_request(model, tmp_path):
    share = fitted_share(model)
    source = opened(
        model,
        tmp_path,
        kind=["verify"] * 3,
        score=[0.1, 0.2, 0.3],
        probability=[0.5, 0.5, 0.5],
        prior=[share, 0.01, 0.9],
        left_cluster=pa.nulls(3),
        right_cluster=pa.nulls(3),
    )
    (chunk,) = source.chunks()
    expected = [0.5, *(shift_prior([0.5], calibrated_at=p, prior=share)[0] for p in (0.01, 0.9))]
    np.testing.assert_allclose(chunk.pairs.probability, expected)
    np.testing.assert_array_equal(chunk.shown, 0.5)  # labels are held against what was told
    assert chunk.pairs.left_cluster is None


def test_pairs_of_one_batch_stay_together():
    at = pa.array(list("aabbbbbcd"))
    table = pa.table({"at": at, "n": list(range(9))})
    cut = list(_together(table.slice(start, 3) for start in (0, 3, 6)))
    assert [part["at"].to_pylist() for part in cut] == [list("aa"), list("bbbbbc"), ["d"]]
    assert pa.concat_tables(cut)["n"].to_pylist() == list(range(9))
    assert list(_together([])) == []


def test_random_order_is_not_undone_by_the_watch(model, tmp_path):
    score = np.linspace(0, 1, 3000)
    source = opened(model, tmp_path, score=score, probability=score)
    (chunk,) = in_random_order(source.chunks(), len(source))
    columns = PairArrays.join([chunk.pairs], seed=0)
    places = np.empty(len(score))
    places[columns.slot] = columns.score
    assert abs(np.corrcoef(places, score)[0, 1]) < 0.1


def test_ids_are_the_same_person_in_text_and_numbers_and_empty_ones_nobody():
    assert codes(pa.array([7, 12])).tolist() == codes(["7", "12"]).tolist() == [7, 12]
    found = codes(["ann", "007", "7", None, "ann"])
    assert found[0] == found[4] > 2**61
    assert len({*found.tolist()}) == 4
    assert found[3] == -1
    assert (found[[0, 1, 2]] >= 0).all()  # below 0 is unknown
    assert codes(pa.array([None], pa.string())).tolist() == [-1]


@pytest.mark.parametrize("held", [1 << 20, 100])
def test_random_order_keeps_every_pair_whole(held):
    """Each pair keeps its own values, in memory as on disk."""
    n = np.arange(1000)
    seen = PairsInUse(n / 1000, n / 2000, left_cluster=n, right_cluster=n + 1, left_person=n)
    labelled = n % 2 == 0
    whole = WatchedPairs(seen, n / 3000, n[labelled] % 4 == 0, labelled)
    chunks = list(in_random_order([whole], len(n), held))
    assert len(chunks) == (1 if held > 1000 else 10)
    order = np.concatenate([chunk.pairs.left_cluster for chunk in chunks])
    assert sorted(order) == n.tolist()
    assert np.abs(np.corrcoef(order, n)[0, 1]) < 0.15
    for chunk in chunks:
        at = chunk.pairs.left_cluster
        assert chunk.pairs.score.tolist() == (at / 1000).tolist()
        assert chunk.shown.tolist() == (at / 3000).tolist()
        assert chunk.labelled.tolist() == (at % 2 == 0).tolist()
        assert chunk.genuine.tolist() == (at[at % 2 == 0] % 4 == 0).tolist()
        assert chunk.pairs.right_person is None
        assert chunk.pairs.left_outside is None


def test_random_order_of_nothing_is_nothing():
    assert list(in_random_order([], 0)) == []
