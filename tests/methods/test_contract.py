"""What holds for every registered method."""

from __future__ import annotations

import gc
import inspect
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone

from faircal import DataError, NotFittedError, ParameterError, load_model
from faircal.calibrators import HistogramCalibrator
from faircal.data.columns import Column
from faircal.methods import METHODS, Method, make_method, register


def outputs(model, data):
    found = model.apply(data)
    return np.stack([found.score, found.probability])


def parents(name):
    return [kind for kind in METHODS[name].__mro__[1:] if issubclass(kind, Method)]


def rounding(name):
    """Return how far two ways to score the same pair may be apart: networks work in float32."""
    return 1e-6 if METHODS[name].needs.training else 1e-12


@pytest.fixture
def seen(monkeypatch):
    """Return a function that records all that a class of methods is shown, by phase."""

    def watch(kind):
        shown = {"fit": [], "apply": []}
        fit, apply = kind._fit, kind._apply

        def spy_fit(self, inputs):
            shown["fit"].append(inputs)
            return fit(self, inputs)

        def spy_apply(self, inputs):
            shown["apply"].append(inputs)
            return apply(self, inputs)

        monkeypatch.setattr(kind, "_fit", spy_fit)
        monkeypatch.setattr(kind, "_apply", spy_apply)
        return shown

    return watch


class TestShape:
    def test_fit_returns_the_model(self, name, make, parts):
        model = make(name)
        assert model.fit(parts[0]) is model

    def test_probabilities(self, fitted, parts):
        test = parts[1]
        probability = fitted.predict_proba(test)
        assert probability.dtype == np.float64
        assert probability.shape == (len(test),)
        assert probability.min() >= 0
        assert probability.max() <= 1
        assert probability[test.genuine].mean() > probability[~test.genuine].mean() + 0.1

    def test_decision_scores(self, fitted, parts):
        test = parts[1]
        scores = fitted.decision_scores(test)
        assert scores.dtype == np.float64
        assert scores.shape == (len(test),)
        assert np.isfinite(scores).all()

    def test_apply_gives_both(self, fitted, parts):
        test = parts[1]
        both = outputs(fitted, test)
        np.testing.assert_array_equal(both[0], fitted.decision_scores(test))
        np.testing.assert_array_equal(both[1], fitted.predict_proba(test))

    def test_data_is_not_changed(self, name, make, data):
        calibration, test = data.split(test_fold=2)
        before = calibration.hash(), test.hash(), test.scores.copy()
        make(name).fit(calibration).apply(test)
        assert (calibration.hash(), test.hash()) == before[:2]
        np.testing.assert_array_equal(test.scores, before[2])

    def test_a_single_pair_can_be_scored(self, name, fitted, parts):
        test = parts[1]
        alone = outputs(fitted, test.subset(np.array([7])))
        expected = outputs(fitted, test)[:, [7]]
        np.testing.assert_allclose(alone, expected, rtol=0, atol=rounding(name))


class TestErrors:
    @pytest.mark.parametrize("call", ["predict_proba", "decision_scores", "apply"])
    def test_not_fitted(self, name, make, parts, call):
        with pytest.raises(NotFittedError, match="is not fitted yet; call fit first"):
            getattr(make(name), call)(parts[1])

    def test_saving_before_fit(self, name, make, tmp_path):
        with pytest.raises(NotFittedError, match="call fit first"):
            make(name).save(tmp_path / "m.faircal")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("genuine", [True, False])
    def test_one_class(self, name, make, parts, genuine):
        calibration = parts[0]
        one = calibration.subset(calibration.genuine == genuine)
        if genuine and not METHODS[name].needs.imposters:
            assert make(name).fit(one).diagnostics_.figures["calibrated_at"] == 0.5
            return
        with pytest.raises(DataError, match="found one class only"):
            make(name).fit(one)

    def test_no_pairs(self, name, make, parts):
        with pytest.raises(DataError, match="0 pairs"):
            make(name).fit(parts[0].subset(np.empty(0, dtype=int)))

    def test_unknown_calibrator(self, name, make, parts):
        with pytest.raises(ParameterError, match="did you mean isotonic"):
            make(name, calibrator="isotnic").fit(parts[0])

    def test_a_failed_fit_leaves_no_half_fitted_model(self, name, make, parts):
        calibration, test = parts
        model = make(name).fit(calibration).set_params(calibrator="none such")
        with pytest.raises(ParameterError):
            model.fit(calibration)
        with pytest.raises(NotFittedError):
            model.predict_proba(test)

    def test_another_score_range(self, fitted, parts, changed):
        test = parts[1]
        with pytest.raises(ParameterError, match="use the same score_range"):
            fitted.apply(changed(test, score_range=(-2.0, 2.0)))


class TestParameters:
    def test_constructor_only_stores(self, name, make):
        model = make(name)
        parameters = list(inspect.signature(type(model).__init__).parameters)[1:]
        assert sorted(vars(model)) == sorted(parameters)
        assert model.get_params(deep=False) == vars(model)

    def test_defaults(self):
        clusters = {"n_clusters": 100, "n_init": 1, "random_state": 0}
        rate = {"target_fpr": 1e-3, "threshold_rule": "nearest"}
        expected = {
            "faircal": {"calibrator": "beta", "min_pairs": 10, **clusters},
            "fsn": {"calibrator": "beta", **rate, **clusters},
            "gst": {"calibrator": "beta", "attribute": None, **rate},
            "oracle": {"calibrator": "beta", "attribute": None, "min_pairs": 10},
        }
        assert {name: make_method(name).get_params() for name in expected} == expected
        assert {name: METHODS[name].defaults() for name in expected} == expected

    def test_defaults_name_every_parameter(self, name):
        assert list(METHODS[name].defaults()) == list(inspect.signature(METHODS[name]).parameters)

    def test_defaults_change_nothing(self, name, make, fitted, parts, tmp_path):
        """Whether left out or spelt out, what is done is the same."""
        calibration, test = parts
        quick = make(name).get_params()
        spelt = {**METHODS[name].defaults(), **{k: v for k, v in quick.items() if v is not None}}
        found = outputs(make_method(name, **spelt).fit(calibration), test)
        np.testing.assert_array_equal(found, outputs(fitted, test))

    def test_set_params(self, name, make, parts):
        calibration, test = parts
        changed = make(name).set_params(calibrator="isotonic").fit(calibration)
        direct = make(name, calibrator="isotonic").fit(calibration)
        np.testing.assert_array_equal(outputs(changed, test), outputs(direct, test))

    def test_seed_of_numpy(self, name, make, parts):
        calibration, test = parts
        if "random_state" not in METHODS[name]._get_param_names():
            return
        found = make(name, random_state=np.int64(3)).fit(calibration)
        expected = make(name, random_state=3).fit(calibration)
        np.testing.assert_array_equal(outputs(found, test), outputs(expected, test))

    def test_clone_is_unfitted_with_the_same_parameters(self, name, make, parts):
        model = make(name, calibrator="platt").fit(parts[0])
        copy = clone(model)
        assert type(copy) is type(model)
        assert copy.get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            copy.apply(parts[1])

    def test_repr_names_class_and_changes(self, name, make):
        text = repr(make(name, calibrator="platt"))
        assert text.startswith(f"{METHODS[name].__name__}(")
        assert "calibrator='platt'" in text

    def test_unknown_parameter(self, name):
        with pytest.raises(ParameterError, match=r"'calibrater'; did you mean calibrator\?"):
            make_method(name, calibrater="beta")

    def test_every_parameter_is_documented(self, name):
        """By the class itself, or by a parent to which it points."""
        own = inspect.getdoc(METHODS[name])
        pages = [own, *(inspect.getdoc(kind) for kind in parents(name) if kind.__name__ in own)]
        documented = "".join(page.split("Attributes\n")[0].split("Examples\n")[0] for page in pages)
        for parameter in METHODS[name]._get_param_names():
            assert f"{parameter} :" in documented or f"{parameter}," in documented


class TestSaving:
    @pytest.mark.parametrize("calibrator", ["beta", "isotonic", "histogram"])
    def test_round_trip_is_exact(self, name, make, parts, tmp_path, calibrator):
        calibration, test = parts
        model = make(name, calibrator=calibrator).fit(calibration)
        model.save(tmp_path / "a.faircal")
        loaded = load_model(tmp_path / "a.faircal")
        loaded.save(tmp_path / "b.faircal")
        assert type(loaded) is type(model)
        assert loaded.get_params() == model.get_params()
        assert loaded.score_range_ == model.score_range_
        assert loaded.diagnostics_ == model.diagnostics_
        np.testing.assert_array_equal(outputs(loaded, test), outputs(model, test))
        assert (tmp_path / "a.faircal").read_bytes() == (tmp_path / "b.faircal").read_bytes()

    def test_calibrator_with_parameters(self, name, make, parts, tmp_path):
        calibration, test = parts
        calibrator = HistogramCalibrator(n_bins=np.int64(4))
        model = make(name, calibrator=calibrator).fit(calibration)
        model.save(tmp_path / "m.faircal")
        loaded = load_model(tmp_path / "m.faircal")
        assert loaded.calibrator.n_bins == 4
        np.testing.assert_array_equal(outputs(loaded, test), outputs(model, test))

    def test_calibrator_nobody_knows(self, name, make, parts, tmp_path):
        class Homemade(HistogramCalibrator):
            pass

        model = make(name, calibrator=Homemade()).fit(parts[0])
        with pytest.raises(ParameterError, match="Homemade: it is not registered"):
            model.save(tmp_path / "m.faircal")
        assert not list(tmp_path.iterdir())

    def test_loaded_model_can_be_fitted_again(self, name, make, fitted, parts, data, tmp_path):
        calibration, test = parts
        make(name).fit(data.split(test_fold=1)[0]).save(tmp_path / "m.faircal")
        again = load_model(tmp_path / "m.faircal").fit(calibration)
        np.testing.assert_array_equal(outputs(again, test), outputs(fitted, test))


class TestInvariance:
    def test_left_and_right_are_the_same(self, name, make, fitted, parts, swapped):
        calibration, test = parts
        expected = outputs(fitted, test)
        found = outputs(make(name).fit(swapped(calibration)), swapped(test))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

    def test_order_of_pairs_to_fit(self, name, make, fitted, parts):
        calibration, test = parts
        shuffle = np.random.default_rng(0).permutation(len(calibration))
        expected = outputs(fitted, test)
        found = outputs(make(name).fit(calibration.subset(shuffle)), test)
        if METHODS[name].needs.training:  # batches of pairs are others, what is learnt is alike
            assert np.corrcoef(found[1], expected[1])[0, 1] > 0.8
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    def test_order_of_pairs_to_apply(self, name, fitted, parts):
        test = parts[1]
        shuffle = np.random.default_rng(1).permutation(len(test))
        found = outputs(fitted, test.subset(shuffle))
        expected = outputs(fitted, test)[:, shuffle]
        np.testing.assert_allclose(found, expected, rtol=0, atol=rounding(name))

    def test_same_seed_same_bytes(self, name, make, data, tmp_path):
        for run in "ab":
            calibration, _ = data.split(test_fold=5)  # a new object shares no clustering
            make(name).fit(calibration).save(tmp_path / run)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_fitting_again_forgets_the_first_fit(self, name, make, fitted, parts, data):
        calibration, test = parts
        model = make(name).fit(data.split(test_fold=1)[0]).fit(calibration)
        expected = outputs(fitted, test)
        np.testing.assert_array_equal(outputs(model, test), expected)


class TestWhatIsSeen:
    def test_no_labels_when_applying(self, name, make, parts, seen):
        shown = seen(METHODS[name])
        make(name).fit(parts[0]).apply(parts[1])
        assert [len(inputs.genuine) for inputs in shown["fit"]] == [len(parts[0])]
        assert [len(inputs.genuine) for inputs in shown["apply"]] == [0]

    def test_pairs_without_labels_can_be_scored(self, fitted, parts, changed):
        test = parts[1]
        found = outputs(fitted, changed(test, pairs=replace(test.pairs, genuine=None)))
        np.testing.assert_array_equal(found, outputs(fitted, test))

    def test_groups_only_where_declared(self, name, make, parts, seen):
        shown = seen(METHODS[name])
        make(name).fit(parts[0]).apply(parts[1])
        needs = METHODS[name].needs
        assert (shown["fit"][0].groups is not None) == needs.groups_to_fit
        assert (shown["apply"][0].groups is not None) == needs.groups_to_apply

    def test_embeddings_only_where_declared(self, name, make, parts, seen):
        shown = seen(METHODS[name])
        make(name).fit(parts[0]).apply(parts[1])
        for inputs in shown["fit"] + shown["apply"]:
            assert (inputs.embeddings is not None) == METHODS[name].needs.embeddings

    def test_identities_only_where_declared_and_only_to_fit(self, name, make, parts, seen):
        shown = seen(METHODS[name])
        make(name).fit(parts[0]).apply(parts[1])
        assert (shown["fit"][0].identity is not None) == METHODS[name].needs.identities
        assert shown["apply"][0].identity is None

    def test_a_cohort_only_where_declared_and_only_to_fit(self, name, make, parts, seen):
        shown = seen(METHODS[name])
        make(name).fit(parts[0]).apply(parts[1])
        assert (shown["fit"][0].cohort is not None) == (METHODS[name].needs.cohort is not None)
        assert shown["apply"][0].cohort is None

    def test_no_cohort(self, name, make, fitted, parts):
        calibration, test = (part.with_cohort(None) for part in parts)
        if METHODS[name].needs.cohort == "required":
            with pytest.raises(DataError, match="it needs a cohort: --cohort DIR"):
                make(name).fit(calibration)
        else:
            make(name).fit(calibration)
        np.testing.assert_array_equal(outputs(fitted, test), outputs(fitted, parts[1]))

    @pytest.mark.usefixtures("any_labels")
    def test_identities_change_nothing_unless_declared(self, name, make, fitted, parts, changed):
        calibration, test = parts
        column = calibration.images.identity
        codes = np.random.default_rng(4).permutation(column.codes)
        expected = outputs(fitted, test)
        other = make(name).fit(changed(calibration, identity=Column(codes, column.names)))
        needs = METHODS[name].needs
        if not needs.folds:  # by which people are held out: they may lead to another choice
            assert np.array_equal(outputs(other, test), expected) != needs.identities

    def test_identities_missing(self, name, make, fitted, parts, changed):
        calibration, test = parts
        bare = changed(calibration, identity=None)
        expected = outputs(fitted, test)
        if METHODS[name].needs.identities:
            with pytest.raises(DataError, match=f"{name} cannot be used: .* who is in each image"):
                make(name).fit(bare)
        elif not METHODS[name].needs.folds:
            np.testing.assert_array_equal(outputs(make(name).fit(bare), test), expected)
        else:
            found = outputs(make(name).fit(bare), test)
            assert np.abs(found[1] - expected[1]).mean() < 0.05

    def test_identities_are_not_needed_to_apply(self, fitted, parts, changed):
        test = parts[1]
        found = outputs(fitted, changed(test, identity=None))
        np.testing.assert_array_equal(found, outputs(fitted, test))

    def test_attributes_are_not_needed_to_apply_unless_declared(self, name, fitted, parts, changed):
        test = parts[1]
        bare = changed(test, attributes={})
        if METHODS[name].needs.groups_to_apply:
            with pytest.raises(DataError, match="attribute"):
                fitted.apply(bare)
        else:
            np.testing.assert_array_equal(outputs(fitted, bare), outputs(fitted, test))

    def test_attributes_change_nothing_unless_declared(self, name, make, fitted, parts, changed):
        needs = METHODS[name].needs
        calibration, test = parts
        rng = np.random.default_rng(3)
        shuffled = {
            key: Column(rng.permutation(column.codes), column.names)
            for key, column in calibration.images.attributes.items()
        }
        expected = outputs(fitted, test)
        if needs.groups_to_fit or needs.groups_to_apply:
            other = make(name).fit(changed(calibration, attributes=shuffled))
            found = outputs(other, changed(test, attributes=shuffled))
            assert not np.array_equal(found, expected)
            return
        for attributes in ({}, shuffled):
            other = make(name).fit(changed(calibration, attributes=attributes))
            found = outputs(other, changed(test, attributes=attributes))
            np.testing.assert_array_equal(found, expected)

    def test_no_way_back_to_the_dataset(self, name, make, parts, seen):
        """Whatever hangs on the inputs, attributes do not: a walk over all they refer to."""
        calibration, test = parts
        shown = seen(type(make(name)))
        make(name).fit(calibration).apply(test)
        forbidden = {id(calibration), id(test), id(calibration.images), id(test.images)}
        for inputs in (*shown["fit"], *shown["apply"]):
            reached, frontier = set(), [vars(inputs)]
            while frontier:
                thing = frontier.pop()
                if id(thing) in reached or isinstance(thing, np.ndarray | type | ModuleType):
                    continue
                reached.add(id(thing))
                frontier += gc.get_referents(thing)
            assert not reached & forbidden

    def test_embeddings_missing(self, name, make, parts, changed):
        calibration, test = (changed(part, scores_only=True) for part in parts)
        if METHODS[name].needs.embeddings:
            with pytest.raises(DataError, match=f"{name} cannot be used: it needs embeddings"):
                make(name).fit(calibration)
            with pytest.raises(DataError, match="it needs embeddings"):
                make(name).fit(parts[0]).apply(test)
        else:
            expected = outputs(make(name).fit(parts[0]), parts[1])
            found = outputs(make(name).fit(calibration), test)
            np.testing.assert_array_equal(found, expected)

    def test_attribute_missing(self, name, make, parts, changed):
        needs = METHODS[name].needs
        bare = changed(parts[0], attributes={})
        if needs.groups_to_fit or needs.groups_to_apply:
            with pytest.raises(
                DataError, match="it needs groups, and there is no attribute column"
            ):
                make(name).fit(bare)
        else:
            assert METHODS[name].unusable_reason(bare, None) is None

    def test_one_attribute_where_several_are_needed(self, name, make, parts, changed):
        calibration, _ = parts
        one = {"ethnicity": calibration.images.attributes["ethnicity"]}
        single = changed(calibration, attributes=one)
        if METHODS[name].needs.several_attributes:
            match = f"{name} cannot be used: it takes two or more attributes .* one: ethnicity"
            with pytest.raises(DataError, match=match):
                make(name).fit(single)
            with pytest.raises(DataError, match=match):
                make(name, attribute="ethnicity").fit(calibration)
        else:
            assert METHODS[name].unusable_reason(single, "ethnicity") is None


class TestRegistry:
    def test_name_and_title(self, name):
        kind = METHODS[name]
        assert kind.name == name == name.lower()
        assert kind.title
        assert issubclass(kind, Method)

    def test_what_is_trained_needs_an_extra(self, name):
        needs = METHODS[name].needs
        assert needs.training == (needs.extra == "torch")

    def test_fitted_to_rate_says_whether_there_is_a_target(self, name):
        kind = METHODS[name]
        assert kind.fitted_to_rate == ("target_fpr" in kind._get_param_names())

    def test_a_name_is_taken_once(self, name):
        with pytest.raises(ParameterError, match=f"method '{name}' is registered already"):
            register(METHODS[name])

    def test_unknown_method(self):
        with pytest.raises(ParameterError, match=r"unknown method 'fairkal'; did you mean faircal"):
            make_method("fairkal")
