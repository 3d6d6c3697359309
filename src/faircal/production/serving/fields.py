"""What bodies and answers hold: each field once, with what reads it and what OpenAPI says of it.

Bodies are read by hand: twice as fast as by declared models, and no error ever repeats what was
sent, which could be biometric.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from faircal.production.serving.bodies import ARROW, only, unprocessable
from faircal.production.serving.store.records import LONGEST_ID, MOST_DIMENSIONS
from faircal.production.serving.verification import Vector

if TYPE_CHECKING:
    from starlette.requests import Request

Schema = dict[str, Any]

_NUMBERS = {float, int}


class TemplateRef(NamedTuple):
    """One that is enrolled."""

    id: str


class PictureBytes(NamedTuple):
    """The bytes of one."""

    data: bytes


def vector(value: Any, where: str) -> Vector:
    """Return an embedding, shape (d,).

    Examples
    --------
    >>> vector([0.5, 1], "left")
    array([0.5, 1. ], dtype=float32)
    """
    if type(value) is not list or not value:
        raise unprocessable("expected a list of numbers; send the embedding as one", where)
    if len(value) > MOST_DIMENSIONS:
        raise unprocessable(f"expected at most {MOST_DIMENSIONS} numbers", where, "dimension")
    # By type, not isinstance: true and false are numbers to Python, and no part of an embedding.
    if not _NUMBERS.issuperset(map(type, value)):
        raise unprocessable("expected numbers only; send the embedding as a flat list", where)
    try:
        with np.errstate(over="ignore"):  # becomes infinite, and is refused below
            embedding = np.array(value, dtype=np.float32)
            square = float(np.dot(embedding, embedding))
    except OverflowError:  # a whole number of hundreds of digits
        square = np.inf
    if not 0 < square < np.inf:
        raise unprocessable(
            "expected finite numbers of moderate size, not all 0; embed the image again", where
        )
    return embedding


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


def _side(value: Any, where: str) -> Vector | TemplateRef | PictureBytes:
    """Return what one side of a pair is: an embedding, a template's id, or a picture."""
    if type(value) is list:
        return vector(value, where)
    if type(value) is dict and len(value) == 1:
        if "template" in value:
            return TemplateRef(template_id(value["template"], f"{where}.template"))
        if "image" in value:
            return _picture(value["image"], f"{where}.image")
    raise unprocessable(
        'expected a list of numbers, {"template": id} or {"image": base64}; send one of them', where
    )


def _picture(value: Any, where: str) -> PictureBytes:
    """Return a picture out of its base64."""
    if type(value) is not str:
        raise unprocessable("expected the picture's bytes in base64; send them so", where)
    try:
        return PictureBytes(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        raise unprocessable("expected base64; encode the picture's bytes so", where) from None


def template_id(value: Any, where: str) -> str:
    """Return the id of a template: data, of which nothing but letters is asked.

    What is not printable could forge lines of logs, and of the names that the trail keeps.
    """
    if type(value) is not str or not 1 <= len(value) <= LONGEST_ID or not value.isprintable():
        raise unprocessable(
            f"expected printable text of 1 to {LONGEST_ID} characters; choose another id",
            where,
            "id",
        )
    return value


def text(value: Any, where: str) -> str | None:
    """Return a short text, None for null."""
    if value is not None and (
        type(value) is not str or len(value) > LONGEST_ID or not value.isprintable()
    ):
        raise unprocessable(f"expected printable text of at most {LONGEST_ID} characters", where)
    return value


def share(value: Any, where: str) -> float | None:
    """Return a share between 0 and 1, None for null."""
    if value is not None and (type(value) not in _NUMBERS or not 1e-12 <= value <= 1 - 1e-12):
        raise unprocessable("expected a number between 0 and 1; write 1 in 1,000 as 0.001", where)
    return None if value is None else float(value)


def _flag(value: Any, where: str) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        raise unprocessable("expected true or false", where)
    return value


def _integer(value: Any, where: str, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise unprocessable(f"expected a whole number from 1 to {most}", where)
    return value


def query_text(request: Request, name: str) -> str | None:
    """Return a text of the address, None where there is none."""
    return text(request.query_params.get(name), name) or None


def query_integer(request: Request, name: str, default: int, most: int) -> int:
    """Return a whole number of the address, from 1 to `most`."""
    value = request.query_params.get(name)
    if value is None:
        return default
    # No more digits than any limit has: Python takes long to read thousands of them.
    good = value.isascii() and value.isdecimal() and len(value) <= 10
    return _integer(int(value) if good else None, name, most)


class Field(NamedTuple):
    """A field of a body: what OpenAPI says of it, and what reads it; its default is not read."""

    schema: Schema
    read: Callable[[Any, str], Any]
    default: Any = None
    required: bool = False


class BodyFields:
    """The fields that a JSON body may have.

    >>> BodyFields(genuine=Field({"type": "boolean"}, _flag, False)).read({})
    {'genuine': False}
    """

    def __init__(self, **fields: Field) -> None:
        self._fields = fields
        required = tuple(name for name, field in fields.items() if field.required)
        self.schema = _object(required, **{name: each.schema for name, each in fields.items()})

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the values of all fields; what is not as it must be is refused by name."""
        only(body, *self._fields)
        return {
            name: each.read(body.get(name), name) if each.required or name in body else each.default
            for name, each in self._fields.items()
        }


def probe(values: dict[str, Any]) -> tuple[Vector | PictureBytes, str]:
    """Return the embedding or the picture of a body that has one of them, and which it is."""
    given = [name for name in ("embedding", "image") if values[name] is not None]
    if len(given) != 1:
        raise unprocessable("expected either embedding or image; send one of them", "embedding")
    return values[given[0]], given[0]


def _object(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(kind: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], **more}


_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_ID}
_NUMBER: Schema = {"type": "number"}
_BOOL: Schema = {"type": "boolean"}
_SHARE: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_VECTOR: Schema = {
    **_list_of(_NUMBER),
    "minItems": 1,
    "description": "An embedding, as the network that the model was made for gives it.",
}
_IMAGE: Schema = {
    "type": "string",
    "format": "byte",
    "description": "JPEG, PNG or WebP in base64; where the service was started with --network.",
}
_FACE: Schema = {
    "oneOf": [
        _VECTOR,
        _object(("template",), template=_TEXT),
        _object(("image",), image=_IMAGE),
    ]
}

#: Candidates of one identification.
MOST_CANDIDATES = 100
_GROUPS = {"left_group": Field(_TEXT, text), "right_group": Field(_TEXT, text)}
_PRIOR = {"prior": Field(_SHARE, share)}
_PROBE = {"embedding": Field(_VECTOR, vector), "image": Field(_IMAGE, _picture)}
_SIDES = {side: Field(_FACE, _side, required=True) for side in ("left", "right")}
PAIR = BodyFields(**_SIDES, **_GROUPS, **_PRIOR)
AGAINST_TEMPLATE = BodyFields(**_PROBE, **_GROUPS, **_PRIOR)
ENROLMENT = BodyFields(id=Field(_TEXT, template_id), **_PROBE, replace=Field(_BOOL, _flag, False))
IDENTIFICATION = BodyFields(
    **_PROBE,
    limit=Field(
        {"type": "integer", "minimum": 1, "maximum": MOST_CANDIDATES, "default": 5},
        lambda value, where: _integer(value, where, MOST_CANDIDATES),
        default=5,
    ),
    enrolled_prior=Field({**_SHARE, "default": 0.5}, share),
)
LABEL = BodyFields(
    decision=Field(_TEXT, template_id, required=True), genuine=Field(_BOOL, _flag, required=True)
)
RELOAD = BodyFields(path=Field({"type": "string"}, lambda value, _: value))
#: The fields of a pair within a batch.
PAIR_OF_BATCH = (*_SIDES, *_GROUPS)

_POINT = _object(
    threshold=_NUMBER,
    on={"enum": ["score", "probability"]},
    source={"type": "string"},
    fpr=_or_null("number"),
    promised={**_BOOL, "description": "Whether at most `fpr` is promised, or was only counted."},
    assumption={"type": "string", "description": "What that assumes, such as independent pairs."},
)
_NUMBERS_OF_PAIR = {
    "score": {**_NUMBER, "description": "What the model ranks by."},
    "similarity": {**_NUMBER, "description": "The cosine."},
    "probability": {**_NUMBER, "description": "P(genuine) at the share in `prior`."},
    "log_likelihood_ratio": {**_NUMBER, "description": "In nats; the same whatever the share."},
    "same": _BOOL,
    "at_bound": _or_null(
        "boolean",
        description="Whether evidence is at a bound of what calibration people can show: it is at "
        "least as strong as is said. Null: the model file has no bounds.",
    ),
}
_VERIFIED = _object(
    id=_TEXT,
    **_NUMBERS_OF_PAIR,
    decision={"enum": ["same", "different"]},
    operating_point=_POINT,
    clusters=_or_null("array", items={"type": "integer"}),
    outside=_or_null("array", items=_BOOL),
    out_of_population=_or_null("boolean"),
    model={"type": "string", "description": "SHA-256 of the model file."},
    prior=_SHARE,
    recalibration_due=_or_null(
        "boolean",
        description="Whether monitoring found that pairs are no longer those of calibration.",
    ),
)
_ERROR = _object(
    ("error",),
    error=_object(
        ("code", "message"),
        code={"type": "string"},
        message={"type": "string"},
        where={"type": "string", "description": "The part of the request, such as left[3]."},
    ),
)
_REFUSED = (
    "Refused, with nothing decided: 400 no JSON or Arrow, 401 no key, 403 not for this key, 404 no "
    "such thing, 409 there already or not possible here, 413 too large, 415 another kind of body, "
    "422 something in the body can't be used, 429 too often, 503 the database does not answer (429 "
    "and 503 have Retry-After), 507 the database is full."
)


def _json(schema: Schema, words: str = "Done.") -> Schema:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _route(
    body: Schema | None = None,
    answer: Schema | None = None,
    status: str = "200",
    parameters: tuple[Schema, ...] = (),
) -> Schema:
    schema: Schema = {
        "security": [{"bearer": []}, {"header": []}],
        "responses": {
            status: _json(answer or {"type": "object"}),
            "default": _json(_ERROR, _REFUSED),
        },
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        schema["requestBody"] = {"required": True, "content": content}
    return {**schema, "parameters": list(parameters)} if parameters else schema


def _query(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema}


_TEMPLATE = _object(id=_TEXT, enrolled_at={"type": "string"}, dimension={"type": "integer"})
_PATH = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_PAGE = (_query("after", _TEXT), _query("limit", _LIMIT))
_LISTS = _list_of({"oneOf": [_VECTOR, _TEXT]})
_PAIRS = _list_of(
    _object(("left", "right"), **{name: PAIR.schema["properties"][name] for name in PAIR_OF_BATCH})
)
_BATCH = _route(
    {
        "oneOf": [
            _object(
                ("left", "right"),
                left=_LISTS,
                right=_LISTS,
                **{name: _list_of(_TEXT) for name in _GROUPS},
                prior=_SHARE,
            ),
            _object(("pairs",), pairs=_PAIRS, prior=_SHARE),
        ]
    },
    _object(
        id=_TEXT,
        pairs={"type": "integer"},
        operating_point=_POINT,
        **{name: _list_of({}) for name in _NUMBERS_OF_PAIR},
    ),
)
_STREAM: Schema = {"type": "string", "format": "binary"}
_BATCH["requestBody"]["content"][ARROW] = {
    "schema": {
        **_STREAM,
        "description": "Columns left and right: fixed_size_list of float16, float32 or float64, "
        "lists of one length, or text (ids of templates); dictionary-encoded or not; "
        "left_group and right_group: text. Not compressed. The schema's metadata may have "
        "faircal.prior, the share of genuine pairs that probabilities are wanted for.",
    }
}
_BATCH["responses"]["200"]["content"][ARROW] = {"schema": _STREAM}

#: What OpenAPI says of each route.
ROUTES: dict[str, Schema] = {
    "open": {"security": []},
    "get": _route(),
    "named": _route(parameters=(_PATH,)),
    "verify": _route(PAIR.schema, _VERIFIED),
    "batch": _BATCH,
    "enrol": _route(ENROLMENT.schema, _TEMPLATE, "201"),
    "templates": _route(
        answer=_object(
            templates=_list_of(_TEMPLATE), next=_or_null("string"), count={"type": "integer"}
        ),
        parameters=_PAGE,
    ),
    "verify_template": _route(AGAINST_TEMPLATE.schema, _VERIFIED, parameters=(_PATH,)),
    "identify": _route(
        IDENTIFICATION.schema,
        _object(
            id=_TEXT,
            candidates=_list_of(_object(id=_TEXT, **_NUMBERS_OF_PAIR, posterior=_NUMBER)),
            nobody=_NUMBER,
            nobody_at_bound=_or_null("boolean"),
            enrolled={"type": "integer"},
            enrolled_prior=_SHARE,
            operating_point=_POINT,
            model={"type": "string"},
        ),
    ),
    "feedback": _route(LABEL.schema),
    "decisions": _route(parameters=(*_PAGE, _query("format", {"enum": ["json", "csv"]}))),
    "reload": _route(RELOAD.schema),
}
SECURITY_SCHEMES: Schema = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
