"""SmoothFairCal against its formula written out, and what must hold for every pair there can be."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from scipy.stats import multivariate_normal, ortho_group
from threadpoolctl import threadpool_limits

import faircal
from faircal import (
    Baseline,
    DataError,
    Dataset,
    ModelFileError,
    ParameterError,
    SmoothFairCal,
    load_model,
)
from faircal.calibrators import CALIBRATORS
from faircal.data import Embeddings, Feature
from faircal.methods.inputs import PeopleFolds
from faircal.methods.modelfile import encode
from faircal.metrics import ks, nll

#: Components and a ridge that leaves coordinates and regions something to say.
LOOSE = {"n_components": 4, "ridge": 3.0}
GRID = np.linspace(-1, 1, 401)


def with_vectors(data, vectors, *, normalize=True, keep_scores=False):
    """Return `data` with other embeddings; its scores as ready-made ones, where they are kept."""
    embeddings = Embeddings.of(vectors, "embeddings", normalize)
    feature = Feature(embeddings, data.scores if keep_scores else None)
    return Dataset.assemble(data.name, data.images, data.pairs, {"embedding": feature})


def fitted(data, **parameters):
    """Return the probabilities of test pairs, and the model."""
    calibration, test = data.split(test_fold=5)
    model = SmoothFairCal(**parameters).fit(calibration)
    return model.predict_proba(test), model


def scored(model, a, b, scores=GRID):
    """Return the probabilities of pairs of two vectors, given scores."""
    n = len(scores)
    pairs = {"left": np.zeros(n, int), "right": np.ones(n, int), "score": scores}
    return model.predict_proba(Dataset(embeddings=np.stack([a, b]), pairs=pairs))


def louder(model, factor):
    """Return a copy of the model in which pairs differ `factor` times as much."""
    other, effects = copy.copy(model), model.effects_ * factor
    effects[:, 0] = model.effects_[:, 0]
    other._set_state({**model._get_state(), "effects": effects})
    return other


def at_random(data, seed):
    """Return `data` with imposter pairs of strangers drawn at random."""
    rng = np.random.default_rng(seed)
    who, pairs = data.images.identity.codes, data.pairs
    left, right = rng.integers(len(who), size=(2, 40 * len(data)))
    strangers = np.flatnonzero(who[left] != who[right])[: len(data)]
    new = [
        np.where(pairs.genuine, old, drawn[strangers])
        for old, drawn in ((pairs.left, left), (pairs.right, right))
    ]
    pairs = replace(pairs, left=new[0], right=new[1])
    return Dataset.assemble(data.name, data.images, pairs, dict(data.features))


@pytest.fixture(scope="module")
def model(parts):
    return SmoothFairCal(**LOOSE).fit(parts[0])


@pytest.fixture(scope="module")
def enough():
    """Calibration and test pairs of enough people to choose by."""
    return faircal.simulate("small", seed=1).split(test_fold=5)


@pytest.fixture(scope="module")
def chosen(enough):
    """A model that has chosen everything by itself."""
    return SmoothFairCal().fit(enough[0])


# ------------------------------------------------------------------ the formula


def features(model, data):
    """Return φ of each pair: a constant, components, the mean of traits; and T(s)."""
    feature_map = model.feature_map_
    mixture = feature_map.mixture
    vectors = data.embeddings.vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    laws = [
        multivariate_normal(mean, np.linalg.inv(factor.T @ factor))
        for mean, factor in zip(mixture.means, mixture.factors, strict=True)
    ]
    density, traits = [], []
    for vector in vectors:
        z = (vector - feature_map.mean) @ feature_map.axes
        away = np.array([np.sum((vector - center) ** 2) for center in feature_map.centers])
        near = np.exp(-away / feature_map.softness)
        traits.append(np.concatenate([z, np.sqrt(len(z) / 2) * near / near.sum()]))
        density.append(np.array([law.pdf(z @ feature_map.directions) for law in laws]))
    found = []
    for i, j in zip(data.pairs.left, data.pairs.right, strict=True):
        couple = mixture.coupling * np.outer(density[i], density[j])
        couple /= max(couple.sum(), np.finfo(float).tiny)
        # A component's part of the pair: half of how likely the left is in it, half of the right.
        components = (couple.sum(axis=0) + couple.sum(axis=1)) / 2
        found.append(np.concatenate([[1.0], components, (traits[i] + traits[j]) / 2]))
    p = model.calibrator_.predict(data.scores)
    return np.array(found), np.log(p / (1 - p))


class TestFormula:
    def test_pair_by_pair(self, model, parts):
        test = parts[1]
        phi, t = features(model, test)
        u, v = model.effects_
        expected = [
            1 / (1 + np.exp(-(x @ u + max(x @ v, 0.0) * own)))
            for x, own in zip(phi, t, strict=True)
        ]
        np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(model.decision_scores(test), model.predict_proba(test))

    def test_t_is_that_of_one_calibrator_for_all(self, model, parts):
        alone = Baseline().fit(parts[0]).predict_proba(parts[1])
        np.testing.assert_allclose(model.calibrator_.predict(parts[1].scores), alone, atol=1e-12)

    @pytest.mark.parametrize("parameters", [LOOSE, {"n_components": 1, "ridge": 30.0}])
    def test_effects_are_the_best(self, parts, parameters):
        """The slope of log-loss and prices is 0; prices are of T in odds of 99 to 1."""
        model = SmoothFairCal(**parameters).fit(parts[0])
        phi, t = features(model, parts[0])
        u, v = model.effects_
        away = expit(phi @ u + (phi @ v) * t) - parts[0].genuine
        price = np.full(phi.shape[1], parameters["ridge"])
        price[: len(model.feature_map_.mixture) + 1] = 0.1
        price[0] = 1e-6
        odds = np.log(99)
        slope = away @ phi + price * u, (away * t) @ phi / odds + price * v * odds
        assert np.abs(slope).max() < 1e-2  # of a sum over more than a thousand pairs

    def test_calibrated_within_each_component(self, model, parts):
        calibration = parts[0]
        assert model.diagnostics_.figures["share_of_pairs_where_score_is_kept_out"] == 0
        components = features(model, calibration)[0][:, 1:5]
        away = model.predict_proba(calibration) - calibration.genuine
        mean = components.T @ away / components.sum(axis=0)
        assert np.abs(mean).max() < 3e-3
        alone = Baseline().fit(calibration).predict_proba(calibration) - calibration.genuine
        assert np.abs(components.T @ alone / components.sum(axis=0)).max() > 0.03

    @pytest.mark.parametrize("calibrator", ["beta", "isotonic", "histogram"])
    def test_a_huge_ridge_and_no_components_are_baseline(self, parts, calibrator):
        calibration, test = parts
        model = SmoothFairCal(calibrator, ridge=1e12, n_components=1).fit(calibration)
        expected = Baseline(calibrator).fit(calibration).predict_proba(test)
        np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-6)


# -------------------------------------------------- every pair that there can be


def vectors():
    """Any direction, those far from all images among them."""
    elements = st.floats(-1, 1, width=32)
    anywhere = arrays(np.float64, 32, elements=elements)
    along_one = st.integers(0, 31).map(lambda i: np.eye(32)[i])
    return st.tuples(st.one_of(anywhere, along_one), st.sampled_from([-1.0, 1.0])).map(
        lambda drawn: drawn[0] * drawn[1]
    )


def usable(*given_vectors):
    assume(all(np.linalg.norm(one) > 1e-3 for one in given_vectors))


class TestEveryPair:
    @settings(max_examples=80)
    @given(a=vectors(), b=vectors(), factor=st.sampled_from([1.0, 10.0, 1e3, 1e6]))
    def test_monotone_in_the_score(self, model, a, b, factor):
        usable(a, b)
        found = scored(louder(model, factor), a, b)
        assert np.isfinite(found).all()
        assert np.diff(found).min() >= -1e-15
        assert 0 <= found.min() <= found.max() <= 1

    @settings(max_examples=30)
    @given(
        i=st.integers(0, 479),
        j=st.integers(0, 479),
        factor=st.sampled_from([1.0, 10.0, 1e3]),
    )
    def test_monotone_for_images_of_the_data(self, model, data, i, j, factor):
        a, b = data.embeddings.vectors[[i, j]]
        assert np.diff(scored(louder(model, factor), a, b)).min() >= -1e-15

    @pytest.mark.parametrize("calibrator", CALIBRATORS)
    def test_monotone_in_what_the_global_map_gives(self, parts, calibrator):
        """Which is monotone in the score but for histogram and spline: those need not be."""
        model = SmoothFairCal(calibrator, **LOOSE).fit(parts[0])
        order = np.argsort(model.calibrator_.predict(GRID), kind="stable")
        if calibrator not in ("histogram", "spline"):
            np.testing.assert_array_equal(order, np.arange(len(GRID)))
        rng = np.random.default_rng(0)
        for factor in (1.0, 100.0):
            for a, b in rng.normal(size=(10, 2, 32)):
                found = scored(louder(model, factor), a, b)
                assert np.isfinite(found).all()
                assert np.diff(found[order]).min() >= -1e-15

    def test_where_the_score_would_count_against_a_pair_it_does_not_count(self, model):
        loud, rng = louder(model, 1000.0), np.random.default_rng(0)
        differ = [np.ptp(scored(loud, a, b)) for a, b in rng.normal(size=(40, 2, 32))]
        assert min(differ) == 0
        assert max(differ) > 0.5

    @settings(max_examples=40)
    @given(a=vectors(), b=vectors(), factor=st.sampled_from([1.0, 1e3]))
    def test_left_and_right_are_the_same_to_the_last_bit(self, model, a, b, factor):
        usable(a, b)
        loud, embeddings = louder(model, factor), np.stack([a, b])
        one, two = (
            loud.predict_proba(
                Dataset(embeddings=embeddings, pairs={"left": [left], "right": [1 - left]})
            )
            for left in (0, 1)
        )
        assert one == two

    def test_test_pairs_the_other_way_round_to_the_last_bit(
        self, model, chosen, parts, enough, swapped
    ):
        for one, test in ((model, parts[1]), (chosen, enough[1])):
            np.testing.assert_array_equal(one.predict_proba(swapped(test)), one.predict_proba(test))

    def test_an_image_with_itself(self, model, parts):
        a = parts[1].embeddings.vectors[0]
        found = scored(model, a, a)
        assert np.isfinite(found).all()
        assert found[-1] > 0.9


# ------------------------------------------------------------- invariance of fits


class TestInvariance:
    """Single precision of embeddings leaves some 5e-7 of a probability; measured."""

    @pytest.mark.parametrize("parameters", [{}, LOOSE, {"n_components": 1, "ridge": 10.0}])
    def test_a_turn_of_the_space(self, data, parameters):
        turn = ortho_group.rvs(32, random_state=0)
        turned = with_vectors(data, data.embeddings.vectors.astype(np.float64) @ turn)
        expected, _ = fitted(data, **parameters)
        found, _ = fitted(turned, **parameters)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)

    @settings(max_examples=5)
    @given(seed=st.integers(0, 2**32 - 1))
    def test_any_turn_of_the_space(self, data, seed):
        turn = ortho_group.rvs(32, random_state=seed)
        turned = with_vectors(data, data.embeddings.vectors.astype(np.float64) @ turn)
        np.testing.assert_allclose(
            fitted(turned, **LOOSE)[0], fitted(data, **LOOSE)[0], rtol=0, atol=1e-5
        )

    @pytest.mark.parametrize("change", ["moved", "scaled", "constant"])
    def test_what_tells_nothing_new(self, data, change):
        """Only where images lie to each other counts, and scores; whatever the unit."""
        plain = data.embeddings.vectors.astype(np.float64)
        others = {
            "moved": plain + 0.3,
            "scaled": 1000 * plain,
            "constant": np.hstack([plain, np.full((len(plain), 2), 0.1)]),
        }
        before = with_vectors(data, plain, normalize=False, keep_scores=True)
        after = with_vectors(data, others[change], normalize=False, keep_scores=True)
        expected, one = fitted(before, **LOOSE)
        found, two = fitted(after, **LOOSE)
        assert two.feature_map_.axes.shape[1] == one.feature_map_.axes.shape[1]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("change", ["stretched", "collinear"])
    def test_coordinates_are_white(self, data, change):
        """Any linear map of the space leaves them alone; regions are left out."""
        rng = np.random.default_rng(0)
        plain = data.embeddings.vectors.astype(np.float64)
        others = {
            "stretched": plain @ (np.eye(32) + 0.1 * rng.normal(size=(32, 32))),
            "collinear": np.hstack([plain, plain[:, :5] + plain[:, 5:10]]),
        }
        expected, found = (
            fitted(
                with_vectors(data, vectors, normalize=False, keep_scores=True),
                n_regions=1,
                **LOOSE,
            )[0]
            for vectors in (plain, others[change])
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)

    def test_unit_vectors_need_no_scaling(self, data):
        plain = data.embeddings.vectors.astype(np.float64)
        unit = plain / np.linalg.norm(plain, axis=1, keepdims=True)
        expected, _ = fitted(data, **LOOSE)
        found, model = fitted(with_vectors(data, 3 * unit, normalize=False), **LOOSE)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        with pytest.raises(DataError, match="fitted with normalize=False"):
            model.apply(data)

    def test_half_precision(self, data):
        halves = with_vectors(data, data.embeddings.vectors.astype(np.float16))
        expected, _ = fitted(data, **LOOSE)
        found, _ = fitted(halves, **LOOSE)
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.01)

    def test_copies_of_images(self, data):
        """Every pair twice, the second time of copies of its images."""
        images, n = data.images, len(data.images)
        vectors = np.concatenate([data.embeddings.vectors] * 2)
        twice = {key: np.concatenate([getattr(data.pairs, key)] * 2) for key in ("genuine", "fold")}
        both = [data.pairs.left, data.pairs.right]
        left, right = (np.concatenate([side, side]) for side in both)
        copies = [np.concatenate([side, side + n]) for side in both]
        who = np.concatenate([images.identity.codes] * 2)
        # Twice as many pairs, twice the price; a pair that is twice in the list is one.
        found, expected = (
            fitted(
                Dataset(
                    embeddings=vectors,
                    pairs={"left": sides[0], "right": sides[1], **twice},
                    attributes={"identity": who},
                ),
                n_components=1,
                n_regions=1,
                ridge=ridge,
            )[0]
            for sides, ridge in ((copies, 20.0), ((left, right), 10.0))
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("parameters", [{}, LOOSE])
    def test_a_list_three_times_is_no_more_certain(self, parts, parameters):
        calibration, test = parts
        thrice = calibration.subset(np.tile(np.arange(len(calibration)), 3))
        one, two = (
            SmoothFairCal(**parameters).fit(data).predict_proba(test)
            for data in (calibration, thrice)
        )
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-9)

    def test_threads_do_not_change_a_bit(self):
        """Not even those of BLAS, on data large enough that it would use them."""
        data = faircal.simulate("small", seed=0)
        found = []
        for n in (1, 2):
            with threadpool_limits(n):
                calibration, test = data.split(test_fold=5)
                model = SmoothFairCal(n_components=4, ridge=1000.0).fit(calibration)
                found.append((encode(model), model.predict_proba(test).tobytes()))
        assert found[0] == found[1]

    def test_folds_are_drawn_by_the_seed(self, parts, monkeypatch):
        asked, draw = [], PeopleFolds.__call__

        def spy(folds, n_folds, seed):
            asked.append(seed)
            return draw(folds, n_folds, seed)

        monkeypatch.setattr(PeopleFolds, "__call__", spy)
        SmoothFairCal(n_components=4, random_state=3).fit(parts[0])
        assert asked == [3]

    @pytest.mark.parametrize("parameters", [{}, LOOSE])
    def test_order_of_pairs(self, parts, parameters):
        calibration, test = parts
        shuffle = np.random.default_rng(0).permutation(len(calibration))
        one = SmoothFairCal(**parameters).fit(calibration)
        two = SmoothFairCal(**parameters).fit(calibration.subset(shuffle))
        np.testing.assert_allclose(
            two.predict_proba(test), one.predict_proba(test), rtol=0, atol=1e-9
        )


# ----------------------------------------------------------------- data of all kinds


class TestOddData:
    @pytest.mark.parametrize("n", [4, 30, 60])
    def test_few_pairs(self, parts, n):
        calibration, test = parts
        rows = np.concatenate(
            [np.flatnonzero(calibration.genuine)[: n // 2], np.flatnonzero(~calibration.genuine)]
        )[:n]
        few = calibration.subset(rows)
        model, plain = SmoothFairCal().fit(few), Baseline().fit(few)
        assert model.ridge_ == np.inf
        found, expected = model.predict_proba(test), plain.predict_proba(test)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-12)
        np.testing.assert_array_equal(model.decision_scores(test), plain.decision_scores(test))
        (note,) = model.diagnostics_.notes
        assert note.startswith("too few people to hold out: the map is the global calibrator's")

    @pytest.mark.parametrize("normalize", [True, False])
    @pytest.mark.parametrize("dimension", [1, 2, 3])
    def test_few_dimensions(self, data, dimension, normalize):
        few = with_vectors(data, data.embeddings.vectors[:, :dimension], normalize=normalize)
        found, model = fitted(few)
        assert ((found >= 0) & (found <= 1)).all()
        assert model.feature_map_.axes.shape[0] == dimension

    @pytest.mark.parametrize("normalize", [True, False])
    def test_images_that_are_all_the_same(self, data, normalize):
        """Nothing is left to tell images by; ready-made scores still count."""
        same = with_vectors(data, np.full((480, 4), 0.1), normalize=normalize, keep_scores=True)
        found, model = fitted(same)
        calibration, test = same.split(test_fold=5)
        expected = Baseline().fit(calibration).predict_proba(test)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        assert model.feature_map_.axes.shape[1] == 0

    def test_images_of_two_kinds(self, data):
        """All vectors are one of two, as where a network has collapsed."""
        rows = (np.arange(480) % 2)[:, None]
        two = with_vectors(data, np.where(rows, [1.0, 0.0], [0.0, 1.0]), keep_scores=True)
        found, _ = fitted(two)
        assert np.isfinite(found).all()

    def test_coordinates_are_the_first_principal_components(self, parts):
        calibration, test = parts
        model = SmoothFairCal(n_dimensions=3, **LOOSE).fit(calibration)
        assert model.feature_map_.axes.shape == (32, 3)
        images = calibration.embeddings.rows(calibration.used_images()).astype(np.float64)
        z = model.feature_map_.traits(images)[:, :3]
        np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(z.T @ z / len(z), np.eye(3), atol=1e-9)
        _, values, axes = np.linalg.svd(images - images.mean(axis=0))
        kept = axes[:3] @ model.feature_map_.axes
        np.testing.assert_allclose(np.abs(kept), np.diag(np.sqrt(len(z)) / values[:3]), atol=1e-6)
        assert np.isfinite(model.predict_proba(test)).all()

    def test_embeddings_of_another_network(self, model):
        wrong = Dataset(embeddings=np.ones((4, 8)), pairs={"left": [0, 1], "right": [2, 3]})
        with pytest.raises(DataError, match="expected 32-d embeddings, as in fitting, found 8"):
            model.apply(wrong)


# -------------------------------------------------------------- what it is good for


def mean_ks(data, probability):
    """Return the mean over groups of the calibration error of their pairs."""
    groups = data.groups("ethnicity+gender")
    return np.mean(
        [
            ks(probability[inside], data.genuine[inside])
            for g in range(len(groups.names))
            for inside in [(groups.left == g) & (groups.right == g)]
        ]
    )


@pytest.fixture(scope="module")
def planted():
    """Test pairs, and what both methods say of them, of five folds."""
    data = faircal.simulate("small", seed=1)
    found = []
    for fold in data.fold_names:
        calibration, test = data.split(test_fold=fold)
        methods = Baseline(), SmoothFairCal(n_components=12, ridge=1000.0)
        found.append((test, *(one.fit(calibration).predict_proba(test) for one in methods)))
    return found


class TestPlantedGroups:
    def test_calibrated_within_groups_it_knows_nothing_of(self, planted):
        baseline, smooth = np.mean([[mean_ks(t, b), mean_ks(t, s)] for t, b, s in planted], axis=0)
        assert smooth < 0.8 * baseline

    def test_less_loss(self, planted):
        baseline, smooth = np.mean(
            [[nll(b, t.genuine), nll(s, t.genuine)] for t, b, s in planted], axis=0
        )
        assert smooth < 0.95 * baseline


class TestDiagnostics:
    def test_what_was_chosen_and_gained(self, chosen):
        figures = chosen.diagnostics_.figures
        assert chosen.diagnostics_.notes == []
        assert figures["ridge"] == chosen.ridge_
        assert figures["components"] == len(chosen.feature_map_.mixture) >= 4
        assert figures["shared_directions"] == len(chosen.feature_map_.shares) >= 1
        assert figures["held_out_loss"] <= figures["held_out_loss_with_components"]
        assert figures["held_out_loss_with_components"] < figures["held_out_loss_of_global_map"]

    def test_what_is_given_is_not_tried(self, model):
        assert model.diagnostics_.notes == []
        assert not [key for key in model.diagnostics_.figures if key.startswith("held_out")]

    @pytest.mark.parametrize("seed", [0, 7, 9, 10])  # chance makes some alike in all but the first
    def test_imposters_at_random(self, data, seed):
        model = SmoothFairCal().fit(at_random(data, seed))
        (note,) = model.diagnostics_.notes
        assert "more alike than chance makes them" in note
        assert "a cohort tells who is alike (--method cohort)" in note
        assert len(model.feature_map_.mixture) == 0

    def test_no_components_because_none_were_asked_for(self, parts):
        model = SmoothFairCal(n_components=1).fit(parts[0])
        assert len(model.feature_map_.mixture) == 0
        assert not [note for note in model.diagnostics_.notes if "chance" in note]

    @pytest.mark.parametrize("group", ["Asian F", "African M"])
    def test_one_population_and_others_in_use(self, enough, group):
        """No components, nothing to go by: Baseline's map, and a remark on people unlike those."""
        calibration, test = enough
        groups = calibration.groups("ethnicity+gender")
        one = calibration.subset(np.flatnonzero(groups.pair == groups.names.index(group)))
        model = SmoothFairCal().fit(one)
        expected = Baseline().fit(one).predict_proba(test)
        np.testing.assert_allclose(model.predict_proba(test), expected, rtol=0, atol=1e-12)
        assert any("the map is the global" in note for note in model.diagnostics_.notes)
        (remark,) = model.remarks(test, model.apply(test))
        assert "further from the calibration images than 1% of those" in remark
        assert not [r for r in model.remarks(one, model.apply(one)) if "further" in r]

    def test_few_people_of_whom_only_components_are_to_be_chosen(self, parts):
        labels = parts[0].genuine
        some = np.concatenate([np.flatnonzero(labels)[:15], np.flatnonzero(~labels)[:15]])
        model = SmoothFairCal(ridge=7.0).fit(parts[0].subset(some))
        assert model.ridge_ == 7
        assert model.diagnostics_.notes[0].startswith("too few people to hold out")

    def test_progress(self, parts):
        said = []
        SmoothFairCal().fit(parts[0], progress=lambda *words: said.append(words))
        stages = list(dict.fromkeys(stage for stage, *_ in said))
        assert stages == ["choosing components", "choosing the ridge", "fitting all pairs"]
        for stage in stages:
            steps = [done for name, done, *_ in said if name == stage]
            assert steps == sorted(steps)
            assert steps[-1] == next(n for name, _, n, _ in said if name == stage)


class TestParameters:
    @pytest.mark.parametrize("ridge", [0, -1.0, np.nan, np.inf, "stiff", True, [1.0]])
    def test_ridge(self, parts, ridge):
        with pytest.raises(ParameterError, match="ridge: expected a number above 0 or None, found"):
            SmoothFairCal(ridge=ridge).fit(parts[0])

    @pytest.mark.parametrize("name", ["n_components", "n_dimensions", "n_regions", "random_state"])
    @pytest.mark.parametrize("value", [-1, 1.5, "many", True])
    def test_counts(self, parts, name, value):
        with pytest.raises(ParameterError, match=f"{name}: expected a whole number"):
            SmoothFairCal(**{name: value}).fit(parts[0])

    @pytest.mark.parametrize("ridge", [np.float32(5), np.int64(5), 5])
    def test_a_ridge_of_numpy(self, parts, ridge, tmp_path):
        model = SmoothFairCal(n_components=1, ridge=ridge).fit(parts[0])
        model.save(tmp_path / "m")
        assert load_model(tmp_path / "m").ridge_ == 5

    def test_more_components_than_there_is_data_for(self, parts):
        model = SmoothFairCal(n_components=10_000, ridge=1.0).fit(parts[0])
        imposters = int((~parts[0].genuine).sum())
        assert len(model.feature_map_.mixture) == imposters // 50


# ---------------------------------------------------------------------- model files


NAMED = r"(mean|axes|centers|directions|shares|mixture_\w+|effects)\b.*fit it again"


def damaged(model, change, monkeypatch, path):
    """Save the model with a changed state; return what loading it says."""
    state = model._get_state()
    change(state)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_get_state", lambda _: state)
        patch.setattr("faircal.methods.modelfile.check_numbers", lambda _: None)
        model.save(path)
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    return str(caught.value)


class TestSaving:
    @pytest.mark.parametrize("parameters", [{}, LOOSE, {"n_components": 1}, {"n_dimensions": 2}])
    def test_equal_to_the_bit(self, parts, tmp_path, parameters):
        calibration, test = parts
        model = SmoothFairCal(**parameters).fit(calibration)
        model.save(tmp_path / "m.faircal")
        loaded = load_model(tmp_path / "m.faircal")
        np.testing.assert_array_equal(loaded.predict_proba(test), model.predict_proba(test))
        assert loaded.ridge_ == model.ridge_
        assert loaded.space_ == model.space_

    KEYS = (
        "effects",
        "landscape.mean",
        "landscape.axes",
        "landscape.centers",
        "landscape.directions",
        "landscape.shares",
        "landscape.mixture_means",
        "landscape.mixture_factors",
        "landscape.mixture_constants",
        "landscape.mixture_coupling",
    )

    NUMBERS = ("association", "landscape.softness", "landscape.reach", "ridge", "normalize")

    def test_these_are_all_arrays(self, model):
        state = model._get_state()
        of_calibrator = {key for key in state if key.startswith("calibrator.")}
        assert {*self.KEYS, *self.NUMBERS} == set(state) - of_calibrator

    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("how", ["missing", "nan", "shorter", "flat"])
    def test_damaged_arrays(self, model, monkeypatch, tmp_path, key, how):
        def change(state):
            array = state.pop(key)
            if how == "nan":
                state[key] = np.where(
                    np.arange(array.size).reshape(array.shape) == 1, np.nan, array
                )
            elif how == "shorter":
                state[key] = array[1:]
            elif how == "flat":
                state[key] = array.reshape(1, -1) if array.ndim == 1 else array.ravel()

        message = damaged(model, change, monkeypatch, tmp_path / "m.faircal")
        assert len(message.splitlines()) == 1
        assert re.search(NAMED, message)  # perhaps another one, that does not go with it

    @pytest.mark.parametrize(
        "key", ["ridge", "normalize", "association", "calibrator.a", "landscape.softness"]
    )
    def test_numbers_missing(self, model, monkeypatch, tmp_path, key):
        message = damaged(model, lambda state: state.pop(key), monkeypatch, tmp_path / "m.faircal")
        assert "cannot be rebuilt" in message
        assert len(message.splitlines()) == 1

    @pytest.mark.parametrize("softness", [0.0, -1.0, "soft"])
    def test_a_softness_that_cannot_be(self, model, monkeypatch, tmp_path, softness):
        def change(state):
            state["landscape.softness"] = softness

        assert "soft" in damaged(model, change, monkeypatch, tmp_path / "m.faircal")

    def test_text_for_numbers(self, model, monkeypatch, tmp_path):
        def change(state):
            state["landscape.axes"] = "axes"

        assert "cannot be rebuilt" in damaged(model, change, monkeypatch, tmp_path / "m.faircal")
