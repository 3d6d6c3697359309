"""What SmoothFairCal chooses by itself, against cross-validation written out."""

from __future__ import annotations

import numpy as np
import pytest

from faircal._base.jobs import silent
from faircal.calibrators import BetaCalibrator
from faircal.data.folds import draw_folds
from faircal.methods.smooth import regression as choosing
from faircal.methods.smooth.regression import (
    COMPONENTS,
    RIDGES,
    USUAL_COMPONENTS,
    USUAL_RIDGE,
    LabelledPairs,
    TiltRegression,
    balanced,
)


@pytest.fixture(scope="module")
def pairs(parts):
    data = parts[0]
    vectors = data.embeddings.rows(np.arange(len(data.images)))
    return LabelledPairs(vectors, data.pairs.left, data.pairs.right, data.scores, data.genuine)


@pytest.fixture(scope="module")
def folds(parts):
    data = parts[0]
    return lambda n_folds: draw_folds(data.pairs, data.images, 0, n_folds)[0]


def choose(pairs, folds, *, progress=silent, **parameters):
    settings = {
        "ridge": None,
        "n_components": None,
        "n_dimensions": 100,
        "n_regions": 10,
        "random_state": 0,
    }
    return choosing.choose(
        pairs, BetaCalibrator(), folds, progress=progress, **{**settings, **parameters}
    )


def held_out(pairs, fold, part):
    """Return the pairs of all people but those of a part, and of those."""
    inside = np.flatnonzero(fold == part)
    return pairs.take(np.flatnonzero((fold > 0) & (fold != part))), pairs.take(inside)


def parts_of(fold):
    """Return the parts that hold pairs: people whom pairs connect stay together."""
    return sorted(set(fold[fold > 0].tolist()))


def loss_by_hand(pairs, fold, ridge, n_components):
    """Return the mean over parts of the loss held out, in which each component counts the same."""
    found = []
    for part in parts_of(fold):
        fitted, held = held_out(pairs, fold, part)
        feature_map = fitted.fit_feature_map(100, 10, 0)
        feature_map = feature_map.with_mixture(
            fitted.vectors, *fitted.imposters(0), n_components, 0
        )
        plain = fitted.calibrate(BetaCalibrator())
        effects = TiltRegression(fitted, feature_map, plain).fit(ridge)
        test = TiltRegression(held, feature_map, plain)
        eta, _ = test.log_odds(effects)
        p = 1 / (1 + np.exp(-eta))
        loss = -np.log(np.where(held.genuine, p, 1 - p))
        total = weight = 0.0
        for component in test.components.T:
            counts = min(component.sum() / 50, 1.0)  # one with few pairs counts less
            total += counts * (component @ loss) / component.sum()
            weight += counts
        found.append(total / weight)
    return np.mean(found)


class TestBalanced:
    def test_by_hand(self):
        # Components of 100 and 300 pairs with losses 1 and 2: the mean of both, not 1.75.
        components = np.repeat([[1.0, 0.0], [0.0, 1.0]], [100, 300], axis=0)
        loss = np.repeat([1.0, 2.0], [100, 300])
        assert balanced(loss, components) == pytest.approx(1.5)

    def test_a_component_with_few_pairs_counts_less(self):
        # 10 pairs of the 50 that count in full: a fifth. (5 · 1 + 1 · 7) / 6.
        components = np.repeat([[1.0, 0.0], [0.0, 1.0]], [90, 10], axis=0)
        loss = np.repeat([1.0, 7.0], [90, 10])
        assert balanced(loss, components) == pytest.approx(2.0)

    def test_without_components_the_mean(self):
        assert balanced(np.array([1.0, 2.0, 6.0]), np.empty((3, 0))) == 3.0

    def test_a_component_without_pairs(self):
        components = np.array([[1.0, 0.0], [1.0, 0.0]])
        assert balanced(np.array([1.0, 3.0]), components) == 2.0

    def test_losses_that_are_all_the_same(self):
        components = np.random.default_rng(0).dirichlet(np.ones(5), 200)
        assert balanced(np.full(200, 0.7), components) == pytest.approx(0.7)


class TestComponents:
    """The most that tell nearly as much, 97 %, as the best; in nats, by number of components."""

    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            ((0.1, 0.2, 0.3), 24),
            ((0.3, 0.2, 0.1), 12),
            ((0.40, 0.39, 0.38), 16),
            ((0.40, 0.30, 0.39), 24),
            ((0.1, -0.1, 0.0), 12),
            ((0.0, 0.0, 0.0), 1),  # nobody resembles the stranger in the same pair
            ((-0.1, -0.2, -0.3), 1),
            ((0.005, 0.004, 0.0), 1),  # nor more than chance can make it seem
        ],
    )
    def test_by_hand(self, monkeypatch, told, expected):
        assert COMPONENTS == (12, 16, 24)
        by_number = dict(zip(COMPONENTS, told, strict=True))

        def association(trial, n_components):
            return by_number[n_components] + trial  # the mean over trials is what is told

        monkeypatch.setattr(choosing._HeldOutTrial, "association", association)
        chosen = choosing.SmoothSettings(USUAL_COMPONENTS, USUAL_RIDGE)
        choosing._choose_components([-0.05, 0.05], chosen, silent)
        assert chosen.n_components == expected
        assert chosen.associations == pytest.approx(by_number)


class TestParts:
    def test_people_are_held_out(self, pairs, folds, parts):
        who = parts[0].images.identity.codes
        fold = folds(choosing._PARTS)
        # Vectors tell images apart, and images people.
        person = {tuple(vector): who[i] for i, vector in enumerate(pairs.vectors.tolist())}
        found = list(choosing._parts(pairs, fold, 0))
        assert len(found) == len(parts_of(fold)) > 2
        assert sum(len(held) for _, held in found) == (fold > 0).sum()
        for fitted, held in found:
            one, two = (
                {person[tuple(v)] for v in part.vectors.tolist()} for part in (fitted, held)
            )
            assert one
            assert two
            assert not one & two

    def test_no_more_pairs_than_it_takes(self, pairs, folds, monkeypatch):
        monkeypatch.setattr(choosing, "_MOST", 600)
        found = list(choosing._parts(pairs, folds(choosing._PARTS), 0))
        assert [len(fitted) + len(held) for fitted, held in found] == [600] * len(found)
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


class TestChoose:
    @pytest.fixture(scope="class")
    @staticmethod
    def chosen(pairs, folds):
        return choose(pairs, folds, n_components=4)

    def test_losses_are_those_of_people_held_out(self, chosen, pairs, folds):
        assert list(chosen.losses) == list(RIDGES)
        for ridge in (RIDGES[0], RIDGES[3], RIDGES[-1]):
            expected = loss_by_hand(pairs, folds(choosing._PARTS), ridge, 4)
            assert chosen.losses[ridge] == pytest.approx(expected, abs=1e-6)

    def test_the_ridge_of_least_loss(self, chosen):
        assert chosen.losses[chosen.ridge] == min(chosen.losses.values())
        assert chosen.n_components == 4
        assert chosen.associations == {}

    def test_the_loss_of_the_global_map(self, chosen, pairs, folds):
        """A ridge and prices beyond all measure would leave the global map: as good as that."""
        losses = []
        fold = folds(choosing._PARTS)
        for part in parts_of(fold):
            fitted, held = held_out(pairs, fold, part)
            feature_map = fitted.fit_feature_map(100, 10, 0).with_mixture(
                fitted.vectors, *fitted.imposters(0), 4, 0
            )
            plain = fitted.calibrate(BetaCalibrator())
            p = plain.predict(held.score)
            loss = -np.log(np.where(held.genuine, p, 1 - p))
            losses.append(balanced(loss, TiltRegression(held, feature_map, plain).components))
        assert chosen.plain == pytest.approx(np.mean(losses), abs=1e-9)

    def test_components_by_what_they_tell_of_people_held_out(self, pairs, folds):
        chosen = choose(pairs, folds, ridge=10.0)
        assert chosen.ridge == 10
        assert chosen.losses == {}
        tried = list(chosen.associations)
        assert tried == list(COMPONENTS[: len(tried)])
        assert chosen.n_components in tried
        n = tried[0]
        expected = []
        fold = folds(choosing._PARTS)
        for part in parts_of(fold):
            fitted, held = held_out(pairs, fold, part)
            feature_map = fitted.fit_feature_map(100, 10, 0).with_mixture(
                fitted.vectors, *fitted.imposters(0), n, 0
            )
            points = feature_map.mixture_points(held.vectors)
            left, right = held.left[~held.genuine], held.right[~held.genuine]
            expected.append(feature_map.mixture.association(points, left, right).mean())
        assert chosen.associations[n] == pytest.approx(np.mean(expected), abs=1e-6)
        assert chosen.associations[n] > 0.1

    def test_what_is_given_is_not_tried(self, pairs):
        def folds(n_folds):
            raise AssertionError("nobody needs to be held out")

        chosen = choose(pairs, folds, ridge=7.0, n_components=3)
        assert (chosen.ridge, chosen.n_components) == (7.0, 3)
        assert (chosen.losses, chosen.associations) == ({}, {})

    def test_too_few_people(self, pairs):
        chosen = choose(pairs, lambda *_: np.ones(len(pairs), dtype=np.int64))
        assert (chosen.n_components, chosen.ridge) == (USUAL_COMPONENTS, USUAL_RIDGE)
        assert (chosen.losses, chosen.associations) == ({}, {})

    def test_progress(self, pairs, folds):
        said = []
        choose(pairs, folds, progress=lambda *words: said.append(words))
        for stage in ("choosing components", "choosing the ridge"):
            steps = [(done, n) for name, done, n, _ in said if name == stage]
            assert steps == sorted(steps)
            assert steps[0][0] == 0
            assert steps[-1][0] == steps[-1][1]
