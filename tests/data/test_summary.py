"""Pairs that can't be right, counted: by hand, against a loop, and part by part."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircal import DataError, Dataset, load
from faircal.data.columns import Column
from faircal.data.summary import MOST_WRONG, DataSummary, WrongPairs, check_direction

#: Six images of three people; two more of nobody known.
PEOPLE = np.array([0, 0, 1, 1, 2, 2, -1, -1], np.int32)
images = st.integers(0, len(PEOPLE) - 1)
pairs = st.lists(st.tuples(images, images, st.booleans()), min_size=1, max_size=40)


def dataset(rows, known=True):
    left, right, genuine = (np.array(column) for column in zip(*rows, strict=True))
    data = Dataset(
        embeddings=np.eye(len(PEOPLE), dtype=np.float32),
        pairs={"left": left, "right": right, "genuine": genuine, "fold": 1 + np.arange(len(rows))},
    )
    column = Column(PEOPLE, ("a", "b", "c")) if known else None
    whole = Dataset.assemble(
        "data", replace(data.images, identity=column), data.pairs, dict(data.features)
    )
    assert whole.fold_names[0] == 1
    return whole


def counted(*parts):
    """What `DataSummary` comes to, kept and restored after each part."""

    def add(total, part):
        new, again = DataSummary(len(PEOPLE)), DataSummary(len(PEOPLE))
        new.add(part)
        total.merge(new)
        again.restore(*total.state())
        return again

    return reduce(add, parts, DataSummary(len(PEOPLE))).wrong


def test_each_kind():
    wrong = WrongPairs.of(
        dataset(
            [
                (0, 1, True),
                (0, 1, False),  # one person
                (0, 2, True),  # two people
                (0, 2, False),
                (4, 4, True),  # one image
                (5, 5, False),  # one image, and one person
                (6, 7, True),
                (7, 6, False),  # labelled both ways, and nobody knows who they are
                (6, 0, True),
                (6, 0, True),  # twice alike is not wrong
            ]
        )
    )
    assert wrong.kinds == {
        "genuine pairs of two different identities": [1, "images 0 and 2"],
        "imposter pairs of one identity": [2, "images 0 and 1"],
        "pairs of an image with itself": [2, "images 4 and 4"],
        "pairs labelled both genuine and imposter": [1, "images 7 and 6"],
    }
    assert (wrong.pairs, wrong.wrong) == (10, 5)  # one is of two kinds


@given(pairs, st.booleans())
def test_against_a_loop(rows, known):
    who = PEOPLE if known else np.full(len(PEOPLE), -1)
    expected = 0
    for left, right, genuine in rows:
        named = who[left] >= 0 and who[right] >= 0
        labels = {same for a, b, same in rows if {a, b} == {left, right}}
        unlike = named and genuine != (who[left] == who[right])
        both = not named and not genuine and len(labels) == 2
        expected += left == right or unlike or both
    assert WrongPairs.of(dataset(rows, known)).wrong == expected


@given(pairs, st.integers(0, 40))
def test_parts_in_any_order(rows, cut):
    """With known people: labels of pairs in other parts are not compared."""
    data = dataset([row for row in rows if max(row[:2]) < 6] or [(0, 1, True)])
    first, second = (
        data.subset(np.arange(len(data)) < cut),
        data.subset(np.arange(len(data)) >= cut),
    )
    expected = vars(WrongPairs.of(data))
    for parts in ((first, second), (second, first)):
        found = vars(counted(*parts))
        assert (found["pairs"], found["wrong"]) == (expected["pairs"], expected["wrong"])
        assert {k: n for k, (n, _) in found["kinds"].items()} == {
            k: n for k, (n, _) in expected["kinds"].items()
        }


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_one_in_a_hundred_may_be_wrong(wrong):
    assert MOST_WRONG == 0.01
    data = dataset([(0, 2, True)] * wrong + [(0, 1, True)] * (100 - wrong))
    found = WrongPairs.of(data)
    told = (
        rf"data: {wrong} of 100 pairs \({wrong} %\) can't be right: {wrong} genuine pairs of two "
    )
    told += (
        r"different identities \(for example images 0 and 2\); correct the label or the identity "
        r"\(a person's, not an image's\)"
    )
    if wrong == 2:
        with pytest.raises(
            DataError, match=told + "; data with more than 1 % of such pairs is refused"
        ):
            found.check("data")
    else:
        assert len(found.check("data")) == wrong
        assert all(re.fullmatch(told, note) for note in found.check("data"))


def test_a_table_names_people(tmp_path):
    from faircal import open_stream

    path = tmp_path / "t.csv"
    lines = ["genuine,score,left_identity,right_identity", *["1,0.5,a,a"] * 7, "1,0.5,a,b"]
    path.write_text("\n".join([*lines, "0,0.5,,a"]))
    summary = open_stream(path, batch=3).reduce(DataSummary)
    assert summary.wrong.kinds == {
        "genuine pairs of two different identities": [1, "people a and b"]
    }


def test_labels_the_wrong_way_round_are_refused_where_nothing_else_tells(tmp_path):
    rng = np.random.default_rng(0)
    genuine = np.arange(400) % 2 == 0
    score = np.where(genuine, -0.2, 0.2) + rng.normal(size=400) / 5

    def scored(rows, score=score, **people):
        table = pa.table({"genuine": genuine, "score": score, **people})
        pq.write_table(table.slice(0, rows), tmp_path / "scored.parquet")
        return load(tmp_path / "scored.parquet")

    note = (
        "genuine pairs score lower than imposter pairs, on average; labels may be reversed, or the "
        "score is a distance: give its negative"
    )
    with pytest.raises(DataError, match=f"{note}, or correct the labels; identities would tell"):
        check_direction(scored(400))
    left, right = np.arange(400), np.where(genuine, np.arange(400), 400 + np.arange(400))
    (said,) = check_direction(scored(400, left_identity=left, right_identity=right))
    assert said.endswith(note)
    (said,) = check_direction(scored(6))  # too few to be sure
    assert said.endswith(note)
    assert check_direction(scored(400, -score)) == []
