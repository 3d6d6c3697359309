"""People who are alike are found without attributes, and the order of things does not matter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from faircal.data.pairing import PairPlan, build_pairs, matched
from faircal.data.pairing.matched import alike, joined, likenesses
from faircal.data.pairing.people import PersonImages, how_alike

SPLIT = 120


def populations(n_people=240, images=4, d=12, seed=0, light=3.0, apart=4.0):
    """Two populations of people, `SPLIT` in the first, side by side in direction 0.

    Images of one person differ most in direction 1 (light, say), in which people do not.
    """
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), images)
    face = 0.4 * rng.normal(size=(n_people, d))
    face[:SPLIT, 0] += apart / 2
    face[SPLIT:, 0] -= apart / 2
    vectors = face[person] + 0.3 * rng.normal(size=(len(person), d))
    vectors[:, 1] += light * rng.normal(size=len(person))
    return person, vectors.astype(np.float32)


def same_split(one, two):
    """Whether two ways to divide people are the same, whatever cells are called."""
    return len(set(zip(one.tolist(), two.tolist(), strict=True))) == len(set(one)) == len(set(two))


class TestLikenesses:
    def test_variance_within_people_is_one_and_between_as_large_as_can_be(self):
        person, vectors = populations(images=8)
        who = PersonImages.of(person)
        places = likenesses(vectors, who, 5)
        assert places.shape == (240, 5)
        # All images along the same directions: least squares recovers these from the means.
        mean = np.stack([vectors[person == i].mean(axis=0) for i in range(240)]).astype(np.float64)
        directions = np.linalg.lstsq(mean - mean.mean(axis=0), places, rcond=None)[0]
        within = (vectors - mean[person]) @ directions
        freedom = len(person) - 240
        np.testing.assert_allclose(within.T @ within / freedom, np.eye(5), atol=0.1)
        between = np.cov(places.T)
        np.testing.assert_allclose(between - np.diag(np.diag(between)), 0, atol=1e-6)
        assert (np.diff(np.diag(between)) > 0).all()
        # Direction 0 tells populations apart, direction 1 hardly anything.
        weight = np.abs(directions[:, -1]) / np.linalg.norm(directions[:, -1])
        assert weight[0] > 0.9
        assert weight[1] < 0.1

    def test_no_more_directions_than_there_are(self):
        person, vectors = populations(d=3)
        assert likenesses(vectors, PersonImages.of(person), 99).shape == (240, 3)
        assert likenesses(vectors, PersonImages.of(person), 0).shape == (240, 1)

    @pytest.mark.parametrize("images", [1, 2])
    def test_few_images(self, images):
        # More dimensions than images to learn from, or nobody with two images.
        rng = np.random.default_rng(0)
        vectors = rng.normal(size=(10 * images, 64)).astype(np.float32)
        found = likenesses(vectors, PersonImages.of(np.repeat(np.arange(10), images)), 4)
        assert found.shape == (10, 4)
        assert np.isfinite(found).all()

    def test_images_that_are_all_the_same(self):
        found = likenesses(
            np.ones((6, 4), dtype=np.float32), PersonImages.of(np.repeat([0, 1, 2], 2)), 3
        )
        assert not found.any()


class TestMixture:
    def test_against_scikit_learn(self):
        rng = np.random.default_rng(0)
        points = np.concatenate(
            [rng.normal(size=(4000, 2)), rng.normal(size=(6000, 2)) * [3, 0.5] + [0, 6]]
        )
        ours = matched._fit(points, 2, seed=0)
        theirs = GaussianMixture(2, random_state=0, tol=1e-6).fit(points)
        order = np.argsort(ours.means[:, 1]), np.argsort(theirs.means_[:, 1])
        np.testing.assert_allclose(ours.means[order[0]], theirs.means_[order[1]], atol=0.02)
        covariances = np.linalg.inv(np.einsum("jab,jac->jbc", ours.factors, ours.factors))
        np.testing.assert_allclose(
            covariances[order[0]], theirs.covariances_[order[1]], rtol=0.02, atol=0.02
        )
        found = ours.sums(points).log_likelihood / len(points) - np.log(2 * np.pi)
        assert found == pytest.approx(theirs.score(points), abs=2e-3)

    def test_likelihood_by_hand(self):
        people, first = np.array([3.0, 1.0]), np.array([[3.0, 0.0], [-2.0, 2.0]])
        second = np.stack([np.diag([9.0, 6.0]), np.diag([8.0, 8.0])])
        mixture = matched._PeopleMixture.of(people, first, second)
        # Means (1, 0) and (−2, 2); spreads about them, drawn to their average by two people.
        spreads = [np.array([[6, 0], [0, 6]]), np.array([[4, 4], [4, 4]])]
        pooled = (spreads[0] + spreads[1]) / 4
        point = np.array([[0.5, -1.0]])
        wanted = [
            np.log(share)
            + multivariate_normal.logpdf(
                point, mean, (spread + 2 * pooled) / (n + 2) + 1e-3 * np.eye(2)
            )
            + np.log(2 * np.pi)  # which is the same for all
            for share, mean, spread, n in zip(
                (0.75, 0.25), ([1, 0], [-2, 2]), spreads, people, strict=True
            )
        ]
        np.testing.assert_allclose(mixture.log_densities(point)[0], wanted)

    def test_every_round_gains(self):
        rng = np.random.default_rng(0)
        points = rng.normal(size=(500, 3)) ** 3
        mixture = matched._PeopleMixture.of(
            *matched._moments(points, rng.dirichlet(np.ones(4), 500))
        )
        gained = []
        for _ in range(30):
            found = mixture.sums(points)
            gained.append(found.log_likelihood)
            mixture = matched._PeopleMixture.of(*found[1:])
        # Not to the last digit: covariances are drawn towards their average.
        assert gained[-1] > gained[0]
        assert (np.diff(gained) > -1e-2 * abs(gained[0])).all()


class TestJoined:
    @given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 20), st.integers(0, 99))
    def test_promises(self, parts, n, least, seed):
        rng = np.random.default_rng(seed)
        place, size = rng.normal(size=parts), rng.integers(0, 9, parts)
        near = rng.uniform(0, 2)
        found = joined(abs(place[:, None] - place), size, n, near=near, least=least)
        assert found.shape == (parts,)
        number = np.unique(found)
        assert number.tolist() == list(range(len(number)))
        assert len(number) <= n
        assert len(number) == 1 or np.bincount(found, size).min() >= least

    def test_like_average_linkage(self):
        place = np.random.default_rng(0).normal(size=(15, 3))
        tree = linkage(place, "average")
        distance, ones = squareform(pdist(place)), np.ones(15, dtype=int)
        for n in (2, 5, 9):
            theirs = fcluster(tree, n, "maxclust")
            assert same_split(joined(distance, ones, n, near=0, least=1), theirs)

    def test_overlaps_by_hand(self):
        # In one dimension: variances 1 and 4, means 0 and 3.
        one = matched._PeopleMixture(
            np.array([[0.0], [3.0]]), np.ones((2, 1, 1)), np.zeros(2), np.array([[[1.0]], [[4.0]]])
        )
        wanted = 9 / 2.5 / 8 + np.log(2.5 / 2) / 2
        np.testing.assert_allclose(one.overlaps(), [[0, wanted], [wanted, 0]])


class TestAlike:
    def test_populations_are_found_though_light_varies_more(self):
        person, vectors = populations()
        cell = alike(vectors, PersonImages.of(person), 2, seed=0)
        truth = np.arange(240) >= SPLIT
        assert max((cell == truth).mean(), (cell != truth).mean()) > 0.99

    def test_a_large_population_is_not_cut_like_a_small_one(self):
        # K-means would cut the wide population; the small one is a cell of its own.
        rng = np.random.default_rng(0)
        face = np.concatenate([rng.normal(size=(900, 2)) * [9, 1], rng.normal(size=(100, 2))])
        face[900:, 1] += 9
        person = np.repeat(np.arange(1000), 2)
        vectors = face[person] + 0.1 * rng.normal(size=(2000, 2))
        cell = alike(vectors.astype(np.float32), PersonImages.of(person), 2, seed=0)
        assert same_split(cell, (np.arange(1000) >= 900).astype(int))

    def test_one_population_is_hardly_cut(self):
        # What chance makes of one Gaussian may differ a little more than what it made of another.
        person, vectors = populations(1000, images=2, apart=0.0)
        for seed in range(5):
            cell = alike(vectors, PersonImages.of(person), 10, least=20, seed=seed)
            assert len(np.unique(cell)) <= 3

    def test_populations_are_cells_though_more_are_asked_for(self):
        person, vectors = populations(1000, images=2)
        cell = alike(vectors, PersonImages.of(person), 10, least=20, seed=0)
        truth = np.arange(1000) < SPLIT
        for one in range(cell.max() + 1):
            assert truth[cell == one].mean() < 0.02 or truth[cell == one].mean() > 0.98
        assert np.bincount(cell[truth]).max() > 0.9 * SPLIT
        assert np.bincount(cell[~truth]).max() > 0.9 * (1000 - SPLIT)

    def test_one_cell(self):
        person, vectors = populations()
        assert not alike(vectors, PersonImages.of(person), 1, seed=0).any()

    def test_many_people_are_sampled(self, monkeypatch):
        person, vectors = populations()
        whole = alike(vectors, PersonImages.of(person), 2, seed=0)
        monkeypatch.setattr(matched, "_FITTED", 100)
        some = alike(vectors, PersonImages.of(person), 2, seed=0)
        assert max((whole == some).mean(), (whole != some).mean()) > 0.99

    def test_blocks_change_nothing_that_counts(self, monkeypatch):
        person, vectors = populations()
        whole = alike(vectors, PersonImages.of(person), 3, seed=0)
        monkeypatch.setattr(matched, "_BLOCK", 64)
        assert (alike(vectors, PersonImages.of(person), 3, seed=0) == whole).mean() > 0.99

    @settings(max_examples=30)
    @given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
    @example(3, 3, 1, 80)  # three people of whom each component has one, but for rounding
    def test_whatever_the_images(self, n_people, images, d, seed):
        rng = np.random.default_rng(seed)
        person = np.repeat(np.arange(n_people), images)
        # Few values, so that images and people may be the same, or lie on a line.
        vectors = rng.integers(0, 2, size=(len(person), d)).astype(np.float32)
        n_cells = int(rng.integers(1, n_people + 1))
        least = int(rng.integers(1, n_people // n_cells + 1))
        cell = alike(vectors, PersonImages.of(person), n_cells, least=least, seed=seed)
        assert np.unique(cell, return_counts=True)[1].min() >= least
        assert cell.shape == (n_people,)
        assert cell.dtype == np.int64
        assert ((cell >= 0) & (cell < n_cells)).all()

    @settings(max_examples=10)
    @given(st.integers(0, 99))
    def test_turning_and_scaling_all_vectors_changes_nothing(self, seed):
        person, vectors = populations()
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(12, 12)))[0] * rng.uniform(0.1, 10)
        turned = (vectors @ turn).astype(np.float32)
        who = PersonImages.of(person)
        assert same_split(alike(vectors, who, 2, seed=0), alike(turned, who, 2, seed=0))


class TestPairs:
    def test_imposters_are_of_one_population(self):
        person, vectors = populations()
        pairs = build_pairs(person, PairPlan("matched", n_clusters=2), vectors=vectors)
        one, two = person[pairs.left[~pairs.genuine]], person[pairs.right[~pairs.genuine]]
        assert ((one < SPLIT) == (two < SPLIT)).mean() > 0.98
        assert len(set(one) | set(two)) == 240
        assert pairs.notes[1].startswith("matched: 2 cells of 12")
        assert pairs.notes[1].endswith(" people who are alike, found without attributes")

    def test_cells_by_default(self):
        # Of 1,200 people in 2 folds up to 10 cells, with ten people or more in each fold.
        person, vectors = populations(1200, images=2)
        pairs = build_pairs(person, PairPlan("matched", n_folds=2, genuine=1), vectors=vectors)
        cells, least = re.match(r"matched: (\d+) cells of (\d+) to ", pairs.notes[1]).groups()
        assert 2 <= int(cells) <= 10
        assert int(least) >= 20
        one, two = person[pairs.left[~pairs.genuine]], person[pairs.right[~pairs.genuine]]
        assert len(set(one) | set(two)) > 1100

    def test_too_few_people_forcells(self):
        person, vectors = populations()
        few = person < 90
        pairs = build_pairs(person[few], PairPlan("matched"), vectors=vectors[few])
        assert pairs.notes[1] == (
            "matched: all 90 people are one cell, so that imposters are random; cells are of 50 "
            "people on average (--clusters)"
        )

    def test_nobody_is_more_alike(self, monkeypatch):
        monkeypatch.setattr(matched, "_apart_by_chance", lambda *_: np.inf)
        person, vectors = populations()
        pairs = build_pairs(person, PairPlan("matched", n_clusters=2), vectors=vectors)
        assert pairs.notes[1] == (
            "matched: all 240 people are one cell, so that imposters are random; no populations "
            "stand out"
        )


class TestLikeness:
    def test_by_hand(self):
        # Fold 0: people 0 (two images) and 1; fold 1: people 2 and 3.
        vectors = np.array([[1, 0], [0.6, 0.8], [0, 1], [1, 0], [0.8, 0.6]], dtype=np.float32)
        who, fold = PersonImages.of(np.array([0, 0, 1, 2, 3])), np.array([0, 0, 1, 1])
        # Strangers of fold 0 have cosines 0 and 0.8, those of fold 1 0.8.
        said = how_alike(vectors, who, fold, np.array([1, 3]), np.array([2, 4]))
        assert said == (
            "likeness: mean cosine 0.800 of imposters, 0.600 of strangers at random; where use "
            "compares anybody, probabilities fitted to these pairs are too low"
        )
        said = how_alike(vectors, who, fold, np.array([0, 1]), np.array([2, 2]))
        assert said == "likeness: mean cosine 0.400 of imposters, 0.400 of strangers at random"

    def test_against_all_pairs(self):
        person, vectors = populations(n_people=150, images=3)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        pairs = build_pairs(person, PairPlan("matched", n_clusters=3), vectors=vectors)
        left, right = pairs.left[~pairs.genuine], pairs.right[~pairs.genuine]
        found = (vectors[left] * vectors[right]).sum(axis=1).mean()
        fold = np.zeros(len(person), dtype=int)
        for i in range(150):
            fold[person == i] = pairs.fold[person[pairs.left] == i][0]
        usual, cosines = 0.0, vectors @ vectors.T
        for number in range(1, 6):
            here = (fold[:, None] == number) & (fold == number) & (person[:, None] != person)
            usual += cosines[here].mean() * (pairs.fold[~pairs.genuine] == number).mean()
        note = next(note for note in pairs.notes if note.startswith("likeness"))
        assert note.startswith(
            f"likeness: mean cosine {found:.3f} of imposters, {usual:.3f} of strangers at random"
        )
