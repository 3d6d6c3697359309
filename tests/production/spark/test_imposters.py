"""Imposter pairs made on Spark's workers: all of them, or some, each once."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import faircal
from faircal._base.errors import DataError, ParameterError
from faircal.data.columns import SOMEWHERE
from faircal.data.writers import save_dataset
from faircal.production.scoring import score_part
from faircal.production.spark import Blocks, gallery, score
from faircal.production.spark.strangers import drawing, headcount
from faircal.production.spark.strangers.drawing import PART
from faircal.production.spark.strangers.imposters import imposters

pytestmark = pytest.mark.usefixtures("spark")


def made(seed=0, n=60):
    """Return a small gallery: people of several images, in one or two groups, some unknown."""
    rng = np.random.default_rng(seed)
    person = [f"p{code}" if code else "" for code in rng.integers(0, 20, n)]
    return faircal.Dataset(
        embeddings=rng.standard_normal((n, 8)),
        pairs={"left": ["i0"], "right": ["i1"], "genuine": [0], "fold": [1]},
        attributes={
            "image_id": [f"i{k}" for k in range(n)],
            "identity": person,
            "ethnicity": rng.choice(["A", "B", "C", ""], n),
            "gender": rng.choice(["F", "M"], n),
        },
    )


def allowed(data, groups="any", attribute="ethnicity"):
    """Return the ids of all allowed pairs, one after the other."""
    person = data.images.identity.codes
    group = data.image_groups(attribute).codes
    ids = data.images.ids.to_pylist()
    found = set()
    for one, two in itertools.combinations(range(len(ids)), 2):
        known = min(person[one], person[two]) >= 0
        known &= groups == "any" or min(group[one], group[two]) >= 0
        fits = groups == "any" or (group[one] == group[two]) == (groups == "within")
        if known and fits and person[one] != person[two]:
            found.add((ids[one], ids[two]))
    return found


def by_spark(pairs):
    """Return the ids of pairs as Spark's workers make them."""
    table = pairs.as_frame().toArrow()
    assert not any(table["genuine"].to_pylist())
    return list(zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True))


def by_hand(pairs):
    """Return the ids of pairs as the workers' reader makes them here."""
    found = []
    items = pa.record_batch({"item": np.arange(len(pairs.reader.items))})
    for part in pairs.reader.parts([items]):
        ids = [part.images.ids.take(pa.array(side)) for side in (part.pairs.left, part.pairs.right)]
        found += zip(*(side.to_pylist() for side in ids), strict=True)
        assert not part.genuine.any()
    return found


@pytest.fixture(scope="module")
def data():
    return made()


@pytest.fixture(scope="module")
def blocks(spark, data, tmp_path_factory):
    folder = save_dataset(data, tmp_path_factory.mktemp("imposters") / "faces")
    return Blocks.write(spark, folder, folder.parent / "blocks", rows_per_block=20)


@pytest.fixture
def small(monkeypatch):
    """Blocks of 16 images, so that there are several."""
    monkeypatch.setattr(gallery, "BLOCK", 16)


@pytest.mark.parametrize("groups", ["any", "within", "across"])
def test_all_of_them(spark, data, blocks, groups):
    attribute = None if groups == "any" else "ethnicity"
    expected = allowed(data, groups)
    for templates in (data, blocks):
        pairs = imposters(spark, templates, groups=groups, attribute=attribute)
        assert len(pairs) == len(expected)
        assert sorted(by_hand(pairs)) == sorted(expected)
        if groups == "within":
            assert sorted(by_spark(pairs)) == sorted(expected)


@pytest.mark.parametrize("groups", ["any", "across"])
def test_some_of_them(spark, data, blocks, groups):
    attribute = None if groups == "any" else "ethnicity+gender"
    expected = allowed(data, groups, "ethnicity+gender")
    for templates in (data, blocks):
        of = {"groups": groups, "attribute": attribute}
        pairs = imposters(spark, templates, n=300, **of)
        found = by_hand(pairs)
        assert len(found) == len(set(found)) == len(pairs) == 300
        assert set(found) <= expected
        assert set(by_hand(imposters(spark, templates, n=300, **of))) == set(found)
        assert set(by_hand(imposters(spark, templates, n=300, seed=1, **of))) != set(found)
        every = imposters(spark, templates, n=len(expected), **of)
        assert set(by_hand(every)) == expected


def test_the_same_pairs_whatever_the_number_of_tasks(spark, blocks):
    pairs = imposters(spark, blocks, n=200)
    again = replace(pairs, frame=pairs.frame.repartition(2))
    assert len(pairs.reader.items) > 2
    assert sorted(by_spark(again)) == sorted(by_hand(pairs))


def test_pairs_of_tiles_are_drawn_as_of_one(data):
    """Over many seeds each pair is drawn equally often, though tiles are drawn one by one."""
    from faircal.production.spark.strangers.generating import Generated, Rule

    sent = gallery.Sent.of_data(data)
    person, _ = Rule("any", None, None, 0).codes(data.images, "")
    block = np.arange(len(person)) // 20
    strangers = headcount.Headcount.of(3, block, person).strangers("any")
    counts = np.zeros((len(person), len(person)), dtype=int)
    vars(sent)["block_sizes"] = np.array([20, 20, 20])
    runs, n = 300, 200
    for seed in range(runs):
        items = headcount.Items.of(strangers, n, seed)
        reader = Generated(sent, Rule("any", None, n, seed), items, "embedding")
        batch = pa.record_batch({"item": np.arange(len(items))})
        for part in reader.parts([batch]):
            np.add.at(counts, (part.pairs.left, part.pairs.right), 1)
    valid = (person[:, None] >= 0) & (person >= 0) & (person[:, None] != person)
    valid = np.triu(valid)
    assert counts[~valid].sum() == 0
    share = n / valid.sum()
    spread = counts[valid].var() / (runs * share * (1 - share))
    assert counts.sum() == runs * n
    assert 0.85 < spread < 1.15  # binomial, as far as 1,500 pairs tell


def test_parts_are_short(data, monkeypatch):
    from faircal.production.spark.strangers import generating
    from faircal.production.spark.strangers.generating import Generated, Rule

    monkeypatch.setattr(drawing, "_EDGE", 8)
    monkeypatch.setattr(generating, "PART", 100)
    strangers = np.array([[len(allowed(data))]])
    items = headcount.Items.of(strangers, None, 0)
    reader = Generated(gallery.Sent.of_data(data), Rule("any", None, None, 0), items, "embedding")
    parts = list(reader.parts([pa.record_batch({"item": [0]})]))
    assert sum(map(len, parts)) == strangers.sum()
    assert max(map(len, parts)) <= 100
    assert np.mean([len(part) for part in parts]) > 50  # few are put together
    assert all((part.pairs.left < part.pairs.right).all() for part in parts)
    assert PART == 1 << 18


@pytest.mark.parametrize("n", [None, 40])  # of 40 pairs in six tiles, few images are read
def test_scores_are_those_of_one_machine(spark, data, blocks, n, small):
    model = faircal.Baseline().fit(faircal.simulate("small", seed=0))
    everybody = gallery.Sent.of_data(data).parts
    for templates in (data, blocks):
        pairs = imposters(spark, templates, n=n)
        found = score(model, pairs, keep=["genuine", "ethnicity"]).toArrow()
        assert found.num_rows == len(pairs) == (n or len(allowed(data)))
        table = found.select(["left", "right", "genuine"])
        here = everybody.build(table, SOMEWHERE, False, (-1.0, 1.0))
        expected = score_part(model, here, ["genuine", "ethnicity"])
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist(), name


def test_what_is_known_of_them(spark, data, blocks):
    for templates in (data, blocks):
        pairs = imposters(spark, templates, n=100, groups="within")
        assert pairs.reader.rule.attribute == "ethnicity+gender"
        assert (len(pairs), pairs.has_folds, pairs.features) == (100, False, ("embedding",))
        assert pairs.attributes == ("ethnicity", "gender")
        head = pairs.head()
        assert 0 < len(head) <= 16
        assert not head.genuine.any()
        other = imposters(spark, templates, n=99, groups="within")
        assert pairs.fingerprint() != other.fingerprint()
        same = imposters(spark, templates, n=100, groups="within")
        assert pairs.fingerprint() == same.fingerprint()


def test_a_sample_of_them(spark, blocks):
    pairs = imposters(spark, blocks, n=100, groups="within")
    some = pairs.sample(30)
    assert len(some) == 30
    assert (some.groups("ethnicity+gender").pair >= 0).all()


def test_what_travels_is_small(spark, blocks):
    reader = imposters(spark, blocks, n=100).reader
    next(reader.parts([pa.record_batch({"item": [0]})]))
    assert len(pickle.dumps(reader)) < 5000


def test_a_vector_that_is_of_no_use_is_named(spark, data):
    vectors = np.array(data.embeddings.vectors)
    row = int(np.flatnonzero(data.images.identity.codes >= 0)[5])
    vectors[row] = 0
    sent = gallery.Sent.of_data(data)
    broken = replace(sent.held, embeddings={"embedding": replace(data.embeddings, vectors=vectors)})
    with pytest.raises(DataError, match=rf"row {row + 1} .*zero vector"):
        by_spark(imposters(spark, gallery.Sent(broken)))


@pytest.mark.parametrize(
    ("of", "error", "message"),
    [
        ({"groups": "between"}, ParameterError, "groups: unknown kind 'between'"),
        ({"attribute": "gender"}, ParameterError, "attribute: expected groups 'within'"),
        ({"n": 0}, ParameterError, "n: expected a whole number of 1"),
        ({"n": 10**6}, ParameterError, r"n: expected 1,\d+ at most"),
        ({"seed": -1}, ParameterError, "seed: expected"),
        ({"groups": "within", "attribute": "gendre"}, DataError, "did you mean gender"),
        ({"embeddings": "tile"}, ParameterError, "embeddings: unknown way"),
    ],
)
def test_what_is_refused(spark, data, of, error, message):
    with pytest.raises(error, match=message) as raised:
        imposters(spark, data, **of)
    assert "\n" not in str(raised.value)


def test_galleries_without_imposters(spark):
    vectors = np.eye(3)
    pairs = {"left": [0], "right": [1], "genuine": [1], "fold": [1]}
    nobody = faircal.Dataset(embeddings=vectors, pairs=pairs)
    with pytest.raises(DataError, match="expected a column 'identity'"):
        imposters(spark, nobody)
    one = faircal.Dataset(embeddings=vectors, pairs=pairs, attributes={"identity": ["a"] * 3})
    with pytest.raises(DataError, match="expected images of two known people"):
        imposters(spark, one)
    with pytest.raises(DataError, match="no attribute column"):
        imposters(spark, one, groups="within")
