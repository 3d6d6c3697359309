"""`faircal score` on pairs of any number: parts, segments, interruptions, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import faircal
from faircal import ParameterError
from faircal.data.dataset import Dataset
from faircal.data.dataset_folder import save_dataset
from faircal.methods import Method, make_method

SUFFIXES = ("csv", "parquet")
KEEP = ["--keep", "genuine,fold,ethnicity"]


@pytest.fixture
def small(monkeypatch):
    """Parts of 10 pairs, segments of 30: the 132 pairs of the world make five."""
    monkeypatch.setattr("faircal.data.Dataset.BATCH", 10)


def words(out, *more, model="faircal.faircal", data="faces"):
    return ["score", model, data, "--out", out, *map(str, more)]


def read(path):
    return pq.read_table(path) if str(path).endswith("parquet") else pacsv.read_csv(path)


def files():
    return {path.name for path in Path().iterdir()}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("data", "model"), [("faces", "faircal"), ("faces", "oracle"), ("scores.csv", "baseline")]
)
def test_parts_and_segments_change_nothing(
    data, model, suffix, world, run_here, small, monkeypatch
):
    monkey = {"model": f"{model}.faircal", "data": data}
    assert run_here(words(f"parts.{suffix}", *KEEP, **monkey)).code == 0
    monkeypatch.setattr("faircal.data.Dataset.BATCH", 1 << 20)
    assert run_here(words(f"whole.{suffix}", *KEEP, **monkey)).code == 0
    parts, whole = read(f"parts.{suffix}"), read(f"whole.{suffix}")
    assert parts.equals(whole)
    assert len(parts) == 132
    expected = faircal.load_model(f"{model}.faircal").apply(faircal.load(data))
    np.testing.assert_allclose(parts["score"], expected.score, rtol=1e-12)
    np.testing.assert_allclose(parts["probability"], expected.probability, rtol=1e-12)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_of_a_table_in_one_fold(suffix, world, run_here, small):
    """Row numbers are those of the table, whatever is left out."""
    done = run_here(
        words(
            f"s.{suffix}",
            *("--fold", 2, "--json"),
            model="baseline.faircal",
            data=f"scores.{suffix}",
        )
    )
    table = read(f"s.{suffix}")
    fold = np.asarray(pacsv.read_csv("scores.csv")["fold"])
    assert json.loads(done.out) == {"out": f"s.{suffix}", "pairs": int((fold == 2).sum())}
    np.testing.assert_array_equal(table["left"], np.flatnonzero(fold == 2) + 1)
    np.testing.assert_array_equal(table["right"], table["left"])


def without_folds():
    pairs = pacsv.read_csv("faces/pairs.csv").drop_columns("fold")
    pacsv.write_csv(pairs, "faces/pairs.csv")


def test_drawn_folds(world, run_here, small):
    """Folds are drawn over all pairs, however they are cut."""
    without_folds()
    whole = faircal.load("faces")
    fold = whole.fold_names[0]
    done = run_here(words("s.parquet", "--fold", fold, *KEEP))
    assert done.code == 0
    assert "note: folds drawn: 5" in done.err
    one = whole.split(fold)[1]
    table = read("s.parquet")
    ids = np.asarray(one.images.ids)
    np.testing.assert_array_equal(table["left"].to_pylist(), ids[one.pairs.left])
    assert set(table["fold"].to_pylist()) == {fold}
    done = run_here(words("t.parquet", *KEEP))
    assert (done.code, done.err) == (0, "")
    np.testing.assert_array_equal(read("t.parquet")["fold"], whole.pairs.fold)


def test_without_folds_pairs_are_not_held_in_memory(world, run_here, small, monkeypatch):
    without_folds()
    monkeypatch.setattr("faircal.data.PairFiles.load_one", None)
    assert run_here(words("s.parquet", "--keep", "genuine")).code == 0


# ------------------------------------------------------------------------------ going on


def test_bad_data_leaves_nothing(world, run_here, small):
    pairs = pacsv.read_csv("faces/pairs.csv")
    left = pairs["left"].to_pylist()
    left[100] = "nobody"
    pacsv.write_csv(pairs.set_column(0, "left", pa.array(left)), "faces/pairs.csv")
    before = files()
    done = run_here(words("s.parquet"))
    assert done.code == 2
    assert "column 'left', row 101: image 'nobody' is not among the images" in done.err
    assert files() == before


def interrupted(monkeypatch, run_here, at, *more):
    """Run a command that is interrupted when so many parts are scored; return what it says."""
    apply, calls = Method.apply, []

    def stopping(model, part):
        calls.append(1)
        if len(calls) > at:
            raise KeyboardInterrupt
        return apply(model, part)

    with monkeypatch.context() as patch:
        patch.setattr(Method, "apply", stopping)
        done = run_here(list(more))
    assert done.code == 1
    return done.err.strip()  # click begins a new line after ^C


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interrupted_run_goes_on(suffix, world, run_here, small, monkeypatch):
    assert run_here(words(f"whole.{suffix}", *KEEP)).code == 0
    said = interrupted(monkeypatch, run_here, 7, *words(f"s.{suffix}", *KEEP))
    assert said == "faircal: interrupted; 70 pairs are kept, --resume goes on from there"
    assert not Path(f"s.{suffix}").exists()
    done = run_here(words(f"s.{suffix}", *KEEP))
    assert done.code == 2
    assert f"s.{suffix}.parts is there from a run that was interrupted; go on with" in done.err
    done = run_here(words(f"s.{suffix}", *KEEP, "--resume", "--json"))
    assert json.loads(done.out) == {"out": f"s.{suffix}", "pairs": 132}
    assert Path(f"s.{suffix}").read_bytes() == Path(f"whole.{suffix}").read_bytes()
    assert f"s.{suffix}.parts" not in files()


def test_an_early_interruption_keeps_nothing(world, run_here, small, monkeypatch):
    said = interrupted(monkeypatch, run_here, 0, *words("s.parquet"))
    assert said == "faircal: interrupted; nothing is written"
    assert {"s.parquet", "s.parquet.parts"}.isdisjoint(files())


def test_only_the_rest_is_scored(world, run_here, small, monkeypatch):
    interrupted(monkeypatch, run_here, 7, *words("s.parquet"))
    apply, scored = Method.apply, []

    def counting(model, part):
        scored.append(len(part))
        return apply(model, part)

    monkeypatch.setattr(Method, "apply", counting)
    assert run_here(words("s.parquet", "--resume")).code == 0
    assert sum(scored) == 132 - 70


@pytest.mark.parametrize("fold", [1, 2])
def test_going_on_in_one_fold(fold, world, run_here, small, monkeypatch):
    more = ("--fold", fold, *KEEP)
    assert run_here(words("whole.parquet", *more)).code == 0
    interrupted(monkeypatch, run_here, 5, *words("s.parquet", *more))
    assert run_here(words("s.parquet", *more, "--resume")).code == 0
    assert Path("s.parquet").read_bytes() == Path("whole.parquet").read_bytes()


def touch(name):
    def change():
        path = Path(name)
        path.write_bytes(path.read_bytes() + b"\n")

    return change


def other_model():
    model = make_method("faircal", n_clusters=2, random_state=1)
    model.fit(faircal.load("faces")).save("faircal.faircal")


@pytest.mark.parametrize(
    ("what", "change", "more"),
    [
        ("model", other_model, KEEP),
        ("data", touch("faces/pairs.csv"), KEEP),
        ("data", touch("faces/images.csv"), KEEP),
        ("keep", None, ["--keep", "genuine"]),
        ("fold", None, [*KEEP, "--fold", "1"]),
    ],
)
def test_another_run_does_not_go_on(what, change, more, world, run_here, small, monkeypatch):
    interrupted(monkeypatch, run_here, 7, *words("s.parquet", *KEEP))
    if change is not None:
        change()
    done = run_here(words("s.parquet", *more, "--resume"))
    assert done.code == 2
    assert f"--resume: {what} differs from that of the run in s.parquet.parts; give" in done.err


def test_nothing_to_go_on_from(world, run_here):
    done = run_here(words("s.csv", "--resume"))
    assert done.code == 2
    assert "--resume: there is no s.csv.parts to go on from; leave --resume out" in done.err


def python(code, **more):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], text=True, capture_output=True, **more
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("where", ["scoring", "writing"])
def test_killed_in_the_middle(suffix, where, world, run_here, small):
    """After kill -9, which nobody can catch, the file is that of a run in one go."""
    assert run_here(words(f"whole.{suffix}", *KEEP)).code == 0
    patched = {
        "scoring": "methods.Method, 'apply'",
        "writing": "production.scoring.run.pq, 'write_table'",
    }
    killed = python(
        f"""
        import os, signal
        import faircal.workflows.score, faircal.methods, faircal.production.scoring.run
        from faircal.cli.main import main

        faircal.data.Dataset.BATCH = 10
        place = faircal.{patched[where].split(",")[0]}
        work, calls = getattr(place, {patched[where].split(",")[1]}), []

        def killing(*given, **more):
            calls.append(1)
            done = work(*given, **more)
            if len(calls) == 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(place, {patched[where].split(",")[1]}, killing)
        main({words(f"s.{suffix}", *KEEP)!r})
        """,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not Path(f"s.{suffix}").exists()
    assert run_here(words(f"s.{suffix}", *KEEP, "--resume")).code == 0
    assert Path(f"s.{suffix}").read_bytes() == Path(f"whole.{suffix}").read_bytes()
    assert f"s.{suffix}.parts" not in files()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_room(suffix, world, run_here, small):
    """A file that cannot grow is one line, and what is kept goes on where there is room."""
    assert run_here(words(f"whole.{suffix}", *KEEP)).code == 0
    size = Path(f"whole.{suffix}").stat().st_size
    done = python(
        f"""
        import resource
        import faircal.workflows.score, faircal.production.scoring.run
        from faircal.cli.main import main

        faircal.data.Dataset.BATCH = 10
        resource.setrlimit(resource.RLIMIT_FSIZE, ({size - 1}, {size - 1}))
        main({words(f"s.{suffix}", *KEEP)!r})
        """,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"faircal: cannot write s.{suffix}: File too large; make room for it, "
        "then go on with --resume\n"
    )
    assert not Path(f"s.{suffix}").exists()
    assert run_here(words(f"s.{suffix}", *KEEP, "--resume")).code == 0
    assert Path(f"s.{suffix}").read_bytes() == Path(f"whole.{suffix}").read_bytes()


# ------------------------------------------------------------------------------ memory


def long_folder(home, n_pairs, suffix):
    """Write a folder of many pairs of few images."""
    rng = np.random.default_rng(0)
    home.mkdir()
    images = {"image_id": np.arange(2000), "group": np.array(["a", "b"])[np.arange(2000) % 2]}
    pacsv.write_csv(pa.table(images), home / "images.csv")
    np.save(home / "embeddings.npy", rng.normal(size=(2000, 8)).astype(np.float32))
    pairs = {side: rng.integers(0, 2000, n_pairs) for side in ("left", "right")}
    table = pa.table(pairs | {"genuine": rng.integers(0, 2, n_pairs).astype(np.int8)})
    if suffix == "csv":
        pacsv.write_csv(table, home / "pairs.csv")
    else:  # one row group: it must not be read at once
        pq.write_table(table, home / "pairs.parquet", row_group_size=n_pairs)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory_does_not_grow_with_the_pairs(suffix, tmp_path):
    peaks = []
    for n_pairs in (1_500_000, 4_000_000):
        folder = tmp_path / f"faces{n_pairs}"
        long_folder(folder, n_pairs, suffix)
        if not peaks:
            data = Dataset(
                embeddings=np.load(folder / "embeddings.npy"),
                pairs={"left": [0, 1, 2, 3], "right": [1, 2, 3, 4], "genuine": [1, 0, 1, 0]},
            )
            make_method("baseline").fit(data).save(tmp_path / "m.faircal")
        done = python(
            f"""
            from pathlib import Path
            import faircal.workflows.score, faircal.data.long_tables, faircal.production.scoring.run
            from faircal.cli.main import main

            faircal.data.Dataset.BATCH = 1 << 16
            faircal.data.long_tables.BLOCK = 1 << 20
            try:
                main(["score", "m.faircal", "faces{n_pairs}", "--out", "s{n_pairs}.parquet"])
            finally:
                # Not ru_maxrss, which begins with what the parent held.
                print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
            """,
            check=True,
            cwd=tmp_path,
            env=os.environ | {"FAIRCAL_THREADS": "1"},
        )
        peaks.append(int(done.stdout.split()[-1]) / 1024)
        assert pq.read_metadata(tmp_path / f"s{n_pairs}.parquet").num_rows == n_pairs
    # The 2.5 million pairs more are 40 MB of ids as they are read, and 80 MB as they are written.
    assert peaks[1] < peaks[0] + 30, peaks


@pytest.mark.parametrize("name", ["pairs", "embeddings", "model"])
def test_what_is_read_is_not_written_over(run_command, tmp_path, name):
    data = faircal.simulate("small", seed=0, people=80, images=240, pairs=400, dimension=16)
    folder = save_dataset(data, tmp_path / "faces")
    model = tmp_path / "m.csv"
    faircal.Baseline().fit(data).save(model)
    out = model if name == "model" else next(folder.glob(f"{name}.*"))
    if name == "embeddings":  # of another kind, beside the ones that are read
        out = folder / "embeddings.csv"
        out.write_text("text")
    before = out.read_bytes()
    done = run_command("score", model, folder, "--out", out, code=2)
    assert "is read by this command; choose another path" in done.stderr
    assert out.read_bytes() == before


def test_segments_survive_what_is_not_wrong_with_the_data(world, run_here, small, monkeypatch):
    interrupted(monkeypatch, run_here, 7, *words("s.parquet"))
    kept = files()

    def no_room(*_):
        raise ParameterError("no room on the device; choose another")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faircal.production.scoring.run.score_part", no_room)
        assert run_here(words("s.parquet", "--resume")).code == 2
    assert files() == kept
