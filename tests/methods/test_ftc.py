"""FTC: a network that compares two embeddings (method-details 2.6)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from faircal import FTC, BetaCalibrator, DataError, ModelFileError, ParameterError, load_model
from faircal._base.container import cut, unpack
from faircal.data.columns import Column

pytest.importorskip("torch")

PAPER = {
    "hidden": (4, 4),
    "dropout": 0.3,
    "fairness": 0.5,
    "epochs": 50,
    "batch_size": 200,
    "learning_rate": 1e-3,
    "weight_decay": 1e-3,
    "dropout_when_scoring": False,
    "calibrated_range": (0.0, 1.0),
}
PRESETS = {
    "paper": PAPER,
    "paper-code": {
        **PAPER,
        "hidden": (2, 4, 4),
        "dropout_when_scoring": True,
        "calibrated_range": (-1.0, 1.0),
    },
}
OTHER = {
    "hidden": (1.0, 0.5),
    "dropout": 0.1,
    "fairness": 0.25,
    "epochs": 3,
    "batch_size": 64,
    "learning_rate": 0.02,
    "weight_decay": 0.0,
    "dropout_when_scoring": True,
    "calibrated_range": (-1.0, 2.0),
}


@pytest.fixture(scope="module")
def quick(make):
    return partial(make, "ftc")


@pytest.fixture(scope="module")
def fitted(quick, parts):
    return quick().fit(parts[0])


@pytest.fixture
def trained(monkeypatch):
    """Return a list that what is given to the training is added to."""
    from faircal.methods.training import comparison

    calls, train = [], comparison.train

    def spy(*args, **options):
        names = ("session", "recipe", "vectors", "left", "right", "genuine", "group", "n_groups")
        calls.append({**dict(zip(names, args, strict=True)), **options})
        return train(*args, **options)

    monkeypatch.setattr(comparison, "train", spy)
    return calls


def forward(weights, x):
    """Return the network's probability of "same", by NumPy."""
    *hidden, last = zip(weights[::2], weights[1::2], strict=True)
    for weight, bias in hidden:
        x = np.maximum(x @ weight.T.astype(float) + bias, 0)
    logits = x @ last[0].T.astype(float) + last[1]
    return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))


def differences(data):
    vectors = data.embeddings.vectors.astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.abs(vectors[data.pairs.left] - vectors[data.pairs.right])


class TestPresets:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_values(self, preset):
        assert vars(FTC(preset).recipe()) == PRESETS[preset]

    @pytest.mark.parametrize("preset", PRESETS)
    @pytest.mark.parametrize("name", OTHER)
    def test_each_can_be_overridden(self, preset, name):
        recipe = FTC(preset, **{name: OTHER[name]}).recipe()
        assert vars(recipe) == {**PRESETS[preset], name: OTHER[name]}

    def test_defaults_are_those_of_the_paper(self):
        own = {
            "preset": "paper",
            "attribute": None,
            "calibrator": "beta",
            "device": "auto",
            "mixed_precision": False,
            "random_state": 0,
        }
        assert FTC.defaults() == {**own, **PAPER}

    def test_parameters_stay_as_given(self):
        model = FTC("paper-code", epochs=3)
        model.recipe()
        assert model.epochs == 3
        assert model.hidden is None

    @pytest.mark.parametrize("preset", PRESETS)
    def test_they_reach_the_training(self, parts, trained, preset):
        model = FTC(preset, epochs=1, batch_size=1000, random_state=7, device="cpu").fit(parts[0])
        (call,) = trained
        assert vars(call["recipe"]) == {**PRESETS[preset], "epochs": 1, "batch_size": 1000}
        how = call["session"]
        assert (how.seed, how.device.type, how.mixed_precision) == (7, "cpu", False)
        sizes = [32, *(round(32 * m) for m in PRESETS[preset]["hidden"]), 2]
        expected = [shape for a, b in pairwise(sizes) for shape in ((b, a), (b,))]
        assert [weight.shape for weight in model.weights_] == expected
        assert model.calibrator_.score_range == PRESETS[preset]["calibrated_range"]

    def test_unknown(self, parts):
        with pytest.raises(
            ParameterError, match="unknown preset 'paper_code'; did you mean paper-"
        ):
            FTC("paper_code").fit(parts[0])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("hidden", 4),
            ("hidden", (2048, 2048)),
            ("hidden", (0,)),
            ("dropout", 1.0),
            ("fairness", -0.1),
            ("epochs", 0),
            ("epochs", 2.5),
            ("batch_size", 0),
            ("learning_rate", "fast"),
            ("weight_decay", -1),
            ("dropout_when_scoring", 1),
            ("calibrated_range", (0.5, 1.0)),
            ("calibrated_range", (0.0,)),
            ("mixed_precision", 1),
            ("device", 3),
            ("random_state", -1),
        ],
    )
    def test_values_that_cannot_be(self, parts, trained, name, value):
        with pytest.raises(ParameterError, match=f"^{name}: expected") as caught:
            FTC(**{name: value}).fit(parts[0])
        assert "\n" not in str(caught.value)
        assert not trained

    @pytest.mark.parametrize(
        ("device", "said"),
        [
            ("tpu", "expected auto, cpu or cuda, found 'tpu'"),
            ("cuda:99", "'cuda:99' cannot be used here"),
            ("cpu:x", "'cpu:x' cannot be used here"),
        ],
    )
    def test_device_that_is_not_there(self, quick, parts, device, said):
        with pytest.raises(ParameterError, match=f"^device: {said}") as caught:
            quick(device=device).fit(parts[0])
        assert "\n" not in str(caught.value)


class TestScores:
    def test_the_network_on_the_difference(self, fitted, parts):
        test = parts[1]
        expected = forward(fitted.weights_, differences(test))
        np.testing.assert_allclose(fitted.decision_scores(test), expected, rtol=0, atol=1e-6)
        assert np.ptp(expected) > 1e-3

    def test_no_hidden_layer(self, quick, parts):
        model = quick(hidden=()).fit(parts[0])
        assert [weight.shape for weight in model.weights_] == [(2, 32), (2,)]
        expected = forward(model.weights_, differences(parts[1]))
        np.testing.assert_allclose(model.decision_scores(parts[1]), expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0)])
    def test_one_calibrator_on_them(self, quick, parts, bounds):
        calibration, test = parts
        model = quick(calibrated_range=bounds).fit(calibration)
        alone = BetaCalibrator(score_range=bounds)
        alone.fit(model.decision_scores(calibration), calibration.genuine)
        found = model.predict_proba(test)
        np.testing.assert_array_equal(found, alone.predict(model.decision_scores(test)))

    def test_the_range_matters(self, quick, parts):
        calibration, test = parts
        found = [
            quick(calibrated_range=bounds).fit(calibration).predict_proba(test)
            for bounds in ((0.0, 1.0), (-1.0, 1.0))
        ]
        assert not np.array_equal(*found)

    def test_dropout_stays_on(self, quick, parts):
        calibration, test = parts
        off = quick(preset="paper-code", dropout_when_scoring=False).fit(calibration)
        on = quick(preset="paper-code").fit(calibration)
        for a, b in zip(off.weights_, on.weights_, strict=True):
            np.testing.assert_array_equal(a, b)
        clean, noisy = off.decision_scores(test), on.decision_scores(test)
        np.testing.assert_allclose(clean, forward(on.weights_, differences(test)), atol=1e-6)
        assert (noisy != clean).mean() > 0.5
        np.testing.assert_array_equal(noisy, on.decision_scores(test))
        assert (on.set_params(random_state=1).decision_scores(test) != noisy).mean() > 0.5
        np.testing.assert_array_equal(off.set_params(random_state=1).decision_scores(test), clean)

    def test_more_dropout_more_noise(self, quick, parts):
        calibration, test = parts
        model = quick(preset="paper-code").fit(calibration)
        clean = forward(model.weights_, differences(test))
        noise = [
            np.abs(noisy(model, share).decision_scores(test) - clean).mean()
            for share in (0.0, 0.05, 0.5)
        ]
        assert noise[0] < 1e-6
        assert 10 * noise[0] < noise[1] < noise[2] / 2


def noisy(model, share):
    model.recipe_ = replace(model.recipe_, dropout=share)
    return model


class TestTraining:
    def test_what_it_sees(self, quick, parts, trained):
        calibration, _ = parts
        quick(attribute="ethnicity").fit(calibration)
        (call,) = trained
        groups = calibration.groups("ethnicity")
        np.testing.assert_array_equal(call["genuine"], calibration.genuine)
        np.testing.assert_array_equal(call["group"], groups.pair)
        assert groups.cross.any()
        assert (call["group"][groups.cross] == -1).all()
        assert call["n_groups"] == 4
        left, right = call["vectors"][call["left"]], call["vectors"][call["right"]]
        np.testing.assert_allclose(np.abs(left - right), differences(calibration), atol=1e-6)

    def test_all_attributes_crossed_unless_told(self, quick, parts, trained):
        assert quick().fit(parts[0]).attribute_ == "ethnicity+gender"
        assert quick(attribute="gender").fit(parts[0]).attribute_ == "gender"
        assert [call["n_groups"] for call in trained] == [8, 2]

    def test_groups_count_in_the_fairness_alone(self, quick, parts):
        calibration, _ = parts
        blind = [quick(fairness=0.0, attribute=a).fit(calibration) for a in ("gender", "ethnicity")]
        for a, b in zip(blind[0].weights_, blind[1].weights_, strict=True):
            np.testing.assert_array_equal(a, b)

    @pytest.mark.usefixtures("any_labels")
    def test_cross_group_pairs_count_in_the_cross_entropy(self, quick, parts, changed):
        """Were they left out altogether, their labels would not matter."""
        calibration, _ = parts
        rows = np.flatnonzero(calibration.groups().cross)
        genuine = calibration.genuine.copy()
        genuine[rows[::2]] = True
        other = changed(calibration, pairs=replace(calibration.pairs, genuine=genuine))
        a, b = quick().fit(calibration), quick().fit(other)
        assert not np.array_equal(a.weights_[0], b.weights_[0])

    def test_cross_group_pairs_only(self, quick, parts, changed):
        """Every image has a group of its own: there is nothing to be fair to."""
        calibration, _ = parts
        n = len(calibration.images)
        alone = {"who": Column(np.arange(n, dtype=np.int32), tuple(map(str, range(n))))}
        with pytest.raises(DataError, match="it needs pairs within a group of who, and there is"):
            quick().fit(changed(calibration, attributes=alone))

    def test_pairs_within_no_group_are_noted(self, quick, parts):
        calibration, _ = parts
        outside = int((calibration.groups().pair < 0).sum())
        notes = quick().fit(calibration).diagnostics_.notes
        assert any(note.startswith(f"{outside} of {len(calibration)} pairs") for note in notes)

    def test_one_group(self, quick, parts, changed):
        calibration, test = parts
        codes = np.zeros(len(calibration.images), dtype=np.int32)
        model = quick().fit(changed(calibration, attributes={"all": Column(codes, ("one",))}))
        assert model.diagnostics_.figures["fairness"] > 0
        assert np.isfinite(model.predict_proba(test)).all()

    def test_unknown_groups(self, quick, parts, with_unknown, trained):
        calibration = with_unknown(parts[0])
        quick().fit(calibration)
        unknown = calibration.groups().unknown
        assert unknown.any()
        assert (trained[0]["group"][unknown] == -1).all()

    def test_more_weight_on_fairness_more_fairness(self, quick, parts):
        found = [
            quick(fairness=weight).fit(parts[0]).diagnostics_.figures["fairness"]
            for weight in (0.0, 0.05, 0.9)
        ]
        assert found[0] > 2 * found[1] > 4 * found[2]

    def test_figures_are_the_last_losses(self, fitted):
        figures = fitted.diagnostics_.figures
        assert sorted(figures) == ["calibrated_at", "cross-entropy", "fairness", "loss"]
        total = 0.5 * figures["cross-entropy"] + 0.5 * figures["fairness"]
        assert figures["loss"] == pytest.approx(total, rel=1e-5)

    def test_the_rate_moves_the_weights(self, quick, parts):
        """With a rate of 0 they stay as drawn, however long the training."""
        still = [quick(learning_rate=0.0, epochs=n).fit(parts[0]).weights_ for n in (1, 4)]
        for a, b in zip(*still, strict=True):
            np.testing.assert_array_equal(a, b)
        moved = quick(learning_rate=1e-2, epochs=1).fit(parts[0]).weights_
        assert not np.array_equal(moved[0], still[0][0])

    @pytest.mark.parametrize(
        "change",
        [
            {"random_state": 1},
            {"weight_decay": 0.1},
            {"dropout": 0.0},
            {"batch_size": 100},
            {"epochs": 7},
            {"mixed_precision": True},
        ],
    )
    def test_what_changes_the_network(self, quick, fitted, parts, change):
        other = quick(**change).fit(parts[0])
        assert not np.array_equal(other.weights_[0], fitted.weights_[0])
        probability = other.predict_proba(parts[1])
        genuine = parts[1].genuine
        assert probability[genuine].mean() > probability[~genuine].mean() + 0.1

    def test_the_calibrator_does_not(self, quick, fitted, parts):
        other = quick(calibrator="isotonic").fit(parts[0])
        for a, b in zip(fitted.weights_, other.weights_, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_ready_made_scores_are_not_looked_at(self, quick, fitted, parts, changed):
        """Data with a column `score`, even in another range: the network makes its own."""
        calibration, test = (changed(part, score_range=(-2.0, 2.0)) for part in parts)
        model = quick().fit(calibration)
        assert model.score_range_ == (-2.0, 2.0)
        assert model.calibrator_.score_range == (0.0, 1.0)
        found = model.predict_proba(test)
        np.testing.assert_array_equal(found, fitted.predict_proba(parts[1]))


class TestOtherEmbeddings:
    def test_of_another_dimension(self, fitted, other_space):
        with pytest.raises(DataError, match="expected 32-d embeddings, as in fitting, found 16"):
            fitted.apply(other_space(dimension=16))

    def test_not_scaled(self, fitted, other_space):
        with pytest.raises(
            DataError, match=r"fitted with normalize=True, .* normalize=False; load"
        ):
            fitted.apply(other_space(normalize=False))

    def test_as_stored(self, quick, other_space):
        data = other_space(normalize=False, scale=3.0)
        model = quick().fit(data)
        assert model.space_.normalize is False
        vectors = data.embeddings.vectors.astype(float)
        x = np.abs(vectors[data.pairs.left] - vectors[data.pairs.right])
        found = model.decision_scores(data)
        np.testing.assert_allclose(found, forward(model.weights_, x), rtol=0, atol=1e-5)


class TestModelFile:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_same_outputs(self, quick, parts, tmp_path, preset):
        calibration, test = parts
        model = quick(preset=preset).fit(calibration)
        model.save(tmp_path / "m.faircal")
        found = load_model(tmp_path / "m.faircal")
        assert found.attribute_ == model.attribute_
        assert found.space_ == model.space_
        np.testing.assert_array_equal(found.decision_scores(test), model.decision_scores(test))
        np.testing.assert_array_equal(found.predict_proba(test), model.predict_proba(test))

    def test_holds_the_network_and_the_calibrator_only(self, fitted, parts, tmp_path):
        path = tmp_path / "m.faircal"
        fitted.save(path)
        header, body = unpack(path.read_bytes())
        arrays = cut(header["arrays"], body)  # they fill the file: there is nothing else in it
        weights = {f"weights.{i}": weight for i, weight in enumerate(fitted.weights_)}
        for name, weight in weights.items():
            np.testing.assert_array_equal(arrays.pop(name), weight)
        assert all(name.startswith("calibrator.") for name in arrays)
        assert sum(array.size for array in arrays.values()) < 10
        assert path.stat().st_size < sum(w.nbytes for w in weights.values()) + 4000
        for text in (b"Asian", b"p01", b"torch"):
            assert text not in path.read_bytes()

    def test_weights_that_do_not_fit(self, fitted, tmp_path):
        state = {**fitted._get_state(), "weights.1": np.zeros(3, np.float32)}
        with pytest.raises(DataError, match=r"weights: expected shapes .* found"):
            FTC(hidden=(2.0,))._set_state(state)
        state = fitted._get_state()
        state["recipe"] = {**state["recipe"], "hidden": [3.0]}
        with pytest.raises(DataError, match="weights: expected shapes"):
            FTC()._set_state(state)

    def test_a_model_keeps_its_recipe(self, quick, parts, tmp_path, monkeypatch):
        """Whatever the presets of a later version say, or the parameters after fitting."""
        calibration, test = parts
        model = quick(preset="paper-code").fit(calibration)
        before = model.decision_scores(test)
        model.save(tmp_path / "m.faircal")
        model.set_params(preset="paper", dropout=0.9)
        np.testing.assert_array_equal(model.decision_scores(test), before)
        other = replace(FTC.presets["paper"], dropout=0.9)
        monkeypatch.setattr(FTC, "presets", {"paper": other, "paper-code": other})
        found = load_model(tmp_path / "m.faircal")
        np.testing.assert_array_equal(found.decision_scores(test), before)
        assert found.recipe_ == model.recipe_


class TestProgress:
    def test_is_told_every_epoch(self, quick, parts):
        calls = []
        quick(epochs=4).fit(parts[0], progress=lambda *told: calls.append(told))
        assert {(what, total) for what, _, total, _ in calls} == {("comparing", 4)}
        done = [done for _, done, _, _ in calls]
        assert done == sorted(done)
        assert set(done) == {1, 2, 3, 4}
        for label in (label for *_, label in calls):
            assert "loss 0." in label
            assert "fairness" in label

    def test_changes_nothing(self, quick, fitted, parts):
        told = quick().fit(parts[0], progress=lambda *_: None)
        np.testing.assert_array_equal(told.weights_[0], fitted.weights_[0])


class StopError(Exception):
    pass


def stop_after(n):
    """Return a progress that interrupts at its n-th call, and a list of its calls."""
    calls = []

    def progress(*told):
        calls.append(told)
        if len(calls) == n:
            raise StopError

    return progress, calls


@pytest.mark.usefixtures("checkpoints_at_once")
class TestCheckpoint:
    @pytest.mark.parametrize("stop", [2, 4, 6])
    def test_resumed_to_the_same_bytes(self, quick, fitted, parts, tmp_path, stop):
        calibration, _ = parts
        path = tmp_path / "state"
        progress, calls = stop_after(stop)
        model = quick()
        with pytest.raises(StopError):
            model.fit(calibration, progress=progress, checkpoint=path)
        assert not model.__sklearn_is_fitted__()
        assert path.exists()
        quick().fit(calibration, progress=progress, checkpoint=str(path)).save(tmp_path / "a")
        assert calls[stop][1] == stop  # it went on where it was
        fitted.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_interrupted_twice(self, quick, fitted, parts, tmp_path):
        for stop in (3, 2):
            with pytest.raises(StopError):
                quick().fit(parts[0], progress=stop_after(stop)[0], checkpoint=tmp_path / "state")
        model = quick().fit(parts[0], checkpoint=tmp_path / "state")
        np.testing.assert_array_equal(model.weights_[0], fitted.weights_[0])

    def test_the_file_stays_for_its_owner_to_remove(self, quick, fitted, parts, tmp_path):
        for _ in range(2):  # a fit that goes on from the end of another gives the same
            model = quick().fit(parts[0], checkpoint=tmp_path / "state")
            np.testing.assert_array_equal(model.weights_[0], fitted.weights_[0])
            assert [path.name for path in tmp_path.iterdir()] == ["state"]

    def test_not_resumed_unless_wanted(self, quick, fitted, parts, tmp_path):
        path = tmp_path / "state"
        with pytest.raises(StopError):
            quick(random_state=1).fit(parts[0], progress=stop_after(3)[0], checkpoint=path)
        model = quick().fit(parts[0], checkpoint=path, resume=False)
        np.testing.assert_array_equal(model.weights_[0], fitted.weights_[0])

    @pytest.mark.parametrize(
        "change", [{"random_state": 1}, {"epochs": 7}, {"attribute": "gender"}]
    )
    def test_of_another_training(self, quick, parts, tmp_path, change):
        path = tmp_path / "state"
        with pytest.raises(StopError):
            quick().fit(parts[0], progress=stop_after(3)[0], checkpoint=path)
        before = path.read_bytes()
        with pytest.raises(ParameterError, match="state: the checkpoint is of another training"):
            quick(**change).fit(parts[0], checkpoint=path)
        assert path.read_bytes() == before

    def test_damaged(self, quick, parts, tmp_path):
        path = tmp_path / "state"
        path.write_bytes(b"FAIRCAL\n" + bytes(100))
        with pytest.raises(ModelFileError, match="state: not a checkpoint, or damaged; delete it"):
            quick().fit(parts[0], checkpoint=path)


@pytest.mark.parametrize("kind", ["baseline", "faircal"])
def test_what_trains_nothing_takes_a_checkpoint_and_writes_none(make, parts, tmp_path, kind):
    told = []
    progress = lambda *what: told.append(what)  # noqa: E731
    make(kind).fit(parts[0], checkpoint=tmp_path / "state", progress=progress)
    assert {what for what, *_ in told} <= {"K-means"}
    assert not list(tmp_path.iterdir())
