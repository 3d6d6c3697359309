"""What is said of a pair in use: the numbers of `apply`, one pair or many, in any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal.calibrators.prior import SHARE_FIGURE, shift_prior
from faircal.compute import Engine
from faircal.data import Embeddings
from faircal.methods.inputs import Space
from faircal.model import About, OperatingPoint
from faircal.production.scoring import judging
from faircal.production.scoring.judging import Judge, Placing


def judged(judge, test, rows):
    """Judge the pairs `rows` of a dataset, each image given anew as a service would get it."""
    vectors = test.embeddings.vectors
    left, right = test.pairs.left[rows], test.pairs.right[rows]
    given = Embeddings(np.concatenate([vectors[left], vectors[right]]).astype(np.float32))
    n = len(rows)
    return given, judge(given, np.arange(n), np.arange(n, 2 * n))


@pytest.mark.parametrize("name", ["faircal", "baseline", "fsn"])
def test_the_numbers_are_those_of_apply_bit_for_bit(name, make, halves):
    test = halves[1]
    model = make(name)
    said = model.apply(test)
    rows = np.arange(0, len(test.pairs), 3)
    _, found = judged(Judge.of(model), test, rows)
    np.testing.assert_array_equal(found.probability, said.probability[rows])
    np.testing.assert_array_equal(found.score, said.score[rows])
    np.testing.assert_array_equal(found.similarity, test.scores[rows])


def test_a_method_with_products_of_matrices_but_for_rounding(smooth, halves):
    """Of other blocks, other last digits."""
    rows = np.arange(0, len(halves[1].pairs), 3)
    _, found = judged(Judge.of(smooth), halves[1], rows)
    np.testing.assert_allclose(found.probability, smooth.apply(halves[1]).probability[rows], 1e-9)


def test_a_model_of_other_scores_is_refused():
    """It would take a cosine for a score of its own, and be sure of it."""
    rows, rng = np.arange(200), np.random.default_rng(0)
    genuine = rows % 2 == 0
    data = faircal.Dataset(
        pairs={
            "score": np.clip(rng.normal(40 + 30 * genuine, 10), 0, 100),
            "genuine": genuine,
            "left": rows,
            "right": rows + 200,
        },
        attributes={"ethnicity": ["a"] * 400},
        score_range=(0, 100),
    )
    with pytest.raises(ParameterError, match="no cosines"):
        Judge.of(faircal.Baseline().fit(data))


def test_one_pair_gets_what_it_gets_among_many(model, halves):
    test = halves[1]
    judge = Judge.of(model)
    rows = np.arange(40)
    many = judged(judge, test, rows)[1]
    for row in rows:
        one = judged(judge, test, rows[[row]])[1]
        for name in ("similarity", "score", "probability", "log_likelihood_ratio", "same"):
            assert getattr(one, name)[0] == getattr(many, name)[row], name
        assert one.places.cluster.tolist() == many.places.cluster[[row, row + 40]].tolist()
        np.testing.assert_allclose(
            one.places.distance, many.places.distance[[row, row + 40]], rtol=1e-5
        )


def test_places_are_those_of_the_nearest_centres(model, halves):
    given, found = judged(Judge.of(model), halves[1], np.arange(50))
    population = model.about_.population
    vectors = given.rows(np.arange(100))
    away = np.linalg.norm(vectors[:, None] - population.centers[None], axis=2)
    np.testing.assert_array_equal(found.places.cluster, away.argmin(axis=1))
    np.testing.assert_allclose(found.places.distance, away.min(axis=1), rtol=1e-5)
    outside = away.min(axis=1) > population.reach[away.argmin(axis=1)]
    np.testing.assert_array_equal(found.places.outside, outside)
    assert 0 < outside.sum() < 100


def test_clusters_are_looked_for_once(model, halves, monkeypatch):
    """Where the population's are the model's: a pair is judged in half the time."""
    monkeypatch.setattr(Engine, "assign", lambda *_: pytest.fail("looked for again"))
    judged(Judge.of(model), halves[1], np.arange(5))


def test_other_centres_than_the_models_are_not_taken_for_its_own(model, make, halves):
    rows = np.arange(60)
    expected = judged(Judge.of(model), halves[1], rows)[1]
    other = make("faircal", n_clusters=12)
    population = other.about_.population
    turned = replace(population, centers=population.centers[::-1].copy())
    other.about_ = About(population=turned)
    found = judged(Judge.of(other), halves[1], rows)[1]
    np.testing.assert_array_equal(found.probability, expected.probability)
    np.testing.assert_array_equal(found.places.cluster, 11 - expected.places.cluster)


def test_several_threads_ask_the_same_judge(model, halves):
    test, judge = halves[1], Judge.of(model)
    parts = [np.arange(start, start + 1 + start % 7) for start in range(0, 400, 2)]
    expected = [judged(Judge.of(model), test, part)[1] for part in parts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: judged(judge, test, part)[1], parts))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.probability, other.probability)
        np.testing.assert_array_equal(one.places.cluster, other.places.cluster)


def test_several_threads_ask_about_the_same_images(model, halves):
    test, judge = halves[1], Judge.of(model)
    given = Embeddings(test.embeddings.vectors[:200].astype(np.float32))
    sides = [np.random.default_rng(i).integers(0, 200, (2, 30)) for i in range(60)]
    expected = [judge(given, left, right).probability for left, right in sides]
    again = Embeddings(given.vectors)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda side: judge(again, *side).probability, sides))
    np.testing.assert_array_equal(found, expected)


def test_the_point_decides_on_the_score_or_on_what_is_told(model, halves):
    rows = np.arange(200)
    judge = Judge.of(model)
    assert judge.point is model.about_.operating_point
    plain = judged(judge, halves[1], rows)[1]
    moved = judged(Judge.of(model, prior=0.001), halves[1], rows)[1]
    np.testing.assert_array_equal(plain.same, plain.score >= 0.6)
    np.testing.assert_array_equal(moved.same, plain.same)
    np.testing.assert_array_equal(moved.log_likelihood_ratio, plain.log_likelihood_ratio)
    share = model.diagnostics_.figures[SHARE_FIGURE]
    expected = shift_prior(plain.probability, calibrated_at=share, prior=0.001)
    np.testing.assert_array_equal(moved.probability, expected)
    told = Judge.of(model, OperatingPoint(0.9, "probability"), prior=0.001)
    np.testing.assert_array_equal(judged(told, halves[1], rows)[1].same, expected >= 0.9)


def test_without_a_population_nothing_is_said_of_places(make, halves):
    model = make("baseline", population=False)
    judge = Judge.of(model)
    assert judge.space is None
    assert judge.point is judging.DEFAULT_POINT
    assert judged(judge, halves[1], np.arange(3))[1].places is None


def test_spaces(make, model, smooth):
    d = model.cluster_centers_.shape[1]
    assert Judge.of(model).space == Space(d, True)
    assert Judge.of(make("baseline")).space == Space(d, True)
    assert Judge.of(smooth).space == Space(d, True)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_vector_that_is_none_is_named(bad, model):
    vectors = np.ones((3, model.cluster_centers_.shape[1]), np.float32)
    vectors[1] = bad
    with pytest.raises(DataError, match="embedding 2: expected finite numbers, not all 0"):
        Judge.of(model)(Embeddings(vectors), np.array([0]), np.array([1]))


def test_vectors_of_another_space(model):
    with pytest.raises(DataError, match=r"expected \d+-d embeddings"):
        Judge.of(model)(Embeddings(np.ones((2, 3), np.float32)), np.array([0]), np.array([1]))


def test_a_model_that_does_not_say_its_share_is_refused_at_once(make):
    model = make("baseline")
    del model.diagnostics_.figures[SHARE_FIGURE]
    with pytest.raises(ParameterError, match="likelihood ratio: the model does not say"):
        Judge.of(model)


def test_placing_looks_at_each_image_once(model, halves, monkeypatch):
    test = halves[1]
    placing = Placing.of_model(model)
    given = Embeddings(test.embeddings.vectors[:50].astype(np.float32))
    placing(given, np.arange(30))
    seen = []
    rows = Embeddings.rows
    monkeypatch.setattr(
        Embeddings, "rows", lambda self, which: (seen.extend(which), rows(self, which))[1]
    )
    placing(given, np.arange(20, 40))
    assert seen == list(range(30, 40))


def test_a_model_file_keeps_all_that_is_said(model, halves, tmp_path):
    model.save(tmp_path / "m.faircal")
    again = faircal.load_model(tmp_path / "m.faircal")
    rows = np.arange(20)
    one, other = (judged(Judge.of(each), halves[1], rows)[1] for each in (model, again))
    for name in ("similarity", "score", "probability", "log_likelihood_ratio", "same"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for left, right in zip(one.places, other.places, strict=True):
        np.testing.assert_array_equal(left, right)
