"""Tables and decisions read for monitoring, and the order that pairs come in."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from scipy.special import expit, logit

import faircal
from faircal.metrics import EvidenceBounds
from faircal.production.monitoring.pairs_in_use import PairsInUse, numbers_of
from faircal.production.monitoring.reading import cut_between_moments, open_source
from faircal.production.monitoring.run import in_random_order


@pytest.fixture(scope="module")
def model():
    data = faircal.simulate("small", seed=0, people=100, pairs=1000)
    found = faircal.Baseline().fit(data)
    faircal.survey(found, data)
    return found


def opened(model, tmp_path, /, **columns):
    path = tmp_path / "decisions.csv"
    pacsv.write_csv(pa.table(columns), path)
    return open_source(path, model, "ours")


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
    parts = list(source.parts())
    assert [score for part in parts for score in part.score] == [0.1, 0.4]
    assert [label for part in parts for label in part.labels()[1]] == [False]
    assert [place for part in parts for place in part.left_cluster] == [1, 0]
    assert [flag for part in parts for flag in part.left_outside] == [False, True]
    assert any("1 decisions of other models passed over" in text for text in source.notes)
    assert not any("--add" in text for text in source.notes)  # no remedy for an export


def test_probabilities_are_those_that_users_were_given(model, tmp_path):
    """Requests may be at different shares of genuine pairs; an empty column is none."""
    source = opened(
        model,
        tmp_path,
        kind=["verify"] * 3,
        score=[0.1, 0.2, 0.3],
        probability=[0.5, 0.6, 0.7],
        prior=[0.5, 0.4, 0.9],
        genuine=[1, 0, 1],
        left_cluster=pa.nulls(3),
        right_cluster=pa.nulls(3),
    )
    (part,) = source.parts()
    shown, genuine, _ = part.labels()
    assert shown.tolist() == part.probability.tolist() == [0.5, 0.6, 0.7]
    assert genuine.tolist() == [True, False, True]
    assert part.left_cluster is None


def test_labels_of_evidence_at_a_bound_tell_nothing(model, tmp_path):
    """It may be far stronger than was said. Without a share they are the model's own."""
    bounded = copy(model)
    bounded.about_ = replace(model.about_, evidence=EvidenceBounds(-2.0, 3.0, 20.0, 30.0))
    high = float(expit(3.0 + logit(0.01)))
    numbers = {"score": [0.1, 0.2, 0.3], "probability": [0.5, high, 0.3], "genuine": [1, 0, 1]}
    (part,) = opened(bounded, tmp_path, **numbers, prior=[0.5, 0.01, 0.3]).parts()
    assert part.labels()[0].tolist() == [0.5, 0.3]
    assert part.probability.tolist() == numbers["probability"]
    (part,) = opened(bounded, tmp_path, **numbers, at_bound=[0, 1, 0]).parts()
    assert part.labels()[0].tolist() == numbers["probability"]


def test_pairs_of_one_batch_staycut_between_moments():
    at = pa.array(list("aabbbbbcd"))
    table = pa.table({"at": at, "n": list(range(9))})
    cut = list(cut_between_moments(table.slice(start, 3) for start in (0, 3, 6)))
    assert [part["at"].to_pylist() for part in cut] == [list("aa"), list("bbbbbc"), ["d"]]
    assert pa.concat_tables(cut)["n"].to_pylist() == list(range(9))
    assert list(cut_between_moments([])) == []


def test_random_order_is_not_undone_by_the_watch(model):
    """The watch draws places in time with another seed."""
    n = np.arange(3000)
    (part,) = in_random_order(PairsInUse(n, n))
    places = np.random.default_rng(0).permutation(len(n))
    assert abs(np.corrcoef(places, part.score)[0, 1]) < 0.1


def test_ids_are_the_same_person_in_text_and_numbers_and_empty_ones_nobody():
    assert numbers_of(pa.array([7, 12])).tolist() == numbers_of(["7", "12"]).tolist() == [7, 12]
    found = numbers_of(["ann", "007", "7", None, "ann"])
    assert found[0] == found[4] > 2**61
    assert len({*found.tolist()}) == 4
    assert found[3] == -1
    assert (found[[0, 1, 2]] >= 0).all()  # below 0 is unknown
    assert numbers_of(pa.array([None], pa.string())).tolist() == [-1]


@pytest.mark.parametrize("count", [1000, 150_000])
def test_random_order_keeps_every_pair_whole(count):
    n = np.arange(count)
    labels = np.where(n % 2 == 0, n % 4 == 0, -1)
    pairs = PairsInUse(n / 1000, n / 2000, n, n + 1, left_person=n, genuine=labels)
    parts = list(in_random_order(pairs))
    assert len(parts) == (1 if count == 1000 else 3)
    order = np.concatenate([part.left_cluster for part in parts])
    assert sorted(order) == n.tolist()
    assert np.abs(np.corrcoef(order, n)[0, 1]) < 0.15
    for part in parts:
        at = part.left_cluster
        assert part.score.tolist() == (at / 1000).tolist()
        shown, genuine, person = part.labels()
        even = at[at % 2 == 0]
        assert shown.tolist() == (even / 2000).tolist()
        assert genuine.tolist() == (even % 4 == 0).tolist()
        assert person.tolist() == even.tolist()
        assert part.right_person is None
        assert part.left_outside is None


def test_parts_that_lack_a_column_are_unknown_there():
    parts = [
        PairsInUse(np.ones(2), np.ones(2), left_outside=np.array([True, False])),
        PairsInUse(np.zeros(1), np.zeros(1)),
    ]
    joined = PairsInUse.join(parts)
    assert joined.sides("outside").tolist() == [[1, 0, -1], [-1, -1, -1]]
    assert joined.score.tolist() == [1, 1, 0]
    assert joined.genuine is None


@pytest.mark.parametrize(
    ("persons", "by"),
    [((None, 7), "people"), ((5, None), "images"), ((5, 7), "images"), ((None, None), "people")],
)
def test_joined_pairs_are_identified_by_what_identifies_anybody(persons, by):
    one = np.ones(1)
    parts = [
        PairsInUse(
            one, one, left_person=None if who is None else np.array([who]), identified_by=kind
        )
        for who, kind in zip(persons, ("images", "people"), strict=True)
    ]
    assert PairsInUse.join(parts).identified_by == by
