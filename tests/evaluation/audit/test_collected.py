"""Audits of pairs wherever they are: the same numbers, checkpoints, and counts of very many."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import DataError, ParameterError
from faircal._base.jobs import Job
from faircal.data import load, open_stream
from faircal.data.dataset_folder import save_dataset
from faircal.evaluation.audit import audit_parts, collected, files_digest
from faircal.evaluation.audit.collected import AuditPlan, AuditTally

N = 1000


@pytest.fixture
def table(tmp_path):
    """A score table with groups, some unknown, and people, some without a name."""
    rng = np.random.default_rng(0)
    genuine = rng.random(N) < 0.5
    score = np.clip(rng.normal(0.3 * genuine, 0.2), -1, 1)
    score[::9] = score[::9].round(1)
    score[:2] = 1.0, -1.0
    columns = {
        "genuine": genuine,
        "score": score,
        "probability": 1 / (1 + np.exp(-10 * (score - 0.15))),
        "left_g": rng.choice(["A", "B", ""], N),
        "right_g": rng.choice(["A", "B"], N),
        "left_identity": rng.choice(["", *map(str, range(50))], N),
        "right_identity": rng.integers(0, 50, N).astype(str),
    }
    path = tmp_path / "scores.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


def audited(pairs, **settings):
    """Audit the only feature, by group."""
    (made,) = audit_parts(pairs, ["score"], attribute="g", **settings).audits
    return made


def same(one, two, rtol=1e-9):
    """Whether nothing differs: values, intervals, counts, reasons, curves."""
    assert (one.groups, one.people, one.trials) == (two.groups, two.people, two.trials)
    assert [row.what for row in one.rows] == [row.what for row in two.rows]
    assert [row.withheld for row in one.rows] == [row.withheld for row in two.rows]
    for row, other in zip(one.rows, two.rows, strict=True):
        np.testing.assert_allclose(row[11:19], other[11:19], rtol, 1e-12, err_msg=str(row.what))
    for mine, other in zip(one.curves.rows, two.curves.rows, strict=True):
        np.testing.assert_array_equal(mine.histogram.genuine, other.histogram.genuine)
        np.testing.assert_array_equal(mine.histogram.imposter, other.histogram.imposter)


def test_a_stream_is_audited_as_in_memory_whatever_its_parts(table):
    exact = audited(load(table), threshold=0.3)
    assert "identity-aware" in exact.interval_kind
    for batch in (100, 333, 5000):
        same(audited(open_stream(table, batch=batch), threshold=0.3), exact)


def test_a_folder_with_a_model(tmp_path):
    data = faircal.simulate("small", seed=1, people=120, images=360, pairs=1000, dimension=16)
    model = faircal.FairCal(n_clusters=5).fit(data)
    folder = save_dataset(data, tmp_path / "faces")
    how = {"model": model, "attribute": "ethnicity", "threshold": 0.5}
    pairs = data, open_stream(folder, batch=300)
    one, two = (audit_parts(each, ["embedding"], **how).audits[0] for each in pairs)
    same(one, two)
    assert one.method == "faircal"


def test_shares_and_notes(table):
    made = audit_parts(open_stream(table, batch=300), ["score"], attribute="g")
    assert made.shares["pairs"] == N
    assert 0 < made.shares["unknown_pairs"] < N
    assert "can't be right: " in made.notes[0]
    assert "unknown g" in made.notes[1]
    assert made.pairs[0].score.shape == (N,)


class TestCounted:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(collected, "MOST_EXACT", N - 1)

    def test_numbers_are_those_of_scores_rounded_to_a_bin(self, table):
        made = audit_parts(open_stream(table, batch=300), ["score"], attribute="g", threshold=0.3)
        (found,), exact = made.audits, audited(load(table), threshold=0.3)
        assert [each.what for each in found.measures] == [each.what for each in exact.measures]
        for one, true in zip(found.measures, exact.measures, strict=True):
            assert one.trials == pytest.approx(true.trials, nan_ok=True)
            near = pytest.approx(true.value, abs=1e-3, rel=0.05, nan_ok=True)
            assert one.value == near, one.what
            if not one.condition and one.metric in ("fpr", "fnr", "tpr"):
                assert one.value == true.value or np.isnan(true.value)
        assert made.pairs == []
        assert "in bins" in made.notes[-1]
        assert "pair-wise" in found.interval_kind
        assert found.people is found.effective_people() is None

    def test_parts_and_their_order_change_no_digit(self, table):
        same(*(audited(open_stream(table, batch=batch)) for batch in (100, 333)), rtol=0)

    def test_pairs_in_memory_are_never_counted(self, table):
        assert audit_parts(load(table), ["score"], attribute="g").pairs

    def test_many_groups_have_fewer_bins(self):
        plans = [
            AuditPlan(("f",), "g", tuple(map(str, range(n))), None, True, None, (-1.0, 1.0))
            for n in (10, 1000)
        ]
        assert [plan.n_bins for plan in plans] == [1 << 16, (1 << 24) // 1001]


@pytest.mark.parametrize("most", [N, N - 1])
class TestTallies:
    """Collected or counted: merged, kept and restored, it is the same."""

    @pytest.fixture(autouse=True)
    def limit(self, most, monkeypatch):
        monkeypatch.setattr(collected, "MOST_EXACT", most)

    def test_merged_in_any_order(self, table, most):
        data = load(table)
        plan = AuditPlan(("score",), "g", ("A", "B"), None, most < N, None, data.score_range)
        tallies = []
        for halves in ((0, 1), (1, 0)):
            total = plan()
            for half in halves:
                part = plan()
                part.add(data.subset(np.arange(N) % 2 == half))
                again = plan()  # as it travels
                again.restore(*part.state())
                total.merge(again)
            tallies.append(total.of["score"])
        if most < N:
            one, two = (tally.rankings() for tally in tallies)
            for name in one.scores:
                assert one.scores[name].n_genuine == two.scores[name].n_genuine
        else:
            one, two = (tally.joined() for tally in tallies)
            np.testing.assert_array_equal(one.score, two.score)
            np.testing.assert_array_equal(one.people.left, two.people.left)
            same(
                faircal.evaluation.audit.audit_pairs(one),
                faircal.evaluation.audit.audit_pairs(
                    audit_parts(data, ["score"], attribute="g").pairs[0]
                ),
            )

    def test_an_interrupt_waits_for_the_end_of_the_part(self, table, tmp_path, monkeypatch):
        path, add, parts = tmp_path / "audit.partial", AuditTally.add, []

        def interrupted(tally, part):
            parts.append(part)
            if len(parts) == 3:
                signal.raise_signal(signal.SIGINT)
            add(tally, part)

        stream = open_stream(table, batch=100)
        with monkeypatch.context() as patch:
            patch.setattr(AuditTally, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                audited(stream, job=Job(checkpoint=path))
        assert len(parts) == 3
        said = []
        found = audited(stream, job=Job(lambda *words: said.append(words), checkpoint=path))
        assert said[0] == ("pairs", 400, N, "")
        same(found, audited(stream), rtol=0)

    def test_a_checkpoint_of_another_audit(self, table, tmp_path):
        path, stream = tmp_path / "audit.partial", open_stream(table, batch=100)
        audited(stream, job=Job(checkpoint=path, every=0.0))
        with pytest.raises(ParameterError, match="of another audit"):
            audited(stream, job=Job(checkpoint=path), threshold=0.5)
        same(audited(stream, job=Job(checkpoint=path, resume=False)), audited(stream))


def test_a_reader_that_is_left_ends(table, monkeypatch):
    monkeypatch.setattr(AuditTally, "add", lambda *_: 1 / 0)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        audited(open_stream(table, batch=100))
    assert threading.active_count() <= before


def test_a_full_disk_does_not_end_an_audit(table, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("faircal._base.checkpoints.pack", full)
    job = Job(checkpoint=tmp_path / "audit.partial", every=0.0)
    audited(open_stream(table, batch=100), job=job)
    (note,) = job.notes
    assert "no checkpoint could be written" in note


def test_what_cannot_be_audited(table):
    with pytest.raises(ParameterError, match="rates between 0 and 1"):
        audited(load(table), rates=(2,))
    with pytest.raises(ParameterError, match="expected pairs, found none"):
        AuditPlan(("f",), None, (), None, False, None, (-1.0, 1.0))().of["f"].joined()
    columns = pq.read_table(table)
    named = columns.set_column(3, "left_g", pa.array(["all"] * N))
    pq.write_table(named.set_column(4, "right_g", pa.array(["all"] * N)), table)
    with pytest.raises(DataError, match="a group is called 'all'"):
        audited(load(table))


def test_the_digest_is_of_names_and_contents(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"ab")
    two.write_bytes(b"c")
    before = files_digest([one, two])
    assert files_digest([one, two]) == before
    one.write_bytes(b"a")
    two.write_bytes(b"bc")
    assert files_digest([one, two]) != before
