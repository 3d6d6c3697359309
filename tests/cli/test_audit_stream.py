"""``faircal audit`` of pairs that are counted part by part: the same answers, and going on."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal.evaluation.audit.collected import AuditCheckpoint, AuditTally
from faircal.evaluation.curves import read_curves
from faircal.metrics.results import read_results, read_run

N = 2000


@pytest.fixture(autouse=True)
def small_parts_and_no_figures(monkeypatch):
    """Parts of 300 pairs; as where Matplotlib is not installed, which saves seconds."""
    monkeypatch.setattr("faircal.data.Dataset.BATCH", 300)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def table(tmp_path):
    """A score table whose groups turn up one after another, with people and probabilities."""
    rng = np.random.default_rng(0)
    genuine = rng.random(N) < 0.4
    score = np.clip(rng.normal(np.where(genuine, 0.5, 0.1), 0.15), -1, 1).round(4)
    sex = np.array(["F", "M", ""])[np.arange(N) * 3 // N]
    columns = {
        "genuine": genuine.astype(int),
        "score": score,
        "probability": 1 / (1 + np.exp(-20 * (score - 0.3))),
        "left_sex": sex,
        "right_sex": np.where(rng.random(N) < 0.9, sex, "M"),
        "left_identity": [f"p{i}" for i in rng.integers(0, 90, N)],
        "right_identity": [f"p{i}" for i in rng.integers(0, 90, N)],
        "fold": np.arange(N) % 2,
    }
    pq.write_table(pa.table(columns), tmp_path / "scores.parquet", row_group_size=170)
    pacsv.write_csv(pa.table(columns), tmp_path / "scores.csv")
    return tmp_path / "scores.parquet"


@pytest.fixture
def audit(tmp_path, run_here):
    """Return a function that audits: what was printed, and the folder."""

    def auditing(*words, out="a", code=0):
        done = run_here(["audit", *map(str, words), "--out", str(tmp_path / out)])
        assert done.code == code, done.err
        return done, tmp_path / out

    return auditing


def contents(folder):
    """The numbers of an audit, but for what the clock says."""
    record = read_run(folder)
    del record["wall_time_s"]
    names = ("results.csv", "curves.parquet")
    return record, [(folder / name).read_bytes() for name in names]


def check(folder, exact):
    """Whether a streamed audit's files hold the numbers of one in memory, intervals included."""
    rows = read_results(folder), read_results(exact)
    assert [row[:11] for row in rows[0]] == [row[:11] for row in rows[1]]
    for one, two in zip(*rows, strict=True):
        np.testing.assert_allclose(one[11:19], two[11:19], 1e-9, 1e-12, err_msg=str(one.what))
        assert one.withheld == two.withheld
    for one, two in zip(read_curves(folder).rows, read_curves(exact).rows, strict=True):
        assert one[:3] == two[:3]
        for name in ("edges", "genuine", "imposter"):
            expected = getattr(two.histogram, name)
            np.testing.assert_array_equal(getattr(one.histogram, name), expected)
    one, two = read_run(folder), read_run(exact)
    keys = ("dataset", "simulated", "pairs", "groups", "people", "attributes", "settings", "notes")
    for key in (*keys, "interval_kind"):
        assert one[key] == two[key]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table(table, audit, kind):
    path = table.with_suffix(f".{kind}")
    words = (path, "--threshold", 0.3123, "--rates", "0.01,0.1")
    done, folder = audit(*words, "--stream")
    plain, exact = audit(*words, out="exact")
    check(folder, exact)
    assert not (folder / "audit.partial").exists()
    (unknown,) = [line for line in plain.err.splitlines() if "unknown sex" in line]
    assert unknown in done.err


def test_of_very_many_pairs_scores_are_counted(table, audit, monkeypatch):
    monkeypatch.setattr("faircal.evaluation.audit.collected.MOST_EXACT", N - 1)
    done, folder = audit(table, "--stream")
    (said,) = [line for line in done.err.splitlines() if "in bins" in line]
    record = read_run(folder)
    assert record["streamed"] is True
    assert record["data_sha256_of"] == "files"
    assert said.removeprefix("note: ") in record["notes"]
    assert said.removeprefix("note: ") in json.loads((folder / "audit.json").read_text())["notes"]
    assert "pair-wise" in record["interval_kind"]
    refused, _ = audit(table, "--stream", "--label-noise", 0.1, out="b", code=2)
    assert "--label-noise: needs the pairs themselves" in refused.err


def test_label_noise_of_a_stream(table, audit):
    for out, words in (("a", ["--stream"]), ("exact", [])):
        _, folder = audit(table, "--label-noise", 0.1, *words, out=out)
        assert (folder / "label_noise.csv").exists()
    rows = [(folder.parent / out / "label_noise.csv").read_text() for out in ("a", "exact")]
    assert rows[0].count("\n") == rows[1].count("\n") > 10


def test_one_fold(table, audit):
    _, folder = audit(table, "--fold", 1, "--stream", "--attribute", "sex")
    _, exact = audit(table, "--fold", 1, "--attribute", "sex", out="exact")
    check(folder, exact)
    assert read_run(folder)["pairs"] == N // 2


def test_scores_of_any_range(table, audit):
    columns = pq.read_table(table)
    moved = pa.array(50 + 60 * columns["score"].to_numpy())
    pq.write_table(columns.set_column(1, "score", moved), table)
    _, folder = audit(table, "--threshold", 70, "--stream")
    _, exact = audit(table, "--threshold", 70, out="exact")
    check(folder, exact)


@pytest.mark.parametrize("model", ["faircal", "baseline", "oracle"])
def test_a_folder_with_a_model(world, run_here, model):
    for out, words in (("a", ["--stream"]), ("exact", [])):
        words += ["--model", f"{model}.faircal", "--out", out]
        done = run_here(["audit", "faces", "--attribute", "ethnicity", *words])
        assert done.code == 0, done.err
    check(world / "a", world / "exact")


def test_several_features(world, run_here):
    for out, words in (("a", ["--stream"]), ("exact", [])):
        done = run_here(["audit", "two", *words, "--out", out])
        assert done.code == 0, done.err
    check(world / "a", world / "exact")


def test_without_groups(world, run_here):
    done = run_here(["audit", "plain", "--stream", "--out", "a"])
    assert done.code == 0, done.err
    assert "only global figures" in done.err


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_many_pairs_are_streamed_by_themselves(table, audit, monkeypatch, kind):
    path = table.with_suffix(f".{kind}")
    monkeypatch.setattr("faircal.data.pair_files.MOST_PAIRS", N)
    assert "streamed" not in read_run(audit(path)[1])
    monkeypatch.setattr("faircal.data.pair_files.MOST_PAIRS", N - 1)
    assert read_run(audit(path)[1])["streamed"] is True


class TestGoingOn:
    @pytest.fixture
    def whole(self, table, audit):
        return contents(audit(table, "--stream", out="whole")[1])

    @pytest.fixture
    def partial(self, table, audit, interrupt_at, tmp_path):
        """The file of an audit that was interrupted after 900 pairs."""
        with pytest.MonkeyPatch.context() as patch:
            interrupt_at(patch, "audit", 900)
            done, folder = audit(table, "--stream", code=1)
        assert done.err.splitlines()[-1] == "faircal: interrupted; the audit goes on with --resume"
        assert [path.name for path in folder.iterdir()] == ["audit.partial"]
        return folder / "audit.partial"

    def test_ends_the_same(self, table, audit, partial, whole, monkeypatch):
        sizes, add = [], AuditTally.add

        def counting(tally, part):
            sizes.append(len(part))
            add(tally, part)

        monkeypatch.setattr(AuditTally, "add", counting)
        _, folder = audit(table, "--resume")
        assert sum(sizes) == N - 900
        assert contents(folder) == whole
        assert not partial.exists()

    def test_after_a_sudden_end(self, table, audit, whole, interrupt_at, monkeypatch):
        monkeypatch.setattr("faircal._base.jobs.EVERY", 0.0)
        with pytest.MonkeyPatch.context() as patch:
            keep = AuditCheckpoint.keep

            def dying(self, tally, done, *, now=False):
                keep(self, tally, done, now=now)
                if done >= 1200:
                    raise ZeroDivisionError

            patch.setattr(AuditCheckpoint, "keep", dying)
            audit(table, "--stream", code=1)
        _, folder = audit(table, "--resume")
        assert contents(folder) == whole

    @pytest.mark.parametrize(
        "words",
        [
            ("--threshold", 0.2),
            ("--rates", "0.05"),
            ("--fold", 1),
            ("--features", "probability"),
            ("--score-range", "-1,1"),
        ],
    )
    def test_other_settings_are_refused(self, table, audit, partial, words):
        before = partial.read_bytes()
        done, _ = audit(table, *words, "--resume", code=2)
        assert "audit.partial: the checkpoint is of another audit" in done.err
        assert "Traceback" not in done.err
        assert partial.read_bytes() == before

    def test_other_data_is_refused(self, table, audit, partial):
        columns = pq.read_table(table)
        pq.write_table(columns.slice(0, N - 1), table)
        done, _ = audit(table, "--resume", code=2)
        assert (
            "audit.partial: the checkpoint is of another audit (data, model or settings differ)"
            in done.err
        )

    @pytest.mark.parametrize("spoil", [lambda raw: raw[:-9], lambda raw: b"text", lambda raw: b""])
    def test_a_damaged_file_is_refused(self, table, audit, partial, spoil):
        partial.write_bytes(spoil(partial.read_bytes()))
        done, _ = audit(table, "--resume", code=2)
        assert "not a checkpoint, or damaged; delete it" in done.err

    def test_the_file_is_not_passed_over(self, table, audit, partial):
        for words in ((), ("--stream",)):
            done, _ = audit(table, *words, code=2)
            assert "go on with --resume, or delete it" in done.err
        assert partial.exists()

    def test_nothing_to_go_on_from(self, table, audit):
        done, _ = audit(table, "--resume", code=2)
        assert "there is no" in done.err
        assert "leave --resume out" in done.err

    def test_interrupted_at_once_nothing_is_written(self, table, audit, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(AuditTally, "add", interrupt)
        done, folder = audit(table, "--stream", code=1)
        assert done.err.splitlines()[-1] == "faircal: interrupted; nothing is written"
        assert not folder.exists()
