"""Bodies of requests: read within limits, parsed, and refused without a trace of them.

What is answered when a request can't be is one line of JSON. Nothing of the request is in it but
the short name of a field that is not expected: whatever else came could be biometric, or a key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from faircal._base.errors import (
    ConflictError,
    DataError,
    FairCalError,
    MissingExtraError,
    ModelFileError,
    ParameterError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
)
from faircal.production.serving.store.records import MOST_DIMENSIONS

if TYPE_CHECKING:
    from starlette.requests import Request

#: Seconds within which a body must have come.
PATIENCE = 60.0
#: A body of more bytes is parsed off the event loop.
LARGE = 64 * 1024
#: Letters of a field's name that an error repeats.
_LONGEST_NAME = 40
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"


class Refused(Exception):  # noqa: N818  (an answer, rather than an error of ours)
    """A request that is answered with an error.

    `code` is for machines; `message` one line that says what was expected and what to do, never
    what was sent; `where` the part of the request, ``pairs[3].right``. Headers have ``_`` for
    ``-``.
    """

    def __init__(
        self, status: int, code: str, message: str, where: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.where = status, code, message, where
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        error = {"code": self.code, "message": self.message}
        return {"error": error if self.where is None else {**error, "where": self.where}}


#: The first kind that fits: status, code, headers.
_ANSWERS: tuple[tuple[type[FairCalError], int, str, Mapping[str, str]], ...] = (
    (StorageUnavailableError, 503, "storage_away", {"Retry_After": "1"}),
    (StorageFullError, 507, "storage_full", {}),
    (ConflictError, 409, "conflict", {}),
    (StorageError, 503, "storage", {"Retry_After": "5"}),
    (ModelFileError, 409, "model", {}),
    (MissingExtraError, 409, "missing_extra", {}),
    (DataError, 422, "data", {}),
    (ParameterError, 422, "parameter", {}),
    (FairCalError, 422, "refused", {}),
)


def answer_to(error: FairCalError, where: str | None = None) -> Refused:
    """Return what is answered to an error that faircal raised on purpose.

    >>> answer_to(StorageFullError("no room left")).status
    507
    """
    _, status, code, headers = next(each for each in _ANSWERS if isinstance(error, each[0]))
    return Refused(status, code, " ".join(str(error).split()), where, **headers)


def unprocessable(message: str, where: str | None = None, code: str = "data") -> Refused:
    """Return the answer to a body that can't be used."""
    return Refused(422, code, message, where)


def too_many(max_pairs: int) -> Refused:
    """Return the answer to a batch of too many pairs."""
    return Refused(413, "too_many", f"expected at most {max_pairs:,} pairs; send several batches")


class BodyReader:
    """Reads bodies; all that are under way together stay within a budget of bytes.

    Without one, a few slow senders of large bodies would fill the memory. A body that would go
    beyond is refused for the moment.
    """

    def __init__(self, budget: int) -> None:
        self._left = budget

    @asynccontextmanager
    async def body(self, request: Request, limit: int) -> AsyncIterator[bytearray]:
        """Give the body of a request, of at most `limit` bytes; it counts while it is in use."""
        length = _declared(request)
        if length is not None and length > limit:
            raise _too_large(limit)
        taken = 0

        def charge(size: int) -> None:
            nonlocal taken
            if size - taken > self._left:
                raise Refused(
                    429,
                    "busy",
                    "other large requests are under way; try again in a moment",
                    Retry_After="1",
                )
            self._left -= size - taken
            taken = size

        try:
            try:  # what is declared takes nothing of the budget: it may never come
                async with asyncio.timeout(PATIENCE):
                    body = await _fill(request, limit, charge)
            except TimeoutError:
                raise Refused(
                    408, "slow", f"the body did not come within {PATIENCE:g} s; send it faster"
                ) from None
            yield body
        finally:
            self._left += taken


async def _fill(request: Request, limit: int, charge: Callable[[int], None]) -> bytearray:
    """Return all that comes; `charge` is given its size after each part."""
    from starlette.requests import ClientDisconnect

    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        charge(len(body))
        more = message.get("more_body", False)
    return body


def _declared(request: Request) -> int | None:
    """Return the length that is declared, None for a body in chunks."""
    # A few compressed bytes can become gigabytes.
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(
            415, "encoding", "compressed bodies are not taken; send it without Content-Encoding"
        )
    header = request.headers.get("content-length")
    if header is None:
        if "transfer-encoding" not in request.headers:
            raise Refused(411, "length", "expected a Content-Length; say how long the body is")
        return None
    # No more than 18 digits: Python takes long to read thousands of them.
    if not header.isascii() or not header.isdecimal() or len(header) > 18:
        raise Refused(400, "length", "Content-Length: expected a whole number; correct it")
    return int(header)


def _too_large(limit: int) -> Refused:
    return Refused(
        413,
        "too_large",
        f"expected at most {limit:,} bytes; send smaller pictures, fewer pairs, or Arrow's float16",
        Connection="close",  # the rest of the body must not be read as another request
    )


def kind_of(request: Request, *kinds: str) -> str:
    """Return which of `kinds` the body is; another one is refused."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in kinds:
        raise Refused(415, "media_type", f"Content-Type: expected {' or '.join(kinds)}; set it")
    return given


def parse(
    body: bytes | bytearray, pairs: int = 1, dimension: int = MOST_DIMENSIONS
) -> dict[str, Any]:
    """Return the JSON object in a body, which may be of so many pairs of embeddings.

    Examples
    --------
    >>> parse(b'{"left": [1, 2.5]}')
    {'left': [1, 2.5]}
    """
    from pydantic_core import from_json

    if len(body) > LARGE:
        _check_amount(body, pairs, dimension)
    try:
        # Strict: no NaN, no Infinity, at most some 200 levels.
        parsed = from_json(bytes(body), allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        # Where it stops being JSON: two numbers, and nothing else of what the parser says.
        match = re.search(r" at line (\d+) column (\d+)$", str(error))
        place = "" if match is None else f", at line {match[1]}, column {match[2]}"
        raise Refused(
            400, "json", f"the body is not JSON (UTF-8, no NaN or Infinity){place}; correct it"
        ) from None
    except RecursionError:
        raise Refused(400, "json", "the body is nested too deeply; make it flat") from None
    if not isinstance(parsed, dict):
        raise unprocessable("expected a JSON object; see /openapi.json", code="json")
    return parsed


def _check_amount(body: bytes | bytearray, pairs: int, dimension: int) -> None:
    """Refuse what no such pairs can need, before it is parsed.

    64 MB of ``[[[]]]`` or ``0,`` become gigabytes of objects, and seconds in which nobody else is
    answered. Ids may have such characters in them, too: each pair has some to spare.
    """
    for marks, most in ((b",", 2 * dimension + 8), (b"[", 8), (b"{", 8), (b'"', 40)):
        if body.count(marks) > most * pairs + 1000:
            raise Refused(
                413, "too_many", "more numbers, lists or names than the largest request needs"
            )


def only(body: dict[str, Any], *names: str) -> None:
    """Refuse fields that are not among `names`: a misspelt one must not be passed over."""
    unknown = next((name for name in body if name not in names), None)
    if unknown is not None:
        raise unprocessable(
            f"unknown field {_shown(unknown)}; expected {', '.join(names)}", code="field"
        )


def _shown(name: str) -> str:
    """Return the name of a field as an error may have it: a short word.

    What is long, or begins as numbers do, may be anything: a picture, an embedding, a key.

    >>> print(_shown("lefft"), _shown("0.25"), _shown("k" * 41))
    'lefft' '…' '…'
    """
    shown = repr(name)
    fine = name[:1].isalpha() or name.startswith("_")
    return shown if fine and len(shown) <= _LONGEST_NAME + 2 else "'…'"
