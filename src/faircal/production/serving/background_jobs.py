"""What is done now and then beside the requests: read the model file again, feed the monitoring."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from faircal._base.errors import FairCalError, ModelFileError
from faircal.production.serving.service import Service

#: Seconds between looks at the model file, feeds of the watch, verdicts, savings of its state, and
#: deletions of old decisions: often, so that each is short.
POLL, FEED, VERDICT, SAVE, FORGET = 2.0, 1.0, 10.0, 60.0, 60.0

_log = logging.getLogger("faircal.production.serving")


class BackgroundJobs:
    """A thread that does the jobs of a service; none of them can end it.

    Parameters
    ----------
    service : Service
    tick : float
        Seconds between looks at the clock.
    """

    def __init__(self, service: Service, tick: float = 0.5) -> None:
        self._service, self._tick = service, tick
        self._stop, self._wake = threading.Event(), threading.Event()
        self._stamp: tuple[int, ...] | None = None  # it may have changed while all else began
        self._jobs: list[tuple[float, Callable[[], object]]] = [
            (POLL, self._poll),
            (FEED, service.monitor.feed),
            (VERDICT, service.monitor.update),
            (SAVE, self._save),
            (FORGET, self._forget),
        ]
        self._thread = threading.Thread(target=self._run, name="faircal-jobs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def reload(self) -> None:
        """Look at the model file now, whatever its date (SIGHUP)."""
        self._stamp = None
        self._wake.set()

    def close(self) -> None:
        """End, after the job under way."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        due = [time.monotonic() + every for every, _ in self._jobs]
        while not self._stop.is_set():
            asked = self._wake.wait(self._tick)
            self._wake.clear()
            now = time.monotonic()
            for number, (every, job) in enumerate(self._jobs):
                if self._stop.is_set():
                    return
                if now >= due[number] or (asked and number == 0):
                    self._do(job)
                    due[number] = time.monotonic() + every

    @staticmethod
    def _do(job: Callable[[], object]) -> None:
        try:
            job()
        except FairCalError as error:
            _log.warning("%s", error)
        except Exception as error:  # whatever it is, the thread must go on
            _log.error("unexpected %s beside the requests", type(error).__name__)

    def _look(self) -> tuple[int, ...] | None:
        try:
            status = self._service.settings.model.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _poll(self) -> None:
        stamp = self._look()
        if stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp  # a file that is not taken is not tried again until it changes
        with suppress(ModelFileError):  # it is in the log already
            self._service.reload()

    def _save(self) -> None:
        if self._service.store is not None:
            self._service.monitor.save(self._service.store)

    def _forget(self) -> None:
        days, store = self._service.settings.keep_days, self._service.store
        if days is None or store is None:
            return
        gone = store.forget_before(datetime.now(UTC) - timedelta(days=days))
        if gone:
            _log.info("decisions of more than %g days ago deleted: %d", days, gone)
