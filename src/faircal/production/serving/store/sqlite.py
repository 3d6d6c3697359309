"""A store in one SQLite file: no server, for one machine."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Empty, Full, LifoQueue
from threading import Lock
from typing import ClassVar

from faircal._base.errors import (
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.store import Store, Transaction
from faircal.production.serving.store.records import SCHEMA, tables

#: "FCal": how `file` and we know our databases from others.
_APPLICATION = 0x4643616C

#: Seconds to wait for another process that writes.
_PATIENCE = 2.0

#: Less than this many bytes free is a full disk, whatever the error is called.
_FULL = 1 << 18

_TYPES = {
    "text": "TEXT",
    "bytes": "BLOB",
    "counter": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "vector": "BLOB",
    "real": "REAL",
    "bool": "INTEGER",
    "inline": "",
    "index": "faircal.decisions_at ON decisions (at)",
}

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_GONE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class SqliteStore(Store):
    """Templates and decisions in a SQLite file in WAL mode.

    One connection writes, under a lock; others read beside it. A commit is on disk when it returns
    (``synchronous=FULL``); deleted bytes are overwritten (``secure_delete``) and the write-ahead
    log is emptied after each deletion. The file is for its owner only.
    """

    AMONG = "IN (SELECT value FROM json_each(?))"
    PRAGMAS: ClassVar[tuple[str, ...]] = (
        "synchronous = FULL",  # a commit survives a power cut: what is answered is on disk
        "secure_delete = ON",  # deleted templates are overwritten, in the log's pages, too
        "temp_store = MEMORY",  # no vector in a file that nobody overwrites
        f"busy_timeout = {int(_PATIENCE * 1000)}",
    )

    def __init__(self, path: str | Path, key: bytes | None = None) -> None:
        super().__init__(key)
        self.path = Path(path).absolute()
        try:  # for its owner only, before SQLite would make it for everybody
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._file = self._identity()
        except OSError as error:
            raise ParameterError(
                f"cannot use {self.path} as store: {error.strerror}; give another path"
            ) from error
        self._lock = Lock()
        self._readers: LifoQueue[sqlite3.Connection] = LifoQueue(maxsize=8)
        self._closed = False
        self._unclean = False
        with self._in_our_words():
            self._writer = self._connect()
        try:
            self._begin()
            self._load()
        except BaseException:
            self.close()
            raise

    def _identity(self) -> tuple[int, int]:
        """Return which file is at the path: another one, put there meanwhile, is not ours."""
        status = self.path.stat()
        return status.st_dev, status.st_ino

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        for pragma in self.PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _begin(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours."""
        with self._in_our_words():
            self._writer.execute("PRAGMA schema_version").fetchone()  # a database at all?
            (ours,) = self._writer.execute("PRAGMA application_id").fetchone()
            if ours != _APPLICATION and not self._is_empty():
                raise StorageError(
                    f"{self.path}: is a SQLite database of another program; give another path"
                )
            (version,) = self._writer.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA:
                raise StorageError(
                    f"{self.path}: was made by a newer faircal (version {version} of the tables, "
                    f"this one knows {SCHEMA}); install that one"
                )
            self._writer.execute("PRAGMA journal_mode = WAL")
        with self._writing() as run:
            new = self._is_empty()
            if new:
                for statement in tables(_TYPES):
                    run(statement)
                run(f"PRAGMA application_id = {_APPLICATION}")
                run(f"PRAGMA user_version = {SCHEMA}")
            self._recognise(run, str(self.path), new=new)
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + end).chmod(0o600)
        self._erase()  # what a process that was killed may have left in the log

    def _is_empty(self) -> bool:
        return self._writer.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Say an error of SQLite in our words; its own never hold values."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> StorageError:
        # The low byte is the primary code; extended ones have the details above it.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        full = code == sqlite3.SQLITE_FULL
        if code == sqlite3.SQLITE_IOERR:
            # SQLite reports some writes to a full disk as plain I/O errors.
            with suppress(OSError):
                full = shutil.disk_usage(self.path.parent).free < _FULL
        if full:
            return StorageFullError(
                f"{self.path}: no room left on the disk; nothing was written; make room"
            )
        if code in _BUSY:
            return StorageUnavailableError(
                f"{self.path}: another process has been writing for {_PATIENCE:g} s; try again"
            )
        if code in _GONE or self._closed:
            return StorageUnavailableError(
                f"{self.path}: can't be opened or written; check the disk and permissions"
            )
        if code in _DAMAGED:
            return StorageError(
                f"{self.path}: is damaged, or no SQLite database; restore a backup, "
                "or give another path"
            )
        return StorageError(f"{self.path}: {error}; check the disk")

    def _here(self) -> None:
        """Raise where the file is not there any more: what is written would be lost."""
        try:
            same = self._identity() == self._file
        except OSError:
            same = False
        if self._closed or not same:
            why = "is closed" if self._closed else "was moved or deleted while in use"
            raise StorageUnavailableError(f"{self.path}: {why}; start the service again")

    @contextmanager
    def _reading(self, patient: bool = False) -> Iterator[Transaction]:  # noqa: ARG002
        self._here()
        with self._in_our_words():
            try:
                connection = self._readers.get_nowait()
            except Empty:
                connection = self._connect()
                connection.execute("PRAGMA query_only = ON")
            try:
                connection.execute("BEGIN")
                yield Transaction(connection, _in_sqlite)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                try:
                    self._readers.put_nowait(connection)  # for the next one
                except Full:
                    connection.close()
                if self._closed:
                    self._close_readers()

    def _close_readers(self) -> None:
        with suppress(Empty):
            while True:
                self._readers.get_nowait().close()

    @contextmanager
    def _writing(self, patient: bool = False) -> Iterator[Transaction]:  # noqa: ARG002
        with self._lock, self._in_our_words():
            self._here()
            # At once, not at the first write: two that have read and then want to write would
            # wait for each other.
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(self._writer, _in_sqlite)
                self._writer.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    if isinstance(error, sqlite3.Error):
                        self._checkpoint()  # a full disk gets back the room that the log takes
                raise

    def _checkpoint(self) -> bool:
        """Move the log into the database and empty it; False where a reader is in the way."""
        busy, _, _ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def _erase(self) -> None:
        # The log still has the pages from before the deletion.
        with self._lock, self._in_our_words():
            self._unclean = not self._checkpoint()

    def _among(self, ids: Sequence[str]) -> str:
        return json.dumps(list(ids))

    def check(self) -> None:
        """Raise `StorageUnavailableError` where the file can't be read; end unfinished erasing."""
        super().check()
        if self._unclean:
            self._erase()

    def close(self) -> None:
        """Let go of the file; vectors in memory are overwritten."""
        with self._lock:
            self._closed = True
            self._writer.close()
        self._close_readers()
        self._index.clear()


@cache
def _in_sqlite(statement: str) -> str:
    return statement.replace("faircal.", "main.")
