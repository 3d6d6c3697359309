"""What SQLite alone does: files, erasing, full disks, foreign databases."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from faircal._base.errors import (
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.store import Decision, open_store
from faircal.production.serving.store.records import moment
from tests.production.serving.running import small_disk

KEY = bytes(range(32))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    opened = open_store(str(path))
    yield opened
    opened.close()


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def is_sound(path: Path) -> bool:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_files_are_for_their_owner_only(store, path):
    store.enrol("anna", [1, 2])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


def test_a_store_that_was_open_to_others_is_closed_to_them(store, path):
    store.close()
    path.chmod(0o644)
    again = open_store(str(path))
    again.enrol("anna", [1, 2])
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    again.close()


def test_commits_are_on_disk_and_deletions_overwrite(store):
    ask = store._writer.execute
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA synchronous").fetchone() == (2,)
    assert ask("PRAGMA secure_delete").fetchone() == (1,)
    assert ask("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.parametrize("size", [8, 512, 3000])
def test_deleted_bytes_are_in_no_file(store, path, size):
    random = np.random.default_rng(0)
    vectors = random.normal(size=(24, size)).astype(np.float32)
    for number, vector in enumerate(vectors):
        store.enrol(f"person-{number:02}", vector)
    gone = random.permutation(24)[:14].tolist()
    store.search(vectors[0], 3)  # readers have seen the rows
    for number in gone[:12]:
        assert store.delete(f"person-{number:02}")
    for number in gone[12:]:
        store.enrol(f"person-{number:02}", random.normal(size=size), replace=True)
    kept = contents(path.parent)
    pieces = {number: _pieces(vectors[number]) for number in range(24)}
    assert {number for number in gone if any(piece in kept for piece in pieces[number])} == set()
    there = [number for number in range(24) if number not in gone]
    assert all(piece in kept for number in there for piece in pieces[number])
    assert not any(f"person-{number:02}".encode() in kept for number in gone[:12])


def _pieces(vector):
    raw = vector.tobytes()
    return [raw[start : start + 16] for start in range(0, len(raw), max(16, len(raw) // 160 * 16))]


def test_a_reader_in_the_way_delays_erasing_and_nothing_else(store, path, monkeypatch):
    vector = np.random.default_rng(0).normal(size=512).astype(np.float32)
    store.enrol("anna", vector)
    store._writer.execute("PRAGMA busy_timeout = 1")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM templates").fetchone()
        assert store.delete("anna")
        assert vector.tobytes()[:32] in contents(path.parent)
        other.execute("ROLLBACK")
    store.check()
    assert vector.tobytes()[:32] not in contents(path.parent)


def test_what_a_killed_process_left_in_the_log_is_erased_on_opening(path):
    vector = np.random.default_rng(0).normal(size=512).astype(np.float32)
    first = open_store(str(path))
    first.enrol("anna", vector)
    first._erase = lambda: None
    first.delete("anna")
    assert vector.tobytes()[:32] in contents(path.parent)
    second = open_store(str(path))
    assert vector.tobytes()[:32] not in contents(path.parent)
    first.close()
    second.close()


def test_an_encrypted_store_shows_no_vector_and_no_state(path):
    store = open_store(str(path), KEY)
    vector = np.random.default_rng(0).normal(size=512).astype(np.float32)
    store.enrol("anna", vector)
    store.put_state("watch", b"a secret state")
    kept = contents(path.parent)
    store.close()
    assert not any(piece in kept for piece in _pieces(vector))
    assert b"a secret state" not in kept


def test_records_that_were_swapped_are_noticed(path):
    store = open_store(str(path), KEY)
    store.enrol("anna", [1, 2])
    store.enrol("ben", [2, 1])
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        (anna,) = other.execute("SELECT embedding FROM templates WHERE id = 'anna'").fetchone()
        other.execute("UPDATE templates SET embedding = ? WHERE id = 'ben'", (anna,))
    store = open_store(str(path), KEY)
    np.testing.assert_array_equal(store.vectors(["anna"])["anna"], [1, 2])
    for ask in (lambda: store.vectors(["ben"]), lambda: store.search([1, 2], 1)):
        with pytest.raises(StorageError, match="templates:ben can't be decrypted"):
            ask()
    assert store.delete("ben")
    assert [name for name, _ in store.search([1, 2], 5)] == ["anna"]
    store.close()


def test_files_that_are_no_store_of_ours_are_refused_and_left_alone(path):
    path.write_bytes(b"no database at all, just some text that is long enough" * 50)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="damaged, or no SQLite database"):
        open_store(str(path))
    assert path.read_bytes() == before
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE photos (x)")
    path.chmod(0o640)
    before = path.read_bytes(), path.stat().st_mode
    with pytest.raises(StorageError, match="SQLite database of another program"):
        open_store(str(path))
    assert (path.read_bytes(), path.stat().st_mode) == before


def test_a_store_of_a_newer_version_is_refused(store, path):
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 2")
    with pytest.raises(StorageError, match="made by a newer faircal"):
        open_store(str(path))


def test_a_folder_in_its_place_is_one_clear_line(tmp_path):
    with pytest.raises(ParameterError, match=r"cannot use .* as store"):
        open_store(str(tmp_path))


def test_a_file_that_is_deleted_in_use_is_noticed_before_anything_is_lost(store, path):
    store.enrol("anna", [1, 2])
    path.rename(path.with_suffix(".old"))
    for ask in (lambda: store.enrol("ben", [1, 2]), store.check, store.count):
        with pytest.raises(StorageUnavailableError, match="moved or deleted while in use"):
            ask()
    path.with_suffix(".old").rename(path)
    store.enrol("ben", [1, 2])
    assert store.count() == 2


def test_another_process_that_writes_for_long_is_told(store, path):
    store._writer.execute("PRAGMA busy_timeout = 1")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailableError, match="another process has been writing"):
            store.enrol("anna", [1, 2])
        assert store.count() == 0
        other.execute("ROLLBACK")
    store.enrol("anna", [1, 2])


def fill(store, start=0):
    """Enrol until there is no room; return the ids that were acknowledged."""
    vector, done = np.arange(1, 513, dtype=np.float32), []
    with pytest.raises(StorageFullError, match="no room left on the disk; nothing was written"):
        for number in range(start, start + 10_000):
            store.enrol(f"t{number}", vector)
            done.append(f"t{number}")
    return done


def works_after_being_full(store, path, done):
    with pytest.raises(StorageFullError):
        store.record(
            [
                Decision(f"d{n}", moment(n), "verify", "k" * 90, "m" * 4000, left="x" * 200)
                for n in range(2000)
            ]
        )
    assert store.decisions(None, 5) == []
    assert {info.id for info in store.templates(None, 10_000)} == set(done)
    assert len(store.vectors(done)) == len(done)
    assert is_sound(path)


def test_a_full_database_says_so_and_works_again(store, path):
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages + 40}")
    done = fill(store)
    works_after_being_full(store, path, done)
    assert store.delete(done.pop())
    store._writer.execute("PRAGMA max_page_count = 1000000")
    store.enrol("again", np.ones(512))
    assert store.count() == len(done) + 1
    assert is_sound(path)


def test_a_full_disk_says_so_and_works_again(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk) as mounted:
        store = open_store(str(disk / "store.db"))
        if not mounted:  # the next best thing: SQLite's own limit, which it tells the same way
            store._writer.execute("PRAGMA max_page_count = 100")
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(300_000))
        done = fill(store)
        assert len(done) > 20
        works_after_being_full(store, disk / "store.db", done)
        ballast.unlink()
        if not mounted:
            store._writer.execute("PRAGMA max_page_count = 1000000")
        store.enrol("again", np.ones(512))
        assert store.delete(done.pop())
        assert store.count() == len(done) + 1
        assert is_sound(disk / "store.db")
        store.close()


def test_readers_go_on_while_one_writes(store):
    store.enrol("anna", [1, 2])
    with store._writing() as run:
        run("DELETE FROM faircal.templates")
        found = []
        thread = threading.Thread(target=lambda: found.append(store.count()))
        thread.start()
        thread.join()
        run("INSERT INTO faircal.removed (n) VALUES (1)")
    assert found == [1]
    assert store.count() == 0
