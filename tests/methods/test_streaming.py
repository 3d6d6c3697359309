"""Fits on pairs that come part by part: as on pairs in memory, and gone on with after a stop."""

from __future__ import annotations

import gc
import weakref
from itertools import islice

import numpy as np
import pytest

from faircal import DataError, ModelFileError, ParameterError
from faircal.compute import Engine
from faircal.data import load, open_stream
from faircal.data.dataset_folder import save_dataset
from faircal.methods import METHODS, Needs, make_method, streaming
from tests.methods.conftest import COHORT

STREAMS = [name for name, method in METHODS.items() if method.streams]


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return save_dataset(data, tmp_path_factory.mktemp("stream") / "data")


@pytest.fixture
def stream(folder):
    return open_stream(folder, batch=300, cohort=COHORT)


def new(name, **more):
    takes = METHODS[name]._get_param_names()
    return make_method(name, **({"n_clusters": 4} if "n_clusters" in takes else {}), **more)


class StopError(Exception):
    """What an interruption is here."""


def tolerance(name):
    """Methods that set thresholds can be no more exact than bins are wide, times a map's slope."""
    return 1e-3 if METHODS[name].fitted_to_rate else 1e-6


def stops_after(parts):
    """A progress that lets so many parts of a pass be scored."""

    def progress(what, done, total, label):
        if what == "scoring pairs" and done >= parts * 300:
            raise StopError

    return progress


def test_all_that_train_nothing():
    assert set(STREAMS) >= {"baseline", "faircal", "fsn", "gst", "oracle"}
    assert "smooth" not in STREAMS  # its map of each pair needs vectors, not counts


@pytest.mark.parametrize("name", STREAMS)
class TestAsInMemory:
    def test_probabilities(self, name, folder, stream):
        data = load(folder, cohort=COHORT)
        exact, streamed = new(name).fit(data), new(name).fit(stream)
        for output in ("predict_proba", "decision_scores"):
            found, expected = getattr(streamed, output)(data), getattr(exact, output)(data)
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(name))
        assert streamed.score_range_ == exact.score_range_

    def test_the_size_of_parts_changes_nothing(self, name, folder, stream, tmp_path):
        new(name).fit(stream).save(tmp_path / "a")
        new(name).fit(open_stream(folder, batch=77, cohort=COHORT)).save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_a_fold_left_out(self, name, folder):
        data = load(folder, cohort=COHORT)
        calibration, test = data.split(5)
        stream = open_stream(folder, batch=300, leave_out=5, cohort=COHORT)
        found = new(name).fit(stream).predict_proba(test)
        expected = new(name).fit(calibration).predict_proba(test)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance(name))

    def test_goes_on_after_an_interruption(self, name, stream, tmp_path, monkeypatch):
        monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
        checkpoint = tmp_path / "m.checkpoint"
        with pytest.raises(StopError):
            new(name).fit(stream, progress=stops_after(3), checkpoint=checkpoint)
        seen = []
        resumed = new(name).fit(
            stream, checkpoint=checkpoint, progress=lambda *told: seen.append(told)
        )
        first = next(done for what, done, *_ in seen if what == "scoring pairs")
        assert first > 600  # parts that were counted before are not scored again
        resumed.save(tmp_path / "a")
        new(name).fit(stream).save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_was_clustered_is_not_clustered_again(stream, tmp_path, monkeypatch):
    monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
    with pytest.raises(StopError):
        new("faircal").fit(stream, progress=stops_after(2), checkpoint=tmp_path / "c")

    def never(*_, **__):
        raise AssertionError("clustered again")

    monkeypatch.setattr(Engine, "kmeans", never)
    new("faircal").fit(stream, checkpoint=tmp_path / "c")


def full(path):
    raise OSError(28, "No space left on device")


class TestCheckpoint:
    @pytest.fixture
    def left(self, stream, tmp_path, monkeypatch):
        """A checkpoint that an interrupted fit left behind."""
        monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
        path = tmp_path / "m.checkpoint"
        with pytest.raises(StopError):
            new("baseline").fit(stream, progress=stops_after(2), checkpoint=path)
        return path

    def test_of_another_fit_is_refused(self, stream, left):
        with pytest.raises(ParameterError, match="the checkpoint is of another fit"):
            new("baseline", calibrator="platt").fit(stream, checkpoint=left)

    def test_of_another_fit_is_passed_over(self, stream, left, tmp_path):
        new("baseline", calibrator="platt").fit(stream, checkpoint=left, resume=None).save(
            tmp_path / "a"
        )
        new("baseline", calibrator="platt").fit(stream).save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_damaged(self, stream, left):
        left.write_bytes(left.read_bytes()[:-40])
        with pytest.raises(ModelFileError, match="not a checkpoint, or damaged"):
            new("baseline").fit(stream, checkpoint=left)

    def test_that_cannot_be_written_ends_nothing(self, stream, tmp_path, monkeypatch):
        monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
        monkeypatch.setattr("faircal._base.checkpoints.atomic_path", full)
        model = new("baseline").fit(stream, checkpoint=tmp_path / "c")
        assert [text for text in model.diagnostics_.notes if "no checkpoint could be" in text]

    def test_is_small_and_holds_no_vectors(self, stream, left):
        assert left.stat().st_size < 2_000_000


def test_one_class_only(data, tmp_path):
    folder = save_dataset(data.subset(data.genuine), tmp_path / "genuine")
    with pytest.raises(DataError, match="found one class only"):
        new("baseline").fit(open_stream(folder))


def test_a_method_that_cannot(stream):
    with pytest.raises(ParameterError, match="ftc needs all pairs in memory"):
        make_method("ftc").fit(stream)


def test_memory_is_that_of_a_part(stream, monkeypatch):
    """Never more than a part is scored at a time."""
    alive = []
    add = streaming.SetScores.add

    def counted(tally, part):
        alive.append(len(part))
        add(tally, part)

    monkeypatch.setattr(streaming.SetScores, "add", counted)
    new("faircal").fit(stream)
    assert max(alive) <= 300
    assert sum(islice(alive, 100)) == len(stream)


def test_says_how_finely_scores_were_counted(stream):
    model = new("baseline").fit(stream)
    assert model.diagnostics_.notes == [
        f"fitted on {len(stream)} pairs whose scores were counted in bins of at most 1.2e-04"
    ]


class TestOtherReadingsAreRefused:
    @pytest.fixture
    def left(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
        path = tmp_path / "m.checkpoint"
        with pytest.raises(StopError):
            new("baseline").fit(
                open_stream(folder, batch=300, leave_out=1),
                progress=stops_after(2),
                checkpoint=path,
            )
        return path

    @pytest.mark.parametrize(
        "other",
        [
            {"leave_out": 2},
            {"fold": 1},
            {"leave_out": 1, "normalize": False},
            {"leave_out": 1, "score_range": (-2.0, 2.0)},
        ],
    )
    def test_another(self, folder, left, other):
        with pytest.raises(ParameterError, match="the checkpoint is of another fit"):
            new("baseline").fit(open_stream(folder, batch=300, **other), checkpoint=left)

    def test_the_same(self, folder, left):
        new("baseline").fit(open_stream(folder, batch=300, leave_out=1), checkpoint=left)


def test_a_model_is_applied_to_parts(stream):
    model = new("baseline").fit(stream)
    with pytest.raises(ParameterError, match="a stream goes by its parts"):
        model.predict_proba(stream)


def test_groups_are_seen_by_those_who_need_them_to_fit_only(data, stream):
    class Counting(METHODS["baseline"]):
        name = "counting"
        needs = Needs(groups_to_fit=True)

        def _fit(self, inputs):
            self.seen_ = []

            def look(part):
                self.seen_.append(part.groups)
                return part.score

            inputs.samples(scores=look)
            super()._fit(inputs)

    seen = Counting().fit(stream).seen_
    assert sum(map(len, seen)) == len(stream)


def test_a_cohort_is_seen_by_those_who_declare_it(data, stream):
    class Comparing(METHODS["baseline"]):
        name = "comparing"
        needs = Needs(embeddings=True, cohort="required")

        def _fit(self, inputs):
            self.seen_ = [inputs.cohort]

            def look(part):
                self.seen_.append(part.cohort)
                return part.score

            inputs.samples(scores=look)
            super()._fit(inputs)

    expected = data.cohort.seen("embedding")
    seen = Comparing().fit(stream).seen_
    assert len(seen) > 2
    for found in seen:
        np.testing.assert_array_equal(found.vectors, expected.vectors)
    with pytest.raises(DataError, match="it needs a cohort: --cohort DIR"):
        Comparing().fit(stream.with_cohort(None))


def test_a_model_keeps_no_vectors_alive(folder):
    data = load(folder)
    model = new("faircal").fit(data)
    vectors = weakref.ref(data.embeddings)
    del data
    gc.collect()
    assert vectors() is None
    assert model.predict_proba(load(folder)).size
