"""Parameters in the address of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faircal.production.serving.problems import unprocessable
from faircal.production.serving.store.base import LONGEST_ID

if TYPE_CHECKING:
    from starlette.requests import Request


def query_text(request: Request, name: str) -> str | None:
    """Return a text, None where there is none."""
    value = request.query_params.get(name)
    if value is not None and (len(value) > LONGEST_ID or not value.isprintable()):
        raise unprocessable(f"expected printable text of at most {LONGEST_ID} characters", name)
    return value or None


def query_whole(request: Request, name: str, default: int, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    value = request.query_params.get(name)
    if value is None:
        return default
    good = value.isascii() and value.isdecimal() and len(value) <= 9
    if not good or not 1 <= int(value) <= most:
        raise unprocessable(f"expected a whole number from 1 to {most}", name)
    return int(value)
