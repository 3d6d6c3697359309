"""Regions of embedding space: weights and variances by hand, what is found, what is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset
from faircal.data.types import people_of
from faircal.evaluation.audit import region_search, regions
from faircal.evaluation.audit.region_search import (
    HalfOfPeople,
    _WeightSums,
    split_people,
    usable_resolutions,
)
from faircal.evaluation.audit.regions import (
    RegionRow,
    distinct,
    find_regions,
    read_record,
)
from faircal.metrics.intervals.dyadic import Dyads, IdentifiedPairs
from faircal.metrics.results import read_rows, write_rows
from faircal.report.figures.regions import region_figures, region_montages

SHOTS, DIMENSION = 3, 24


def population(people: int, effect: float, seed: int, attribute: bool = False) -> Dataset:
    """Draw people with images; the first quarter has directions in common that add `effect`."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((people, DIMENSION))
    unfair = np.arange(people) < people // 4
    own[unfair] = (
        np.sqrt(effect) * rng.standard_normal(DIMENSION) + np.sqrt(1 - effect) * own[unfair]
    )
    person = np.repeat(np.arange(people), SHOTS)
    vectors = own[person] + 0.8 * rng.standard_normal((len(person), DIMENSION))
    first = SHOTS * np.arange(people)
    left = np.concatenate([first, first, rng.integers(0, len(person), 40 * people)])
    right = np.concatenate([first + 1, first + 2, rng.integers(0, len(person), 40 * people)])
    keep = left != right
    left, right = left[keep], right[keep]
    attributes = {"identity": person}
    if attribute:
        attributes["group"] = np.where(unfair[person], "U", "V")
    return Dataset(
        embeddings=vectors.astype(np.float32),
        pairs={"left": left, "right": right, "genuine": person[left] == person[right]},
        attributes=attributes,
    )


@pytest.fixture(scope="module")
def unfair():
    data = population(200, 0.5, seed=1, attribute=True)
    return data, find_regions(data, resolutions=(3, 10))


def half(**changes):
    """Four people with two images each (0 and 1, 2 and 3, …), two genuine pairs, four imposters."""
    left, right = np.array([0, 2, 0, 1, 4, 6]), np.array([1, 3, 2, 4, 6, 5])
    identified = IdentifiedPairs(left // 2 == right // 2, left // 2, right // 2, 4)
    made = HalfOfPeople(
        left,
        right,
        identified,
        np.array([0.9, 0.8, 0.7, 0.1, 0.2, 0.6]),
        np.array([0.8, 0.6, 0.5, 0.1, 0.2, 0.3]),
        0.5,
    )
    return replace(made, **changes)


def test_a_pair_belongs_by_half_to_the_region_of_each_of_its_images():
    found = half().test(np.isin(np.arange(8), [0, 1, 2]))
    # imposters (0, 2) wholly and (1, 4) by half; accepted are (0, 2) and (6, 5)
    assert found.fpr == pytest.approx(1 / 1.5)
    assert found.rest_fpr == pytest.approx(1 / 2.5)
    assert (found.people, found.images, found.pairs, found.imposters) == (2, 3, 4, 2)
    # genuine: (0, 1) wholly, (2, 3) by half; two of six pairs are genuine
    genuine = (-0.2 - 0.4 / 2) / 1.5
    imposters = (0.5 + 0.1 / 2) / 1.5
    assert found.gap == pytest.approx(genuine / 3 + imposters * 2 / 3)


def test_regions_share_out_all_pairs():
    data = population(60, 0.0, seed=0)
    people = people_of(data.pairs, data.images)[0]
    left, right = data.pairs.left, data.pairs.right
    identified = IdentifiedPairs(data.genuine, people[left], people[right], 60)
    whole = HalfOfPeople(left, right, identified, data.scores, np.full(len(data), 0.5), 0.3)
    region = np.arange(len(data.images)) % 5
    imposters = ~data.genuine
    weights = [
        ((region[left] == r).astype(float) + (region[right] == r))[imposters].sum() / 2
        for r in range(5)
    ]
    rates = [whole.test(region == r, intervals=False).fpr for r in range(5)]
    wrong = (data.scores >= 0.3)[imposters]
    assert np.dot(weights, rates) == pytest.approx(wrong.sum())


def test_the_variance_counts_couples_of_pairs_that_share_people():
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 6, (2, 40))
    keep = left != right
    left, right = left[keep], right[keep]
    weight = rng.random(len(left))
    expected = 0.0
    for i, j in product(range(len(left)), repeat=2):
        shared = len({left[i], right[i]} & {left[j], right[j]})
        expected += weight[i] * weight[j] * (1.0 if i == j else {0: 0, 1: 0.1, 2: 0.4}[shared])
    sums = _WeightSums.of(weight, Dyads(left, right))
    assert sums.variance(np.array(0.4), np.array(0.1)) == pytest.approx(expected)


def test_halves_share_no_person_and_are_even():
    data = population(61, 0.0, seed=2)
    people = people_of(data.pairs, data.images)[0]
    halves = split_people(data, people, seed=0)
    sides = [
        set(people[data.pairs.left[h.pairs]]) | set(people[data.pairs.right[h.pairs]])
        for h in halves
    ]
    assert not sides[0] & sides[1]
    assert abs(halves[0].people - halves[1].people) <= 1
    assert not np.array_equal(halves[0].pairs, split_people(data, people, seed=1)[0].pairs)


def test_an_unfair_region_is_found(unfair):
    _, found = unfair
    worst = found.rows[0]
    assert worst.found
    assert worst.adjusted <= 0.05
    assert worst.low > worst.rest_fpr
    assert worst.composition.startswith("U ")
    assert "false matches" in found.words[1]
    assert np.mean([int(name) < 50 * SHOTS for name in worst.example_ids]) > 0.5
    for row in found.rows:
        assert not row.found or (row.p == row.p and row.adjusted <= found.q)
        assert row.fpr != row.fpr or row.low <= row.fpr <= row.high


def test_regions_alike_are_told_once(unfair):
    _, found = unfair
    order = [row.region for row in found.rows]
    alike = [row for row in found.rows if row.like]
    assert alike  # both halves and both numbers of clusters find the same people
    names = {row.region: row for row in found.rows}
    for row in alike:
        assert order.index(row.like) < order.index(row.region)
        assert row.found
        assert names[row.like].found  # for the same question
    told = [row.region for row in found.more_false_matches]
    assert 0 < len(told) < sum(row.found for row in found.rows)


def test_regions_are_alike_for_the_same_question_only(monkeypatch):
    data = population(200, 0.5, seed=1)
    decide = region_search._decide

    def one_each(candidates):
        """Let the worst be found for its calibration alone, and all others for false matches."""
        decide(candidates)
        for number, candidate in enumerate(sorted(candidates, key=lambda c: -c.shown.fpr)):
            candidate.tests = {"p": 0.01} if number else {"gap_p": 0.001}

    monkeypatch.setattr(region_search, "_decide", one_each)
    monkeypatch.setattr(regions, "_alike", lambda one, other: True)
    found = find_regions(data, resolutions=(3,))
    (gap, other), rows = found.rows[:2], found.rows[2:]
    assert (gap.gap_like, other.gap_like) == ("", gap.region)  # one of each half
    assert not rows[0].like  # though it is like those found for calibration
    assert {row.like for row in rows[1:]} == {rows[0].region}
    assert found.more_false_matches == distinct(found.rows, "fpr") == [rows[0]]
    assert found.miscalibrated == distinct(found.rows, "gap") == [gap]
    assert distinct(found.rows) == [gap, rows[0]]


def test_embeddings_of_one_number_have_regions():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), SHOTS)
    vectors = (rng.standard_normal(60)[person] + 0.1 * rng.standard_normal(180))[:, None]
    first = SHOTS * np.arange(60)
    left = np.concatenate([first, rng.integers(0, 180, 2000)])
    right = np.concatenate([first + 1, rng.integers(0, 180, 2000)])
    keep = left != right
    left, right = left[keep], right[keep]
    data = Dataset(
        embeddings=vectors.astype(np.float32),
        pairs={
            "left": left,
            "right": right,
            "genuine": person[left] == person[right],
            "score": np.exp(-np.abs(vectors[left, 0] - vectors[right, 0])),
        },
        attributes={"identity": person},
        normalize=False,
    )
    found = find_regions(data, resolutions=(3,))
    assert len({row.x for row in found.rows}) == len(found.rows) == 6
    assert {row.y for row in found.rows} == {0.0}


def test_attributes_are_not_used(unfair):
    _, found = unfair
    plain = find_regions(population(200, 0.5, seed=1), resolutions=(3, 10))
    assert repr([row._replace(composition="") for row in found.rows]) == repr(plain.rows)


def test_swapping_left_and_right_changes_nothing(unfair):
    data, found = unfair
    pairs = {"left": data.pairs.right, "right": data.pairs.left, "genuine": data.genuine}
    swapped = Dataset(
        embeddings=data.embeddings.vectors,
        pairs=pairs,
        attributes={
            "identity": np.repeat(np.arange(200), SHOTS),
            "group": np.where(np.arange(600) < 150, "U", "V"),
        },
    )
    rows = find_regions(swapped, resolutions=(3, 10)).rows
    assert [row.region for row in rows] == [row.region for row in found.rows]
    np.testing.assert_allclose([r.p for r in rows], [r.p for r in found.rows], rtol=1e-6)


def test_next_to_nothing_is_found_where_all_are_alike(monkeypatch):
    # All regions are tested, whatever they look like: that gives most p-values.
    monkeypatch.setattr("faircal.evaluation.audit.region_search.APPARENT", 1.0)
    p, found = [], 0
    for seed in range(25):
        rows = find_regions(population(60, 0.0, seed), resolutions=(3,), seed=seed).rows
        p += [v for row in rows for v in (row.p, row.gap_p) if v == v]
        found += any(row.found or row.gap_found for row in rows)
    assert len(p) > 200
    assert found <= 4  # 1.25 expected at most: 5 or more have a probability of 0.7 %
    assert np.mean(np.array(p) < 0.05) < 0.09
    assert np.mean(np.array(p) < 0.5) > 0.25  # and p-values are not idle either


def test_what_does_not_look_bad_where_it_was_made_is_not_tested(unfair):
    _, found = unfair
    tested = [row for row in found.rows if row.p == row.p or row.gap_p == row.gap_p]
    assert 0 < len(tested) == found.tested < len(found.rows)
    assert not any(row.found for row in found.rows if row.p != row.p)


def test_a_model_is_asked(unfair):
    data, found = unfair
    said = np.clip(data.scores, 0, 1)
    given = find_regions(data, data.scores, said, threshold=found.threshold, resolutions=(3, 10))
    rates = {row.region: row.fpr for row in found.rows}
    assert all(row.fpr == rates[row.region] for row in given.rows)
    assert [row.gap for row in given.rows] != [row.gap for row in found.rows]
    assert not any("beta" in text for text in given.notes)


def test_bad_input_is_one_clear_line():
    data = population(60, 0.0, seed=0)
    with pytest.raises(DataError, match=r"expected at least 40 people.*found 15"):
        find_regions(population(30, 0.0, seed=0))
    with pytest.raises(DataError, match="only one kind"):
        find_regions(data.subset(data.genuine))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        find_regions(data, rate=1.0)
    with pytest.raises(ParameterError, match=r"^rate: .* found nan"):
        find_regions(data, rate=float("nan"))
    with pytest.raises(ParameterError, match=r"^q: .* found nan"):
        find_regions(data, q=float("nan"))
    with pytest.raises(ParameterError, match="resolutions"):
        find_regions(data, resolutions=(1,))
    with pytest.raises(ParameterError, match="found none"):
        usable_resolutions((), 1)
    scores = Dataset(
        pairs={"left": [0, 0], "right": [1, 2], "genuine": [1, 0], "score": [0.5, 0.1]},
        attributes={"identity": ["a", "a", "b"]},
    )
    with pytest.raises(DataError, match="need embeddings"):
        find_regions(scores)


def test_the_table_reads_back(unfair, tmp_path):
    _, found = unfair
    write_rows(tmp_path / "regions.csv", RegionRow, found.rows)
    assert repr(read_rows(tmp_path / "regions.csv", RegionRow)) == repr(found.rows)
    assert read_record(tmp_path) == {}
    (tmp_path / "regions.json").write_text("{")
    with pytest.raises(DataError, match="run 'faircal regions' again"):
        read_record(tmp_path)


def test_figures_say_what_they_draw(unfair):
    _, found = unfair
    dots, gaps = region_figures(found.rows)
    assert dots.table["found"].to_pylist()[0]
    assert dots.table["value"].to_pylist()[0] == max(dots.table["value"].to_pylist())
    assert f"{found.rows[0].region} (" in dots.words
    pytest.importorskip("matplotlib")
    for figure in (dots, gaps):
        axes = figure.plot()
        assert axes.get_xlabel()
    assert region_figures([]) == []


def test_example_images_come_from_their_folder_alone(unfair, tmp_path):
    picture = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    _, found = unfair
    row = found.rows[0]._replace(examples='["a.png", "../b.png", "gone.png"]', like="")
    home = tmp_path / "faces"
    home.mkdir()
    for path in (home / "a.png", tmp_path / "b.png"):
        picture.new("RGB", (8, 8)).save(path)
    (montage,) = region_montages([row], home)
    assert montage.table["image_id"].to_pylist() == ["a.png"]
    # One that is like another for its calibration is still shown for its false matches.
    assert region_montages([row._replace(gap_found=1.0, gap_like="A3-1")], home)
    assert region_montages([row._replace(like="A3-1")], home) == []
