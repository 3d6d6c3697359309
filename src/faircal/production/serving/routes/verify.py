"""Pairs and templates: ``/v1/verify``, its ``/batch``, ``/v1/templates``, ``/v1/identify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal.production.serving import batches, fields
from faircal.production.serving.batches import PairBatch
from faircal.production.serving.bodies import ARROW, JSON, Refused, kind_of, parse
from faircal.production.serving.fields import ROUTES, TemplateRef
from faircal.production.serving.routes import RouteContext, answer
from faircal.production.serving.service import Service, Sides
from faircal.production.serving.store.records import TemplateInfo
from faircal.production.serving.verification import ModelInUse, Vector, new_id, point_json

#: Length of embeddings that JSON has room for where the model does not tell.
_COMMON = 512
#: Templates of one list.
_MOST_LISTED = 1000


def verify_router(context: RouteContext) -> APIRouter:
    """Return the routes that judge pairs."""
    router, service = APIRouter(tags=["verify"]), context.service

    @router.post("/v1/verify", openapi_extra=ROUTES["verify"], summary="Judge one pair")
    async def verify(request: Request) -> Response:
        """Say of two faces whether they are of one person, and how likely that is.

        `probability` holds for the share of genuine pairs in `prior`; `log_likelihood_ratio` (nats)
        for any. The decision is made at `operating_point`; one on the score does not depend on
        `prior`. Both keep within what the calibration people can show; `at_bound` says where they
        would go further, and are at least (or at most) what they say.
        """
        key = context.access.admit(request, "verify")
        values = fields.PAIR.read(await context.json(request))
        in_use, sides = service.in_use, [values["left"], values["right"]]
        left = await context.vector(sides[0], "left", in_use)
        right = await context.vector(sides[1], "right", in_use)
        one, other = (side.id if isinstance(side, TemplateRef) else None for side in sides)
        return answer(_judged(service, in_use, values, (left, right), key.name, (one, other)))

    @router.post("/v1/verify/batch", openapi_extra=ROUTES["batch"], summary="Judge many pairs")
    async def verify_batch(request: Request) -> Response:
        """Judge many pairs at once, in JSON or as an Arrow stream.

        The answer is of the same kind unless `Accept` names the other one. Its `id` names the
        batch in the audit trail, `ID.0`, `ID.1`, … its pairs, for feedback.
        """
        key = context.access.admit(request, "verify")
        kind = kind_of(request, JSON, ARROW)
        accept = request.headers.get("accept", "")
        answer_kind = ARROW if ARROW in accept else JSON if JSON in accept else kind
        most = service.settings.max_pairs

        def read(body: bytearray, in_use: ModelInUse) -> PairBatch:
            if kind == ARROW:
                return batches.from_arrow(body, most)
            return batches.from_json(parse(body, most, in_use.dimension or _COMMON), most)

        def judge(pairs: PairBatch, in_use: ModelInUse) -> bytes:
            embeddings, left, right = pairs.join(in_use)
            batch = service.verify_many(
                embeddings,
                left,
                right,
                groups=pairs.groups,
                prior=pairs.prior,
                key=key.name,
                left_ids=pairs.left.templates,
                right_ids=pairs.right.templates,
                in_use=in_use,
            )
            return (batches.to_arrow if answer_kind == ARROW else batches.to_json)(batch)

        async with context.reader.body(request, service.settings.max_body) as body:
            in_use = service.in_use  # now: the body may have been long in coming
            pairs = await context.work(read, body, in_use)
            if names := {*pairs.left.ids, *pairs.right.ids}:
                vectors = await context.ask(context.store().vectors, list(names))
                pairs = pairs._replace(
                    left=pairs.left.enrolled(vectors), right=pairs.right.enrolled(vectors)
                )
            return Response(await context.work(judge, pairs, in_use), media_type=answer_kind)

    return router


def _judged(
    service: Service,
    in_use: ModelInUse,
    values: dict[str, Any],
    pair: tuple[Vector, Vector],
    key: str,
    ids: Sides,
) -> dict[str, Any]:
    """Judge a pair, with the groups and the share that a body asks for; return the answer."""
    verified = service.verify(
        *pair,
        groups=(values["left_group"], values["right_group"]),
        prior=values["prior"],
        key=key,
        ids=ids,
        in_use=in_use,
    )
    verdict = service.monitor.verdict
    due = None if service.monitor.watch is None else verdict is not None and verdict.due
    return {**verified.as_json(), "recalibration_due": due}


def templates_router(context: RouteContext) -> APIRouter:
    """Return the routes that enrol, list, delete and compare templates."""
    router, service = APIRouter(tags=["templates"]), context.service

    @router.post("/v1/templates", status_code=201, openapi_extra=ROUTES["enrol"], summary="Enrol")
    async def enrol(request: Request) -> Response:
        """Keep a template; when the answer comes it is on disk.

        The id is any printable text; without one, one is made. The same id again is refused
        unless `replace` is true.
        """
        key = context.access.admit(request, "enrol")
        values = fields.ENROLMENT.read(await context.json(request))
        store, name = context.store(), values["id"] or new_id()
        vector = await context.vector(*fields.probe(values), service.in_use)
        await context.ask(service.enrol, name, vector, replace=values["replace"], key=key.name)
        info = await context.ask(store.info, name)
        # Somebody may have deleted it meanwhile.
        return answer({"id": name} if info is None else _template_json(info), 201)

    @router.get("/v1/templates", openapi_extra=ROUTES["templates"], summary="List templates")
    async def templates(request: Request) -> Response:
        """List templates in the order of their ids; vectors are never told."""
        context.access.admit(request, "enrol")
        after = fields.query_text(request, "after")
        limit = fields.query_integer(request, "limit", 100, _MOST_LISTED)
        store = context.store()
        listed = await context.ask(store.templates, after, limit)
        return answer(
            {
                "templates": [_template_json(each) for each in listed],
                "next": listed[-1].id if len(listed) == limit else None,
                "count": await context.ask(store.count),
            }
        )

    # An id may have slashes in it, which are the path's.
    path, named = "/v1/templates/{name:path}", ROUTES["named"]

    @router.get(path, openapi_extra=named, summary="Tell of a template")
    async def template(request: Request) -> Response:
        """Say when a template was enrolled; its vector is never told."""
        context.access.admit(request, "enrol")
        info = await context.ask(context.store().info, _named(request))
        if info is None:
            raise _unknown()
        return answer(_template_json(info))

    @router.delete(path, status_code=204, openapi_extra=named, summary="Delete")
    async def delete(request: Request) -> Response:
        """Delete a template and overwrite its bytes."""
        key = context.access.admit(request, "enrol")
        context.store()
        if not await context.ask(service.delete, _named(request), key=key.name):
            raise _unknown()
        return Response(status_code=204)

    # The id may itself end in "/verify": it is whatever lies between.
    @router.post(
        path + "/verify",
        openapi_extra=ROUTES["verify_template"],
        summary="Judge a face against a template",
    )
    async def verify_template(request: Request) -> Response:
        """Say whether a face is of the person who is enrolled under an id."""
        key = context.access.admit(request, "verify")
        values = fields.AGAINST_TEMPLATE.read(await context.json(request))
        name, in_use = _named(request), service.in_use
        enrolled = await context.vector(TemplateRef(name), "template", in_use)
        probe = await context.vector(*fields.probe(values), in_use)
        result = _judged(service, in_use, values, (enrolled, probe), key.name, (name, None))
        return answer({**result, "template": name})

    @router.post(
        "/v1/identify", openapi_extra=ROUTES["identify"], summary="Who of those enrolled is it?"
    )
    async def identify(request: Request) -> Response:
        """Rank those enrolled by how likely a face is of them.

        `probability` is that of the pair, as if only the two had been compared: it does not know
        how many are enrolled, and among many strangers some pair looks alike. `posterior` accounts
        for all N: each is as likely beforehand, together `enrolled_prior` (0.5 unless told), and
        with likelihood ratios LR, P(i) = (π/N) LRᵢ / ((1−π) + (π/N) Σ LR); `nobody` is the rest.
        The most similar templates (1,000 or more) are judged, those left out count as the lower
        bound on LR. `at_bound` as of a pair; `nobody_at_bound` where the likeliest candidate is.
        """
        key = context.access.admit(request, "verify")
        values = fields.IDENTIFICATION.read(await context.json(request))
        context.store()
        share, in_use = values["enrolled_prior"], service.in_use
        result = await context.ask(
            service.identify,
            await context.vector(*fields.probe(values), in_use),
            limit=values["limit"],
            enrolled_prior=0.5 if share is None else share,
            key=key.name,
            in_use=in_use,
        )
        return answer(
            {
                "id": result.id,
                "candidates": [asdict(each) for each in result.candidates],
                "nobody": result.nobody,
                "nobody_at_bound": result.nobody_at_bound,
                "enrolled": result.enrolled,
                "enrolled_prior": 0.5 if share is None else share,
                "operating_point": point_json(in_use.judge.point),
                "model": in_use.digest,
            }
        )

    return router


def _template_json(info: TemplateInfo) -> dict[str, Any]:
    return {**asdict(info), "enrolled_at": info.enrolled_at.isoformat()}


def _named(request: Request) -> str:
    return fields.template_id(request.path_params["name"], "id")


def _unknown() -> Refused:
    return Refused(404, "template", "no such template; see GET /v1/templates", "id")
