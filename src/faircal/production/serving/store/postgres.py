"""A store in PostgreSQL, for more than one process or machine; pgvector searches."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError, MissingExtraError, StorageAwayError, StorageError
from faircal.production.serving.store.base import check_limit, check_vector
from faircal.production.serving.store.templates import Templates

try:
    from pgvector import Vector
    from pgvector.psycopg import register_vector
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

    from faircal.production.serving.store.connection import LONG, SHORT, Impatient
    from faircal.production.serving.store.server import Session, begin, told, where
except ImportError as error:
    raise MissingExtraError(
        "a store in PostgreSQL needs psycopg and pgvector, which are not installed: "
        "pip install 'faircal[postgres]'"
    ) from error

#: Name of our advisory lock for writing. Writing one after the other makes numbers grow in the
#: order in which they can be seen, which gallery and audit trail rely on.
_CHANGING = 0x4643616C02

#: Cleaning after deletions rests for this many times as long as it took.
_REST = 9


class PostgresStore(Templates):
    """Templates and decisions in the schema ``faircal`` of a PostgreSQL database.

    Connections come from a pool that tests and renews them, so a server that was away is found
    again by itself. While it is away one caller at a time waits for it; others are told at once.
    """

    AMONG = "= ANY(?)"

    def __init__(self, url: str, key: bytes | None = None) -> None:
        super().__init__(key)
        self.where = where(url)
        self._away = False
        self._probing = Lock()
        self._cleaning = Lock()
        self._unclean, self._rested = False, 0.0
        begin(url, self.where, self)
        self._pool = ConnectionPool(
            url,
            connection_class=Impatient,
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

    def _configure(self, connection: Impatient) -> None:
        """Make a new connection ours: durable commits, bounded statements, vectors as arrays."""
        if self._seal is None:
            register_vector(connection)
        if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
            connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET statement_timeout = {int(LONG * 1000)}")

    @contextmanager
    def _session(self, patient: bool) -> Iterator[Session]:
        """Give a connection that was just tested."""
        try:
            with (
                told(self.where, (PoolTimeout, PoolClosed)),
                self._turn(),
                self._pool.connection() as connection,
            ):
                self._away = False
                connection.patience = LONG if patient else SHORT
                try:
                    yield Session(connection)
                finally:
                    connection.patience = SHORT
        except StorageAwayError:
            self._away = True
            raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one caller wait for a server that is away, and tell the others at once."""
        probing = self._away
        if probing and not self._probing.acquire(blocking=False):
            raise StorageAwayError(f"{self.where}: does not answer; try again later")
        try:
            yield
        finally:
            if probing:
                self._probing.release()

    @contextmanager
    def _reading(self, patient: bool = False) -> Iterator[Session]:
        with self._session(patient) as run:
            if not patient:
                yield run
                return
            with run.connection.transaction():  # several statements that must see one state
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield run

    @contextmanager
    def _writing(self, patient: bool = False) -> Iterator[Session]:
        with self._session(patient) as run, run.connection.transaction():
            run("SELECT pg_advisory_xact_lock(?)", (_CHANGING,))
            yield run

    def _among(self, ids: Sequence[str]) -> builtins.list[str]:
        return list(ids)

    def _pack(self, id: str, vector: NDArray[np.float32]) -> Any:  # noqa: A002
        return Vector(vector) if self._seal is None else super()._pack(id, vector)

    def _unpack(self, id: str, kept: Any) -> NDArray[np.float32]:  # noqa: A002
        if self._seal is None:
            return np.asarray(kept.to_numpy(), dtype=np.float32)
        return super()._unpack(id, kept)

    def search(self, probe: ArrayLike, limit: int = 10) -> builtins.list[tuple[str, float]]:
        """Return the `limit` templates most like `probe` (d,) with their cosines, best first."""
        if self._seal is not None:
            return super().search(probe, limit)
        found = Vector(check_vector(probe, "probe"))
        check_limit(limit)
        with self._reading(patient=True) as run:
            other = run("SELECT dimension FROM faircal.templates LIMIT 1").fetchone()
            if other is None:
                return []
            if other[0] != found.dimensions():
                raise DataError(
                    f"probe: expected {other[0]} numbers, as the enrolled templates have; "
                    f"found {found.dimensions()}"
                )
            rows = run(
                "SELECT id, 1 - (embedding <=> ?) FROM faircal.templates "
                "ORDER BY embedding <=> ?, id LIMIT ?",
                (found, found, limit),
            ).fetchall()
        return [(id_, float(np.clip(cosine, -1, 1))) for id_, cosine in rows]

    def _sync(self) -> None:
        """Bring the gallery to where the database is; pgvector needs none."""
        if self._seal is None:
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
        """Raise `StorageAwayError` where the server does not answer; end unfinished cleaning."""
        super().check()
        self._clean()

    def close(self) -> None:
        """Close the connections; vectors in memory are overwritten."""
        self._rested = 0.0
        with suppress(StorageError):
            self._clean()
        self._pool.close()
        self._gallery.clear()
