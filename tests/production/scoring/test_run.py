"""Scored pairs are kept by segments, and a run that was interrupted goes on."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from faircal._base.errors import DataError, ParameterError
from faircal.production.scoring.run import ScoredOutput

ABOUT = {"model": "m", "keep": ("a", "b")}
SUFFIXES = (".parquet", ".csv")


@pytest.fixture(params=SUFFIXES)
def out(request, tmp_path):
    return tmp_path / f"scored{request.param}"


def parts_of(out):
    return out.with_name(f"{out.name}.parts")


def rows(start, stop):
    numbers = np.arange(start, stop)
    return pa.table(
        {"left": numbers, "right": [f"x, {n}" for n in numbers], "score": (numbers + 0.5) / 3}
    )


def read(path):
    return pacsv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)


def write(out, stop, *, resume=False, about=ABOUT, step=4, error=None):
    with ScoredOutput.start(out, about, resume) as work:
        for start in range(work.pairs, stop, step):
            work.write(rows(start, min(start + step, stop)))
        if error is not None:
            raise error


def interrupt(out, stop, **more):
    with pytest.raises(KeyboardInterrupt):
        write(out, stop, error=KeyboardInterrupt(), **more)


@pytest.mark.parametrize("stop", [1, 11, 12, 13, 24, 100])
def test_all_that_is_written_is_there(stop, out):
    write(out, stop)
    assert read(out).equals(rows(0, stop))
    assert list(out.parent.iterdir()) == [out]


def test_nothing_is_there_before_the_end(out):
    with ScoredOutput.start(out, ABOUT, False) as work:
        work.write(rows(0, 30))
        assert not out.exists()
        assert work.pairs == 30
        work.write(rows(30, 35))
        assert work.pairs == 35
    assert out.exists()


@pytest.mark.parametrize("stop", [4, 24, 36, 40])
def test_going_on_gives_the_same_file(stop, out):
    write(out, 40)
    expected = out.read_bytes()
    out.unlink()
    interrupt(out, stop)
    assert not out.exists()
    write(out, 40, resume=True)
    assert out.read_bytes() == expected
    assert list(out.parent.iterdir()) == [out]


def test_going_on_twice(out):
    write(out, 60)
    expected = out.read_bytes()
    interrupt(out, 16)
    interrupt(out, 36, resume=True)
    write(out, 60, resume=True)
    assert out.read_bytes() == expected


def test_going_on_after_the_last_pair(out):
    """All is scored, and the run was stopped before the file was moved."""
    with ScoredOutput.start(out, ABOUT, False) as work:
        work.write(rows(0, 30))
        kept = out.parent / "kept"
        shutil.copytree(parts_of(out), kept)
    expected = out.read_bytes()
    out.unlink()
    kept.rename(parts_of(out))
    (parts_of(out) / "joined").write_bytes(b"half a file")
    write(out, 30, resume=True)
    assert out.read_bytes() == expected


def test_every_table_is_a_part(out):
    interrupt(out, 27)
    folder = parts_of(out)
    sizes = [pq.read_metadata(part).num_rows for part in sorted(folder.glob("part-*"))]
    assert sizes == [4, 4, 4, 4, 4, 4, 3]
    assert len(list(folder.iterdir())) == 7 + 2  # the parts, what the run is about, and its lock


def test_without_a_part_nothing_is_kept(out):
    interrupt(out, 0)
    assert list(out.parent.iterdir()) == []


def test_an_earlier_file_stays_until_the_new_one_is_there(out):
    write(out, 5)
    before = out.read_bytes()
    interrupt(out, 30)
    assert out.read_bytes() == before
    write(out, 30, resume=True)
    assert read(out).equals(rows(0, 30))


def test_of_an_earlier_run_one_has_to_say_something(out):
    interrupt(out, 30)
    with pytest.raises(ParameterError, match=r"interrupted; go on with --resume, or delete it"):
        write(out, 30)
    shutil.rmtree(parts_of(out))
    write(out, 30)


def test_nothing_to_go_on_from(out):
    with pytest.raises(ParameterError, match=r"--resume: there is no .*\.parts to go on from"):
        write(out, 30, resume=True)
    assert not parts_of(out).exists()


@pytest.mark.parametrize(
    ("change", "what"), [({"model": "n"}, "model"), ({"keep": ("a",)}, "keep")]
)
def test_another_run(out, change, what):
    interrupt(out, 30)
    with pytest.raises(ParameterError, match=f"--resume: {what} differs from that of the run in"):
        write(out, 30, resume=True, about=ABOUT | change)
    write(out, 30, resume=True)


def test_killed_before_the_first_segment(out):
    """What such a run leaves is in nobody's way."""
    for resume in (False, True):
        parts_of(out).mkdir()
        (parts_of(out) / "run.json").write_text(json.dumps({"about": {}}))
        (parts_of(out) / ".part-000000.parquet.tmp").write_bytes(b"half a part")
        write(out, 30, resume=resume)
        assert read(out).equals(rows(0, 30))


def test_killed_after_the_file_was_moved(out):
    parts_of(out).mkdir()
    (parts_of(out) / "run.json").write_text(json.dumps({"about": {}}))
    write(out, 30)
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("text", ["", "{}", '{"about": 3}', "[]"])
def test_a_damaged_record(out, text):
    interrupt(out, 30)
    (parts_of(out) / "run.json").write_text(text)
    for resume in (False, True):
        with pytest.raises(ParameterError, match=r"\.parts: .*delete it to begin anew"):
            write(out, 30, resume=resume)


def test_a_file_that_was_cut_off(out):
    """Parts that cannot be read any more are written again, and all that follow."""
    interrupt(out, 30)
    first = parts_of(out) / "part-000000.parquet"
    first.write_bytes(first.read_bytes()[:-10])
    write(out, 30, resume=True)
    assert read(out).equals(rows(0, 30))


def test_a_folder_of_somebody_else_is_left_alone(out):
    parts_of(out).mkdir()
    (parts_of(out) / "thesis.tex").write_text("mine")
    with pytest.raises(ParameterError, match=r"holds thesis\.tex, which is not ours; move it away"):
        write(out, 30)
    assert (parts_of(out) / "thesis.tex").exists()


def test_segments_of_bad_data_are_not_kept(out):
    with pytest.raises(DataError):
        write(out, 30, error=DataError("row 31 is bad"))
    assert list(out.parent.iterdir()) == []


def test_data_that_could_not_be_read_this_time(out):
    error = DataError("cannot be read")
    error.__cause__ = OSError("the network is away")
    with pytest.raises(DataError):
        write(out, 30, error=error)
    write(out, 30, resume=True)
    assert read(out).equals(rows(0, 30))


def test_one_run_at_a_time(out):
    with ScoredOutput.start(out, ABOUT, False) as work:
        work.write(rows(0, 5))
        with pytest.raises(ParameterError, match="another run is writing it"):
            write(out, 30)
        work.write(rows(5, 30))
    assert read(out).equals(rows(0, 30))


@pytest.mark.parametrize("stop", [0, 30])
def test_a_disk_that_is_full(out, stop):
    full = OSError(28, "No space left on device")
    more = ", then go on with --resume" if stop else ""
    with pytest.raises(ParameterError) as caught:
        write(out, stop, error=full)
    expected = f"cannot write {out}: No space left on device; make room for it{more}"
    assert str(caught.value) == expected
    assert not out.exists()
    assert parts_of(out).exists() == (stop > 10)
