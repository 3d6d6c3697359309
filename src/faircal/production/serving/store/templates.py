"""Templates in a database, and the gallery in memory that is kept in step with it."""

from __future__ import annotations

import builtins
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import ConflictError, DataError, StorageAwayError, StorageError
from faircal.production.serving.store.base import TemplateInfo, check_id, check_limit, check_vector
from faircal.production.serving.store.database import Run
from faircal.production.serving.store.gallery import BLOCK, Gallery
from faircal.production.serving.store.rows import now, to_info
from faircal.production.serving.store.trail import Trail

#: Removals that are remembered for other processes; one further behind reads everything again.
_REMEMBERED = 100_000

_INFO = "SELECT id, enrolled_at, dimension FROM faircal.templates "


class Templates(Trail):
    """A whole store over a database: what SQLite and PostgreSQL do alike."""

    #: Condition that an id is among those of one parameter, which `_among` makes.
    AMONG: ClassVar[str]

    def __init__(self, key: bytes | None) -> None:
        super().__init__(key)
        self._gallery = Gallery()
        self._syncing = Lock()
        #: The last number enrolled and the last removal that the gallery has; None: read all.
        self._seen: tuple[int, int] | None = None

    @abstractmethod
    def _erase(self) -> None:
        """Make sure that what was deleted is in no file, as far as this database can."""

    @abstractmethod
    def _among(self, ids: Sequence[str]) -> Any:
        """Return ids as the parameter of `AMONG`."""

    def _pack(self, id: str, vector: NDArray[np.float32]) -> Any:  # noqa: A002
        """Return a vector as the database keeps it."""
        raw = vector.astype("<f4").tobytes()
        return raw if self._seal is None else self._seal.close(raw, f"templates:{id}")

    def _unpack(self, id: str, kept: Any) -> NDArray[np.float32]:  # noqa: A002
        """Return the vector that `_pack` was given."""
        raw = kept if self._seal is None else self._seal.open(kept, f"templates:{id}")
        return np.frombuffer(raw, "<f4").astype(np.float32)

    def enrol(self, id: str, vector: ArrayLike, *, replace: bool = False) -> None:  # noqa: A002
        """Keep a template; `ConflictError` where there is one of this id, unless `replace`."""
        check_id(id)
        found = check_vector(vector)
        kept = self._pack(id, found)
        with self._writing() as run:
            other = run("SELECT dimension FROM faircal.templates LIMIT 1").fetchone()
            if other is not None and other[0] != found.size:
                raise DataError(
                    f"vector: expected {other[0]} numbers, as the enrolled templates have; "
                    f"found {found.size}"
                )
            gone = replace and self._remove(run, id)
            added = run(
                "INSERT INTO faircal.templates (id, embedding, dimension, enrolled_at) "
                "VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (id, kept, found.size, now()),
            )
            if added.rowcount == 0:
                raise ConflictError(
                    f"there is a template {id!r} already; replace it, or choose another id"
                )
        if gone:
            self._forget()

    def delete(self, id: str) -> bool:  # noqa: A002
        """Delete a template and its bytes; False where there was none."""
        with self._writing() as run:
            gone = self._remove(run, id)
        if gone:
            self._forget()
        return gone

    @staticmethod
    def _remove(run: Run, id: str) -> bool:  # noqa: A002
        row = run("SELECT n FROM faircal.templates WHERE id = ?", (id,)).fetchone()
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

    def info(self, id: str) -> TemplateInfo | None:  # noqa: A002
        """Return what may be told of a template, None where there is none."""
        row = self._one(_INFO + "WHERE id = ?", (id,))
        return None if row is None else to_info(row)

    def list(self, after: str | None = None, limit: int = 100) -> builtins.list[TemplateInfo]:
        """Return up to `limit` templates in order of their ids, from the one after `after`."""
        values = (after or "", check_limit(limit))
        with self._reading() as run:
            rows = run(_INFO + "WHERE id > ? ORDER BY id LIMIT ?", values).fetchall()
        return [to_info(row) for row in rows]

    def count(self) -> int:
        """Return how many templates there are."""
        return int(self._one("SELECT count(*) FROM faircal.templates", ())[0])

    def search(self, probe: ArrayLike, limit: int = 10) -> builtins.list[tuple[str, float]]:
        """Return the `limit` templates most like `probe` (d,) with their cosines, best first."""
        found = check_vector(probe, "probe")
        check_limit(limit)
        self._sync()
        return self._gallery.search(found, limit)

    def check(self) -> None:
        """Raise `StorageAwayError` where the database does not answer."""
        self._sync()

    def _load(self) -> None:
        """Read all vectors when opening; a damaged one is told by searches, not here."""
        try:
            self._sync()
        except StorageAwayError:
            raise
        except StorageError:
            pass

    def _sync(self) -> None:
        """Bring the gallery to where the database is: cheap where nothing changed."""
        with self._syncing, self._reading(patient=True) as run:
            if self._seen is not None:
                self._take_out(run, *self._seen)
            if self._seen is None:
                self._gallery.clear()
                last = run("SELECT coalesce(max(seq), 0) FROM faircal.removed").fetchone()
                self._seen = (0, int(last[0]))
            self._take_in(run, *self._seen)

    def _take_out(self, run: Run, last: int, removal: int) -> None:
        """Remove what was removed since; where some of that is not known, forget all."""
        rows = run(
            "SELECT seq, n FROM faircal.removed WHERE seq > ? ORDER BY seq", (removal,)
        ).fetchall()
        if not rows:
            return
        if rows[0][0] == removal + 1:
            self._gallery.remove([n for _, n in rows])
            self._seen = (last, rows[-1][0])
        else:
            self._seen = None

    def _take_in(self, run: Run, last: int, removal: int) -> None:
        """Add what was enrolled since, part by part."""
        statement = "SELECT n, id, embedding FROM faircal.templates WHERE n > ? ORDER BY n LIMIT ?"
        while rows := run(statement, (last, BLOCK)).fetchall():
            vectors = np.stack([self._unpack(id_, kept) for _, id_, kept in rows])
            self._gallery.add([row[0] for row in rows], [row[1] for row in rows], vectors)
            vectors.fill(0)
            last = rows[-1][0]
            self._seen = (last, removal)
