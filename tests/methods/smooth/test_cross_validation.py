"""What SmoothFairCal chooses by itself, against cross-validation written out."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.jobs import silent
from faircal.calibrators import BetaCalibrator
from faircal.data.folds import draw_folds
from faircal.methods.smooth import regression as choosing
from faircal.methods.smooth.features import FeatureMap
from faircal.methods.smooth.regression import (
    RIDGES,
    USUAL_COMPONENTS,
    LabelledPairs,
    TiltRegression,
    alike_cells,
    even,
)


@pytest.fixture(scope="module")
def feature_map(parts):
    embeddings = parts[0].embeddings
    return FeatureMap.fit(embeddings.rows(np.arange(len(embeddings))), 100, 10, 0)


@pytest.fixture(scope="module")
def pairs(parts, feature_map):
    data = parts[0]
    vectors = data.embeddings.rows(np.arange(len(data.images)))
    traits, who = feature_map.traits(vectors), data.images.identity.codes
    left, right = data.pairs.left, data.pairs.right
    return LabelledPairs(vectors, traits, who, left, right, data.scores, data.genuine)


@pytest.fixture(scope="module")
def folds(parts):
    data = parts[0]
    return lambda n_folds: draw_folds(data.pairs, data.images, 0, n_folds)[0]


def choose(pairs, feature_map, folds, *, progress=silent, ridge=None, n_components=None):
    settings = {"ridge": ridge, "n_components": n_components, "random_state": 0}
    return choosing.choose(
        pairs, feature_map, BetaCalibrator(), folds, progress=progress, **settings
    )


def held_out(pairs, fold, part):
    """Return the pairs of all people but those of a part, and of those."""
    inside = np.flatnonzero(fold == part)
    return pairs.take(np.flatnonzero((fold > 0) & (fold != part))), pairs.take(inside)


def parts_of(fold):
    """Return the parts that hold pairs: people whom pairs connect stay together."""
    return sorted(set(fold[fold > 0].tolist()))


def losses_by_hand(pairs, feature_map, fold, ridge, n_components):
    """Return the loss held out, in which each component counts the same; the global map's too."""
    found = []
    for part in parts_of(fold):
        fitted, held = held_out(pairs, fold, part)
        mixed = fitted.with_mixture(feature_map, n_components, 0)
        plain = fitted.calibrate(BetaCalibrator())
        effects = TiltRegression(fitted, mixed, plain).fit(ridge)
        test = TiltRegression(held, mixed, plain)
        row = []
        for p in (1 / (1 + np.exp(-test.log_odds(effects)[0])), plain.predict(held.score)):
            loss = -np.log(np.where(held.genuine, p, 1 - p))
            total = weight = 0.0
            for component in test.components.T:
                counts = min(component.sum() / 50, 1.0)  # one with few pairs counts less
                total += counts * (component @ loss) / component.sum()
                weight += counts
            row.append(total / weight)
        found.append(row)
    return np.mean(found, axis=0)


class TestCells:
    def test_each_counts_the_same(self):
        # Components of 100 and 300 pairs with losses 1 and 2: the mean of both, not 1.75.
        weight = even(np.repeat([[1.0, 0.0], [0.0, 1.0]], [100, 300], axis=0)).sum(axis=1)
        assert np.average(np.repeat([1.0, 2.0], [100, 300]), weights=weight) == pytest.approx(1.5)

    def test_one_with_few_pairs_counts_less(self):
        # 10 pairs of the 50 that count in full: a fifth.
        weights = even(np.repeat([[1.0, 0.0], [0.0, 1.0]], [90, 10], axis=0))
        np.testing.assert_allclose(weights.sum(axis=0), [1.0, 0.2])

    def test_one_without_pairs(self):
        np.testing.assert_array_equal(even(np.array([[1.0, 0.0], [1.0, 0.0]]))[:, 1], 0)

    def test_alike_strangers(self):
        """Only pairs within a cell count, genuine ones as much as among all pairs."""
        vectors = np.repeat(np.eye(2, dtype=np.float32), 2, axis=0)
        left, right = np.array([[0, 1], [0, 2], [2, 3], [2, 3]] * 100).T
        genuine = np.array([True, False, False, True] * 100)
        some = LabelledPairs(vectors, vectors, np.arange(4), left, right, np.zeros(400), genuine)
        weights = alike_cells(some, np.eye(2, dtype=np.float32))
        np.testing.assert_allclose(weights[0], 0)  # a cell of one class says nothing
        np.testing.assert_allclose(weights[1], 0)
        np.testing.assert_allclose(weights[2:4, 1], [0.005, 0.005])
        np.testing.assert_allclose(weights.sum(axis=0), [0, 1])


class TestParts:
    def test_people_are_held_out(self, pairs, folds):
        fold = folds(choosing._PARTS)
        found = list(choosing._parts(pairs, fold, 0))
        assert len(found) == len(parts_of(fold)) > 2
        assert sum(len(held) for _, held in found) == (fold > 0).sum()
        for fitted, held in found:
            one, two = (set(part.person.tolist()) for part in (fitted, held))
            assert one
            assert two
            assert not one & two

    def test_no_more_pairs_than_it_takes(self, pairs, folds, monkeypatch):
        monkeypatch.setattr(choosing, "_MOST", 300)
        monkeypatch.setattr(choosing, "_MOST_HELD", 600)
        found = list(choosing._parts(pairs, folds(choosing._PARTS), 0))
        assert [len(fitted) for fitted, _ in found] == [300] * len(found)
        assert sum(len(held) for _, held in found) == 600
        again = list(choosing._parts(pairs, folds(choosing._PARTS), 0))
        np.testing.assert_array_equal(found[0][1].score, again[0][1].score)

    def test_parts_with_few_of_a_class_are_left_out(self, pairs):
        fold = np.ones(len(pairs), dtype=np.int64)
        fold[np.flatnonzero(pairs.genuine)[:19]] = 2
        fold[np.flatnonzero(~pairs.genuine)[:19]] = 2
        assert list(choosing._parts(pairs, fold, 0)) == []

    def test_pairs_of_no_fold_are_left_out(self, pairs):
        fold = np.arange(len(pairs)) % 3
        fold[fold == 0] = -1
        found = list(choosing._parts(pairs, fold, 0))
        assert [len(held) for _, held in found] == [(fold == 1).sum(), (fold == 2).sum()]


class TestPeopleDrawnAnew:
    def test_a_pair_counts_as_its_people(self):
        left, right = np.array([0, 0, 2, 1]), np.array([1, 2, 3, 2])
        eye, who = np.eye(4, dtype=np.float32), np.array([7, 7, 5, 9])
        some = LabelledPairs(eye, eye, who, left, right, np.zeros(4), left == 0)
        counts = some.draws(400, 0)
        np.testing.assert_array_equal(counts[0], 1)
        np.testing.assert_array_equal(counts[:, 1], counts[:, 3])  # of persons 7 and 5, both
        alone = counts[1:, 0]  # of person 7 alone
        assert (alone.min(), alone.mean()) == (0, pytest.approx(1, abs=0.15))
        assert alone.var() == pytest.approx(1, abs=0.3)
        assert counts[1:, 1].var() == pytest.approx(2, abs=0.5)
        assert np.corrcoef(counts[1:, 0], counts[1:, 1])[0, 1] == pytest.approx(0.5**0.5, abs=0.1)


class TestChoose:
    @pytest.fixture(scope="class")
    @staticmethod
    def chosen(pairs, feature_map, folds):
        """As if any gain were one."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(choosing, "_ERRORS_SHOWN", -np.inf)
            return choose(pairs, feature_map, folds, n_components=4)

    def test_losses_are_those_of_people_held_out(self, chosen, pairs, feature_map, folds):
        tried = list(chosen.losses)
        assert tried == list(RIDGES[: len(tried)])
        fold = folds(choosing._PARTS)
        for ridge in (tried[0], tried[-1]):
            expected = losses_by_hand(pairs, feature_map, fold, ridge, 4)
            assert [chosen.losses[ridge], chosen.plain] == pytest.approx(expected, abs=1e-5)

    def test_the_ridge_of_least_loss(self, chosen):
        assert chosen.losses[chosen.ridge] == min(chosen.losses.values())
        assert chosen.n_components == 4

    def test_gain(self, chosen, pairs, feature_map, folds):
        """By how much components' errors come closer to their mean, each counting the same."""
        found, fold = [], folds(choosing._PARTS)
        for part in parts_of(fold):
            fitted, held = held_out(pairs, fold, part)
            mixed = fitted.with_mixture(feature_map, 4, 0)
            plain = fitted.calibrate(BetaCalibrator())
            effects = TiltRegression(fitted, mixed, plain).fit(chosen.ridge)
            test = TiltRegression(held, mixed, plain)
            spread = []
            for p in (plain.predict(held.score), 1 / (1 + np.exp(-test.log_odds(effects)[0]))):
                size = test.components.sum(axis=0)
                error = test.components.T @ (p - held.genuine) / size
                counts = np.minimum(size / 50, 1)
                spread.append(
                    np.average(np.abs(error - np.average(error, weights=counts)), weights=counts)
                )
            found.append(spread[0] - spread[1])
        assert chosen.gain == pytest.approx(np.mean(found), abs=1e-4)
        assert chosen.noise > 0

    def test_components_where_they_tell_who_is_paired(self, pairs, feature_map, folds):
        chosen = choose(pairs, feature_map, folds, ridge=10.0)
        assert (chosen.ridge, chosen.losses) == (10, {})
        assert chosen.n_components == USUAL_COMPONENTS
        expected = []
        fold = folds(choosing._PARTS)
        for part in parts_of(fold):
            fitted, held = held_out(pairs, fold, part)
            mixed = fitted.with_mixture(feature_map, USUAL_COMPONENTS, 0)
            points = mixed.mixture_points(held.traits)
            left, right = held.left[~held.genuine], held.right[~held.genuine]
            expected.append(mixed.mixture.association(points, left, right).mean())
        assert chosen.association == pytest.approx(np.mean(expected), abs=1e-6)
        assert chosen.association > 0.1

    @pytest.mark.parametrize(("gain", "expected"), [(0.3, RIDGES[0]), (0.1, np.inf)])
    def test_no_gain_beyond_the_noise_no_map(
        self, pairs, feature_map, folds, monkeypatch, gain, expected
    ):
        """Draws of 0 and 0.2 have a standard error of 0.1."""
        gains = np.array([gain, 0.0, 0.2])
        monkeypatch.setattr(choosing._HeldOutTrial, "gains", lambda *_, **__: gains)
        monkeypatch.setattr(choosing._HeldOutTrial, "loss", lambda *_, **__: 1.0)
        chosen = choose(pairs, feature_map, folds)
        assert chosen.ridge == expected
        assert chosen.n_components == (1 if expected == np.inf else USUAL_COMPONENTS)

    def test_what_is_given_is_not_tried(self, pairs, feature_map):
        def folds(n_folds):
            raise AssertionError("nobody needs to be held out")

        chosen = choose(pairs, feature_map, folds, ridge=7.0, n_components=3)
        assert (chosen.ridge, chosen.n_components) == (7.0, 3)
        assert (chosen.losses, chosen.parts) == ({}, 0)

    def test_too_few_people(self, pairs, feature_map):
        chosen = choose(pairs, feature_map, lambda *_: np.ones(len(pairs), dtype=np.int64))
        assert (chosen.n_components, chosen.ridge) == (1, np.inf)

    def test_progress(self, pairs, feature_map, folds):
        said = []
        choose(pairs, feature_map, folds, progress=lambda *words: said.append(words))
        for stage in ("choosing components", "choosing the ridge"):
            steps = [(done, n) for name, done, n, _ in said if name == stage]
            assert steps == sorted(steps)
            assert steps[0][0] == 0
            assert steps[-1][0] == steps[-1][1]
