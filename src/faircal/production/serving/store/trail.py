"""The audit trail of decisions, and named states, in a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from time import sleep

from faircal._base.errors import ParameterError
from faircal.production.serving.store.base import Decision, check_id, check_limit
from faircal.production.serving.store.database import Database, Run
from faircal.production.serving.store.rows import DECISION, from_decision, microseconds, to_decision

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


class Trail(Database):
    """Decisions in the order in which they were recorded; bytes by their names."""

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
        part, gone = (microseconds(moment), _PART), 0
        while True:
            with self._writing(patient=True) as run:
                for end in ("", "/genuine"):
                    names = f"SELECT 'batch/' || id || '{end}' {_OLD}"
                    run(f"DELETE FROM faircal.states WHERE name IN ({names})", part)  # noqa: S608
                rows = f"DELETE FROM faircal.decisions WHERE seq IN (SELECT seq {_OLD})"  # noqa: S608
                found = run(rows, part).rowcount
            gone += found
            if found < part[1]:
                return gone
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
        return name, value if self._seal is None else self._seal.close(value, f"states:{name}")

    def _read_state(self, run: Run, name: str) -> bytes | None:
        row = run("SELECT value FROM faircal.states WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        return bytes(row[0]) if self._seal is None else self._seal.open(row[0], f"states:{name}")
