"""What a PostgreSQL server is told first, and its errors in our words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict

from faircal._base.errors import ParameterError, StorageAwayError, StorageError, StorageFullError
from faircal.production.serving.store.connection import LONG, Impatient
from faircal.production.serving.store.database import Database, Rows
from faircal.production.serving.store.rows import tables

#: Name of our advisory lock for making tables: one process at a time.
_MAKING = 0x4643616C01

_TYPES = {
    "text": 'text COLLATE "C"',  # ids in the order of their characters, as SQLite has it
    "bytes": "bytea",
    "counter": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "real": "double precision",
    "bool": "boolean",
    "index": "decisions_at ON faircal.decisions (at)",
    # vectors beside their ids, as far as a page has room: elsewhere a search would fetch each one
    "inline": " WITH (toast_tuple_target = 8160)",
}


class Session:
    """Runs statements on a connection."""

    def __init__(self, connection: Impatient) -> None:
        self.connection = connection

    def __call__(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement with its values."""
        return cast(Rows, self.connection.execute(_said(statement), values, binary=True))

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row."""
        with self.connection.cursor() as cursor:
            cursor.executemany(_said(statement), rows)


@cache
def _said(statement: str) -> Any:
    return statement.replace("?", "%s")


def where(url: str) -> str:
    """Return which database a URL means, without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # what it says may hold the password
        raise ParameterError(
            "store: expected postgresql://USER@HOST/DATABASE; found something else; check the URL"
        ) from None
    return f"PostgreSQL at {parts.get('host', 'localhost')}"


@contextmanager
def told(place: str, away: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Say an error of PostgreSQL in our words: its own may hold values."""
    try:
        yield
    except away as error:
        raise _away(place) from error
    except psycopg.Error as error:
        raise _error(place, error) from error


def _away(place: str) -> StorageAwayError:
    return StorageAwayError(
        f"{place}: does not answer, or lets nobody in; check server, database, user and password, "
        "then try again"
    )


def _error(place: str, error: psycopg.Error) -> StorageError:
    state = error.sqlstate
    if state == "53100":
        return StorageFullError(
            f"{place}: no room left on the server; nothing was written; make room there"
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return _away(place)
    return StorageError(
        f"{place}: {type(error).__name__} ({state}); check the URL, permissions and server log"
    )


def begin(url: str, place: str, store: Database) -> None:
    """Make the tables where there are none; refuse a schema that is not ours, or its key."""
    with (
        told(place),
        Impatient.connect(url, connect_timeout=2, autocommit=True) as connection,
        connection.transaction(),
    ):
        connection.patience = LONG
        run = Session(connection)
        run("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
        if not _is_there(run, place):
            run("CREATE SCHEMA IF NOT EXISTS faircal")
            kind = "bytea"
            if not store.sealed:
                _require_pgvector(connection, place)
                kind = "vector"
            for statement in tables(_TYPES | {"vector": kind}):
                run(statement)
            store.introduce(run)
        store.recognise(run, place)


def _is_there(run: Session, place: str) -> bool:
    """Tell whether our tables are there; raise where others are."""
    rows = run(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
        "WHERE s.nspname = 'faircal'"
    ).fetchall()
    names = {name for (name,) in rows}
    if names and not {"meta", "templates", "decisions", "removed", "states"} <= names:
        raise StorageError(
            f"{place}: has a schema faircal of another program; give another database"
        )
    return bool(names)


def _require_pgvector(connection: Impatient, place: str) -> None:
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise StorageError(
            f"{place}: pgvector is not installed on the server; install it there, "
            "or give a key (an encrypted store needs none)"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StorageError(
            f"{place}: pgvector is not in the database; have its owner run CREATE EXTENSION vector"
        ) from error
