"""Pairs and templates: ``/v1/verify``, its ``/batch``, ``/v1/templates``, ``/v1/identify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal.production.serving import fields
from faircal.production.serving.batch_arrow import (
    groups_in,
    prior_in,
    read_table,
    side_of,
    write_batch,
)
from faircal.production.serving.batch_json import BatchSide, join_sides, read_batch
from faircal.production.serving.bodies import ARROW, JSON, kind_of, only, parse
from faircal.production.serving.fields import query_text, query_whole
from faircal.production.serving.model_in_use import ModelInUse
from faircal.production.serving.problems import Refused
from faircal.production.serving.routes.context import RouteContext, answer
from faircal.production.serving.routes.schemas import (
    BATCH,
    ENROL,
    IDENTIFY,
    LIST,
    NAME,
    VERIFY,
    VERIFY_TEMPLATE,
)
from faircal.production.serving.service import Service, Vector
from faircal.production.serving.store.records import TemplateInfo
from faircal.production.serving.verification import BatchVerification, new_id, point_json

if TYPE_CHECKING:
    from faircal.data import Groups


#: Length of embeddings that JSON has room for where the model does not tell.
_COMMON = 512
_FIELDS = ("left", "right", "left_group", "right_group", "prior")


def judged(
    service: Service,
    body: dict[str, Any],
    pair: tuple[Vector, Vector],
    key: str,
    in_use: ModelInUse,
    left_id: str | None = None,
    right_id: str | None = None,
) -> dict[str, Any]:
    """Judge a pair, with the groups and the share that a body asks for; return the answer."""
    verified = service.verify(
        *pair,
        left_group=fields.text(body, "left_group"),
        right_group=fields.text(body, "right_group"),
        prior=fields.share(body, "prior"),
        key=key,
        left_id=left_id,
        right_id=right_id,
        in_use=in_use,
    )
    verdict = service.monitor.verdict
    due = None if service.monitor.watch is None else verdict is not None and verdict.due
    return {**verified.as_json(), "recalibration_due": due}


def verify_router(context: RouteContext) -> APIRouter:
    """Return the routes that judge pairs."""
    router, service = APIRouter(tags=["verify"]), context.service

    @router.post("/v1/verify", openapi_extra=VERIFY, summary="Judge one pair")
    async def verify(request: Request) -> Response:
        """Say of two faces whether they are of one person, and how likely that is.

        `probability` holds for the share of genuine pairs in `prior`; `log_likelihood_ratio` (nats)
        for any. The decision is made at `operating_point`; one on the score does not depend on
        `prior`.
        """
        key = context.access.admit(request, "verify")
        body = await context.json(request)
        only(body, *_FIELDS)
        in_use = service.in_use
        sides = [fields.side(body.get(s), s, in_use.dimension) for s in ("left", "right")]
        ids = [side.id if isinstance(side, fields.TemplateRef) else None for side in sides]
        # Nothing is awaited where both are embeddings: no thread is worth a quarter millisecond.
        left, right = [
            side if isinstance(side, np.ndarray) else await context.vector(side, name)
            for name, side in zip(("left", "right"), sides, strict=True)
        ]
        return answer(judged(service, body, (left, right), key.name, in_use, *ids))

    @router.post("/v1/verify/batch", openapi_extra=BATCH, summary="Judge many pairs")
    async def verify_batch(request: Request) -> Response:
        """Judge many pairs at once, in JSON or as an Arrow stream.

        The answer is of the same kind unless `Accept` names the other one. Its `id` names the
        batch in the audit trail, `ID.0`, `ID.1`, … its pairs, for feedback.
        """
        key = context.access.admit(request, "verify")
        kind = kind_of(request, JSON, ARROW)
        async with context.reader.body(request, service.settings.max_body) as body:
            in_use = service.in_use
            read = _from_arrow if kind == ARROW else _from_json
            parts = await context.work(read, body, service.settings.max_pairs, in_use.dimension)
            left, right, groups, prior = parts
            if left.ids or right.ids:
                vectors = await context.ask(context.store().vectors, list({*left.ids, *right.ids}))
                left, right = left.enrolled(vectors), right.enrolled(vectors)
            accept = request.headers.get("accept", "")
            answer_kind = ARROW if ARROW in accept else JSON if JSON in accept else kind

            def judge() -> bytes:
                batch = _judged(context, in_use, left, right, groups, prior, key.name)
                return write_batch(batch) if answer_kind == ARROW else _as_json(batch)

            return Response(await context.work(judge), media_type=answer_kind)

    return router


Made = tuple[BatchSide, BatchSide, "Groups | None", float | None]


def _from_json(body: bytearray, max_pairs: int, dimension: int | None) -> Made:
    return read_batch(parse(body, max_pairs, dimension or _COMMON), max_pairs)


def _from_arrow(body: bytearray, max_pairs: int, dimension: int | None) -> Made:  # noqa: ARG001
    table = read_table(body, max_pairs)
    return side_of(table, "left"), side_of(table, "right"), groups_in(table), prior_in(table)


def _judged(
    context: RouteContext,
    in_use: ModelInUse,
    left: BatchSide,
    right: BatchSide,
    groups: Groups | None,
    prior: float | None,
    key: str,
) -> BatchVerification:
    embeddings, i, j = join_sides(left, right, in_use.dimension, in_use.normalize)
    return context.service.verify_many(
        embeddings,
        i,
        j,
        groups=groups,
        prior=prior,
        key=key,
        left_ids=left.templates,
        right_ids=right.templates,
        in_use=in_use,
    )


def _as_json(batch: BatchVerification) -> bytes:
    from pydantic_core import to_json

    answer: dict[str, Any] = {
        "id": batch.id,
        "pairs": len(batch),
        "model": batch.model,
        "prior": batch.prior,
        "operating_point": point_json(batch.point),
    }
    for name, values in batch.columns().items():
        answer[name] = None if values is None else values.tolist()
    return to_json(answer)


#: Templates of one list, and candidates of one identification.
_MOST_LISTED, _MOST_CANDIDATES = 1000, 100


def templates_router(context: RouteContext) -> APIRouter:
    """Return the routes that enrol, list, delete and compare templates."""
    router, service = APIRouter(tags=["templates"]), context.service

    @router.post("/v1/templates", status_code=201, openapi_extra=ENROL, summary="Enrol")
    async def enrol(request: Request) -> Response:
        """Keep a template; when the answer comes it is on disk.

        The id is any printable text; without one, one is made. The same id again is refused
        unless `replace` is true.
        """
        key = context.access.admit(request, "enrol")
        body = await context.json(request)
        only(body, "id", "embedding", "image", "replace")
        context.store()
        replace = fields.flag(body, "replace", False)
        name = fields.template_id(body["id"], "id") if "id" in body else new_id()
        probe = fields.probe(body, service.in_use.dimension)
        vector = await context.vector(probe, "image")
        await context.ask(service.enrol, name, vector, replace=replace, key=key.name)
        info = await context.ask(context.store().info, name)
        return answer(_template_json(info) if info is not None else {"id": name}, 201)

    @router.get("/v1/templates", openapi_extra=LIST, summary="List templates")
    async def templates(request: Request) -> Response:
        """List templates in the order of their ids; vectors are never told."""
        context.access.admit(request, "enrol")
        after = query_text(request, "after")
        limit = query_whole(request, "limit", 100, _MOST_LISTED)
        store = context.store()
        listed = await context.ask(store.templates, after, limit)
        following = listed[-1].id if len(listed) == limit else None
        return answer(
            {
                "templates": [_template_json(each) for each in listed],
                "next": following,
                "count": await context.ask(store.count),
            }
        )

    @router.get("/v1/templates/{name:path}", openapi_extra=NAME, summary="Tell of a template")
    async def template(request: Request) -> Response:
        """Say when a template was enrolled; its vector is never told."""
        context.access.admit(request, "enrol")
        info = await context.ask(context.store().info, _named(request))
        if info is None:
            raise _unknown()
        return answer(_template_json(info))

    @router.delete(
        "/v1/templates/{name:path}", status_code=204, openapi_extra=NAME, summary="Delete"
    )
    async def delete(request: Request) -> Response:
        """Delete a template and overwrite its bytes."""
        key = context.access.admit(request, "enrol")
        context.store()
        if not await context.ask(service.delete, _named(request), key=key.name):
            raise _unknown()
        return Response(status_code=204)

    # The id may itself end in "/verify": it is whatever lies between.
    @router.post(
        "/v1/templates/{name:path}/verify",
        openapi_extra=VERIFY_TEMPLATE,
        summary="Judge a face against a template",
    )
    async def verify_template(request: Request) -> Response:
        """Say whether a face is of the person who is enrolled under an id."""
        key = context.access.admit(request, "verify")
        body = await context.json(request)
        only(body, "embedding", "image", "left_group", "right_group", "prior")
        name, in_use = _named(request), service.in_use
        enrolled = await context.vector(fields.TemplateRef(name), "template")
        probe = await context.vector(fields.probe(body, in_use.dimension), "image")
        result = judged(service, body, (enrolled, probe), key.name, in_use, name)
        return answer({**result, "template": name})

    @router.post("/v1/identify", openapi_extra=IDENTIFY, summary="Who of those enrolled is it?")
    async def identify(request: Request) -> Response:
        """Rank those enrolled by how likely a face is of them.

        `probability` is that of the pair, as if only the two had been compared: it does not know
        how many are enrolled, and among many strangers some pair looks alike. `posterior` accounts
        for all N: each is as likely beforehand, together `enrolled_prior` (0.5 unless told), and
        with likelihood ratios LR, P(i) = (π/N) LRᵢ / ((1−π) + (π/N) Σ LR); `nobody` is the rest.
        The most similar templates (1,000 or more) are judged, those left out count as LR 0.
        """
        key = context.access.admit(request, "verify")
        body = await context.json(request)
        only(body, "embedding", "image", "limit", "enrolled_prior")
        context.store()
        limit = fields.whole_number(body, "limit", 5, _MOST_CANDIDATES)
        share = fields.share(body, "enrolled_prior")
        in_use = service.in_use
        probe = await context.vector(fields.probe(body, in_use.dimension), "image")
        result = await context.ask(
            service.identify,
            probe,
            limit=limit,
            enrolled_prior=0.5 if share is None else share,
            key=key.name,
            in_use=in_use,
        )
        return answer(
            {
                "id": result.id,
                "candidates": [asdict(each) for each in result.candidates],
                "nobody": result.nobody,
                "enrolled": result.enrolled,
                "enrolled_prior": 0.5 if share is None else share,
                "operating_point": point_json(result.in_use.judge.point),
                "model": result.in_use.digest,
            }
        )

    return router


def _template_json(info: TemplateInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "enrolled_at": info.enrolled_at.isoformat(),
        "dimension": info.dimension,
    }


def _named(request: Request) -> str:
    return fields.template_id(request.path_params["name"], "id")


def _unknown() -> Refused:
    return Refused(404, "template", "no such template; see GET /v1/templates", "id")
