"""The audit trail: decisions are queued at once and written in groups behind the answers."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from faircal._base.errors import StorageAwayError, StorageError

T = TypeVar("T")

#: Longest that a decision waits to be written, in seconds.
FLUSH = 0.05
#: Decisions that may wait; more are refused. About 20 s of 500 requests a second.
MOST_WAITING = 10_000
#: Written at a time.
_GROUP = 1_000
#: Seconds until what failed is tried again.
_AGAIN = 0.5

_log = logging.getLogger("faircal.production.serving")


class Trail(Generic[T]):
    """Writes records in a thread of its own; one that can't be queued raises.

    A decision is not answered unless its record is queued, and none is queued while writing fails:
    so at most the records of the last moments before a failure wait, and they are kept until they
    can be written. What a killed process had not written yet (`FLUSH` seconds) is lost.

    Parameters
    ----------
    write : callable
        Writes records durably; raises `StorageError`.
    flush : float
    most : int
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], None],
        *,
        flush: float = FLUSH,
        most: int = MOST_WAITING,
    ) -> None:
        self._write, self._pause, self._most = write, flush / 2, most
        self._waiting: deque[tuple[T, int]] = deque()
        self._weight = 0
        self._lock = threading.Lock()
        self._failure: StorageError | None = None
        self._wake, self._idle, self._stop = (threading.Event() for _ in range(3))
        self._idle.set()
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="faircal-trail", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._waiting)

    def check(self) -> None:
        """Raise where nothing may be decided now, because it could not be recorded."""
        failure = self._failure
        if failure is not None:
            raise type(failure)(str(failure))
        if self._weight >= self._most:
            raise StorageAwayError(
                "the database is slower than the requests: decisions wait to be recorded; "
                "try again in a moment"
            )

    def put(self, record: T, weight: int = 1, *, done: bool = False) -> None:
        """Queue a record; a large one weighs more. One of what is `done` already always is."""
        if not done:
            self.check()
        with self._lock:
            self._waiting.append((record, weight))
            self._weight += weight
        self._idle.clear()
        self._wake.set()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all is written; False where it was not within `timeout` seconds."""
        self._wake.set()
        return self._idle.wait(timeout)

    def close(self, timeout: float = 10.0) -> bool:
        """Write what waits and end the thread."""
        done = self.flush(timeout)
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout)
        return done and not self._waiting

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            self._stop.wait(self._pause)  # others join the group
            while self._waiting and not self._stop.is_set():
                self._write_group()
            if not self._waiting:
                self._idle.set()
                if self._waiting:  # came in between
                    self._idle.clear()

    def _write_group(self) -> None:
        group = [self._waiting[i] for i in range(min(len(self._waiting), _GROUP))]
        try:
            self._write([record for record, _ in group])
        except StorageError as error:
            self._failed(error)
        except Exception as error:  # whatever it is, the thread must go on
            said = f"the audit trail can't be written ({type(error).__name__}); see the log"
            self._failed(StorageAwayError(said))
        else:
            with self._lock:
                self._weight -= sum(self._waiting.popleft()[1] for _ in group)
            if self._failure is not None:
                _log.warning("the audit trail is written again")
            self._failure = None

    def _failed(self, error: StorageError) -> None:
        if self._failure is None:
            _log.error("the audit trail can't be written: %s", error)
        self._failure = error
        self.failures += 1
        self._stop.wait(_AGAIN)
