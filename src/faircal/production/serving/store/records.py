"""What a store keeps: templates and decisions, as rows, checked, and encrypted at rest."""

from __future__ import annotations

import base64
import binascii
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError, MissingExtraError, ParameterError, StorageError
from faircal._base.files import existing

#: What a decision can be about.
Kind = Literal["verify", "identify", "enrol", "delete"]

#: Longest id of a template or a decision, in characters.
LONGEST_ID = 200

#: Most numbers in a vector: what pgvector's type takes.
MOST_DIMENSIONS = 16_000


@dataclass(frozen=True)
class TemplateInfo:
    """What may be reported of an enrolled template: all but its vector."""

    id: str
    enrolled_at: datetime
    dimension: int


@dataclass(frozen=True)
class Decision:
    """One line of the audit trail: who asked what, and what was answered. Nothing biometric.

    `left` and `right` are ids of templates, None where a vector or picture came with the request;
    `key` is the name of the API key; `on` is what the threshold is on, score or probability;
    `genuine` is the truth, where somebody reported it afterwards.
    `left_cluster` and `left_outside` say where the left image lies in the model's population, None
    where it has none; `prior` is the share of genuine pairs that `probability` holds for.
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


def check_id(value: object, what: str = "template") -> str:
    """Return an id that may be kept: printable text of 1 to 200 characters, compared exactly.

    >>> check_id("passport 17/Müller")
    'passport 17/Müller'
    """
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_ID or not value.isprintable():
        raise ParameterError(
            f"id of a {what}: expected printable text of 1 to {LONGEST_ID} characters; "
            "found something else"
        )
    return value


def check_vector(vector: ArrayLike, what: str = "vector") -> NDArray[np.float32]:
    """Return an embedding (d,) as float32; it must be finite and not all zeros."""
    try:
        checked = np.array(vector, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: expected numbers; found something else") from error
    if checked.ndim != 1 or not 1 <= checked.size <= MOST_DIMENSIONS:
        raise DataError(
            f"{what}: expected 1 to {MOST_DIMENSIONS} numbers in a row; found shape {checked.shape}"
        )
    if not np.isfinite(checked).all() or not checked.any():
        raise DataError(f"{what}: expected finite numbers that are not all 0; give another one")
    return checked


def check_limit(limit: int) -> int:
    """Return a number of rows to give that is at least 1."""
    if limit < 1:
        raise ParameterError(f"limit: expected 1 or more; found {limit}")
    return limit


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


def from_decision(one: Decision) -> tuple[Any, ...]:
    """Return the row of a decision, in the order of `DECISION`."""
    check_id(one.id, "decision")
    values = {**vars(one), "at": microseconds(one.at)}
    return tuple(_plain(values[name]) for name in _FIELDS)


def to_decision(row: Sequence[Any]) -> Decision:
    """Return the decision of a row."""
    values = dict(zip(_FIELDS, row, strict=True))
    for name in _FLAGS:  # numbers in SQLite
        values[name] = None if values[name] is None else bool(values[name])
    return Decision(**{**values, "at": moment(values["at"])})


def _plain(value: Any) -> Any:
    """Return a value that every database keeps alike: no NaN, no NumPy scalar."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


#: Bytes of a key, and of a nonce.
KEY_BYTES, _NONCE_BYTES = 32, 12

#: What the database holds, encrypted, to recognise its key by.
KEY_PROOF = b"faircal"


class TemplateCipher:
    """Encryption at rest with one key of 32 bytes: AES-256-GCM, a fresh nonce for every record.

    What a record belongs to (table and id) is authenticated with it, so records can be neither
    changed nor put in each other's place without it being noticed.

    >>> cipher = TemplateCipher(bytes(32))
    >>> cipher.decrypt(cipher.encrypt(b"secret", "templates:anna"), "templates:anna")
    b'secret'
    """

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ParameterError(f"key of the store: expected {KEY_BYTES} bytes; give another one")
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingExtraError(
                "encrypted templates need cryptography, which is not installed: "
                "pip install 'faircal[serve]'"
            ) from error
        self._aes = AESGCM(key)
        # Kept, as the module can't name it: cryptography is imported only where it is needed.
        self._wrong: type[Exception] = InvalidTag

    def encrypt(self, plain: bytes, belongs: str) -> bytes:
        """Return nonce and ciphertext of `plain`, bound to what it belongs to."""
        nonce = os.urandom(_NONCE_BYTES)  # used twice, it would give two records away
        return nonce + self._aes.encrypt(nonce, plain, belongs.encode())

    def decrypt(self, encrypted: bytes, belongs: str) -> bytes:
        """Return what was encrypted; `StorageError` where it is not what `encrypt` gave."""
        try:
            return self._aes.decrypt(
                encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:], belongs.encode()
            )
        except (self._wrong, ValueError) as error:
            raise StorageError(
                f"{belongs} can't be decrypted: the record was changed or moved, or the key was; "
                "restore a backup, or delete it"
            ) from error


def read_key(path: str | Path) -> bytes:
    """Read a key from a file: 32 bytes as they are, as 64 hexadecimal digits or as Base64."""
    raw = existing(path).read_bytes()
    decoders: tuple[Callable[[str], bytes], ...] = (
        bytes.fromhex,
        lambda text: base64.b64decode(text, validate=True),
    )
    if len(raw) == KEY_BYTES:
        return raw
    for decode in decoders:
        try:
            key = decode(raw.strip().decode("ascii"))
        except (ValueError, binascii.Error):
            continue
        if len(key) == KEY_BYTES:
            return key
    raise ParameterError(
        f"{path}: expected a key of {KEY_BYTES} bytes (raw, 64 hexadecimal digits or Base64); "
        f"make one with: openssl rand -hex {KEY_BYTES} > FILE"
    )
