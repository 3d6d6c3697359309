"""Bodies of requests: read within limits, and parsed without a trace of them in any error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from faircal.production.serving.problems import Refused, unprocessable
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


class BodyReader:
    """Reads bodies; all that are under way together stay within a budget of bytes.

    Parameters
    ----------
    budget : int
        Bytes; a body that would go beyond is refused for the moment.
    """

    def __init__(self, budget: int) -> None:
        self._left = budget

    @asynccontextmanager
    async def body(self, request: Request, limit: int) -> AsyncIterator[bytearray]:
        """Give the body of a request, of at most `limit` bytes; it counts while it is in use."""
        length = _declared(request)
        if length is not None and length > limit:
            raise _too_large(limit)
        held = _BudgetShare(self)
        try:
            try:  # what is declared takes nothing of the budget: it may never come
                async with asyncio.timeout(PATIENCE):
                    body = await _fill(request, limit, held)
            except TimeoutError:
                raise Refused(
                    408, "slow", f"the body did not come within {PATIENCE:g} s; send it faster"
                ) from None
            yield body
        finally:
            self._left += held.size


class _BudgetShare:
    """What a request has taken of the budget."""

    def __init__(self, reader: BodyReader) -> None:
        self._reader, self.size = reader, 0

    def grow(self, size: int) -> None:
        """Take as much as makes `size` bytes."""
        more = size - self.size
        if more <= 0:
            return
        if more > self._reader._left:
            raise _busy()
        self._reader._left -= more
        self.size = size


async def _fill(request: Request, limit: int, held: _BudgetShare) -> bytearray:
    from starlette.requests import ClientDisconnect

    body = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        held.grow(len(body))
        if not message.get("more_body", False):
            return body


def _busy() -> Refused:
    return Refused(
        429,
        "busy",
        "other large requests are under way; try again in a moment",
        headers={"Retry-After": "1"},
    )


def _declared(request: Request) -> int | None:
    """Return the length that is declared, None for a body in chunks."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(
            415, "encoding", "compressed bodies are not taken; send it without Content-Encoding"
        )
    header = request.headers.get("content-length")
    if header is None:
        if "transfer-encoding" not in request.headers:
            raise Refused(411, "length", "expected a Content-Length; say how long the body is")
        return None
    if not header.isascii() or not header.isdecimal() or len(header) > 18:
        raise Refused(400, "length", "Content-Length: expected a whole number; correct it")
    return int(header)


def _too_large(limit: int) -> Refused:
    return Refused(
        413,
        "too_large",
        f"expected a body of at most {limit:,} bytes; send fewer pairs, or Arrow with float16",
        headers={"Connection": "close"},
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
        raise Refused(
            400,
            "json",
            f"the body is not JSON (UTF-8, no NaN or Infinity){_place(error)}; correct it",
        ) from None
    except RecursionError:
        raise Refused(400, "json", "the body is nested too deeply; make it flat") from None
    if not isinstance(parsed, dict):
        raise unprocessable("expected a JSON object; see /openapi.json", code="json")
    return parsed


def _place(error: ValueError) -> str:
    """Say where a body stops being JSON: two numbers, and nothing else of what the parser says."""
    match = re.search(r" at line (\d+) column (\d+)$", str(error))
    return "" if match is None else f", at line {match[1]}, column {match[2]}"


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
