"""What OpenAPI says of bodies and answers.

Bodies are read by hand (`faircal.production.serving.fields`): twice as fast as by declared models,
and no error ever repeats what was sent. So they are described here.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
_NUMBER: Schema = {"type": "number"}
_BOOL: Schema = {"type": "boolean"}
_SHARE: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_VECTOR: Schema = {
    "type": "array",
    "items": _NUMBER,
    "minItems": 1,
    "description": "An embedding, as the network that the model was made for gives it.",
}
_IMAGE: Schema = {
    "type": "string",
    "format": "byte",
    "description": "JPEG, PNG or WebP in base64; where the service was started with --network.",
}


def _object(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


_X: Schema = {
    "oneOf": [
        _VECTOR,
        _object(("template",), template=_TEXT),
        _object(("image",), image=_IMAGE),
    ]
}
_GROUPS = {"left_group": _TEXT, "right_group": _TEXT}
_POINT = _object(
    threshold=_NUMBER,
    on={"enum": ["score", "probability"]},
    source={"type": "string"},
    fpr={"type": ["number", "null"]},
    promised={**_BOOL, "description": "Whether at most `fpr` is promised, or was only counted."},
)
_PAIR_OF = {
    "score": {**_NUMBER, "description": "What the model ranks by."},
    "similarity": {**_NUMBER, "description": "The cosine."},
    "probability": {**_NUMBER, "description": "P(genuine) at the share in `prior`."},
    "log_likelihood_ratio": {**_NUMBER, "description": "In nats; the same whatever the share."},
    "same": _BOOL,
}
_VERIFIED = _object(
    id=_TEXT,
    **_PAIR_OF,
    decision={"enum": ["same", "different"]},
    operating_point=_POINT,
    clusters={"type": ["array", "null"], "items": {"type": "integer"}},
    outside={"type": ["array", "null"], "items": _BOOL},
    out_of_population={"type": ["boolean", "null"]},
    model={"type": "string", "description": "SHA-256 of the model file."},
    prior=_SHARE,
    recalibration_due={
        "type": ["boolean", "null"],
        "description": "Whether monitoring found that pairs are no longer those of calibration.",
    },
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
_ARROW = "application/vnd.apache.arrow.stream"
_STREAM: Schema = {"type": "string", "format": "binary"}
_ERRORS = {
    "400": "No JSON, or no Arrow stream.",
    "401": "No key, or an unknown one.",
    "403": "The key is not good for this.",
    "404": "There is no such thing.",
    "409": "It is there already, or not possible here.",
    "413": "Too large, or too many pairs.",
    "415": "Another kind of body.",
    "422": "Something in the body can't be used; nothing of it is repeated.",
    "429": "Too often; see Retry-After.",
    "503": "The database does not answer, so nothing is decided; see Retry-After.",
    "507": "The database has no room left, so nothing is decided.",
}
_SECURITY: list[Schema] = [{"bearer": []}, {"header": []}]


def _json(schema: Schema, words: str = "Done.") -> Schema:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _route(
    body: Schema | None = None,
    answer: Schema | None = None,
    status: str = "200",
    parameters: list[Schema] | None = None,
) -> Schema:
    schema: Schema = {
        "security": _SECURITY,
        "responses": {
            status: _json(answer or {"type": "object"}),
            **{code: _json(_ERROR, words) for code, words in _ERRORS.items()},
        },
    }
    if body is not None:
        schema["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}},
        }
    if parameters:
        schema["parameters"] = parameters
    return schema


def _query(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema}


_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
_PATH = {"name": "name", "in": "path", "required": True, "schema": _TEXT}
_PROBE = {"embedding": _VECTOR, "image": _IMAGE}
_LISTS = {"type": "array", "items": {"oneOf": [_VECTOR, _TEXT]}}

OPEN: Schema = {"security": []}
GET = _route()
VERIFY = _route(_object(("left", "right"), left=_X, right=_X, **_GROUPS, prior=_SHARE), _VERIFIED)
_COLUMNS = {name: {"type": "array", "items": {}} for name in _PAIR_OF}
BATCH = _route(
    {
        "oneOf": [
            _object(
                ("left", "right"),
                left=_LISTS,
                right=_LISTS,
                **{name: {"type": "array", "items": _TEXT} for name in _GROUPS},
                prior=_SHARE,
            ),
            _object(
                ("pairs",),
                pairs={
                    "type": "array",
                    "items": _object(("left", "right"), left=_X, right=_X, **_GROUPS),
                },
                prior=_SHARE,
            ),
        ]
    },
    _object(id=_TEXT, pairs={"type": "integer"}, operating_point=_POINT, **_COLUMNS),
)
BATCH["requestBody"]["content"][_ARROW] = {
    "schema": {
        **_STREAM,
        "description": "Columns left and right: fixed_size_list of float16, float32 or float64, "
        "lists of one length, or text (ids of templates); dictionary-encoded or not; "
        "left_group and right_group: text. Not compressed. The schema's metadata may have "
        "faircal.prior, the share of genuine pairs that probabilities are wanted for.",
    }
}
BATCH["responses"]["200"]["content"][_ARROW] = {"schema": _STREAM}
_TEMPLATE = _object(id=_TEXT, enrolled_at={"type": "string"}, dimension={"type": "integer"})
ENROL = _route(_object(id=_TEXT, **_PROBE, replace=_BOOL), _TEMPLATE, "201")
LIST = _route(
    answer=_object(
        templates={"type": "array", "items": _TEMPLATE},
        next={"type": ["string", "null"]},
        count={"type": "integer"},
    ),
    parameters=[_query("after", _TEXT), _query("limit", _LIMIT)],
)
NAME = _route(parameters=[_PATH])
VERIFY_TEMPLATE = _route(_object(**_PROBE, **_GROUPS, prior=_SHARE), _VERIFIED, parameters=[_PATH])
IDENTIFY = _route(
    _object(
        **_PROBE,
        limit={"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
        enrolled_prior={**_SHARE, "default": 0.5},
    ),
    _object(
        id=_TEXT,
        candidates={"type": "array", "items": _object(id=_TEXT, **_PAIR_OF, posterior=_NUMBER)},
        nobody=_NUMBER,
        enrolled={"type": "integer"},
        enrolled_prior=_SHARE,
        operating_point=_POINT,
        model={"type": "string"},
    ),
)
FEEDBACK = _route(_object(("decision", "genuine"), decision=_TEXT, genuine=_BOOL))
DECISIONS = _route(
    parameters=[
        _query("after", _TEXT),
        _query("limit", _LIMIT),
        _query("format", {"enum": ["json", "csv"]}),
    ]
)
DECISION = _route(parameters=[_PATH])
RELOAD = _route(_object(path={"type": "string"}))
SECURITY_SCHEMES: Schema = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
