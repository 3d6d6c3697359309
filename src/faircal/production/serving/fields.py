"""Fields of JSON bodies and of addresses, checked one by one: numbers, names, embeddings."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.production.serving.problems import unprocessable
from faircal.production.serving.store.records import LONGEST_ID, MOST_DIMENSIONS

if TYPE_CHECKING:
    from starlette.requests import Request


Vector = NDArray[np.float32]

_NUMBERS = {float, int}


class TemplateRef(NamedTuple):
    """One that is enrolled."""

    id: str


class PictureBytes(NamedTuple):
    """The bytes of one."""

    data: bytes


def vector(value: Any, where: str, dimension: int | None) -> Vector:
    """Return an embedding, shape (d,); `dimension` is the wanted d.

    Examples
    --------
    >>> vector([0.5, 1], "left", 2)
    array([0.5, 1. ], dtype=float32)
    """
    if type(value) is not list or not value:
        raise unprocessable("expected a list of numbers; send the embedding as one", where)
    check_length(len(value), where, dimension)
    if not _NUMBERS.issuperset(map(type, value)):
        raise unprocessable("expected numbers only; send the embedding as a flat list", where)
    try:
        with np.errstate(over="ignore"):  # becomes infinite, and is refused below
            embedding = np.array(value, dtype=np.float32)
    except OverflowError:  # a whole number of hundreds of digits
        raise _not_usable(where) from None
    with np.errstate(over="ignore"):  # the same
        square = float(np.dot(embedding, embedding))
    if not 0 < square < np.inf:
        raise _not_usable(where)
    return embedding


def _not_usable(where: str) -> Exception:
    return unprocessable(
        "expected finite numbers of moderate size, not all 0; embed the image again", where
    )


def check_length(length: int, where: str, dimension: int | None) -> None:
    """Refuse an embedding of another length than `dimension`."""
    if dimension is not None and length != dimension:
        raise unprocessable(
            f"expected {dimension} numbers, found {length}; use the network the model was made for",
            where,
            "dimension",
        )
    if length > MOST_DIMENSIONS:
        raise unprocessable(f"expected at most {MOST_DIMENSIONS} numbers", where, "dimension")


def side(value: Any, where: str, dimension: int | None) -> Vector | TemplateRef | PictureBytes:
    """Return what one side of a pair is: an embedding, a template's id, or a picture."""
    if type(value) is list:
        return vector(value, where, dimension)
    if type(value) is dict and len(value) == 1:
        if "template" in value:
            return TemplateRef(template_id(value["template"], f"{where}.template"))
        if "image" in value:
            return picture(value["image"], f"{where}.image")
    raise unprocessable(
        'expected a list of numbers, {"template": id} or {"image": base64}; send one of them', where
    )


def probe(body: dict[str, Any], dimension: int | None) -> Vector | PictureBytes:
    """Return the embedding or the picture of a request that has one of them."""
    if ("embedding" in body) == ("image" in body):
        raise unprocessable("expected either embedding or image; send one of them", "embedding")
    if "image" in body:
        return picture(body["image"], "image")
    return vector(body["embedding"], "embedding", dimension)


def picture(value: Any, where: str) -> PictureBytes:
    """Return a picture out of its base64."""
    if type(value) is not str:
        raise unprocessable("expected the picture's bytes in base64; send them so", where)
    try:
        return PictureBytes(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        raise unprocessable("expected base64; encode the picture's bytes so", where) from None


def template_id(value: Any, where: str) -> str:
    """Return the id of a template: data, of which nothing but letters is asked."""
    if type(value) is not str or not 1 <= len(value) <= LONGEST_ID or not value.isprintable():
        raise unprocessable(
            f"expected printable text of 1 to {LONGEST_ID} characters; choose another id",
            where,
            "id",
        )
    return value


def text(body: dict[str, Any], name: str, most: int = LONGEST_ID) -> str | None:
    """Return a short text, None where there is none."""
    value = body.get(name)
    if value is not None and (
        type(value) is not str or len(value) > most or not value.isprintable()
    ):
        raise unprocessable(f"expected printable text of at most {most} characters", name)
    return value


def share(body: dict[str, Any], name: str) -> float | None:
    """Return a share between 0 and 1, None where there is none."""
    value = body.get(name)
    if value is not None and (type(value) not in _NUMBERS or not 1e-12 <= value <= 1 - 1e-12):
        raise unprocessable("expected a number between 0 and 1; write 1 in 1,000 as 0.001", name)
    return None if value is None else float(value)


def flag(body: dict[str, Any], name: str, default: bool | None = None) -> bool:
    """Return true or false."""
    value = body.get(name, default)
    if type(value) is not bool:
        raise unprocessable("expected true or false", name)
    return value


def whole_number(body: dict[str, Any], name: str, default: int, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    value = body.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise unprocessable(f"expected a whole number from 1 to {most}", name)
    return value


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
