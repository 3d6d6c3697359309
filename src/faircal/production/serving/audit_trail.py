"""The audit trail: what is recorded, queued at once and written in groups behind the answers.

Nothing is decided that can't be recorded: `Recorder` queues a decision before it is answered, and
`TrailWriter` refuses while writing fails.

A line for each of 10,000 pairs of a batch would take longer to write than the pairs take to be
judged. So a batch is one `Decision` without a score, and its pairs are kept as arrays under the
state ``batch/ID``: of pair i, the decision ``ID.i``, what a line would say. Their labels, which
come later, are kept by themselves under ``batch/ID/genuine``, a byte each.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import arrays_of, pack
from faircal._base.errors import (
    ConflictError,
    FairCalError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.store import Store
from faircal.production.serving.store.records import Decision, Kind
from faircal.production.serving.verification import (
    IdentificationCandidate,
    ModelInUse,
    Verdicts,
    new_id,
)

#: Lines of the trail read at a time.
_PAGE = 500
#: For "nobody knows" among labels.
_UNKNOWN = 2
#: What is kept of each pair of a batch, and how; flags are bytes.
_COLUMNS = {
    "score": np.float64,
    "probability": np.float64,
    "same": np.uint8,
    "left_cluster": np.int32,
    "right_cluster": np.int32,
    "left_outside": np.uint8,
    "right_outside": np.uint8,
}


#: A line that waits to be written, and the states that go with it.
TrailRecord = tuple[Decision, dict[str, bytes]]


def _name(decision: str) -> str:
    return f"batch/{decision}"


def _labels_name(decision: str) -> str:
    return f"batch/{decision}/genuine"


def pack_batch(batch: Verdicts) -> bytes:
    """Return the pairs of a batch as bytes: numbers, flags and ids, nothing biometric."""
    columns = batch.columns()
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind in _COLUMNS.items():
        values = columns[name]
        if values is not None:
            arrays[name] = values.astype(kind)
    for side, ids in (("left", batch.left_ids), ("right", batch.right_ids)):
        if ids is not None:
            place = {name: row for row, name in enumerate(dict.fromkeys(ids))}
            # Ids are printable: no line ends within one.
            names = "\n".join(map(str, place)).encode()
            arrays[f"{side}_names"] = np.frombuffer(names, dtype=np.uint8)
            arrays[side] = np.array([place[name] for name in ids], dtype=np.int32)
    return pack({"batch": 1}, arrays)


def _pair_values(columns: Mapping[str, NDArray[Any] | None], row: int) -> dict[str, Any]:
    """Return what a line says of one pair."""
    values = {}
    for name, kind in _COLUMNS.items():
        array = columns.get(name)
        if array is not None:
            values[name] = bool(array[row]) if kind is np.uint8 else array[row].item()
    return values


def _flag(value: int) -> bool | None:
    return None if value == _UNKNOWN else bool(value)


def _read_batch(store: Store, decision: Decision, only: int | None = None) -> list[Decision] | None:
    """Return the decisions of a batch, or the one on pair `only`; None where this is no batch."""
    if decision.kind != "verify" or decision.score is not None:
        return None
    blob, labels = (store.get_state(name(decision.id)) for name in (_name, _labels_name))
    if blob is None or labels is None:
        return None
    try:
        arrays, pairs = arrays_of(blob), []
        sides = [side for side in ("left", "right") if side in arrays]
        names = {side: bytes(arrays[f"{side}_names"]).decode().split("\n") for side in sides}
        rows = range(len(arrays["score"]))
        for row in rows if only is None else rows[only : only + 1]:
            values = _pair_values(arrays, row)
            values |= {side: names[side][arrays[side][row]] for side in sides}
            name, genuine = f"{decision.id}.{row}", _flag(labels[row])
            pairs.append(replace(decision, id=name, genuine=genuine, **values))
    except (FairCalError, LookupError, UnicodeError):  # written by somebody else
        return None
    return pairs


def pairs_of(store: Store, decision: Decision) -> list[Decision]:
    """Return the decisions of a batch; a decision that is none, as it is."""
    pairs = _read_batch(store, decision)
    return [decision] if pairs is None else pairs


def trail_lines(
    store: Store, after: str | None, limit: int, *, by_pair: bool = False
) -> Iterator[Decision]:
    """Yield lines of the trail; `by_pair`: each pair of a batch as a line of its own."""
    while limit > 0:
        page = store.decisions(after, min(limit, _PAGE))
        for decision in page:
            yield from pairs_of(store, decision) if by_pair else [decision]
        if len(page) < min(limit, _PAGE):
            return
        limit -= len(page)
        after = page[-1].id


def label_pair(store: Store, name: str, genuine: bool) -> Decision | None:
    """Keep whether a pair of a batch, ``ID.i``, was genuine; return it as it was before.

    None where there is no such pair.
    """
    batch, dot, number = name.rpartition(".")
    if not dot or not number.isascii() or not number.isdecimal() or len(number) > 9:
        return None
    decision = store.decision(batch)
    row = int(number)
    pairs = None if decision is None else _read_batch(store, decision, row)
    if not pairs:
        return None
    was: list[int] = []

    def change(labels: bytes) -> bytes:
        was.append(labels[row])  # another process may have labelled it meanwhile
        if labels[row] != _UNKNOWN:  # the first label stays
            return labels
        return labels[:row] + bytes([genuine]) + labels[row + 1 :]

    if not store.change_state(_labels_name(batch), change):  # deleted meanwhile
        return None
    return replace(pairs[0], genuine=_flag(was[-1]))


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

    `write` writes records durably or raises `StorageError`; `flush` is the longest that a record
    waits, in seconds; `most` the weight of those that may wait.
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], None],
        *,
        flush: float = FLUSH,
        most: int = MOST_WAITING,
    ) -> None:
        self._save, self._pause, self._most = write, flush / 2, most
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
        # They are taken out once they are written, and not before.
        group = [self._waiting[i] for i in range(min(len(self._waiting), _GROUP))]
        try:
            self._save([record for record, _ in group])
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


#: Pairs of a batch that weigh as much as one line, while they wait.
_PAIRS_A_LINE = 100


class Recorder(TrailWriter[TrailRecord]):
    """Puts decisions into the trail of a store; without a store nothing is recorded.

    No embedding and no picture comes this way: what is recorded are scores, ids and decisions.
    """

    def __init__(self, store: Store | None) -> None:
        super().__init__(self._write)
        self._store = store
        self._labelling = threading.Lock()

    def put(self, record: TrailRecord, weight: int = 1, *, done: bool = False) -> None:
        """Queue a line, where there is a trail."""
        if self._store is not None:
            super().put(record, weight, done=done)

    def verdicts(self, verdicts: Verdicts, *, key: str) -> None:
        """Record what was said of pairs."""
        if self._store is None:
            return
        line = Decision(
            id=verdicts.id,
            at=datetime.now(UTC),
            kind="verify",
            key=key,
            model=verdicts.model,
            threshold=verdicts.point.threshold,
            on=verdicts.point.on,
            prior=verdicts.prior,
        )
        if verdicts.images is None:
            ids = {"left": verdicts.left_ids, "right": verdicts.right_ids}
            values = _pair_values(verdicts.columns(), 0)
            values |= {side: each[0] for side, each in ids.items() if each is not None}
            self.put((replace(line, **values), {}))
            return
        labels = bytes([_UNKNOWN]) * len(verdicts)
        states = {_name(line.id): pack_batch(verdicts), _labels_name(line.id): labels}
        self.put((line, states), 1 + len(verdicts) // _PAIRS_A_LINE)

    def identification(
        self, in_use: ModelInUse, best: IdentificationCandidate | None, *, key: str
    ) -> str:
        """Record who came out best of those enrolled; return the id of the line."""
        point = in_use.judge.point
        line = Decision(
            id=new_id(),
            at=datetime.now(UTC),
            kind="identify",
            key=key,
            model=in_use.digest,
            score=None if best is None else best.score,
            probability=None if best is None else best.probability,
            threshold=point.threshold,
            on=point.on,
            same=best is not None and best.same,
            right=None if best is None else best.id,
        )
        self.put((line, {}))
        return line.id

    def template(self, kind: Kind, in_use: ModelInUse, name: str, *, key: str) -> None:
        """Record that a template was enrolled or deleted."""
        now = datetime.now(UTC)
        # It is in the store, or out of it, whatever comes: its line must not be refused.
        self.put((Decision(new_id(), now, kind, key, in_use.digest, left=name), {}), done=True)

    def label(self, store: Store, decision: str, genuine: bool) -> tuple[Decision, bool] | None:
        """Keep whether the pair of a decision was genuine; None where there is no such one.

        With the decision comes whether nobody had reported the truth of it before.

        Raises
        ------
        ConflictError
            Where somebody has reported the contrary before: that stays.
        """
        self.flush(2.0)  # it may have been made a moment ago
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
        return None if before is None else (before, before.genuine is None)

    def _write(self, records: Sequence[TrailRecord]) -> None:
        if self._store is None:
            return
        try:
            _record(self._store, records)
        except (StorageUnavailableError, StorageFullError):
            raise
        except StorageError:
            # Some may be there: the answer to a commit can get lost.
            written = self._store.decision
            _record(self._store, [one for one in records if written(one[0].id) is None])


def _record(store: Store, records: Sequence[TrailRecord]) -> None:
    states = {name: value for _, more in records for name, value in more.items()}
    store.record([line for line, _ in records], states)
