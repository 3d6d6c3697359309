"""Batches in the audit trail: one line each, and all their pairs packed together.

A line for each of 10,000 pairs would take longer to write than the pairs take to be judged. So a
batch is one `Decision` without a score, and its pairs are kept as arrays under the state
``batch/ID``: of pair i, the decision ``ID.i``, score, probability, same, outside and genuine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.container import cut, pack, unpack
from faircal.errors import FairCalError
from faircal.serving.store.base import Decision, Store
from faircal.serving.verified import VerifiedBatch

#: For "nobody knows" among flags.
_UNKNOWN = 2


@dataclass(frozen=True)
class BatchRecord:
    """A batch that waits to be written."""

    decision: Decision
    packed: bytes


def state_name(decision: str) -> str:
    """Return the name of the state that holds the pairs of a batch."""
    return f"batch/{decision}"


def pack_batch(batch: VerifiedBatch) -> bytes:
    """Return the pairs of a batch as bytes: numbers and flags, nothing biometric."""
    n = len(batch)
    unknown = np.full(n, _UNKNOWN, dtype=np.uint8)
    return _packed(
        {
            "score": batch.judged.score,
            "probability": batch.judged.probability,
            "same": batch.judged.same.astype(np.uint8),
            "outside": unknown if batch.outside is None else batch.outside.astype(np.uint8),
            "genuine": unknown,
        }
    )


def _packed(arrays: dict[str, NDArray[Any]]) -> bytes:
    return pack({"batch": 1}, arrays)


def pairs_of(store: Store, decision: Decision) -> Iterator[Decision]:
    """Yield the decisions of a batch; a decision that is none, as it is."""
    arrays = _arrays(store, decision)
    if arrays is None:
        yield decision
        return
    for row in range(len(arrays["score"])):
        yield _pair(decision, arrays, row)


def _arrays(store: Store, decision: Decision) -> dict[str, NDArray[Any]] | None:
    if decision.kind != "verify" or decision.score is not None:
        return None
    blob = store.get_state(state_name(decision.id))
    if blob is None:
        return None
    try:
        header, body = unpack(blob)
        return cut(header["arrays"], body)
    except (FairCalError, LookupError):  # written by somebody else
        return None


def _pair(decision: Decision, arrays: dict[str, NDArray[Any]], row: int) -> Decision:
    return replace(
        decision,
        id=f"{decision.id}.{row}",
        score=float(arrays["score"][row]),
        probability=float(arrays["probability"][row]),
        same=bool(arrays["same"][row]),
        outside=_flag(arrays["outside"][row]),
        genuine=_flag(arrays["genuine"][row]),
    )


def _flag(value: Any) -> bool | None:
    return None if value == _UNKNOWN else bool(value)


def label_pair(store: Store, name: str, genuine: bool) -> Decision | None:
    """Keep whether a pair of a batch, ``ID.i``, was genuine; return it as it was before.

    None where there is no such pair.
    """
    batch, dot, number = name.rpartition(".")
    if not dot or not number.isascii() or not number.isdecimal() or len(number) > 9:
        return None
    decision = store.decision(batch)
    arrays = None if decision is None else _arrays(store, decision)
    row = int(number)
    if decision is None or arrays is None or row >= len(arrays["score"]):
        return None
    before = _pair(decision, arrays, row)
    arrays["genuine"][row] = genuine
    store.put_state(state_name(batch), _packed(arrays))
    return before
