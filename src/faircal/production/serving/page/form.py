"""The page's form: read in memory only, and compared, or what is wrong with it by field."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

import numpy as np
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from faircal._base.errors import DataError, ParameterError, StorageError, StorageFullError
from faircal.production.serving.bodies import Refused
from faircal.production.serving.service import Service
from faircal.production.serving.store.records import LONGEST_ID, MOST_DIMENSIONS
from faircal.production.serving.verification import ModelInUse, Vector, Verification

#: Beyond it the length of an embedding is no number in 32 bits.
_MOST_SQUARE = float(np.finfo(np.float32).max)
_SEPARATORS = re.compile(r"[\s,;]+")
_EXPECTED = "expected numbers, as [0.1, -0.2, …] or apart by commas or spaces"


def read_numbers(text: str) -> Vector:
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
        try:
            parsed: object = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError(f"{_EXPECTED}; this list is not complete, or no JSON") from None
        if isinstance(parsed, dict):  # as our own service takes it
            parsed = parsed.get("embedding")
        if not isinstance(parsed, list) or not parsed or not {int, float} >= set(map(type, parsed)):
            raise DataError(f"{_EXPECTED}; this is JSON, and no plain list of numbers")
        return _checked(parsed)
    numbers: list[float] = []
    for word in filter(None, _SEPARATORS.split(text)):
        try:
            numbers.append(float(word))
        except ValueError:
            message = f"{_EXPECTED}; value {len(numbers) + 1} is not a number"
            raise DataError(message) from None
    return _checked(numbers)


def read_file(content: bytes) -> Vector:
    """Read an embedding from a file with a text as `read_numbers` takes it."""
    try:
        return read_numbers(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise DataError("the file: expected .json or another text with numbers") from None


def _checked(values: object) -> Vector:
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


#: The two sides: what fields begin with, and what people call it.
SIDES = {"left": "first face", "right": "second face"}
#: The ways to give a face, in the order of the form, with the field that each is about.
KINDS = {"photo": "Photo", "numbers": "Embedding", "name": "Enrolled"}
#: What a button asks for: the pair; with keys also the model and the counters, or the card.
COMPARE, LOOK, CARD = "compare", "look", "card"
#: Letters of a field that is no file. Far more than an embedding has.
MOST_TEXT = 2_000_000


class FormErrors(Exception):  # noqa: N818 - found in what people fill in, and shown to them
    """What is wrong, by field; ``""`` is the pair as such."""

    def __init__(self, status: int, **fields: str) -> None:
        super().__init__()
        self.status, self.fields = status, fields


@dataclass(frozen=True)
class PageForm:
    """What was filled in, by field; neither faces nor key are in a text of it."""

    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def text(self, name: str) -> str:
        """Return a field in which little is written."""
        return self.texts.get(name, "").strip()[:1000]

    def kind(self, side: str) -> str:
        """Return the way in which a face is given."""
        kind = self.text(f"{side}_kind")
        return kind if kind in KINDS else "numbers"

    @property
    def action(self) -> str:
        """What the button asks for."""
        action = self.text("wanted")
        return action if action in (LOOK, CARD) else COMPARE

    def vector(self, side: str, service: Service) -> Vector:
        """Return the embedding of a face; `DataError` where it can't be had."""
        kind = self.kind(side)
        if kind == "photo":
            if not service.takes_pictures:
                raise DataError("this service takes no photos; give an embedding")
            photo = self.files.get(f"{side}_photo")
            if not photo:
                raise DataError("choose a photo")
            return service.embed(photo)
        if kind == "name":
            name = self.text(f"{side}_name")
            if not name:
                raise DataError("give the name of an enrolled template")
            if service.store is None:
                raise DataError("this service keeps no templates; give an embedding")
            fine = len(name) <= LONGEST_ID and name.isprintable()
            vectors = service.store.vectors([name]) if fine else {}
            if name not in vectors:
                raise DataError(
                    "there is no template of this name; enrol it first, or correct the name"
                )
            return vectors[name]
        file = self.files.get(f"{side}_file")
        return read_file(file) if file else read_numbers(self.texts.get(f"{side}_numbers", ""))

    def template(self, side: str) -> str | None:
        """Return the id of the template that a face is, None where it is none."""
        return self.text(f"{side}_name") if self.kind(side) == "name" else None


async def read_form(request: Request, body: bytearray) -> PageForm:
    """Read the form in a body; no part of it is spooled to a file."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused(415, "no_form", "use the form of the page")

    # The parser takes a stream; the body is in memory, where its size was bounded.
    async def at_once() -> AsyncGenerator[bytes, None]:
        yield bytes(body)

    limits = {"max_files": 4, "max_fields": 16, "max_part_size": MOST_TEXT}
    try:
        form = await _InMemory(request.headers, at_once(), **limits).parse()
    except (MultiPartException, KeyError, ValueError):
        message = "go back, choose the faces again and send it"
        raise Refused(400, "broken_form", message) from None
    try:
        texts = {name: value for name, value in form.items() if isinstance(value, str)}
        files = {
            n: await value.read() for n, value in form.items() if isinstance(value, UploadFile)
        }
        return PageForm(texts, files)
    finally:
        await form.close()


class _InMemory(MultiPartParser):
    #: Larger than any form that is let in: an upload never touches the disk.
    spool_max_size = 1 << 40


def compare(service: Service, in_use: ModelInUse, filled: PageForm, who: str) -> Verification:
    """Judge the pair that was filled in; `who` is the name of whose key it is, for the trail.

    Raises
    ------
    FormErrors
        Where something is wrong: all of it at once, for people.
    """
    try:
        vectors, prior, wrong = _fields(service, in_use, filled)
        if wrong:
            raise FormErrors(422, **wrong)
        return service.verify(
            vectors["left"],
            vectors["right"],
            groups=(filled.text("left_group") or None, filled.text("right_group") or None),
            prior=prior,
            key=who,
            ids=(filled.template("left"), filled.template("right")),
            in_use=in_use,
        )
    except StorageError as error:
        # Under "", as no field is at fault: the error concerns the pair as such.
        status = 507 if isinstance(error, StorageFullError) else 503
        raise FormErrors(status, **{"": str(error)}) from error
    except (DataError, ParameterError) as error:
        raise FormErrors(422, **{"": str(error)}) from error


def _fields(
    service: Service, in_use: ModelInUse, filled: PageForm
) -> tuple[dict[str, Vector], float | None, dict[str, str]]:
    """Return the embeddings by side, the share, and by field what is wrong."""
    vectors: dict[str, Vector] = {}
    wrong: dict[str, str] = {}
    length = in_use.dimension  # a model of any dimension takes two of one length
    for name in SIDES:
        try:
            vector = filled.vector(name, service)
            if length in (None, len(vector)):
                vectors[name], length = vector, len(vector)
            else:
                wrong[f"{name}_{filled.kind(name)}"] = (
                    f"expected {length} numbers, found {len(vector)}; use the network of the "
                    "model, one for both faces"
                )
        except (DataError, ParameterError) as error:
            wrong[f"{name}_{filled.kind(name)}"] = str(error)
        if groups_needed(in_use) and not filled.text(f"{name}_group"):
            wrong[f"{name}_group"] = "say which group it is of"
    try:
        return vectors, read_share(filled.text("prior")[:100]), wrong
    except DataError as error:
        return vectors, None, wrong | {"prior": str(error)}


def groups_needed(in_use: ModelInUse) -> str:
    """Return the attribute whose groups must be given with a pair; empty where none."""
    if not in_use.needs_groups:
        return ""
    return str(getattr(in_use.model, "attribute_", None) or "group").replace("+", " and ")
