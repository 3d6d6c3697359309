"""Running an audit over a stream: interrupts, checkpoints, memory."""

from __future__ import annotations

import signal
import threading
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircal import ParameterError
from faircal._base.jobs import Job
from faircal.data import open_stream
from faircal.evaluation.audit import Auditor, audit, audit_stream, files_digest


@pytest.fixture
def stream(tmp_path):
    """Return a function that opens a score table of `n` pairs."""

    def make(n=1000, batch=100):
        path = tmp_path / f"{n}.parquet"
        if not path.exists():
            rng = np.random.default_rng(n)
            genuine = rng.random(n) < 0.5
            columns = {
                "genuine": genuine,
                "score": np.clip(rng.normal(0.3 * genuine, 0.2), -1, 1),
                "left_g": rng.choice(["A", "B"], n),
                "right_g": rng.choice(["A", "B"], n),
                "left_identity": rng.integers(0, 50, n),
                "right_identity": rng.integers(0, 50, n),
            }
            pq.write_table(pa.table(columns), path, row_group_size=batch)
        return open_stream(path, batch=batch)

    return make


def finished(stream, **settings):
    (auditor,) = audit_stream(stream, attribute="g", **settings)
    return auditor.finish()


def same(one, two):
    np.testing.assert_equal(one.measures, two.measures)
    assert (one.people, one.trials) == (two.people, two.trials)


def test_parts_of_any_length_give_the_same(stream):
    same(finished(stream(batch=100)), finished(stream(batch=333)))


def test_progress_is_told_in_pairs(stream):
    told = []
    finished(stream(), job=Job(lambda *words: told.append(words)))
    assert told == [("pairs", done, 1000, "") for done in range(100, 1001, 100)]


def test_an_interrupt_while_counting_waits_for_the_end_of_the_part(stream, tmp_path, monkeypatch):
    path, add, parts = tmp_path / "audit.partial", Auditor.add, []

    def interrupted(auditor, *more):
        parts.append(more)
        if len(parts) == 3:
            signal.raise_signal(signal.SIGINT)
        add(auditor, *more)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(Auditor, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finished(stream(), job=Job(checkpoint=path))
    assert len(parts) == 3
    assert signal.getsignal(signal.SIGINT) is before
    told = []
    found = finished(stream(), job=Job(lambda *words: told.append(words), checkpoint=path))
    assert told[0] == ("pairs", 400, 1000, "")
    same(found, finished(stream()))


def test_in_another_thread(stream):
    found = []
    thread = threading.Thread(target=lambda: found.append(finished(stream())))
    thread.start()
    thread.join()
    same(found[0], finished(stream()))


def test_a_reader_that_is_left_ends(stream, monkeypatch):
    monkeypatch.setattr("faircal.evaluation.audit.stream.FeatureAuditors.count", lambda *_: 1 / 0)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        finished(stream())
    assert threading.active_count() <= before


def test_without_resume_a_checkpoint_is_passed_over(stream, tmp_path):
    path = tmp_path / "audit.partial"
    finished(stream(), job=Job(checkpoint=path, every=0.0))
    assert path.exists()
    with pytest.raises(ParameterError, match="of another audit"):
        finished(stream(), job=Job(checkpoint=path), threshold=0.5)
    same(finished(stream(), job=Job(checkpoint=path, resume=False)), finished(stream()))


def test_a_full_disk_does_not_end_an_audit(stream, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("faircal._base.checkpoints.pack", full)
    job = Job(checkpoint=tmp_path / "audit.partial", every=0.0)
    same(finished(stream(), job=job), finished(stream()))
    (note,) = job.notes
    assert "no checkpoint could be written" in note
    assert "No space left" in note


def test_memory_does_not_grow_with_the_number_of_pairs(stream):
    def peak(n):
        opened = stream(n, batch=2000)
        tracemalloc.start()
        try:
            finished(opened)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(8_000)  # what is imported and remembered on the way
    assert peak(80_000) <= 1.2 * peak(8_000)


def test_the_digest_is_of_names_and_contents(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"ab")
    two.write_bytes(b"c")
    before = files_digest([one, two])
    assert files_digest([one, two]) == before
    one.write_bytes(b"a")
    two.write_bytes(b"bc")
    assert files_digest([one, two]) != before


def odd(name, score):
    """Scores that even bins would be no good for."""
    if name == "a few far away":
        return np.where(np.arange(len(score)) % 997 == 5, -99999.0, score)
    if name == "all in a millionth":
        return 0.9 + 1e-7 * score
    return score.round(2)


@pytest.mark.parametrize("name", ["a few far away", "all in a millionth", "tied"])
def test_bins_lie_where_the_scores_are(name, tmp_path):
    rng = np.random.default_rng(3)
    genuine = rng.random(20_000) < 0.3
    score = odd(name, np.clip(rng.normal(0.1 + 0.4 * genuine, 0.15), -1, 1))
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"genuine": genuine, "score": score}), path)
    (auditor,) = audit_stream(open_stream(path, score_range=None, batch=3000))
    found, exact = auditor.finish(), audit(genuine=genuine, score=score)
    for metric, under in (("auroc", ""), ("tpr", "fpr=0.01"), ("fnr", "global_fpr=0.001")):
        told, true = (one.value(metric, condition=under) for one in (found, exact))
        assert abs(told - true) <= 1e-3


def test_nobody_is_known():
    found = audit(genuine=[1, 0], score=[0.9, 0.1], left_identity=["", ""], right_identity=["", ""])
    assert found.people == {"global": 0}
