"""What goes into the audit trail, and what comes out of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from faircal._base.errors import ConflictError, StorageAwayError, StorageError, StorageFullError
from faircal.production.serving.batches import BatchRecord, label_pair, pairs_of
from faircal.production.serving.identify import Candidate
from faircal.production.serving.loaded import Loaded
from faircal.production.serving.store.base import Decision, Kind, Store
from faircal.production.serving.trail import Trail
from faircal.production.serving.verified import Verified, VerifiedBatch, new_id

#: Lines of the trail read at a time.
_PAGE = 500
#: Pairs of a batch that weigh as much as one line, while they wait.
_PAIRS_A_LINE = 100


class Labelled(NamedTuple):
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
        self._trail: Trail[Decision | BatchRecord] | None = (
            None if store is None else Trail(self._write)
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
        self, verified: Verified, *, key: str, left: str | None = None, right: str | None = None
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

    def batch(self, batch: VerifiedBatch, *, key: str) -> None:
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
        loaded: Loaded,
        *,
        key: str,
        template: str | None = None,
        best: Candidate | None = None,
    ) -> str:
        """Record what was done with a template, or who was found; return the id of the line."""
        made = new_id()
        if self._trail is None:
            return made
        found = kind == "identify"
        self._trail.put(
            Decision(
                id=made,
                at=datetime.now(UTC),
                kind=kind,
                key=key,
                model=loaded.digest,
                score=None if best is None else best.score,
                probability=None if best is None else best.probability,
                threshold=loaded.judge.point.threshold if found else None,
                on=loaded.judge.point.on if found else None,
                same=None if not found else best is not None and best.same,
                left=template,
                right=None if best is None else best.id,
            ),
            done=not found,  # a template is in the store, or out of it, whatever comes
        )
        return made

    def label(self, store: Store, decision: str, genuine: bool) -> Labelled | None:
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
        return None if before is None else Labelled(before, before.genuine is None)

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
        except (StorageAwayError, StorageFullError):
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
