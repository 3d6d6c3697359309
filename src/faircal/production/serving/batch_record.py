"""Batches in the audit trail: one line each, and all their pairs packed together.

A line for each of 10,000 pairs would take longer to write than the pairs take to be judged. So a
batch is one `Decision` without a score, and its pairs are kept as arrays under the state
``batch/ID``: of pair i, the decision ``ID.i``, what a line would say. Their labels, which come
later, are kept by themselves under ``batch/ID/genuine``, a byte each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import arrays_of, pack
from faircal._base.errors import FairCalError
from faircal.production.serving.store.base import Store
from faircal.production.serving.store.records import Decision
from faircal.production.serving.verification import BatchVerification

#: For "nobody knows" among labels.
_UNKNOWN = 2
_PLACES = ("left_cluster", "right_cluster", "left_outside", "right_outside")


@dataclass(frozen=True)
class BatchRecord:
    """A batch that waits to be written: its line, and the states that go with it."""

    decision: Decision
    states: dict[str, bytes]

    @classmethod
    def of(cls, decision: Decision, batch: BatchVerification) -> BatchRecord:
        """Take the line of a batch and what was said of its pairs."""
        labels = bytes([_UNKNOWN]) * len(batch)
        states = {_name(decision.id): pack_batch(batch), _labels_name(decision.id): labels}
        return cls(decision, states)


def _name(decision: str) -> str:
    return f"batch/{decision}"


def _labels_name(decision: str) -> str:
    return f"batch/{decision}/genuine"


def pack_batch(batch: BatchVerification) -> bytes:
    """Return the pairs of a batch as bytes: numbers, flags and ids, nothing biometric."""
    columns = batch.columns()
    arrays: dict[str, NDArray[Any]] = {
        "score": batch.judged.score,
        "probability": batch.judged.probability,
        "same": batch.judged.same.astype(np.uint8),
    }
    for name in _PLACES:
        values = columns[name]
        if values is not None:
            arrays[name] = values.astype(np.uint8 if name.endswith("outside") else np.int32)
    for side, ids in (("left", batch.left_ids), ("right", batch.right_ids)):
        if ids is not None:
            place = {name: row for row, name in enumerate(dict.fromkeys(ids))}
            # Ids are printable: no line ends within one.
            arrays[f"{side}_names"] = np.frombuffer("\n".join(place).encode(), dtype=np.uint8)
            arrays[side] = np.array([place[name] for name in ids], dtype=np.int32)
    return pack({"batch": 1}, arrays)


class _RecordedPairs:
    """The pairs of a batch, read again."""

    def __init__(self, decision: Decision, blob: bytes, labels: Sequence[int]) -> None:
        self._decision, self._labels = decision, labels
        self._arrays = arrays_of(blob)
        self._names = {
            side: bytes(self._arrays[f"{side}_names"]).decode().split("\n")
            for side in ("left", "right")
            if side in self._arrays
        }

    def __len__(self) -> int:
        return len(self._arrays["score"])

    def __getitem__(self, row: int) -> Decision:
        arrays = self._arrays
        fields: dict[str, Any] = {
            side: names[arrays[side][row]] for side, names in self._names.items()
        }
        for name in _PLACES:
            if name in arrays:
                value = arrays[name][row]
                fields[name] = bool(value) if name.endswith("outside") else int(value)
        return replace(
            self._decision,
            id=f"{self._decision.id}.{row}",
            score=float(arrays["score"][row]),
            probability=float(arrays["probability"][row]),
            same=bool(arrays["same"][row]),
            genuine=_flag(self._labels[row]),
            **fields,
        )


def _flag(value: int) -> bool | None:
    return None if value == _UNKNOWN else bool(value)


def pairs_of(store: Store, decision: Decision) -> Iterator[Decision]:
    """Yield the decisions of a batch; a decision that is none, as it is."""
    pairs = _read(store, decision)
    if pairs is None:
        yield decision
        return
    for row in range(len(pairs)):
        yield pairs[row]


def _read(store: Store, decision: Decision) -> _RecordedPairs | None:
    if decision.kind != "verify" or decision.score is not None:
        return None
    blob, labels = (store.get_state(name(decision.id)) for name in (_name, _labels_name))
    if blob is None or labels is None:
        return None
    try:
        return _RecordedPairs(decision, blob, labels)
    except (FairCalError, LookupError, UnicodeError):  # written by somebody else
        return None


def label_pair(store: Store, name: str, genuine: bool) -> Decision | None:
    """Keep whether a pair of a batch, ``ID.i``, was genuine; return it as it was before.

    None where there is no such pair.
    """
    batch, dot, number = name.rpartition(".")
    if not dot or not number.isascii() or not number.isdecimal() or len(number) > 9:
        return None
    decision = store.decision(batch)
    pairs = None if decision is None else _read(store, decision)
    row = int(number)
    if pairs is None or row >= len(pairs):
        return None
    was: list[int] = []

    def change(labels: bytes) -> bytes:
        was.append(labels[row])  # another process may have labelled it meanwhile
        if labels[row] != _UNKNOWN:  # the first label stays
            return labels
        return labels[:row] + bytes([genuine]) + labels[row + 1 :]

    if not store.change_state(_labels_name(batch), change):  # deleted meanwhile
        return None
    return replace(pairs[row], genuine=_flag(was[-1]))
