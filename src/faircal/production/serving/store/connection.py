"""A connection to PostgreSQL that gives up on a server that does not answer."""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

import psycopg

_T = TypeVar("_T")

#: Seconds after which a server that does not answer is away: for short statements, and for those
#: that read or clean much.
SHORT, LONG = 1.5, 60.0


class Impatient(psycopg.Connection[Any]):
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
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    end = monotonic() + self.patience
                elif monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError("no answer")
                wanted = gen.send(ready)
        except StopIteration as done:
            value: _T = done.value
            return value
