"""The audit trail: what is recorded, queued at once and written in groups behind the answers.

Nothing is decided that can't be recorded: `Recorder` queues a decision before it is answered, and
`TrailWriter` refuses while writing fails.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar

from faircal._base.errors import (
    ConflictError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.batch_record import BatchRecord, label_pair, pairs_of
from faircal.production.serving.model_in_use import ModelInUse
from faircal.production.serving.store.base import Store
from faircal.production.serving.store.records import Decision, Kind
from faircal.production.serving.verification import (
    BatchVerification,
    IdentificationCandidate,
    Verification,
    new_id,
)

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


class TrailWriter(Generic[T]):
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
            raise StorageUnavailableError(
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
            message = f"the audit trail can't be written ({type(error).__name__}); see the log"
            self._failed(StorageUnavailableError(message))
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


#: Lines of the trail read at a time.
_PAGE = 500
#: Pairs of a batch that weigh as much as one line, while they wait.
_PAIRS_A_LINE = 100


class LabelledDecision(NamedTuple):
    """A decision of which somebody has told the truth; `first`: nobody had before."""

    decision: Decision
    first: bool


class Recorder:
    """Puts decisions into the trail of a store; without a store nothing is recorded.

    No embedding and no picture comes this way: what is recorded are scores, ids and decisions.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._labelling = threading.Lock()
        self._trail: TrailWriter[Decision | BatchRecord] | None = (
            None if store is None else TrailWriter(self._write)
        )

    @property
    def waiting(self) -> int:
        """Lines that are not written yet."""
        return 0 if self._trail is None else len(self._trail)

    @property
    def failures(self) -> int:
        """How often writing failed."""
        return 0 if self._trail is None else self._trail.failures

    def check(self) -> None:
        """Raise where nothing may be decided now, because it could not be recorded."""
        if self._trail is not None:
            self._trail.check()

    def pair(
        self, verified: Verification, *, key: str, left: str | None = None, right: str | None = None
    ) -> None:
        """Record what was said of a pair; `left` and `right` are ids of templates."""
        if self._trail is None:
            return
        nowhere = (None, None)
        clusters, outside = verified.clusters or nowhere, verified.outside or nowhere
        self._trail.put(
            Decision(
                id=verified.id,
                at=datetime.now(UTC),
                kind="verify",
                key=key,
                model=verified.model,
                score=verified.score,
                probability=verified.probability,
                threshold=verified.point.threshold,
                on=verified.point.on,
                same=verified.same,
                left_cluster=clusters[0],
                right_cluster=clusters[1],
                left_outside=outside[0],
                right_outside=outside[1],
                prior=verified.prior,
                left=left,
                right=right,
            )
        )

    def batch(self, batch: BatchVerification, *, key: str) -> None:
        """Record what was said of the pairs of a batch."""
        if self._trail is None:
            return
        line = Decision(
            id=batch.id,
            at=datetime.now(UTC),
            kind="verify",
            key=key,
            model=batch.model,
            threshold=batch.point.threshold,
            on=batch.point.on,
            prior=batch.prior,
        )
        weight = 1 + len(batch) // _PAIRS_A_LINE
        self._trail.put(BatchRecord.of(line, batch), weight)

    def other(
        self,
        kind: Kind,
        in_use: ModelInUse,
        *,
        key: str,
        template: str | None = None,
        best: IdentificationCandidate | None = None,
    ) -> str:
        """Record what was done with a template, or who was found; return the id of the line."""
        new = new_id()
        if self._trail is None:
            return new
        identified = kind == "identify"
        self._trail.put(
            Decision(
                id=new,
                at=datetime.now(UTC),
                kind=kind,
                key=key,
                model=in_use.digest,
                score=None if best is None else best.score,
                probability=None if best is None else best.probability,
                threshold=in_use.judge.point.threshold if identified else None,
                on=in_use.judge.point.on if identified else None,
                same=None if not identified else best is not None and best.same,
                left=template,
                right=None if best is None else best.id,
            ),
            done=not identified,  # a template is in the store, or out of it, whatever comes
        )
        return new

    def label(self, store: Store, decision: str, genuine: bool) -> LabelledDecision | None:
        """Keep whether the pair of a decision was genuine; None where there is no such one.

        Raises
        ------
        ConflictError
            Where somebody has told the contrary before: that stays.
        """
        if self._trail is not None:
            self._trail.flush(2.0)  # it may have been made a moment ago
        with self._labelling:  # the pairs of a batch are written together
            before = store.decision(decision)
            if before is None:
                before = label_pair(store, decision, genuine)
            elif before.genuine is None and store.feedback(decision, genuine) is None:
                return None  # deleted meanwhile
        if before is not None and before.genuine not in (None, genuine):
            raise ConflictError(
                f"decision: it was told to be {'genuine' if before.genuine else 'of two people'} "
                "before, and stays so; correct it where it was told from"
            )
        return None if before is None else LabelledDecision(before, before.genuine is None)

    def lines(
        self, store: Store, after: str | None, limit: int, *, whole: bool = False
    ) -> Iterator[Decision]:
        """Yield lines of the trail; with `whole`, each pair of a batch as a line of its own."""
        while limit > 0:
            page = store.decisions(after, min(limit, _PAGE))
            for decision in page:
                yield from pairs_of(store, decision) if whole else (decision,)
            if len(page) < min(limit, _PAGE):
                return
            limit -= len(page)
            after = page[-1].id

    def pairs(self, decision: Decision) -> Iterator[Decision]:
        """Yield the decisions of a batch; one that is no batch, as it is."""
        return iter((decision,)) if self._store is None else pairs_of(self._store, decision)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all is written; False where it was not in time."""
        return self._trail is None or self._trail.flush(timeout)

    def close(self) -> bool:
        """Write what waits; False where it could not be written."""
        return self._trail is None or self._trail.close()

    def _write(self, records: Sequence[Decision | BatchRecord]) -> None:
        if self._store is None:
            return
        try:
            _record(self._store, records)
        except (StorageUnavailableError, StorageFullError):
            raise
        except StorageError:
            # Some may be there: the answer to a commit can get lost.
            there = self._store.decision
            _record(self._store, [one for one in records if there(_line(one).id) is None])


def _line(record: Decision | BatchRecord) -> Decision:
    return record.decision if isinstance(record, BatchRecord) else record


def _record(store: Store, records: Sequence[Decision | BatchRecord]) -> None:
    states: dict[str, bytes] = {}
    for record in records:
        if isinstance(record, BatchRecord):
            states |= record.states
    store.record([_line(record) for record in records], states)
