"""A store in PostgreSQL, for more than one process or machine; pgvector searches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import (
    DataError,
    MissingExtraError,
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.store import Store, Transaction
from faircal.production.serving.store.records import check_limit, check_vector, tables

try:
    import psycopg
    from pgvector import Vector
    from pgvector.psycopg import register_vector
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise MissingExtraError(
        "a store in PostgreSQL needs psycopg and pgvector, which are not installed: "
        "pip install 'faircal[postgres]'"
    ) from error

_T = TypeVar("_T")

#: Seconds after which a server that does not answer is away: for short statements, and for those
#: that read or clean much.
SHORT, LONG = 1.5, 60.0


class ImpatientConnection(psycopg.Connection[Any]):
    """A connection that closes when nothing came back for `patience` seconds.

    A timeout of the server's own does not help where the server is what hangs.
    """

    patience = SHORT

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **options: Any) -> _T:
        """Wait for the server as psycopg does, but not forever."""
        return super().wait(self._bounded(gen), *args, **options)

    def _bounded(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        """Pass on what psycopg waits for; it comes back with nothing every 0.1 s."""
        end = monotonic() + self.patience
        try:
            waits_for = next(gen)
            while True:
                ready = yield waits_for
                if ready:
                    end = monotonic() + self.patience
                elif monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError("no answer")
                waits_for = gen.send(ready)
        except StopIteration as done:
            value: _T = done.value
            return value


#: Names of our advisory locks: for making tables, one process at a time, and for writing. Writing
#: one after the other makes numbers grow in the order in which they can be seen, which the index
#: and the audit trail rely on.
_MAKING, _CHANGING = 0x4643616C01, 0x4643616C02

#: Cleaning after deletions rests for this many times as long as it took.
_REST = 9

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


@cache
def _in_psycopg(statement: str) -> str:
    return statement.replace("?", "%s")


def _transaction(connection: ImpatientConnection) -> Transaction:
    return Transaction(connection, _in_psycopg, binary=True)


def _place(url: str) -> str:
    """Return which database a URL means, without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # what it says may hold the password
        raise ParameterError(
            "store: expected postgresql://USER@HOST/DATABASE; found something else; check the URL"
        ) from None
    return f"PostgreSQL at {parts.get('host', 'localhost')}"


class PostgresStore(Store):
    """Templates and decisions in the schema ``faircal`` of a PostgreSQL database.

    Connections come from a pool that tests and renews them, so a server that was away is found
    again by itself. While it is away one caller at a time waits for it; others fail at once.
    """

    AMONG = "= ANY(?)"

    def __init__(self, url: str, key: bytes | None = None) -> None:
        super().__init__(key)
        self.where = _place(url)
        self._away = False
        self._probing = Lock()
        self._cleaning = Lock()
        self._unclean, self._rested = False, 0.0
        self._create_tables(url)
        self._pool = ConnectionPool(
            url,
            connection_class=ImpatientConnection,
            kwargs={"connect_timeout": 2, "application_name": "faircal", "autocommit": True},
            min_size=1,
            max_size=8,
            timeout=SHORT,
            reconnect_timeout=2.0,
            configure=self._configure,
            check=ConnectionPool.check_connection,
            name="faircal",
            open=True,
        )
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    def _create_tables(self, url: str) -> None:
        """Make the tables where there are none; refuse a schema that is not ours, or its key."""
        with (
            self._in_our_words(),
            ImpatientConnection.connect(url, connect_timeout=2, autocommit=True) as connection,
            connection.transaction(),
        ):
            connection.patience = LONG
            run = _transaction(connection)
            run("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
            rows = run(
                "SELECT c.relname FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace "
                "WHERE s.nspname = 'faircal'"
            ).fetchall()
            names = {name for (name,) in rows}
            if not names:
                run("CREATE SCHEMA IF NOT EXISTS faircal")
                if self._cipher is None:
                    self._require_pgvector(connection)
                kind = "vector" if self._cipher is None else "bytea"
                for statement in tables(_TYPES | {"vector": kind}):
                    run(statement)
            elif not {"meta", "templates", "decisions", "removed", "states"} <= names:
                raise StorageError(
                    f"{self.where}: has a schema faircal of another program; give another database"
                )
            self._recognise(run, self.where, new=not names)

    def _require_pgvector(self, connection: ImpatientConnection) -> None:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
            raise StorageError(
                f"{self.where}: pgvector is not installed on the server; install it there, "
                "or give a key (an encrypted store needs none)"
            ) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise StorageError(
                f"{self.where}: pgvector is not in the database; have its owner run "
                "CREATE EXTENSION vector"
            ) from error

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Say an error of PostgreSQL in our words: its own may hold values."""
        away = (PoolTimeout, PoolClosed, psycopg.OperationalError, psycopg.InterfaceError)
        try:
            yield
        except psycopg.errors.DiskFull as error:
            raise StorageFullError(
                f"{self.where}: no room left on the server; nothing was written; make room there"
            ) from error
        except away as error:
            raise StorageUnavailableError(
                f"{self.where}: does not answer, or lets nobody in; check server, database, user "
                "and password, then try again"
            ) from error
        except psycopg.Error as error:
            raise StorageError(
                f"{self.where}: {type(error).__name__} ({error.sqlstate}); check the URL, "
                "permissions and server log"
            ) from error

    def _configure(self, connection: ImpatientConnection) -> None:
        """Make a new connection ours: durable commits, bounded statements, vectors as arrays."""
        if self._cipher is None:
            register_vector(connection)
        # With it off a commit is reported before it is durable, and the trail could lose lines.
        if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
            connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET statement_timeout = {int(LONG * 1000)}")

    @contextmanager
    def _session(self, patient: bool) -> Iterator[Transaction]:
        """Give a connection that was just tested.

        One caller waits for a server that is away; the others fail at once.
        """
        probing = self._away
        if probing and not self._probing.acquire(blocking=False):
            raise StorageUnavailableError(f"{self.where}: does not answer; try again later")
        try:
            with self._in_our_words(), self._pool.connection() as connection:
                self._away = False
                connection.patience = LONG if patient else SHORT
                try:
                    yield _transaction(connection)
                finally:
                    connection.patience = SHORT
        except StorageUnavailableError:
            self._away = True
            raise
        finally:
            if probing:
                self._probing.release()

    @contextmanager
    def _reading(self, patient: bool = False) -> Iterator[Transaction]:
        with self._session(patient) as run:
            if not patient:
                yield run
                return
            with run.connection.transaction():  # several statements that must see one state
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield run

    @contextmanager
    def _writing(self, patient: bool = False) -> Iterator[Transaction]:
        with self._session(patient) as run, run.connection.transaction():
            run("SELECT pg_advisory_xact_lock(?)", (_CHANGING,))
            yield run

    def _among(self, ids: Sequence[str]) -> list[str]:
        return list(ids)

    def _pack(self, name: str, vector: NDArray[np.float32]) -> Any:
        return Vector(vector) if self._cipher is None else super()._pack(name, vector)

    def _unpack(self, name: str, kept: Any) -> NDArray[np.float32]:
        if self._cipher is None:
            return np.asarray(kept.to_numpy(), dtype=np.float32)
        return super()._unpack(name, kept)

    def search(self, probe: ArrayLike, limit: int = 10) -> list[tuple[str, float]]:
        """Return the `limit` templates most like `probe` (d,) with their cosines, best first."""
        if self._cipher is not None:
            return super().search(probe, limit)
        query = Vector(check_vector(probe, "probe"))
        check_limit(limit)
        with self._reading(patient=True) as run:
            other = run("SELECT dimension FROM faircal.templates LIMIT 1").fetchone()
            if other is None:
                return []
            if other[0] != query.dimensions():
                raise DataError(
                    f"probe: expected {other[0]} numbers, as the enrolled templates have; "
                    f"found {query.dimensions()}"
                )
            rows = run(
                "SELECT id, 1 - (embedding <=> ?) FROM faircal.templates "
                "ORDER BY embedding <=> ?, id LIMIT ?",
                (query, query, limit),
            ).fetchall()
        return [(id_, float(np.clip(cosine, -1, 1))) for id_, cosine in rows]

    def _sync(self) -> None:
        """Bring the gallery to where the database is; pgvector needs none."""
        if self._cipher is None:
            self._one("SELECT 1 FROM faircal.meta LIMIT 1", ())
        else:
            super()._sync()

    def _erase(self) -> None:
        self._unclean = True
        self._clean()

    def _clean(self) -> None:
        """Give deleted rows' places free, unless somebody is at it or it was just done."""
        if not self._unclean or monotonic() < self._rested:
            return
        if not self._cleaning.acquire(blocking=False):
            return
        start = monotonic()
        try:
            self._unclean = False
            with self._session(patient=True) as run:
                run("VACUUM faircal.templates")
        except StorageError:
            self._unclean = True
            raise
        finally:
            self._rested = monotonic() + _REST * (monotonic() - start)
            self._cleaning.release()

    def check(self) -> None:
        """Raise `StorageUnavailableError` where nothing answers; end unfinished cleaning."""
        super().check()
        self._clean()

    def close(self) -> None:
        """Close the connections; vectors in memory are overwritten."""
        self._rested = 0.0
        with suppress(StorageError):
            self._clean()
        self._pool.close()
        self._index.clear()
