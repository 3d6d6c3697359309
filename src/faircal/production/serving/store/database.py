"""What is asked of a database underneath a store: transactions that read, and that write.

Statements are written once, with ``?`` for values and ``faircal.`` before tables; a store says
them in the way of its database. Values only ever go in as parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from faircal._base.errors import StorageError
from faircal.production.serving.store.rows import SCHEMA
from faircal.production.serving.store.seal import Seal


class Rows(Protocol):
    """What a statement gives: a cursor of either database."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchone(self) -> Any:
        """Return the next row, None where there is none."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""


class Run(Protocol):
    """Runs statements of a transaction."""

    def __call__(self, statement: str, values: Sequence[Any] = ...) -> Rows:
        """Run a statement with its values."""

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""


class Database(ABC):
    """A database with or without a key, which it is recognised by."""

    def __init__(self, key: bytes | None) -> None:
        self._seal = None if key is None else Seal(key)

    @abstractmethod
    def _reading(self, patient: bool = False) -> AbstractContextManager[Run]:
        """Give what reads one state of the database; `patient` where that may take long."""

    @abstractmethod
    def _writing(self, patient: bool = False) -> AbstractContextManager[Run]:
        """Give what runs statements of one transaction, alone and written for good at the end."""

    @property
    def sealed(self) -> bool:
        """Whether templates are encrypted."""
        return self._seal is not None

    def _one(self, statement: str, values: Sequence[Any]) -> Any:
        with self._reading() as run:
            return run(statement, values).fetchone()

    def introduce(self, run: Run) -> None:
        """Leave version and key in a new database."""
        put = "INSERT INTO faircal.meta (name, value) VALUES (?, ?)"
        run(put, ("version", str(SCHEMA).encode()))
        if self._seal is not None:
            run(put, ("key", self._seal.proof()))

    def recognise(self, run: Run, where: str) -> None:
        """Raise where a database is of another version, or its key is another one."""
        rows = run("SELECT name, value FROM faircal.meta").fetchall()
        meta = {name: bytes(value) for name, value in rows}
        version = meta.get("version", b"?").decode("ascii", "replace")
        if version != str(SCHEMA):
            raise StorageError(
                f"{where}: expected a store of version {SCHEMA}; found {version}; "
                "use the faircal that made it, or another place"
            )
        proof = meta.get("key")
        if self._seal is None and proof is not None:
            raise StorageError(f"{where}: is encrypted, and no key was given; give its key")
        if self._seal is not None and proof is None:
            raise StorageError(
                f"{where}: is not encrypted, but a key was given; leave the key out, "
                "or start a new store with it"
            )
        if self._seal is not None and proof is not None and not self._seal.proves(proof):
            raise StorageError(f"{where}: is encrypted with another key; give that one")
