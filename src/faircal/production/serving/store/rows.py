"""The tables of a store, and how records become rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from faircal._base.errors import ParameterError
from faircal.production.serving.store.base import Decision, TemplateInfo, check_id

#: Version of the tables; a database of a later one is refused.
SCHEMA = 1

#: A template's `n` is never given twice, so greater means later; `removed` tells other processes
#: which numbers went (numbers only: an id that was deleted is nowhere).
_TABLES = """
CREATE TABLE faircal.meta (name {text} PRIMARY KEY, value {bytes} NOT NULL);
CREATE TABLE faircal.templates (
    n {counter}, id {text} NOT NULL UNIQUE, embedding {vector} NOT NULL,
    dimension integer NOT NULL, enrolled_at bigint NOT NULL
){inline};
CREATE TABLE faircal.removed (seq {counter}, n bigint NOT NULL);
CREATE TABLE faircal.decisions (
    seq {counter}, id {text} NOT NULL UNIQUE, at bigint NOT NULL, kind {text} NOT NULL,
    key_name {text} NOT NULL, model {text} NOT NULL, score {real}, probability {real},
    threshold {real}, threshold_on {text}, same {bool}, left_cluster integer, right_cluster integer,
    left_outside {bool}, right_outside {bool}, prior {real}, left_id {text}, right_id {text},
    genuine {bool}
);
CREATE INDEX {index};
CREATE TABLE faircal.states (name {text} PRIMARY KEY, value {bytes} NOT NULL)
"""

#: Columns of a decision, in the order of its fields.
DECISION = (
    "id, at, kind, key_name, model, score, probability, threshold, threshold_on, same, "
    "left_cluster, right_cluster, left_outside, right_outside, prior, left_id, right_id, genuine"
)
_FIELDS = tuple(field.name for field in fields(Decision))
_FLAGS = ("same", "left_outside", "right_outside", "genuine")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def tables(words: Mapping[str, str]) -> list[str]:
    """Return the statements that make the tables, in a database's own words for types."""
    return _TABLES.format_map(words).split(";")


def microseconds(moment: datetime) -> int:
    """Return a moment as whole microseconds since 1970, UTC.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    if moment.tzinfo is None:
        raise ParameterError("a moment without a time zone was given; use datetime.now(UTC)")
    return (moment - _EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """Return the moment that `microseconds` gave the number of."""
    return _EPOCH + count * _MICROSECOND


def now() -> int:
    """Return this moment in microseconds."""
    return microseconds(datetime.now(UTC))


def to_info(row: Sequence[Any]) -> TemplateInfo:
    """Return what a row (id, enrolled_at, dimension) says of a template."""
    return TemplateInfo(row[0], moment(row[1]), row[2])


def from_decision(one: Decision) -> tuple[Any, ...]:
    """Return the row of a decision, in the order of `DECISION`."""
    return (
        check_id(one.id, "decision"),
        microseconds(one.at),
        one.kind,
        one.key,
        one.model,
        _number(one.score),
        _number(one.probability),
        _number(one.threshold),
        one.on,
        _flag(one.same),
        _whole(one.left_cluster),
        _whole(one.right_cluster),
        _flag(one.left_outside),
        _flag(one.right_outside),
        _number(one.prior),
        one.left,
        one.right,
        _flag(one.genuine),
    )


def to_decision(row: Sequence[Any]) -> Decision:
    """Return the decision of a row."""
    told = dict(zip(_FIELDS, row, strict=True))
    flags = {name: _flag(told[name]) for name in _FLAGS}
    return Decision(**{**told, **flags, "at": moment(told["at"])})


def _number(value: float | None) -> float | None:
    """Return a float that every database keeps alike: no NaN, no NumPy scalar."""
    return None if value is None or math.isnan(value) else float(value)


def _whole(value: int | None) -> int | None:
    return None if value is None else int(value)


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)
