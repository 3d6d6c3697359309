"""Graphs of every method and calibrator say what the models say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

import faircal
from faircal import MissingExtraError, NotFittedError, ParameterError
from faircal.calibrators import BetaCalibrator
from faircal.data import Embeddings, Groups
from faircal.methods import METHODS, make_method
from faircal.production.onnx import PairInputs, check_export, export_onnx, exports
from faircal.production.onnx.export import made_up, run
from faircal.production.scoring.judging import Judge

#: All that a graph adds to its model is rounding in double precision; a steep map makes more of it.
ROUNDING = 1e-9


def feed_of(data, model, rows=slice(None)):
    """Return the inputs of a graph for pairs of a dataset."""
    vectors, pairs = data.embeddings.vectors, data.pairs
    feed = {"left": vectors[pairs.left[rows]], "right": vectors[pairs.right[rows]]}
    if model.needs.groups_to_apply:
        groups = data.groups(model.attribute_).renamed(model.groups_)
        feed |= {
            "left_group": groups.left[rows].astype(np.int64),
            "right_group": groups.right[rows].astype(np.int64),
        }
    return feed


class TestEqual:
    def test_every_method_and_calibrator(self, method, calibrator, exported, fitted):
        model = fitted(method, calibrator)
        found = check_export(model, exported(method, calibrator).path, pairs=3000)
        assert found.largest <= ROUNDING

    def test_pairs_of_a_dataset(self, method, exported, fitted, parts):
        model, test = fitted(method), parts[1]
        feed = feed_of(test, model)
        probability, score = run(exported(method).path, feed, "probability", "score")
        said = model.apply(test)
        np.testing.assert_allclose(probability, said.probability, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(score, said.score, rtol=0, atol=ROUNDING)

    @pytest.mark.parametrize(
        "which",
        [("faircal", "isotonic"), ("smooth", "beta")],
        ids="-".join,
    )
    def test_a_hundred_thousand_pairs(self, which, exported, fitted):
        path = exported(*which).path
        found = check_export(fitted(*which), path, pairs=100_000, random_state=1)
        assert found.largest <= ROUNDING

    def test_likelihood_ratio_of_all_sizes(self, exported, fitted):
        model, rng = fitted("faircal"), np.random.default_rng(0)
        vectors = made_up(model, 500, rng)
        vectors[500] = -vectors[0]
        vectors[501] = vectors[1]
        (ratio,) = run(
            exported("faircal").path,
            {"left": vectors[:500], "right": vectors[500:]},
            "log_likelihood_ratio",
        )
        judged = Judge.of(model)(Embeddings(vectors), *np.arange(1000).reshape(2, 500))
        np.testing.assert_allclose(ratio, judged.log_likelihood_ratio, rtol=1e-9)
        assert ratio.min() < -10
        assert ratio.max() > 3


class TestEdges:
    def test_vectors_as_stored(self, method, parts, settings, tmp_path):
        """A model of vectors that are not scaled to unit length."""
        rng, cal = np.random.default_rng(0), parts[0]
        length = rng.uniform(0.5, 2, (len(cal.images), 1))
        attributes = {"ethnicity": rng.choice(["a", "b"], len(cal.images))}
        data = faircal.Dataset(
            embeddings=cal.embeddings.vectors * length,
            pairs={key: getattr(cal.pairs, key) for key in ("left", "right", "genuine")},
            attributes=attributes if METHODS[method].needs.groups_to_fit else None,
            normalize=False,
        )
        model = make_method(method, **settings.get(method, {})).fit(data.with_cohort(cal.cohort))
        written = export_onnx(model, tmp_path / "m.onnx")
        found = check_export(model, written.path, pairs=2000)
        assert found.largest <= ROUNDING

    def test_swapping_sides_changes_nothing(self, method, exported, fitted, parts):
        feed = feed_of(parts[1], fitted(method))
        swapped = {_other(name): values for name, values in feed.items()}
        one, two = (run(exported(method).path, some, "probability")[0] for some in (feed, swapped))
        assert (one == two).all()

    @pytest.mark.parametrize("n", [0, 1, 2, 7])
    def test_any_number_of_pairs(self, n, method, exported, fitted, parts):
        model = fitted(method)
        whole = run(exported(method).path, feed_of(parts[1], model, slice(7)), "probability")[0]
        some = run(exported(method).path, feed_of(parts[1], model, slice(n)), "probability")[0]
        assert some.shape == (n,)
        np.testing.assert_allclose(some, whole[:n], rtol=1e-12)

    def test_vectors_without_direction(self, method, described, tmp_path, parts):
        model = described(method)
        written = export_onnx(model, tmp_path / "m.onnx")
        feed = feed_of(parts[1], model, slice(6))
        feed["left"] = feed["left"].copy()
        feed["left"][1], feed["left"][2, 0], feed["left"][3, 0] = 0, np.nan, np.inf
        feed["right"] = feed["right"].copy()
        feed["right"][4] = 0
        found = dict(zip(written.outputs, run(written.path, feed, *written.outputs), strict=True))
        bad = np.array([False, True, True, True, True, False])
        for name in ("probability", "score", "similarity", "log_likelihood_ratio"):
            assert (np.isnan(found[name]) == bad).all(), name
        assert not found["same"][bad].any()
        assert (found["left_cluster"] == -1).tolist() == [0, 1, 1, 1, 0, 0]
        assert found["left_outside"][1:4].all()
        assert found["right_outside"][4]

    def test_scale_does_not_matter(self, exported, fitted, parts):
        feed = feed_of(parts[1], fitted("faircal"))
        scaled = {"left": feed["left"] * np.float32(2.0**40), "right": feed["right"]}
        one, two = (
            run(exported("faircal").path, some, "probability")[0] for some in (feed, scaled)
        )
        assert (one == two).all()

    def test_unknown_and_foreign_groups(self, exported, fitted, parts):
        """−1 is unknown, a place after the last is a group that the model does not know."""
        model, names = fitted("oracle"), fitted("oracle").groups_
        vectors, n = parts[1].embeddings.vectors, len(names)
        left = np.array([0, 0, -1, n, n, 0, n + 1, -5])
        right = np.array([0, 1, 0, n, 0, -1, n, -5])
        rows = np.arange(8), np.arange(8, 16)
        (found,) = run(
            exported("oracle").path,
            {"left": vectors[:8], "right": vectors[8:16], "left_group": left, "right_group": right},
            "probability",
        )
        codes = (np.maximum(side, -1).astype(np.int32) for side in (left, right))
        said = model.compare(Embeddings(vectors), *rows, Groups((*names, "x", "y"), *codes))
        np.testing.assert_allclose(found, said.probability, rtol=0, atol=1e-6)
        assert (found == 0).tolist() == [False, True, False, False, True, False, True, False]


class TestOutputs:
    def test_as_the_judge_says(self, method, described, tmp_path, parts):
        model, test = described(method), parts[1]
        written = export_onnx(model, tmp_path / "m.onnx", prior=0.3)
        found = dict(
            zip(
                written.outputs,
                run(written.path, feed_of(test, model), *written.outputs),
                strict=True,
            )
        )
        groups = None
        if model.needs.groups_to_apply:
            groups = test.groups(model.attribute_).renamed(model.groups_)
        left, right = test.pairs.left, test.pairs.right
        judged = Judge.of(model, prior=0.3)(test.embeddings, left, right, groups)
        for name in ("similarity", "score", "probability", "log_likelihood_ratio"):
            np.testing.assert_allclose(
                found[name], getattr(judged, name), rtol=0, atol=ROUNDING, err_msg=name
            )
        assert (found["same"] == judged.same).all()
        assert 0 < judged.same.sum() < len(test)
        assert (found["at_bound"] == judged.at_bound).all()
        assert 0 < judged.at_bound.sum() < len(test)
        assert (found["left_cluster"] == judged.places.cluster[left]).all()
        assert (found["right_cluster"] == judged.places.cluster[right]).all()
        assert (found["left_outside"] == judged.places.outside[left]).all()
        assert (found["right_outside"] == judged.places.outside[right]).all()
        assert 0 < judged.places.outside.sum() < len(judged.places.outside)

    def test_without_another_share_it_is_the_models_own_probability(
        self, described, tmp_path, parts
    ):
        model, test = described("baseline"), parts[1]
        written = export_onnx(model, tmp_path / "m.onnx")
        p, ratio = run(written.path, feed_of(test, model), "probability", "log_likelihood_ratio")
        np.testing.assert_allclose(p, model.predict_proba(test), rtol=0, atol=ROUNDING)
        assert (ratio.min(), ratio.max()) == model.about_.evidence[:2]
        assert json.loads(written.metadata["evidence_bounds"]) == model.about_.evidence._asdict()
        model.about_ = replace(model.about_, evidence=None)
        bare = export_onnx(model, tmp_path / "bare.onnx")
        assert "at_bound" not in bare.outputs
        assert any("no bounds on evidence" in note for note in bare.notes)

    def test_point_on_probability(self, described, tmp_path, parts):
        model = described("fsn", on="probability", threshold=0.6)
        written = export_onnx(model, tmp_path / "m.onnx")
        same, p = run(written.path, feed_of(parts[1], model), "same", "probability")
        assert (same == (p >= 0.6)).all()
        assert 0 < same.sum() < len(same)

    def test_double_precision_and_shapes(self, exported, fitted):
        model = onnx.load(exported("faircal").path)
        kinds = {port.name: port.type.tensor_type for port in model.graph.output}
        for name in ("probability", "score", "similarity", "log_likelihood_ratio"):
            assert kinds[name].elem_type == onnx.TensorProto.DOUBLE
        assert kinds["left_cluster"].elem_type == onnx.TensorProto.INT64
        left = model.graph.input[0].type.tensor_type
        assert left.elem_type == onnx.TensorProto.FLOAT
        assert left.shape.dim[0].dim_param == "pairs"
        assert left.shape.dim[1].dim_value == fitted("faircal").cluster_centers_.shape[1]
        assert set(kinds).isdisjoint({"same", "left_outside"})

    def test_only_methods_that_need_groups_take_them(self, method, exported):
        takes = "left_group" in exported(method).inputs
        assert takes == METHODS[method].needs.groups_to_apply

    def test_prior(self, fitted, tmp_path, parts):
        model = fitted("faircal")
        written = export_onnx(model, tmp_path / "m.onnx", prior=0.001)
        feed = feed_of(parts[1], model)
        names = ("probability", "score", "log_likelihood_ratio")
        probability, score, ratio = run(written.path, feed, *names)
        judged = Judge.of(model, prior=0.001)(
            parts[1].embeddings, parts[1].pairs.left, parts[1].pairs.right
        )
        np.testing.assert_allclose(probability, judged.probability, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(score, judged.score, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(ratio, judged.log_likelihood_ratio, rtol=0, atol=ROUNDING)
        assert check_export(model, written.path, prior=0.001, pairs=100).fine
        assert not check_export(model, written.path, pairs=100).fine
        assert written.metadata["prior"] == "0.001"


class TestFile:
    def test_checked_and_readable_by_old_runtimes(self, method, exported):
        model = onnx.load(exported(method).path)
        onnx.checker.check_model(model, full_check=True)
        assert [(one.domain, one.version) for one in model.opset_import] == [("", 18)]
        assert model.ir_version == 8

    def test_metadata(self, described, tmp_path):
        model = described("gst")
        written = export_onnx(model, tmp_path / "m.onnx", model_sha256="abc")
        told = {entry.key: entry.value for entry in onnx.load(written.path).metadata_props}
        assert told == written.metadata
        assert told["faircal_version"] == faircal.__version__
        assert (told["method"], told["model_sha256"]) == ("gst", "abc")
        assert tuple(json.loads(told["groups"])) == model.groups_
        assert told["attribute"] == model.attribute_
        assert (float(told["threshold"]), told["threshold_on"]) == (0.3, "score")
        assert float(told["calibrated_at"]) == model.diagnostics_.figures["calibrated_at"]
        assert told["normalize"] == "true"

    def test_digest_is_that_of_the_file(self, fitted, exported, tmp_path):
        from faircal._base.files import file_digest

        fitted("faircal").save(tmp_path / "m.faircal")
        digest = file_digest(tmp_path / "m.faircal")
        assert exported("faircal").metadata["model_sha256"] == digest

    def test_same_model_same_bytes(self, fitted, exported, tmp_path):
        again = export_onnx(fitted("smooth"), tmp_path / "m.onnx")
        assert again.path.read_bytes() == exported("smooth").path.read_bytes()

    def test_size_is_that_of_the_model(self, fitted, exported, tmp_path):
        fitted("faircal", "spline").save(tmp_path / "m.faircal")
        assert exported("faircal", "spline").bytes < 2 * (tmp_path / "m.faircal").stat().st_size

    def test_too_large_for_a_file(self, fitted, tmp_path, monkeypatch):
        monkeypatch.setattr("faircal.production.onnx.export.MOST_BYTES", 1000)
        with pytest.raises(ParameterError, match="another calibrator"):
            export_onnx(fitted("faircal", "spline"), tmp_path / "m.onnx")
        assert not list(tmp_path.iterdir())


class TestRefused:
    def test_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            export_onnx(faircal.FairCal(), tmp_path / "m.onnx")

    def test_trained(self, tmp_path):
        model = METHODS["ftc"]()
        model._fitted = True
        with pytest.raises(ParameterError, match="ftc is trained"):
            export_onnx(model, tmp_path / "m.onnx")

    def test_method_and_calibrator_without_a_graph(self, parts, tmp_path, monkeypatch):
        class Own(faircal.Baseline):
            name = "own"

        model = Own().fit(parts[0])
        with pytest.raises(ParameterError, match=r"own has no graph.*exports"):
            export_onnx(model, tmp_path / "m.onnx")

        class Strange(BetaCalibrator):
            pass

        model = faircal.Baseline(calibrator=Strange()).fit(parts[0])
        with pytest.raises(ParameterError, match=r"Strange has no graph.*exports_maps"):
            export_onnx(model, tmp_path / "m.onnx")
        assert not list(tmp_path.iterdir())

    def test_method_of_ones_own(self, parts, tmp_path, monkeypatch):
        monkeypatch.setattr("faircal.production.onnx.methods._BUILDS", {})

        class Doubtful(faircal.Baseline):
            name = "doubtful"

        @exports(Doubtful)
        def build(model: Doubtful, pairs: PairInputs):
            return pairs.similarity, 0.0 * pairs.similarity + 0.25

        model = Doubtful().fit(parts[0])
        written = export_onnx(model, tmp_path / "m.onnx")
        (found,) = run(written.path, feed_of(parts[1], model), "probability")
        assert (found == 0.25).all()
        assert not check_export(model, written.path, pairs=100).fine

    def test_scores_that_are_no_cosines(self, parts, tmp_path):
        rows = np.arange(40)
        scores = {"score": rows / 40, "genuine": rows > 20, "left": rows, "right": rows + 40}
        data = faircal.Dataset(
            pairs=scores, attributes={"ethnicity": ["a"] * 80}, score_range=(0, 1)
        )
        with pytest.raises(ParameterError, match="no cosines"):
            export_onnx(faircal.Baseline().fit(data), tmp_path / "m.onnx")

    def test_older_model_that_does_not_say_its_share(self, described, tmp_path):
        model = described("baseline")
        del model.diagnostics_.figures["calibrated_at"]
        written = export_onnx(model, tmp_path / "m.onnx")
        assert "log_likelihood_ratio" not in written.outputs
        assert "fit it again" in written.notes[0]
        with pytest.raises(ParameterError, match="fit it again"):
            export_onnx(model, tmp_path / "m.onnx", prior=0.1)

    def test_without_onnx(self, fitted, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "onnx", None)
        with pytest.raises(MissingExtraError, match=r"faircal\[onnx\]"):
            export_onnx(fitted("faircal"), tmp_path / "m.onnx")


def _other(name):
    return name.replace("left", "right") if "left" in name else name.replace("right", "left")
