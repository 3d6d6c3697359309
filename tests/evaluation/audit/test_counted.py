"""Audits of pairs in parts: what is exact is exact, the rest within its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from faircal import DataError, ParameterError, audit
from faircal._base.container import cut, pack, unpack
from faircal.data import Dataset
from faircal.evaluation.audit import Auditor, ScoredPairs
from faircal.methods.base import Output

NAMES = np.array(["A", "B", "C", ""])


def draw(seed=0, n=900):
    """Pairs of three groups, some cross-group and some unknown, with people."""
    rng = np.random.default_rng(seed)
    genuine = rng.random(n) < 0.4
    left = rng.integers(0, 4, n)
    right = np.where(rng.random(n) < 0.7, left, rng.integers(0, 4, n))
    score = np.clip(rng.normal(np.where(genuine, 0.5, 0.1) + 0.1 * (left == 1), 0.2), -1, 1)
    score[::9] = score[::9].round(1)
    score[:3] = 1.0, -1.0, 1.7  # at the ends, and beyond as some methods shift them
    return {
        "genuine": genuine,
        "score": score,
        "probability": 1 / (1 + np.exp(-25 * (score - 0.35))),
        "groups": np.stack([NAMES[left], NAMES[right]], axis=1),
        "left_identity": np.char.add("p", rng.integers(0, 60, n).astype(str)),
        "right_identity": np.char.add("p", rng.integers(0, 60, n).astype(str)),
    }


def rows(sample, which):
    return {key: value[which] for key, value in sample.items()}


def audited(sample, cuts=(300, 301, 700), **settings):
    auditor = Auditor(**settings)
    for part in np.split(np.arange(len(sample["genuine"])), cuts):
        if len(part):
            auditor.count(ScoredPairs.of(**rows(sample, part)))
    return auditor


def same_counts(one, two):
    """Whether nothing differs, to the last digit."""
    assert one.groups == two.groups
    assert one.people == two.people
    np.testing.assert_equal(one.measures, two.measures)


def check(found, exact):
    """Whether a counted audit gives nearly the numbers of the exact one."""
    assert found.groups == exact.groups
    assert found.people == exact.people
    assert [each.what for each in found.measures] == [each.what for each in exact.measures]
    for one, true in zip(found.measures, exact.measures, strict=True):
        assert (one.trials, one.group) == pytest.approx((true.trials, true.group), nan_ok=True)
        assert one.value == pytest.approx(true.value, abs=0.02, rel=0.2, nan_ok=True), one.what
    for one, two in zip(found.curves, exact.curves, strict=True):
        assert one[:3] == two[:3]
        for name in ("edges", "genuine", "imposter"):
            expected = getattr(two.histogram, name)
            np.testing.assert_array_equal(getattr(one.histogram, name), expected)
        np.testing.assert_allclose(one.histogram.total, two.histogram.total, atol=1e-6)


@pytest.mark.parametrize("without", [(), ("probability",), ("score",), ("groups",)])
def test_nearly_exact(without):
    sample = {key: value for key, value in draw().items() if key not in without}
    settings = {"threshold": 0.3217, "rates": (0.02, 0.2), "feature": "net", "attribute": "g"}
    check(audited(sample, **settings).finish(), audit(**sample, **settings))


def test_rates_at_the_threshold_are_exact():
    sample = draw()
    at = float(sample["score"][17])
    found, exact = audited(sample, threshold=at).finish(), audit(**sample, threshold=at)
    for group in ("global", *exact.groups):
        for metric in ("fpr", "fnr", "tpr"):
            assert found.value(metric, group=group) == exact.value(metric, group=group)


def test_neither_parts_nor_their_order_change_a_digit():
    sample = draw()
    whole = audited(sample, (), threshold=0.3).finish()
    same_counts(audited(sample, (1, 2, 450), threshold=0.3).finish(), whole)
    shuffled = rows(sample, np.random.default_rng(1).permutation(900))
    same_counts(audited(shuffled, (13, 800), threshold=0.3).finish(), whole)


def test_merging_is_counting_together():
    sample = draw()
    late = (sample["groups"] == "A").any(axis=1)
    one, two = (audited(rows(sample, half), ()) for half in (~late, late))
    assert (one.names, two.names) == (["B", "C"], ["A", "B", "C"])
    one.merge(two)
    whole = audited(sample, ()).finish()
    same_counts(one.finish(), whole)
    fresh = Auditor()
    fresh.merge(one)
    fresh.merge(Auditor())
    same_counts(fresh.finish(), whole)
    assert fresh.shares == audited(sample, ()).shares


def test_other_kinds_of_pairs_cannot_be_counted_together():
    sample = draw()
    auditor = audited(sample)
    del sample["probability"]
    with pytest.raises(DataError, match="expected pairs with score and probability and groups"):
        auditor.count(ScoredPairs.of(**sample))
    with pytest.raises(DataError, match="expected counts of score and probability"):
        auditor.merge(audited(sample))


def test_groups_may_turn_up_later_and_are_sorted():
    auditor = Auditor()
    for name in "DBA":
        auditor.count(ScoredPairs.of([1, 0], score=[0.9, 0.1], groups=[name, name]))
    found = auditor.finish()
    assert found.groups == ("A", "B", "D")
    assert found.trials == {"global": (3, 3), "A": (1, 1), "B": (1, 1), "D": (1, 1)}


def test_groups_that_are_known_keep_their_order_and_may_be_empty():
    auditor = Auditor(groups=["B", "E", "A"])
    auditor.count(ScoredPairs.of([1, 0], score=[0.9, 0.1], groups=["A", "B"]))
    auditor.count(ScoredPairs.of([1, 0], score=[0.9, 0.1], groups=["D", "C"]))
    found = auditor.finish()
    assert found.groups == ("B", "E", "A", "C", "D")
    assert found.trials["E"] == (0, 0)


@pytest.mark.parametrize("name", ["global", "all"])
def test_a_group_may_not_take_the_name_of_a_total(name):
    with pytest.raises(DataError, match=f"a group is called '{name}'"):
        Auditor(groups=[name])
    with pytest.raises(DataError, match=f"a group is called '{name}'"):
        Auditor().count(ScoredPairs.of([1], score=[0.9], groups=[name]))


def test_shares_and_the_unknown():
    auditor = audited(draw(), attribute="g")
    groups = draw()["groups"]
    unknown = (groups == "").any(axis=1)
    cross = (groups[:, 0] != groups[:, 1]) & ~unknown
    assert auditor.shares == {
        "pairs": 900,
        "cross_group_pairs": cross.sum(),
        "unknown_pairs": unknown.sum(),
    }
    (note,) = auditor.unknown_note()
    assert note.startswith(f"{unknown.sum()} of 900 pairs (")
    assert Auditor().unknown_note() == []


def test_a_checkpoint_brings_everything_back():
    sample = draw()
    whole = audited(sample, (), threshold=0.3).finish()
    first = audited(rows(sample, slice(400)), (), threshold=0.3)
    header, arrays = first.state()
    packed, body = unpack(pack(header, arrays))
    second = Auditor(threshold=0.3)
    second.restore(packed, cut(packed["arrays"], body))
    second.count(ScoredPairs.of(**rows(sample, slice(400, None))))
    same_counts(second.finish(), whole)


def test_a_checkpoint_of_nothing():
    header, arrays = Auditor().state()
    packed, body = unpack(pack(header, arrays))
    again = Auditor()
    again.restore(packed, cut(packed["arrays"], body))
    with pytest.raises(ParameterError, match="expected pairs, found none"):
        again.finish()


def test_parts_of_a_dataset_with_and_without_a_model():
    rng = np.random.default_rng(0)
    data = Dataset(
        embeddings=rng.normal(size=(40, 4)),
        pairs={
            "left": rng.integers(0, 20, 300),
            "right": rng.integers(20, 40, 300),
            "genuine": rng.random(300) < 0.5,
        },
        attributes={
            "identity": [f"p{i % 11}" for i in range(40)],
            "sex": [("F", "M")[i % 11 > 4] for i in range(40)],
        },
    )
    likely = (data.scores + 1) / 2
    for output in (None, Output(likely, likely), Output(data.scores + 0.7, likely)):
        auditor = Auditor(attribute="sex", groups=data.groups("sex").names)
        for part in np.array_split(np.arange(300), 4):
            said = None if output is None else Output(output.score[part], output.probability[part])
            if output is not None and output.score is output.probability:
                said = Output(said.score, said.score)
            auditor.add(data.subset(part), said)
        exact = audit(
            genuine=data.genuine,
            score=data.scores if output is None else output.score,
            probability=None if output is None else output.probability,
            groups=data.groups("sex"),
            attribute="sex",
            left_identity=data.images.identity.known(data.pairs.left),
            right_identity=data.images.identity.known(data.pairs.right),
        )
        check(auditor.finish(), exact)


def test_many_groups_are_counted_coarsely():
    few, many = (Auditor(groups=[f"g{i}" for i in range(n)]) for n in (100, 101))
    for auditor in (few, many):
        auditor.count(ScoredPairs.of(**draw()))
    sizes = [len(auditor._counts["score"].edges) for auditor in (few, many)]
    assert sizes[0] > 60_000
    assert sizes[1] < 2_100
