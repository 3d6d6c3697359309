"""What is done beside the requests: pairs are brought to the watch, the model file is looked at."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import cut, divided, pack, unpack
from faircal._base.errors import FairCalError, ModelFileError, StorageError
from faircal.methods import Method
from faircal.production.monitoring import PairsInUse, Verdict, Watch
from faircal.production.monitoring.pairs_in_use import number_of
from faircal.production.serving.store import Store
from faircal.production.serving.verification import ModelInUse, Verdicts

if TYPE_CHECKING:
    from faircal.production.serving.service import Service

#: Pairs of batches that are counted at a feeding, about one a second; of more, some at random: to
#: count a pair can take longer than to judge it.
MOST_PAIRS = 20_000
#: Pairs of one image that are counted of a batch: more of the same face tell next to nothing.
MOST_OF_ONE = 8
#: Pairs and batches that may wait to be counted, a database being slow; the oldest are left out.
_MOST_WAITING, _MOST_BATCHES = 100_000, 100

_log = logging.getLogger("faircal.production.serving")


class LiveMonitor:
    """A `Watch` that is fed from many threads.

    Pairs are put aside (`add`) at next to no cost, and counted later (`feed`), off the event loop.
    A model without a population can't be watched: `watch` is None then. What the watch remembers is
    kept in the store by model and by where the service listens, so that processes with one database
    do not overwrite each other's.
    """

    def __init__(self, false_alarms: float, where: str, store: Store | None) -> None:
        self._false_alarms, self._where, self._store = false_alarms, where, store
        self._lock = threading.Lock()
        self._singles: deque[Verdicts] = deque(maxlen=_MOST_WAITING)
        self._batches: deque[Verdicts] = deque(maxlen=_MOST_BATCHES)
        self._digest = ""
        self._rng = np.random.default_rng(0)
        self.watch: Watch | None = None
        self.verdict: Verdict | None = None

    def begin(self, in_use: ModelInUse) -> None:
        """Watch another model; go on from where it was when it was last in use here."""
        blob = None
        try:
            if self._store is not None:
                blob = self._store.get_state(self._name(in_use.digest))
        except StorageError as error:
            _log.warning("what monitoring had seen before can't be read: %s", error)
        with self._lock:
            self._singles.clear()
            self._batches.clear()
            self._digest, self.verdict = in_use.digest, None
            self.watch = self._watch(in_use.model, in_use.digest, blob)

    def _name(self, digest: str) -> str:
        return f"watch/{digest[:16]}/{self._where[-150:]}"

    def _watch(self, model: Method, digest: str, blob: bytes | None) -> Watch | None:
        """Return a watch as it was kept, else a new one; None where there can be none."""
        if blob is not None:
            try:
                header, body = unpack(blob)
                if (header["model"], header["false_alarms"]) == (digest, self._false_alarms):
                    return Watch.restore(model, {**header["values"], **cut(header["arrays"], body)})
            except (FairCalError, LookupError, TypeError, ValueError):
                _log.warning("what monitoring had seen before can't be read; it begins anew")
        if model.about_.population is None:
            return None
        try:
            return Watch(model, false_alarms=self._false_alarms)
        except FairCalError as error:
            _log.warning("pairs are not monitored: %s", error)
            return None

    def add(self, verdicts: Verdicts) -> None:
        """Put pairs aside."""
        if self.watch is not None:
            (self._singles if verdicts.images is None else self._batches).append(verdicts)

    def feed(self) -> None:
        """Let the watch count what was put aside."""
        with self._lock:
            singles, batches = self._taken(self._singles), self._taken(self._batches)
            if self.watch is None:
                return
            if singles:
                self.watch.add(PairsInUse.join([_in_use(each) for each in singles]))
            sampled = [(batch, self._thinned(batch)) for batch in batches]
            # One chance for the pairs of all batches: each batch counts by its size.
            keep = MOST_PAIRS / max(sum(len(rows) for _, rows in sampled), 1)
            for batch, rows in sampled:
                counted = rows if keep >= 1 else rows[self._rng.random(len(rows)) < keep]
                self.watch.add(_in_use(batch).take(counted))

    def _taken(self, waiting: deque[Verdicts]) -> list[Verdicts]:
        """Return what waits, and forget it."""
        taken = [waiting.popleft() for _ in range(len(waiting))]
        # A request that began with the model before may end after it was replaced.
        return [each for each in taken if each.model == self._digest]

    def _thinned(self, batch: Verdicts) -> NDArray[np.intp]:
        """Return pairs of a batch, at random where an image is in more than `MOST_OF_ONE`."""
        rows = np.arange(len(batch))
        if batch.images is None:
            return rows
        for side in (batch.left, batch.right):
            rows = self._rng.permutation(rows)
            rows = rows[_how_often(batch.images[side[rows]]) < MOST_OF_ONE]
        return np.sort(rows)

    def feedback(self, probability: float, genuine: bool, template: str | None = None) -> None:
        """Let the watch know whether a pair was genuine, and of a template in it."""
        person = _people([template])
        with self._lock:
            if self.watch is not None:
                self.watch.feedback(np.array([probability]), np.array([genuine]), person)

    def update(self) -> Verdict | None:
        """Return what the watch says now; None where nothing is watched."""
        self.feed()
        with self._lock:
            self.verdict = None if self.watch is None else self.watch.verdict()
            return self.verdict

    def save(self) -> None:
        """Keep what the watch remembers."""
        self.feed()
        with self._lock:
            if self.watch is None or self._store is None:
                return
            values, arrays = divided(self.watch.get_state())
            header = {"model": self._digest, "false_alarms": self._false_alarms, "values": values}
            blob, name = pack(header, arrays), self._name(self._digest)
        try:
            # After the lock is given back: a slow database must not hold up the counting.
            self._store.put_state(name, blob)
        except StorageError as error:
            _log.warning("what monitoring has seen can't be kept: %s", error)


def _in_use(verdicts: Verdicts) -> PairsInUse:
    """Return pairs as the watch takes them, with numbers of people.

    Who is on a side are its templates, else its images: one face held against a thousand makes a
    thousand pairs that are far from independent.
    """
    columns, images, people = verdicts.columns(), verdicts.images, []
    for ids, rows in ((verdicts.left_ids, verdicts.left), (verdicts.right_ids, verdicts.right)):
        numbers = None if images is None else images[rows]
        people.append(numbers if ids is None else _people(ids))
    both = verdicts.left_ids is not None and verdicts.right_ids is not None
    return PairsInUse(
        columns["score"],
        columns["probability"],
        columns["left_cluster"],
        columns["right_cluster"],
        columns["left_outside"],
        columns["right_outside"],
        left_person=people[0],
        right_person=people[1],
        identified_by="people" if both else "images",
    )


def _how_often(numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return how often each number came before.

    >>> _how_often(np.array([7, 5, 7, 7]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(numbers, kind="stable")
    _, counts = np.unique(numbers, return_counts=True)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    earlier = np.empty(len(numbers), dtype=np.intp)
    earlier[order] = np.arange(len(numbers)) - starts
    return earlier


def _people(templates: Sequence[str | None]) -> NDArray[np.int64] | None:
    """Return a number for each template, −1 where there is none; None where there are none."""
    if not any(templates):
        return None
    numbers = {name: -1 if name is None else number_of(name) for name in set(templates)}
    return np.array([numbers[name] for name in templates], dtype=np.int64)


#: Seconds between looks at the model file, feeds of the watch, verdicts, savings of its state, and
#: deletions of old decisions: often, so that each is short.
POLL, FEED, VERDICT, SAVE, FORGET = 2.0, 1.0, 10.0, 60.0, 60.0


class BackgroundJobs:
    """A thread that does the jobs of a service, looking at the clock every `tick` seconds.

    None of them can end it.
    """

    def __init__(self, service: Service, tick: float = 0.5) -> None:
        self._service, self._tick = service, tick
        self._stop, self._wake = threading.Event(), threading.Event()
        self._stamp: tuple[int, ...] | None = None  # it may have changed while all else began
        self._jobs: list[tuple[float, Callable[[], object]]] = [
            (POLL, self._poll),
            (FEED, service.monitor.feed),
            (VERDICT, service.monitor.update),
            (SAVE, service.monitor.save),
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
            woken = self._wake.wait(self._tick)
            self._wake.clear()
            now = time.monotonic()
            for number, (every, job) in enumerate(self._jobs):
                if self._stop.is_set():
                    return
                if now < due[number] and not (woken and number == 0):
                    continue
                try:
                    job()
                except FairCalError as error:
                    _log.warning("%s", error)
                except Exception as error:  # whatever it is, the thread must go on
                    # Its message could quote what was sent, so its kind has to do.
                    _log.error("unexpected %s beside the requests", type(error).__name__)
                due[number] = time.monotonic() + every

    def _poll(self) -> None:
        try:
            status = self._service.settings.model.stat()
        except OSError:
            return
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp  # a file that is not taken is not tried again until it changes
        with suppress(ModelFileError):  # it is in the log already
            self._service.reload()

    def _forget(self) -> None:
        days, store = self._service.settings.keep_days, self._service.store
        if days is None or store is None:
            return
        deleted = store.forget_before(datetime.now(UTC) - timedelta(days=days))
        if deleted:
            _log.info("decisions of more than %g days ago deleted: %d", days, deleted)
