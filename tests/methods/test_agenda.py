"""AGENDA, PASS and MultiPASS: new embeddings (method-details 2.7 to 2.9)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from faircal import AGENDA, PASS, BetaCalibrator, DataError, MultiPASS, ParameterError, load_model
from faircal._base.container import cut, unpack
from faircal.data.columns import Column
from faircal.data.types import cross
from faircal.methods import METHODS
from faircal.methods.modelfile import encode

pytest.importorskip("torch")

AGENDA_PAPER = {
    "width": 256,
    "discriminator": (128,),
    "n_discriminators": 1,
    "identity_epochs": 50,
    "episodes": 100,
    "restart_every": 10,
    "discriminator_epochs": 25,
    "debias_epochs": 5,
    "debias_weight": 10.0,
    "update_epochs": 5,
    "stop_at": 0.9,
    "stop_together": False,
    "identity_rate": 1e-3,
    "discriminator_rate": 1e-3,
    "debias_rate": 1e-3,
    "update_rate": 1e-3,
    "batch_size": 400,
    "validation": 0.2,
    "squash": False,
}
PASS_PAPER = {
    **AGENDA_PAPER,
    "discriminator": (128, 64),
    "n_discriminators": 2,
    "identity_epochs": 100,
    "discriminator_epochs": 100,
    "stop_at": 0.95,
}
PASS_CODE = {**PASS_PAPER, "squash": True, "identity_rate": 1e-2, "debias_rate": 1e-4}
MULTIPLE = {"n_discriminators": {"gender": 3}}
PRESETS = {
    ("agenda", "paper"): AGENDA_PAPER,
    ("agenda", "paper-code"): {**AGENDA_PAPER, "squash": True},
    ("pass", "paper"): PASS_PAPER,
    ("pass", "paper-code"): PASS_CODE,
    ("multipass", "paper"): {**PASS_PAPER, **MULTIPLE},
    ("multipass", "paper-code"): {
        **PASS_CODE,
        **MULTIPLE,
        "update_rate": 1e-4,
        "stop_together": True,
    },
}
OTHER = {
    "width": 5,
    "discriminator": (3, 2, 1),
    "n_discriminators": 4,
    "identity_epochs": 6,
    "episodes": 7,
    "restart_every": 8,
    "discriminator_epochs": 9,
    "debias_epochs": 11,
    "debias_weight": 1.5,
    "update_epochs": 12,
    "stop_at": 0.5,
    "stop_together": True,
    "identity_rate": 0.1,
    "discriminator_rate": 0.2,
    "debias_rate": 0.3,
    "update_rate": 0.4,
    "batch_size": 13,
    "validation": 0.1,
    "squash": True,
}


@pytest.fixture(scope="module", params=["agenda", "pass", "multipass"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def quick(make, kind):
    return partial(make, kind)


@pytest.fixture(scope="module")
def fitted(quick, parts):
    return quick().fit(parts[0])


@pytest.fixture
def trained(monkeypatch):
    """Return a list that what is given to the training is added to."""
    from faircal.methods.training import debiasing

    calls, train = [], debiasing.train

    def spy(*args, **options):
        names = ("session", "recipe", "vectors", "identity", "attributes")
        calls.append({**dict(zip(names, args, strict=True)), **options})
        return train(*args, **options)

    monkeypatch.setattr(debiasing, "train", spy)
    return calls


@pytest.fixture
def ensembles(monkeypatch):
    """Return a list that the sizes of each training's ensembles are added to."""
    from faircal.methods.training.debiasing import Debiasing

    sizes, run = [], Debiasing.run

    def spy(self):
        found = map(len, self.ensembles)
        sizes.append(dict(zip(self.names, found, strict=True)))
        run(self)

    monkeypatch.setattr(Debiasing, "run", spy)
    return sizes


def unit(data):
    vectors = data.embeddings.vectors.astype(float)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def mapped(model, x):
    """Return the new embeddings of `x`, by NumPy."""
    weight, bias, slope = (array.astype(float) for array in model.weights_)
    y = x @ weight.T + bias
    return np.where(y > 0, y, slope * y)


def with_column(data, changed, name, codes):
    """Return `data` with other codes of an attribute, or of the identities."""
    if name == "identity":
        return changed(data, identity=Column(codes, data.images.identity.names))
    column = Column(codes, data.images.attributes[name].names)
    return changed(data, attributes={**data.images.attributes, name: column})


def spy_on(name, loss, found):
    """Return `loss`, which adds its name and last argument to `found` when called."""

    def spy(*args):
        found.add((name, args[-1]))
        return loss(*args)

    return spy


class TestPresets:
    @pytest.mark.parametrize(("method", "preset"), PRESETS)
    def test_values(self, method, preset):
        assert vars(METHODS[method](preset).recipe()) == PRESETS[method, preset]

    @pytest.mark.parametrize("name", OTHER)
    def test_each_can_be_overridden(self, name):
        recipe = PASS("paper-code", **{name: OTHER[name]}).recipe()
        assert vars(recipe) == {**PASS_CODE, name: OTHER[name]}

    @pytest.mark.parametrize("value", [0, False])
    def test_nought_overrides_too(self, value):
        name = "episodes" if value is not False else "squash"
        assert getattr(AGENDA("paper-code", **{name: value}).recipe(), name) == value

    def test_defaults_are_those_of_the_paper(self, kind):
        own = {
            "preset": "paper",
            "attribute": None,
            "calibrator": "beta",
            "device": "auto",
            "mixed_precision": False,
            "random_state": 0,
        }
        assert METHODS[kind].defaults() == {**own, **PRESETS[kind, "paper"]}

    @pytest.mark.parametrize("preset", ["paper", "paper-code"])
    def test_they_reach_the_training(self, quick, kind, parts, trained, preset):
        model = quick(preset=preset, random_state=7, device="cpu").fit(parts[0])
        (call,) = trained
        given = {k: v for k, v in model.get_params().items() if v is not None}
        expected = PRESETS[kind, preset]
        expected = {key: given.get(key, value) for key, value in expected.items()}
        assert vars(call["recipe"]) == expected
        how = call["session"]
        assert (how.seed, how.device.type, how.mixed_precision) == (7, "cpu", False)

    @pytest.mark.parametrize("preset", ["paper", "paper-code"])
    def test_learning_rates_and_epochs_of_the_stages(self, kind, make, parts, monkeypatch, preset):
        from faircal.methods.training import debiasing

        found = {}

        class Spy(debiasing.Stage):
            def __init__(self, session, name, *args, **options):
                found[name] = tuple(options[k] for k in ("learning_rate", "epochs", "batch_size"))
                super().__init__(session, name, *args, **options)

        monkeypatch.setattr(debiasing, "Stage", Spy)
        make(kind, preset=preset, identity_rate=None).fit(parts[0])
        rates = PRESETS[kind, preset]
        assert found == {
            "1 identity": (rates["identity_rate"], 30, 400),
            "2 discriminators": (rates["discriminator_rate"], 3, 400),
            "3 debiasing": (rates["debias_rate"], 2, 400),
            "4 update": (rates["update_rate"], 2, 400),
        }

    @pytest.mark.parametrize("preset", ["paper", "paper-code"])
    def test_squashing(self, quick, parts, monkeypatch, preset):
        from faircal.methods.training import debiasing

        found = set()
        for name in ("attribute_entropy", "uniformity"):
            monkeypatch.setattr(debiasing, name, spy_on(name, getattr(debiasing, name), found))
        quick(preset=preset).fit(parts[0])
        squash = preset == "paper-code"
        assert found == {("attribute_entropy", squash), ("uniformity", squash)}

    def test_they_give_different_embeddings(self, quick, fitted, parts):
        other = quick(preset="paper-code").fit(parts[0])
        assert not np.array_equal(other.weights_[0], fitted.weights_[0])

    def test_unknown(self, kind, parts):
        with pytest.raises(ParameterError, match="unknown preset 'papr'; did you mean paper"):
            METHODS[kind]("papr").fit(parts[0])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("width", 0),
            ("discriminator", 128),
            ("discriminator", (0,)),
            ("n_discriminators", 0),
            ("n_discriminators", {"gender": 0}),
            ("n_discriminators", {"gender": "many"}),
            ("identity_epochs", -1),
            ("episodes", 1.5),
            ("restart_every", 0),
            ("debias_weight", -1),
            ("stop_at", 1.5),
            ("stop_together", "yes"),
            ("debias_rate", -1e-3),
            ("batch_size", 0),
            ("validation", 1.0),
            ("squash", 1),
            ("mixed_precision", None),
            ("device", None),
            ("random_state", 0.5),
        ],
    )
    def test_values_that_cannot_be(self, parts, trained, name, value):
        with pytest.raises(ParameterError, match=f"^{name}: expected") as caught:
            MultiPASS(**{name: value}).fit(parts[0])
        assert "\n" not in str(caught.value)
        assert not trained


class TestScores:
    def test_new_embeddings(self, fitted, parts):
        x = unit(parts[1])
        found = fitted.new_embeddings(x.astype(np.float32))
        assert found.dtype == np.float32
        assert found.shape == (len(x), 16)
        np.testing.assert_allclose(found, mapped(fitted, x), rtol=0, atol=1e-5)
        assert (found < 0).any()  # where PReLU is not ReLU

    def test_their_cosine(self, fitted, parts):
        test = parts[1]
        new = mapped(fitted, unit(test))
        new /= np.linalg.norm(new, axis=1, keepdims=True)
        expected = (new[test.pairs.left] * new[test.pairs.right]).sum(axis=1)
        np.testing.assert_allclose(fitted.decision_scores(test), expected, rtol=0, atol=1e-6)

    def test_one_calibrator_on_it(self, fitted, parts):
        calibration, test = parts
        assert fitted.calibrator_.score_range == (-1.0, 1.0)
        alone = BetaCalibrator(score_range=(-1.0, 1.0))
        alone.fit(fitted.decision_scores(calibration), calibration.genuine)
        found = fitted.predict_proba(test)
        np.testing.assert_array_equal(found, alone.predict(fitted.decision_scores(test)))

    def test_ready_made_scores_are_not_looked_at(self, quick, fitted, parts, changed):
        """Data with a column `score`, even in another range: the cosine is the method's own."""
        calibration, test = (changed(part, score_range=(-2.0, 2.0)) for part in parts)
        model = quick().fit(calibration)
        assert model.score_range_ == (-2.0, 2.0)
        assert model.calibrator_.score_range == (-1.0, 1.0)
        found = model.predict_proba(test)
        np.testing.assert_array_equal(found, fitted.predict_proba(parts[1]))

    def test_embeddings_of_another_dimension(self, fitted, other_space):
        with pytest.raises(DataError, match="expected 32-d embeddings, as in fitting, found 16"):
            fitted.apply(other_space(dimension=16))

    def test_embeddings_that_are_not_scaled(self, fitted, other_space):
        with pytest.raises(DataError, match=r"fitted with normalize=True, .*=False; load"):
            fitted.apply(other_space(normalize=False))

    def test_embeddings_as_stored(self, quick, other_space, trained):
        data = other_space(normalize=False, scale=3.0)
        model = quick().fit(data)
        expected = data.embeddings.vectors[data.used_images()]
        np.testing.assert_array_equal(trained[0]["vectors"], expected)
        assert model.space_.normalize is False


class TestWhatIsTrainedOn:
    def test_the_images_of_the_pairs(self, quick, parts, trained):
        calibration, _ = parts
        quick().fit(calibration)
        rows = calibration.used_images()
        assert len(rows) < len(calibration.images)
        found = trained[0]["vectors"]
        np.testing.assert_allclose(found, unit(calibration)[rows], rtol=0, atol=1e-6)
        codes = calibration.images.identity.codes[rows]
        np.testing.assert_array_equal(trained[0]["identity"], codes)

    @pytest.mark.parametrize("attribute", [None, "gender+ethnicity"])
    def test_attributes_crossed_or_one_by_one(self, quick, kind, parts, trained, attribute):
        calibration, _ = parts
        model = quick(attribute=attribute).fit(calibration)
        whole = attribute or "ethnicity+gender"
        assert model.attribute_ == whole
        names = whole.split("+") if METHODS[kind].needs.several_attributes else [whole]
        assert list(trained[0]["attributes"]) == names
        rows = calibration.used_images()
        for name, codes in trained[0]["attributes"].items():
            assert codes.dtype == np.int32
            expected = cross(calibration.images.attributes, name).codes[rows]
            np.testing.assert_array_equal(codes, expected)

    @pytest.mark.parametrize("method", ["agenda", "pass"])
    def test_one_attribute(self, make, parts, trained, method):
        make(method, attribute="gender").fit(parts[0])
        assert {name: codes.max() for name, codes in trained[0]["attributes"].items()} == {
            "gender": 1
        }

    @pytest.mark.parametrize("column", ["identity", "gender"])
    def test_what_is_unknown_is_left_out(self, quick, parts, changed, trained, column):
        calibration, test = parts
        rows = calibration.used_images()
        source = calibration.images
        codes = (source.identity if column == "identity" else source.attributes[column]).codes
        unknown = np.arange(len(codes)) % 7 == 0
        codes = np.where(unknown, -1, codes).astype(np.int32)
        model = quick().fit(with_column(calibration, changed, column, codes))
        count = int(unknown[rows].sum())
        note = f"{count} of {len(rows)} images have an unknown identity or group: they are left out"
        assert [text.startswith(note) for text in model.diagnostics_.notes].count(True) == 1
        (call,) = trained
        expected = unit(calibration)[rows[~unknown[rows]]]
        np.testing.assert_allclose(call["vectors"], expected, rtol=0, atol=1e-6)
        assert call["identity"].min() >= 0
        for codes in call["attributes"].values():
            assert len(codes) == len(expected)
            assert codes.min() == 0
        assert np.isfinite(model.predict_proba(test)).all()

    def test_nothing_to_note_where_all_is_known(self, fitted):
        assert not any("unknown" in text for text in fitted.diagnostics_.notes)

    def test_groups_that_none_is_of_have_no_output(self, quick, kind, parts, changed, trained):
        """Codes are made dense: without Caucasians there are three ethnicities."""
        calibration, _ = parts
        column = calibration.images.attributes["ethnicity"]
        gone = column.names.index("Asian")
        codes = np.where(column.codes == gone, -1, column.codes).astype(np.int32)
        quick().fit(with_column(calibration, changed, "ethnicity", codes))
        found = {
            name: np.unique(codes).tolist() for name, codes in trained[0]["attributes"].items()
        }
        if METHODS[kind].needs.several_attributes:
            assert found == {"ethnicity": [0, 1, 2], "gender": [0, 1]}
        else:
            assert found == {"ethnicity+gender": list(range(6))}

    def test_too_few_known_images(self, quick, kind, parts, changed, trained):
        calibration, _ = parts
        rows = calibration.used_images()
        codes = np.full(len(calibration.images), -1, dtype=np.int32)
        codes[rows[:9]] = calibration.images.identity.codes[rows[:9]]
        with pytest.raises(
            DataError, match=f": {kind} cannot be used: it needs 10 or more images .* there are 9;"
        ) as caught:
            quick().fit(with_column(calibration, changed, "identity", codes))
        assert "\n" not in str(caught.value)
        assert not trained

    def test_one_group(self, quick, kind, parts, changed, trained):
        calibration, _ = parts
        attributes = {
            name: Column(np.zeros_like(column.codes), column.names)
            for name, column in calibration.images.attributes.items()
        }
        with pytest.raises(
            DataError, match=f": {kind} cannot be used: it needs two or more groups .* has one;"
        ) as caught:
            quick().fit(changed(calibration, attributes=attributes))
        assert "\n" not in str(caught.value)
        assert not trained

    def test_one_of_the_attributes_has_one_group(self, parts, changed, trained):
        calibration, _ = parts
        codes = np.zeros(len(calibration.images), dtype=np.int32)
        data = with_column(calibration, changed, "gender", codes)
        with pytest.raises(DataError, match="groups to tell apart, and gender has one"):
            MultiPASS().fit(data)
        assert not trained


class TestEnsembles:
    @pytest.mark.parametrize(
        ("method", "count", "expected"),
        [
            ("agenda", None, {"ethnicity+gender": 1}),
            ("pass", None, {"ethnicity+gender": 2}),
            ("pass", 3, {"ethnicity+gender": 3}),
            ("multipass", None, {"ethnicity": 2, "gender": 3}),
            ("multipass", 1, {"ethnicity": 1, "gender": 1}),
            ("multipass", {"ethnicity": 4}, {"ethnicity": 4, "gender": 3}),
            ("multipass", {"ethnicity": 1, "gender": 5}, {"ethnicity": 1, "gender": 5}),
        ],
    )
    def test_sizes(self, make, parts, ensembles, method, count, expected):
        make(method, n_discriminators=count).fit(parts[0])
        assert ensembles == [expected]

    def test_a_mapping_is_saved(self, make, parts, tmp_path):
        calibration, test = parts
        model = make("multipass", n_discriminators={"gender": 2, "ethnicity": 1}).fit(calibration)
        model.save(tmp_path / "m.faircal")
        found = load_model(tmp_path / "m.faircal")
        assert found.n_discriminators == {"gender": 2, "ethnicity": 1}
        np.testing.assert_array_equal(found.predict_proba(test), model.predict_proba(test))

    def test_more_discriminators_other_embeddings(self, make, parts):
        one, two = (make("pass", n_discriminators=n).fit(parts[0]) for n in (1, 2))
        assert not np.array_equal(one.weights_[0], two.weights_[0])


class TestTraining:
    @pytest.mark.parametrize(
        "change",
        [
            {"random_state": 1},
            {"debias_weight": 0.0},
            {"identity_rate": 1e-3},
            {"debias_rate": 1e-4},
            {"discriminator_rate": 1e-1},
            {"update_rate": 1e-1},
            {"episodes": 2},
            {"restart_every": 1},
            {"batch_size": 100},
            {"validation": 0.5},
            {"stop_at": 0.0},
            {"squash": True},
            {"mixed_precision": True},
        ],
    )
    def test_what_changes_the_embeddings(self, quick, fitted, parts, change):
        other = quick(**change).fit(parts[0])
        assert not np.array_equal(other.weights_[0], fitted.weights_[0])

    def test_the_calibrator_does_not(self, quick, fitted, parts):
        other = quick(calibrator="isotonic").fit(parts[0])
        for a, b in zip(fitted.weights_, other.weights_, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_rates_of_nought_move_nothing(self, quick, parts):
        still = {"identity_rate": 0.0, "debias_rate": 0.0}
        a, b = (quick(**still, identity_epochs=n).fit(parts[0]) for n in (1, 5))
        for one, other in zip(a.weights_, b.weights_, strict=True):
            np.testing.assert_array_equal(one, other)
        assert a.weights_[2] == 0.25

    def test_without_episodes_groups_do_not_matter(self, quick, parts):
        blind = quick(episodes=0).fit(parts[0])
        again = quick(episodes=0, attribute="gender+ethnicity").fit(parts[0])
        np.testing.assert_array_equal(blind.weights_[0], again.weights_[0])
        assert "stage_3_loss" not in blind.diagnostics_.figures

    def test_without_validation_images(self, quick, parts):
        model = quick(validation=0.0).fit(parts[0])
        assert np.isfinite(model.predict_proba(parts[1])).all()

    def test_figures(self, fitted, kind):
        figures = fitted.diagnostics_.figures
        several = METHODS[kind].needs.several_attributes
        told = ["ethnicity", "gender"] if several else ["ethnicity+gender"]
        assert sorted(figures) == sorted(
            [
                "calibrated_at",
                "stage_1_loss",
                "stage_2_loss",
                "stage_3_loss",
                "stage_3_identity",
                "stage_3_debiasing",
                "stage_4_loss",
                *(f"discriminator_accuracy_{name}" for name in told),
            ]
        )
        total = figures["stage_3_identity"] + 10 * figures["stage_3_debiasing"]
        assert figures["stage_3_loss"] == pytest.approx(total, rel=1e-5)
        for name in told:
            assert 0 <= figures[f"discriminator_accuracy_{name}"] <= 1


class TestModelFile:
    def test_holds_the_map_and_the_calibrator_only(self, fitted, parts, tmp_path):
        path = tmp_path / "m.faircal"
        fitted.save(path)
        header, body = unpack(path.read_bytes())
        arrays = cut(header["arrays"], body)  # they fill the file: there is nothing else in it
        shapes = {k: v.shape for k, v in arrays.items() if not k.startswith("calibrator.")}
        assert shapes == {"weights.0": (16, 32), "weights.1": (16,), "weights.2": (1,)}
        for i, weight in enumerate(fitted.weights_):
            np.testing.assert_array_equal(arrays.pop(f"weights.{i}"), weight)
        assert sum(array.size for array in arrays.values()) < 10
        assert path.stat().st_size < 16 * 33 * 4 + 4000
        for text in (b"Asian", b"p01", b"torch"):
            assert text not in path.read_bytes()

    def test_same_new_embeddings(self, fitted, parts, tmp_path):
        fitted.save(tmp_path / "m.faircal")
        found = load_model(tmp_path / "m.faircal")
        assert found.attribute_ == fitted.attribute_
        assert found.space_ == fitted.space_
        x = parts[1].embeddings.vectors
        np.testing.assert_array_equal(found.new_embeddings(x), fitted.new_embeddings(x))

    def test_weights_that_do_not_fit(self, quick, fitted):
        state = fitted._get_state()
        with pytest.raises(DataError, match=r"weights: expected shapes .* found"):
            quick()._set_state({**state, "weights.2": np.zeros(2, np.float32)})
        other = {**state, "recipe": {**state["recipe"], "width": 17}}
        with pytest.raises(DataError, match=r"weights: expected shapes .* found"):
            quick()._set_state(other)


class TestProgress:
    def test_is_told_of_all_stages(self, quick, kind, parts):
        calls = []
        quick().fit(parts[0], progress=lambda *told: calls.append(told))
        found = {}
        for what, done, total, label in calls:
            assert "loss " in label
            found.setdefault(what, []).append((done, total))
        updates = 2 if METHODS[kind].needs.several_attributes else 1
        totals = {
            "1 identity": 30,
            "2 discriminators": 2 * 3,
            "3 debiasing": 3 * 2,
            "4 update": updates * 3 * 2,
        }
        assert {what: told[-1] for what, told in found.items()} == {
            what: (total, total) for what, total in totals.items()
        }
        for told in found.values():
            done = [done for done, _ in told]
            assert done == sorted(done)
            assert done[0] > 0
            assert len({total for _, total in told}) == 1

    def test_changes_nothing(self, quick, fitted, parts):
        told = quick().fit(parts[0], progress=lambda *_: None)
        np.testing.assert_array_equal(told.weights_[0], fitted.weights_[0])


class StopError(Exception):
    pass


def stop_at(stage, n):
    """Return a progress that interrupts when it is told of `stage` for the n-th time."""
    calls = []

    def progress(*told):
        calls.append(told[0])
        if calls.count(stage) == n:
            raise StopError

    return progress


@pytest.fixture(scope="module")
def uninterrupted(quick, parts):
    """The bytes of a model that was trained without a stop, by preset."""
    return {
        preset: encode(quick(preset=preset).fit(parts[0])) for preset in ("paper", "paper-code")
    }


@pytest.mark.usefixtures("checkpoints_at_once")
class TestCheckpoint:
    @pytest.mark.parametrize(
        ("stage", "n"),
        [
            ("1 identity", 2),
            ("2 discriminators", 5),  # in its second run
            ("3 debiasing", 1),
            ("4 update", 7),
        ],
    )
    @pytest.mark.parametrize("preset", ["paper", "paper-code"])
    def test_resumed_to_the_same_bytes(
        self, quick, parts, tmp_path, uninterrupted, stage, n, preset
    ):
        """After a stop at any call: `training/test_session.py`."""
        calibration, _ = parts
        model, path = quick(preset=preset), tmp_path / "state"
        with pytest.raises(StopError):
            model.fit(calibration, progress=stop_at(stage, n), checkpoint=path)
        assert not model.__sklearn_is_fitted__()
        assert path.exists()
        quick(preset=preset).fit(calibration, checkpoint=path).save(tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == uninterrupted[preset]

    def test_of_another_training(self, quick, kind, parts, tmp_path):
        path = tmp_path / "state"
        with pytest.raises(StopError):
            quick().fit(parts[0], progress=stop_at("3 debiasing", 2), checkpoint=path)
        for change in ({"random_state": 1}, {"debias_weight": 1.0}):
            with pytest.raises(ParameterError, match="the checkpoint is of another training"):
                quick(**change).fit(parts[0], checkpoint=path)
        assert path.exists()
