"""What a store of templates and decisions can be asked, and the records it keeps.

Two stores keep this promise: SQLite in one file, and PostgreSQL for more than one machine. Both are
synchronous, can be used from many threads, and have written for good what they return from.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError, ParameterError

#: What a decision can be about.
Kind = Literal["verify", "identify", "enrol", "delete"]

#: Longest id of a template or a decision, in characters.
LONGEST_ID = 200

#: Most numbers in a vector: what pgvector's type takes.
MOST_DIMENSIONS = 16_000


@dataclass(frozen=True)
class TemplateInfo:
    """What may be told of an enrolled template: all but its vector."""

    id: str
    enrolled_at: datetime
    dimension: int


@dataclass(frozen=True)
class Decision:
    """One line of the audit trail: who asked what, and what was answered. Nothing biometric.

    `left` and `right` are ids of templates, None where a vector or picture came with the request;
    `key` is the name of the API key; `on` is what the threshold is on, score or probability;
    `genuine` is the truth, where somebody told it afterwards.
    `left_cluster` and `left_outside` say where the left image lies in the model's population, None
    where it knows none; `prior` is the share of genuine pairs that `probability` holds for.
    """

    id: str
    at: datetime
    kind: Kind
    key: str
    model: str
    score: float | None = None
    probability: float | None = None
    threshold: float | None = None
    on: str | None = None
    same: bool | None = None
    left_cluster: int | None = None
    right_cluster: int | None = None
    left_outside: bool | None = None
    right_outside: bool | None = None
    prior: float | None = None
    left: str | None = None
    right: str | None = None
    genuine: bool | None = None


class Store(Protocol):
    """Templates, decisions and named states, kept for good.

    Every method may raise `StorageAwayError` (try later), `StorageFullError` (nothing was written)
    or another `StorageError`.
    """

    def enrol(self, id: str, vector: ArrayLike, *, replace: bool = False) -> None:  # noqa: A002
        """Keep a template; `ConflictError` where there is one of this id, unless `replace`."""

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors (d,) of those of `ids` that are enrolled, as they were given."""

    def info(self, id: str) -> TemplateInfo | None:  # noqa: A002
        """Return what may be told of a template, None where there is none."""

    def list(self, after: str | None = None, limit: int = 100) -> builtins.list[TemplateInfo]:
        """Return up to `limit` templates in order of their ids, from the one after `after`."""

    def delete(self, id: str) -> bool:  # noqa: A002
        """Delete a template and its bytes; False where there was none."""

    def search(self, probe: ArrayLike, limit: int = 10) -> builtins.list[tuple[str, float]]:
        """Return the `limit` templates most like `probe` (d,) with their cosines, best first."""

    def count(self) -> int:
        """Return how many templates there are."""

    def record(
        self, decisions: Sequence[Decision], states: Mapping[str, bytes] | None = None
    ) -> None:
        """Add decisions to the audit trail, and states that go with them, all or none."""

    def decision(self, id: str) -> Decision | None:  # noqa: A002
        """Return a decision, None where there is none."""

    def decisions(self, after: str | None = None, limit: int = 100) -> builtins.list[Decision]:
        """Return up to `limit` decisions as they were recorded, from the one after `after`."""

    def feedback(self, id: str, genuine: bool) -> Decision | None:  # noqa: A002
        """Keep whether a decision's pair was genuine; return the decision, None if unknown."""

    def forget_before(self, moment: datetime) -> int:
        """Delete the decisions made before `moment`; return how many.

        With one of id ``x`` go the states ``batch/x`` and ``batch/x/genuine``, where the pairs of
        a batch and their labels are kept. Many are deleted in parts, so that others can write in
        between.
        """

    def put_state(self, name: str, value: bytes) -> None:
        """Keep bytes under a name, in place of what was there."""

    def change_state(self, name: str, change: Callable[[bytes], bytes]) -> bool:
        """Keep what `change` makes of a state, while nobody else writes; False without one."""

    def get_state(self, name: str) -> bytes | None:
        """Return the bytes kept under a name, None where there are none."""

    def check(self) -> None:
        """Raise `StorageAwayError` where the database does not answer."""

    def close(self) -> None:
        """Let go of the database; vectors in memory are overwritten."""


def check_id(id: object, what: str = "template") -> str:  # noqa: A002
    """Return an id that may be kept: printable text of 1 to 200 characters, compared exactly.

    >>> check_id("passport 17/Müller")
    'passport 17/Müller'
    """
    if not isinstance(id, str) or not 1 <= len(id) <= LONGEST_ID or not id.isprintable():
        raise ParameterError(
            f"id of a {what}: expected printable text of 1 to {LONGEST_ID} characters; "
            "found something else"
        )
    return id


def check_vector(vector: ArrayLike, what: str = "vector") -> NDArray[np.float32]:
    """Return an embedding (d,) as float32; it must be finite and not all zeros."""
    try:
        found = np.array(vector, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: expected numbers; found something else") from error
    if found.ndim != 1 or not 1 <= found.size <= MOST_DIMENSIONS:
        raise DataError(
            f"{what}: expected 1 to {MOST_DIMENSIONS} numbers in a row; found shape {found.shape}"
        )
    if not np.isfinite(found).all() or not found.any():
        raise DataError(f"{what}: expected finite numbers that are not all 0; give another one")
    return found


def check_limit(limit: int) -> int:
    """Return a number of rows to give that is at least 1."""
    if limit < 1:
        raise ParameterError(f"limit: expected 1 or more; found {limit}")
    return limit
