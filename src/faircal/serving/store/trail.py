"""The audit trail of decisions, and named states, in a database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from faircal.errors import ParameterError
from faircal.serving.store.base import Decision, check_id, check_limit
from faircal.serving.store.database import Database
from faircal.serving.store.rows import DECISION, from_decision, microseconds, to_decision

_SELECT = f"SELECT {DECISION} FROM faircal.decisions "  # noqa: S608
_PLACES = ", ".join("?" * len(DECISION.split(",")))
_INSERT = f"INSERT INTO faircal.decisions ({DECISION}) VALUES ({_PLACES})"  # noqa: S608


class Trail(Database):
    """Decisions in the order in which they were recorded; bytes by their names."""

    def record(self, decisions: Sequence[Decision]) -> None:
        """Add decisions to the audit trail, all or none."""
        rows = [from_decision(one) for one in decisions]
        if not rows:
            return
        with self._writing() as run:
            run.many(_INSERT, rows)

    def decision(self, id: str) -> Decision | None:  # noqa: A002
        """Return a decision, None where there is none."""
        row = self._one(_SELECT + "WHERE id = ?", (id,))
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

    def feedback(self, id: str, genuine: bool) -> Decision | None:  # noqa: A002
        """Keep whether a decision's pair was genuine; return the decision, None if unknown."""
        with self._writing() as run:
            run("UPDATE faircal.decisions SET genuine = ? WHERE id = ?", (bool(genuine), id))
            row = run(_SELECT + "WHERE id = ?", (id,)).fetchone()
        return None if row is None else to_decision(row)

    def forget_before(self, moment: datetime) -> int:
        """Delete the decisions made before `moment`, and their states; return how many."""
        old = (microseconds(moment),)
        with self._writing(patient=True) as run:
            run(
                "DELETE FROM faircal.states WHERE name IN "
                "(SELECT 'batch/' || id FROM faircal.decisions WHERE at < ?)",
                old,
            )
            gone = run("DELETE FROM faircal.decisions WHERE at < ?", old)
            return gone.rowcount

    def put_state(self, name: str, value: bytes) -> None:
        """Keep bytes under a name, in place of what was there."""
        check_id(name, "state")
        kept = value if self._seal is None else self._seal.close(value, f"states:{name}")
        with self._writing() as run:
            run(
                "INSERT INTO faircal.states (name, value) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, kept),
            )

    def get_state(self, name: str) -> bytes | None:
        """Return the bytes kept under a name, None where there are none."""
        row = self._one("SELECT value FROM faircal.states WHERE name = ?", (name,))
        if row is None:
            return None
        return bytes(row[0]) if self._seal is None else self._seal.open(row[0], f"states:{name}")
