"""Files and folders appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faircal._base import files
from faircal._base.errors import DataError, ParameterError
from faircal._base.files import (
    atomic_path,
    existing,
    new_folder,
    output_folder,
    staged,
    write_text,
)


def tree(folder):
    """Return everything below `folder`, with the text of files."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


def mode(path):
    return path.stat().st_mode & 0o777


class Stop(BaseException):
    """What no ``except Exception`` catches."""


# ------------------------------------------------------------------------- new_folder


@pytest.mark.parametrize("there", [False, True])
def test_new_folder(tmp_path, there):
    target = tmp_path / "a/b"
    if there:
        target.mkdir(parents=True)
    with new_folder(target) as folder:
        assert folder.parent == target.parent
        (folder / "x.txt").write_text("x")
        (folder / "sub").mkdir()
        (folder / "sub/y.txt").write_text("y")
        # Nobody sees it before it is done.
        assert list(target.iterdir()) == [] if there else not target.exists()
    assert tree(tmp_path) == {
        "a": None,
        "a/b": None,
        "a/b/x.txt": "x",
        "a/b/sub": None,
        "a/b/sub/y.txt": "y",
    }
    assert mode(target) == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("there", [False, True])
def test_new_folder_that_fails(tmp_path, error, there):
    target = tmp_path / "b"
    if there:
        target.mkdir()
    before = tree(tmp_path)
    with pytest.raises(error), new_folder(target) as folder:
        (folder / "x.txt").write_text("x")
        raise error
    assert tree(tmp_path) == before


@pytest.mark.parametrize("there", ["file", "folder", "hidden"])
def test_new_folder_in_place_of_something(tmp_path, there):
    target = tmp_path / "b"
    if there == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / ("mine.txt" if there == "folder" else ".mine")).write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(ParameterError, match=r"b: there is something already; choose a new"):
        new_folder(target).__enter__()
    assert tree(tmp_path) == before


def test_new_folder_that_gets_a_rival(tmp_path):
    """Somebody else makes the folder meanwhile: theirs stays."""
    target = tmp_path / "b"
    with pytest.raises((OSError, ParameterError)), new_folder(target) as folder:
        (folder / "x.txt").write_text("ours")
        target.mkdir()
        (target / "x.txt").write_text("theirs")
    assert tree(tmp_path) == {"b": None, "b/x.txt": "theirs"}


def test_new_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match=r"cannot write .*choose a folder"):
        new_folder(tmp_path / "file/b").__enter__()


def test_new_folder_where_one_is(tmp_path, monkeypatch):
    """``--out .`` in an empty folder works, or says in our words why not."""
    monkeypatch.chdir(tmp_path)
    try:
        with new_folder(Path()) as folder:
            (folder / "x.txt").write_text("x")
    except ParameterError:
        assert tree(tmp_path) == {}
    else:
        assert tree(tmp_path) == {"x.txt": "x"}


@pytest.mark.parametrize("there", [True, False], ids=["to an empty folder", "to nothing"])
def test_new_folder_through_a_link(tmp_path, there):
    if there:
        (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    try:
        with new_folder(tmp_path / "link") as folder:
            (folder / "x.txt").write_text("x")
    except ParameterError:
        assert not (tmp_path / "link/x.txt").exists()
    else:
        assert (tmp_path / "link/x.txt").read_text() == "x"
    assert [path.name for path in tmp_path.glob(".*")] == []


# ----------------------------------------------------------------------------- staged


def test_staged(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "kept.txt").write_text("kept")
    with staged(tmp_path) as folder:
        assert folder.parent == tmp_path
        (folder / "old.txt").write_text("new")
        (folder / "sub").mkdir()
        (folder / "sub/y.txt").write_text("y")
        assert (tmp_path / "old.txt").read_text() == "old"
    assert tree(tmp_path) == {
        "old.txt": "new",
        "kept.txt": "kept",
        "sub": None,
        "sub/y.txt": "y",
    }
    assert mode(tmp_path / "old.txt") == 0o644


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
def test_staged_that_fails(tmp_path, error):
    (tmp_path / "old.txt").write_text("old")
    with pytest.raises(error), staged(tmp_path) as folder:
        (folder / "old.txt").write_text("new")
        (folder / "sub").mkdir()
        raise error
    assert tree(tmp_path) == {"old.txt": "old"}


def test_staged_moves_in_order_of_names(tmp_path, monkeypatch):
    moved, replace = [], Path.replace

    def watch(path, target):
        moved.append(Path(target).name)
        return replace(path, target)

    with staged(tmp_path) as folder:
        for name in ("c", "a", "b"):
            (folder / name).write_text(name)
        monkeypatch.setattr(Path, "replace", watch)
    assert moved == ["a", "b", "c"]


def test_staged_without_files(tmp_path):
    with staged(tmp_path):
        pass
    assert tree(tmp_path) == {}


# ------------------------------------------------------------------------------ files


def test_atomic_path(tmp_path):
    target = tmp_path / "new/x.txt"
    with atomic_path(target) as path:
        path.write_text("x")
        assert not target.exists()
    assert tree(tmp_path / "new") == {"x.txt": "x"}
    assert mode(target) == 0o644
    with pytest.raises(Stop), atomic_path(target) as path:
        path.write_text("y")
        raise Stop
    assert tree(tmp_path / "new") == {"x.txt": "x"}


def test_atomic_path_that_is_a_folder(tmp_path):
    with pytest.raises(ParameterError, match="is a folder; give the path of a file"):
        atomic_path(tmp_path).__enter__()


def test_write_text(tmp_path):
    write_text(tmp_path / "x.txt", "ü\n")
    assert (tmp_path / "x.txt").read_bytes() == b"\xc3\xbc\n"


def test_output_folder(tmp_path):
    assert output_folder(tmp_path / "a/b").is_dir()
    assert output_folder(tmp_path / "a/b").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="give another path"):
        output_folder(tmp_path / "file")


def test_existing(tmp_path):
    assert existing(str(tmp_path)) == tmp_path
    with pytest.raises(DataError, match="none: no such file or folder; check the path"):
        existing(tmp_path / "none")


def test_existing_that_is_closed(tmp_path, monkeypatch):
    """The administrator, as whom tests may run, may read everything."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match="not readable; check its permissions"):
        existing(tmp_path)


def test_moving_that_was_cut_short_is_ended(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")
    moved = Path.replace

    def cut_short(path, target):
        if path.name == "b.txt":
            raise KeyboardInterrupt
        return moved(path, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", cut_short)
        with files.staged(tmp_path) as folder:
            for name in ("a.txt", "b.txt"):
                (folder / name).write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert not (tmp_path / "b.txt").exists()
    files.settle(tmp_path)
    assert (tmp_path / "b.txt").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]
