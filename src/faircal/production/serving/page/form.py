"""The page's form: what was filled in, read in memory only, and embeddings as people give them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from faircal._base.errors import DataError
from faircal.production.serving.store.records import MOST_DIMENSIONS

Float32 = NDArray[np.float32]

#: Beyond it the length of an embedding is no number in 32 bits.
_MOST_SQUARE = float(np.finfo(np.float32).max)
_SEPARATORS = re.compile(r"[\s,;]+")
_EXPECTED = "expected numbers, as [0.1, -0.2, …] or apart by commas or spaces"


def read_numbers(text: str) -> Float32:
    r"""Read an embedding from a text: a JSON list, or numbers apart by commas or spaces.

    What is wrong is said without the numbers themselves: they are biometric data.

    Examples
    --------
    >>> read_numbers("[0.5, -1]"), read_numbers("0.5 -1"), read_numbers("0.5;-1,\n")
    (array([ 0.5, -1. ], dtype=float32), array([ 0.5, -1. ], dtype=float32),
     array([ 0.5, -1. ], dtype=float32))
    """
    text = text.strip().lstrip("\ufeff")
    if not text:
        raise DataError(f"{_EXPECTED}; found nothing")
    if text.startswith(("[", "{")):
        return _checked(_from_json(text))
    words = [word for word in _SEPARATORS.split(text) if word]
    for place, word in enumerate(words):
        if not _is_number(word):
            raise DataError(f"{_EXPECTED}; value {place + 1} is not a number")
    return _checked([float(word) for word in words])


def read_file(content: bytes) -> Float32:
    """Read an embedding from a file: NumPy's (.npy), or a text as `read_numbers` takes it."""
    if content.startswith(b"\x93NUMPY"):
        return _checked(_from_npy(content))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("the file: expected .npy, .json or a text with numbers") from None
    return read_numbers(text)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _from_json(text: str) -> object:
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{_EXPECTED}; this list is not complete, or no JSON") from None
    if isinstance(parsed, dict):  # as our own service takes it
        parsed = parsed.get("embedding")
    numbers = parsed if isinstance(parsed, list) else []
    if not numbers or any(type(one) not in (int, float) for one in numbers):
        raise DataError(f"{_EXPECTED}; this is JSON, and no plain list of numbers")
    return numbers


def _from_npy(content: bytes) -> NDArray[np.float64]:
    """Read an array without taking the file's word for how large it is."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(stream)
    except (ValueError, KeyError, SyntaxError, RecursionError, MemoryError):
        raise DataError(
            "the file: it begins as .npy and goes on otherwise; save it again"
        ) from None
    size = int(np.prod(np.asarray(shape, dtype=object))) if shape else 1
    left = content[stream.tell() :]
    if dtype.kind not in "fiu" or size * dtype.itemsize != len(left):
        raise DataError("the file: expected .npy with one row of numbers, all of them there")
    if size != max(shape, default=1):
        raise DataError(f"the file: expected one embedding, found an array of shape {shape}")
    return np.frombuffer(left, dtype=dtype).astype(np.float64)


def _checked(values: object) -> Float32:
    """Return the numbers as an embedding; what no face network gives is refused."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (OverflowError, ValueError):
        raise DataError(f"{_EXPECTED}; one of them is too large") from None
    if not 2 <= len(numbers) <= MOST_DIMENSIONS:
        raise DataError(f"expected 2 to {MOST_DIMENSIONS:,} numbers, found {len(numbers):,}")
    with np.errstate(over="ignore"):
        vector = numbers.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(vector))
    if len(bad):
        raise DataError(f"value {int(bad[0]) + 1}: expected a finite number; embed it again")
    if not 0 < float(np.dot(numbers, numbers)) < _MOST_SQUARE:
        raise DataError("expected numbers of moderate size, not all 0; embed it again")
    return vector


Kind = Literal["photo", "numbers", "name"]
#: The two sides: what fields begin with, and what people call it.
SIDES = {"left": "first face", "right": "second face"}
#: The ways to give a face, in the order of the form, with the field that each is about.
KINDS: dict[Kind, str] = {"photo": "Photo", "numbers": "Embedding", "name": "Enrolled"}
#: What a button asks for: the pair; with keys also the model and the counters, or the card.
COMPARE, LOOK, CARD = "compare", "look", "card"
#: Letters of a field that is no file. Far more than an embedding has.
MOST_TEXT = 2_000_000


class Declined(Exception):  # noqa: N818 - an answer, rather than an error of ours
    """A request that is not looked into; a page says why in words."""

    def __init__(self, status: int, title: str, words: str) -> None:
        super().__init__(title)
        self.status, self.title, self.words = status, title, words


@dataclass(frozen=True)
class FaceFields:
    """One face as it was given; what was uploaded is in no text of it."""

    kind: Kind = "numbers"
    text: str = field(default="", repr=False)
    name: str = ""
    group: str = ""
    photo: bytes = field(default=b"", repr=False)
    file: bytes = field(default=b"", repr=False)


class GivenFace(NamedTuple):
    """A face that can be compared: one of a photo, an embedding, the name of a template."""

    photo: bytes | None = None
    vector: NDArray[np.float32] | None = None
    name: str | None = None


@dataclass(frozen=True)
class PageForm:
    """What was filled in."""

    left: FaceFields = FaceFields()
    right: FaceFields = FaceFields()
    prior: str = ""
    key: str = field(default="", repr=False)
    wanted: str = COMPARE

    @classmethod
    def empty(cls, photos: bool) -> PageForm:
        """Return a form that nobody has filled in; photos come first where they are taken."""
        side = FaceFields("photo" if photos else "numbers")
        return cls(side, side)

    def side(self, name: str) -> FaceFields:
        """Return one side by its name."""
        return self.left if name == "left" else self.right

    def faces(self, photos: bool) -> tuple[dict[str, GivenFace], dict[str, str]]:
        """Return the faces that can be compared, by side, and by field what is wrong."""
        faces, wrong = {}, {}
        for name in SIDES:
            side = self.side(name)
            try:
                faces[name] = _face(side, photos)
            except DataError as error:
                wrong[field_of(name, side.kind)] = str(error)
        return faces, wrong


def field_of(side: str, kind: str) -> str:
    """Return the name of the field that a kind of face is filled into."""
    return f"{side}_{kind}"


def read_share(text: str) -> float | None:
    """Read a share of genuine pairs as people write it; None where nothing is written.

    Examples
    --------
    >>> read_share("0.25"), read_share("25 %"), read_share("1 in 1,000"), read_share("1/8")
    (0.25, 0.25, 0.001, 0.125)
    """
    text = text.strip()
    if not text:
        return None
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    match = re.fullmatch(
        r"(\d*\.?\d+(?:[eE]-?\d+)?)\s*(?:pairs?\s+)?(?:(%)|(?:/|in|of|:)\s*(\d*\.?\d+(?:[eE]\d+)?))?",
        plain,
    )
    if match:
        of = 100.0 if match[2] else float(match[3] or 1)
        share = float(match[1]) / of if of else 0.0
        if 0 < share < 1:
            return share
    raise DataError("expected a share between 0 and 1, as 0.5, 20 % or 1 in 1,000")


async def read_form(request: Request, body: bytearray) -> PageForm:
    """Read the form in a body; no part of it is spooled to a file."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Declined(415, "This is not the page's form", "Use the form of the page.")

    async def at_once() -> AsyncGenerator[bytes, None]:
        yield bytes(body)

    limits = {"max_files": 4, "max_fields": 16, "max_part_size": MOST_TEXT}
    try:
        form = await _InMemory(request.headers, at_once(), **limits).parse()
    except (MultiPartException, KeyError, ValueError):
        raise Declined(
            400, "The form did not arrive whole", "Go back, choose the faces again and send it."
        ) from None
    try:
        return PageForm(
            await _side(form, "left"),
            await _side(form, "right"),
            _text(form, "prior")[:100],
            _text(form, "key")[:1000],
            next((one for one in (LOOK, CARD) if one == _text(form, "wanted")), COMPARE),
        )
    finally:
        await form.close()


class _InMemory(MultiPartParser):
    #: Larger than any form that is let in: an upload never touches the disk.
    spool_max_size = 1 << 40


async def _side(form: FormData, name: str) -> FaceFields:
    kind = _text(form, f"{name}_kind")
    return FaceFields(
        next((one for one in KINDS if one == kind), "numbers"),
        _text(form, field_of(name, "numbers")),
        _text(form, field_of(name, "name")).strip()[:1000],
        _text(form, field_of(name, "group")).strip()[:1000],
        await _upload(form, field_of(name, "photo")),
        await _upload(form, f"{name}_file"),
    )


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


async def _upload(form: FormData, name: str) -> bytes:
    value = form.get(name)
    return await value.read() if isinstance(value, UploadFile) else b""


def _face(side: FaceFields, photos: bool) -> GivenFace:
    if side.kind == "photo":
        if not photos:
            raise DataError("this service takes no photos; give an embedding")
        if not side.photo:
            raise DataError("choose a photo")
        return GivenFace(photo=side.photo)
    if side.kind == "name":
        if not side.name:
            raise DataError("give the name of an enrolled template")
        return GivenFace(name=side.name)
    return GivenFace(vector=read_file(side.file) if side.file else read_numbers(side.text))
