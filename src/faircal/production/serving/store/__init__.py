"""Where the service keeps templates, the audit trail and named states: SQLite, or PostgreSQL.

Statements are written once, with ``?`` for values and ``faircal.`` before tables; the databases
put them in their own way. Values only ever go in as parameters. Templates are also held in memory
for exact search, and kept in step with the database.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime
from threading import Lock
from time import sleep
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import (
    ConflictError,
    DataError,
    ParameterError,
    StorageError,
    StorageUnavailableError,
)
from faircal.production.serving.store.records import (
    DECISION,
    KEY_PROOF,
    SCHEMA,
    Decision,
    TemplateCipher,
    TemplateInfo,
    check_id,
    check_limit,
    check_vector,
    from_decision,
    microseconds,
    moment,
    read_key,
    to_decision,
)
from faircal.production.serving.store.vector_index import INDEX_BLOCK, VectorIndex

__all__ = ["Decision", "Store", "TemplateInfo", "open_store", "read_key"]


def open_store(url: str, key: bytes | None = None) -> Store:
    """Open a store, and make it where there is none.

    Parameters
    ----------
    url : str
        ``sqlite:///faircal.db`` (``sqlite:////`` for a path from the root) or a path alone, or
        ``postgresql://user@host/database``.
    key : bytes, optional
        32 bytes that templates are encrypted with at rest; the same at every opening.

    Returns
    -------
    Store

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(f"{folder}/faircal.db")
    ...     store.enrol("anna", [3, 4])
    ...     nearest = store.search([1, 0], limit=1)
    ...     store.close()
    >>> [(name, round(cosine, 3)) for name, cosine in nearest]
    [('anna', 0.6)]
    """
    scheme, mark, rest = url.partition("://")
    if scheme in ("postgresql", "postgres") and mark:
        from faircal.production.serving.store.postgres import PostgresStore

        return PostgresStore(url, key)
    supported = not mark or (scheme == "sqlite" and rest.startswith("/"))
    path = rest.removeprefix("/") if mark else url
    if not supported or path in ("", ":memory:"):
        raise ParameterError(
            "store: expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; "
            f"found {scheme + mark + '…' if mark else repr(url)}"
        )
    from faircal.production.serving.store.sqlite import SqliteStore

    return SqliteStore(path, key)


class Transaction:
    """Runs statements of a transaction on a connection.

    Parameters
    ----------
    connection : Connection
        Of either database.
    dialect : callable
        Puts a statement as the database has it.
    **options
        For each execution.
    """

    def __init__(self, connection: Any, dialect: Callable[[str], Any], **options: Any) -> None:
        self.connection, self._dialect, self._options = connection, dialect, options

    def __call__(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement with its values; return its cursor."""
        return self.connection.execute(self._dialect(statement), values, **self._options)

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        with closing(self.connection.cursor()) as cursor:
            cursor.executemany(self._dialect(statement), rows)


_SELECT = f"SELECT {DECISION} FROM faircal.decisions "  # noqa: S608
_PLACES = ", ".join("?" * len(DECISION.split(",")))
_INSERT = f"INSERT INTO faircal.decisions ({DECISION}) VALUES ({_PLACES})"  # noqa: S608
_PUT = (
    "INSERT INTO faircal.states (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_OLD = "FROM faircal.decisions WHERE at < ? ORDER BY at, seq LIMIT ?"

#: Decisions that are deleted at a time, and seconds for others to write in between.
_PART, _PAUSE = 5000, 0.01

#: Removals that are remembered for other processes; one further behind reads everything again.
_REMEMBERED = 100_000

_INFO = "SELECT id, enrolled_at, dimension FROM faircal.templates "


class Store(ABC):
    """Templates, decisions and named states in a database, kept for good.

    SQLite in one file and PostgreSQL for more than one machine differ in how they connect, erase
    and search. A store can be used from many threads, and what a method returns from is written.
    Every method may raise `StorageUnavailableError` (try later), `StorageFullError` (nothing was
    written) or another `StorageError`.
    """

    #: Condition that an id is among those of one parameter, which `_among` makes.
    AMONG: ClassVar[str]

    def __init__(self, key: bytes | None) -> None:
        self._cipher = None if key is None else TemplateCipher(key)
        self._index = VectorIndex()
        self._syncing = Lock()
        #: The last number enrolled and the last removal that the gallery has; None: read all.
        self._synced: tuple[int, int] | None = None

    @abstractmethod
    def _reading(self, patient: bool = False) -> AbstractContextManager[Transaction]:
        """Give what reads one state of the database; `patient` where that may take long."""

    @abstractmethod
    def _writing(self, patient: bool = False) -> AbstractContextManager[Transaction]:
        """Give what runs statements of one transaction, alone and written for good at the end."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; vectors in memory are overwritten."""

    def _one(self, statement: str, values: Sequence[Any]) -> Any:
        with self._reading() as run:
            return run(statement, values).fetchone()

    def _recognise(self, run: Transaction, where: str, *, new: bool) -> None:
        """Leave version and key in a new database; raise where one is not of this version and key.

        A wrong key must stop here: with it templates would be mixed that no one key
        opens.
        """
        if new:
            put = "INSERT INTO faircal.meta (name, value) VALUES (?, ?)"
            run(put, ("version", str(SCHEMA).encode()))
            if self._cipher is not None:
                run(put, ("key", self._cipher.encrypt(KEY_PROOF, "key")))
        rows = run("SELECT name, value FROM faircal.meta").fetchall()
        meta = {name: bytes(value) for name, value in rows}
        version = meta.get("version", b"?").decode("ascii", "replace")
        if version != str(SCHEMA):
            raise StorageError(
                f"{where}: expected a store of version {SCHEMA}; found {version}; "
                "use the faircal that made it, or another place"
            )
        proof = meta.get("key")
        if self._cipher is None:
            if proof is not None:
                raise StorageError(f"{where}: is encrypted, and no key was given; give its key")
        elif proof is None:
            raise StorageError(
                f"{where}: is not encrypted, but a key was given; leave the key out, "
                "or start a new store with it"
            )
        else:
            try:
                self._cipher.decrypt(proof, "key")  # what was encrypted is authenticated, too
            except StorageError as error:
                raise StorageError(
                    f"{where}: is encrypted with another key; give that one"
                ) from error

    @abstractmethod
    def _erase(self) -> None:
        """Make sure that what was deleted is in no file, as far as this database can."""

    @abstractmethod
    def _among(self, ids: Sequence[str]) -> Any:
        """Return ids as the parameter of `AMONG`."""

    def _seal(self, plain: bytes, belongs: str) -> bytes:
        """Return bytes as they are kept: encrypted where there is a key."""
        return plain if self._cipher is None else self._cipher.encrypt(plain, belongs)

    def _unseal(self, kept: bytes, belongs: str) -> bytes:
        """Return the bytes that `_seal` was given."""
        return bytes(kept) if self._cipher is None else self._cipher.decrypt(kept, belongs)

    def _pack(self, name: str, vector: NDArray[np.float32]) -> Any:
        """Return a vector as the database keeps it."""
        return self._seal(vector.astype("<f4").tobytes(), f"templates:{name}")

    def _unpack(self, name: str, kept: Any) -> NDArray[np.float32]:
        """Return the vector that `_pack` was given."""
        return np.frombuffer(self._unseal(kept, f"templates:{name}"), "<f4").astype(np.float32)

    def enrol(self, name: str, vector: ArrayLike, *, replace: bool = False) -> None:
        """Keep a template; `ConflictError` where there is one of this id, unless `replace`."""
        check_id(name)
        checked = check_vector(vector)
        kept = self._pack(name, checked)
        with self._writing() as run:
            other = run("SELECT dimension FROM faircal.templates LIMIT 1").fetchone()
            if other is not None and other[0] != checked.size:
                raise DataError(
                    f"vector: expected {other[0]} numbers, as the enrolled templates have; "
                    f"found {checked.size}"
                )
            # In one transaction: whatever happens, somebody who was enrolled stays so.
            removed = replace and self._remove(run, name)
            added = run(
                "INSERT INTO faircal.templates (id, embedding, dimension, enrolled_at) "
                "VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (name, kept, checked.size, microseconds(datetime.now(UTC))),
            )
            if added.rowcount == 0:
                raise ConflictError(
                    f"there is a template {name!r} already; replace it, or choose another id"
                )
        if removed:
            self._forget()

    def delete(self, name: str) -> bool:
        """Delete a template and its bytes; False where there was none."""
        with self._writing() as run:
            removed = self._remove(run, name)
        if removed:
            self._forget()
        return removed

    @staticmethod
    def _remove(run: Transaction, name: str) -> bool:
        row = run("SELECT n FROM faircal.templates WHERE id = ?", (name,)).fetchone()
        if row is None:
            return False
        run("DELETE FROM faircal.templates WHERE n = ?", row)
        run("INSERT INTO faircal.removed (n) VALUES (?)", row)
        run(
            "DELETE FROM faircal.removed WHERE seq <= (SELECT max(seq) FROM faircal.removed) - ?",
            (_REMEMBERED,),
        )
        return True

    def _forget(self) -> None:
        """Take what was deleted out of files and memory; its row is gone whatever comes."""
        with suppress(StorageError):  # done again by the next deletion, sync and opening
            self._erase()
            self._sync()

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors (d,) of those of `ids` that are enrolled, as they were given."""
        if not ids:
            return {}
        statement = f"SELECT id, embedding FROM faircal.templates WHERE id {self.AMONG}"  # noqa: S608
        with self._reading() as run:
            rows = run(statement, (self._among(ids),)).fetchall()
        return {id_: self._unpack(id_, kept) for id_, kept in rows}

    def info(self, name: str) -> TemplateInfo | None:
        """Return what may be reported of a template, None where there is none."""
        row = self._one(_INFO + "WHERE id = ?", (name,))
        return None if row is None else _to_info(row)

    def templates(self, after: str | None = None, limit: int = 100) -> list[TemplateInfo]:
        """Return up to `limit` templates in order of their ids, from the one after `after`."""
        values = (after or "", check_limit(limit))
        with self._reading() as run:
            rows = run(_INFO + "WHERE id > ? ORDER BY id LIMIT ?", values).fetchall()
        return [_to_info(row) for row in rows]

    def count(self) -> int:
        """Return how many templates there are."""
        return int(self._one("SELECT count(*) FROM faircal.templates", ())[0])

    def search(self, probe: ArrayLike, limit: int = 10) -> list[tuple[str, float]]:
        """Return the `limit` templates most like `probe` (d,) with their cosines, best first."""
        checked = check_vector(probe, "probe")
        check_limit(limit)
        self._sync()
        return self._index.search(checked, limit)

    def check(self) -> None:
        """Raise `StorageUnavailableError` where the database does not answer."""
        self._sync()

    def _load(self) -> None:
        """Read all vectors when opening; a damaged one is reported by searches, not here."""
        try:
            self._sync()
        except StorageUnavailableError:
            raise
        except StorageError:
            pass

    def _sync(self) -> None:
        """Bring the gallery to where the database is: cheap where nothing changed."""
        with self._syncing, self._reading(patient=True) as run:
            if self._synced is not None:
                last, removal = self._synced
                rows = run(
                    "SELECT seq, n FROM faircal.removed WHERE seq > ? ORDER BY seq", (removal,)
                ).fetchall()
                if rows and rows[0][0] == removal + 1:
                    self._index.remove([n for _, n in rows])
                    self._synced = (last, rows[-1][0])
                elif rows:  # some of what was removed is not known any more
                    self._synced = None
            if self._synced is None:
                self._index.clear()
                newest = run("SELECT coalesce(max(seq), 0) FROM faircal.removed").fetchone()
                self._synced = (0, int(newest[0]))
            last, removal = self._synced
            new = "SELECT n, id, embedding FROM faircal.templates WHERE n > ? ORDER BY n LIMIT ?"
            while rows := run(new, (last, INDEX_BLOCK)).fetchall():
                vectors = np.stack([self._unpack(id_, kept) for _, id_, kept in rows])
                self._index.add([row[0] for row in rows], [row[1] for row in rows], vectors)
                vectors.fill(0)
                last = rows[-1][0]
                self._synced = (last, removal)

    def record(
        self, decisions: Sequence[Decision], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Add decisions to the audit trail, and states that go with them, all or none."""
        rows = [from_decision(one) for one in decisions]
        kept = [self._state(name, value) for name, value in (states or {}).items()]
        if not rows and not kept:
            return
        with self._writing() as run:
            if rows:
                run.many(_INSERT, rows)
            for row in kept:
                run(_PUT, row)

    def decision(self, name: str) -> Decision | None:
        """Return a decision, None where there is none."""
        row = self._one(_SELECT + "WHERE id = ?", (name,))
        return None if row is None else to_decision(row)

    def decisions(self, after: str | None = None, limit: int = 100) -> list[Decision]:
        """Return up to `limit` decisions as they were recorded, from the one after `after`."""
        check_limit(limit)
        start = 0
        with self._reading() as run:
            if after is not None:
                row = run("SELECT seq FROM faircal.decisions WHERE id = ?", (after,)).fetchone()
                if row is None:
                    raise ParameterError(
                        "after: expected the id of a decision that is kept; found none; "
                        "start from the first"
                    )
                start = row[0]
            rows = run(_SELECT + "WHERE seq > ? ORDER BY seq LIMIT ?", (start, limit)).fetchall()
        return [to_decision(row) for row in rows]

    def feedback(self, name: str, genuine: bool) -> Decision | None:
        """Keep whether a decision's pair was genuine; return the decision, None if unknown."""
        with self._writing() as run:
            run("UPDATE faircal.decisions SET genuine = ? WHERE id = ?", (bool(genuine), name))
            row = run(_SELECT + "WHERE id = ?", (name,)).fetchone()
        return None if row is None else to_decision(row)

    def forget_before(self, moment: datetime) -> int:
        """Delete the decisions made before `moment`; return how many.

        With one of id ``x`` go the states ``batch/x`` and ``batch/x/genuine``, where the pairs of
        a batch and their labels are kept. Many are deleted in parts, so that others can write in
        between.
        """
        part, total = (microseconds(moment), _PART), 0
        while True:
            with self._writing(patient=True) as run:
                for end in ("", "/genuine"):
                    names = f"SELECT 'batch/' || id || '{end}' {_OLD}"
                    run(f"DELETE FROM faircal.states WHERE name IN ({names})", part)  # noqa: S608
                rows = f"DELETE FROM faircal.decisions WHERE seq IN (SELECT seq {_OLD})"  # noqa: S608
                deleted: int = run(rows, part).rowcount
            total += deleted
            if deleted < part[1]:
                return total
            sleep(_PAUSE)

    def put_state(self, name: str, value: bytes) -> None:
        """Keep bytes under a name, in place of what was there."""
        row = self._state(name, value)
        with self._writing() as run:
            run(_PUT, row)

    def change_state(self, name: str, change: Callable[[bytes], bytes]) -> bool:
        """Keep what `change` makes of a state, while nobody else writes; False without one."""
        with self._writing() as run:
            before = self._read_state(run, name)
            if before is None:
                return False
            run(_PUT, self._state(name, change(before)))
            return True

    def get_state(self, name: str) -> bytes | None:
        """Return the bytes kept under a name, None where there are none."""
        with self._reading() as run:
            return self._read_state(run, name)

    def _state(self, name: str, value: bytes) -> tuple[str, bytes]:
        """Return the row of a state."""
        check_id(name, "state")
        return name, self._seal(value, f"states:{name}")

    def _read_state(self, run: Transaction, name: str) -> bytes | None:
        row = run("SELECT value FROM faircal.states WHERE name = ?", (name,)).fetchone()
        return None if row is None else self._unseal(row[0], f"states:{name}")


def _to_info(row: Sequence[Any]) -> TemplateInfo:
    return TemplateInfo(row[0], moment(row[1]), row[2])
