"""What ``faircal monitor`` takes of an export of the service's decisions."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import faircal
from faircal.calibrators.prior import shift_prior
from faircal.methods.prior import fitted_share
from faircal.production.monitoring.pairs_in_use import PairArrays
from faircal.production.monitoring.reading import ScoredTable, _together, in_random_order


@pytest.fixture(scope="module")
def model():
    data = faircal.simulate("small", seed=0, people=100, pairs=1000)
    found = faircal.Baseline().fit(data)
    faircal.describe(found, data)
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


def test_a_night_without_decisions_is_quiet(model, run_here, tmp_path):
    model.save(tmp_path / "m.faircal")
    path = tmp_path / "night.csv"
    path.write_text("id,at,kind,key,model,score,probability,same\r\n")
    done = run_here(["monitor", str(tmp_path / "m.faircal"), str(path), "--json"])
    assert done.code == 0, done.err
    assert json.loads(done.out)["pairs"] == 0
    assert "there are no pairs in it" in done.err
