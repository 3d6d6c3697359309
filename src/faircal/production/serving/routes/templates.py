"""``/v1/templates`` and ``/v1/identify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal.production.serving import fields
from faircal.production.serving.bodies import only
from faircal.production.serving.front import Front, answer
from faircal.production.serving.problems import Refused
from faircal.production.serving.queries import query_text, query_whole
from faircal.production.serving.routes.schemas import ENROL, IDENTIFY, LIST, NAME, VERIFY_TEMPLATE
from faircal.production.serving.routes.verify import judged
from faircal.production.serving.store.base import TemplateInfo
from faircal.production.serving.verified import new_id, point_json

#: Templates of one list, and candidates of one identification.
_MOST_LISTED, _MOST_CANDIDATES = 1000, 100


def templates_router(front: Front) -> APIRouter:
    """Return the routes that enrol, list, delete and compare templates."""
    router, service = APIRouter(tags=["templates"]), front.service

    @router.post("/v1/templates", status_code=201, openapi_extra=ENROL, summary="Enrol")
    async def enrol(request: Request) -> Response:
        """Keep a template; when the answer comes it is on disk.

        The id is any printable text; without one, one is made. The same id again is refused
        unless `replace` is true.
        """
        key = front.access.admit(request, "enrol")
        found = await front.json(request)
        only(found, "id", "embedding", "image", "replace")
        front.store()
        replace = fields.flag(found, "replace", False)
        name = fields.template_id(found["id"], "id") if "id" in found else new_id()
        probe = fields.probe(found, service.dimension)
        vector = await front.vector(probe, "image")
        await front.ask(service.enrol, name, vector, replace=replace, key=key.name)
        made = await front.ask(front.store().info, name)
        return answer(_told(made) if made is not None else {"id": name}, 201)

    @router.get("/v1/templates", openapi_extra=LIST, summary="List templates")
    async def templates(request: Request) -> Response:
        """List templates in the order of their ids; vectors are never told."""
        front.access.admit(request, "enrol")
        after = query_text(request, "after")
        limit = query_whole(request, "limit", 100, _MOST_LISTED)
        store = front.store()
        found = await front.ask(store.list, after, limit)
        following = found[-1].id if len(found) == limit else None
        return answer(
            {
                "templates": [_told(each) for each in found],
                "next": following,
                "count": await front.ask(store.count),
            }
        )

    @router.get("/v1/templates/{name:path}", openapi_extra=NAME, summary="Tell of a template")
    async def template(request: Request) -> Response:
        """Say when a template was enrolled; its vector is never told."""
        front.access.admit(request, "enrol")
        found = await front.ask(front.store().info, _named(request))
        if found is None:
            raise _unknown()
        return answer(_told(found))

    @router.delete(
        "/v1/templates/{name:path}", status_code=204, openapi_extra=NAME, summary="Delete"
    )
    async def delete(request: Request) -> Response:
        """Delete a template and overwrite its bytes."""
        key = front.access.admit(request, "enrol")
        front.store()
        if not await front.ask(service.delete, _named(request), key=key.name):
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
        key = front.access.admit(request, "verify")
        found = await front.json(request)
        only(found, "embedding", "image", "left_group", "right_group", "prior")
        name, loaded = _named(request), service.loaded
        enrolled = await front.vector(fields.Template(name), "template")
        probe = await front.vector(fields.probe(found, loaded.dimension), "image")
        said = judged(service, found, (enrolled, probe), key.name, loaded, name)
        return answer({**said, "template": name})

    @router.post("/v1/identify", openapi_extra=IDENTIFY, summary="Who of those enrolled is it?")
    async def identify(request: Request) -> Response:
        """Rank those enrolled by how likely a face is of them.

        `probability` is that of the pair, as if only the two had been compared: it does not know
        how many are enrolled, and among many strangers some pair looks alike. `posterior` accounts
        for all N: each is as likely beforehand, together `enrolled_prior` (0.5 unless told), and
        with likelihood ratios LR, P(i) = (π/N) LRᵢ / ((1−π) + (π/N) Σ LR); `nobody` is the rest.
        The most similar templates (1,000 or more) are judged, those left out count as LR 0.
        """
        key = front.access.admit(request, "verify")
        found = await front.json(request)
        only(found, "embedding", "image", "limit", "enrolled_prior")
        front.store()
        limit = fields.whole(found, "limit", 5, _MOST_CANDIDATES)
        share = fields.share(found, "enrolled_prior")
        loaded = service.loaded
        probe = await front.vector(fields.probe(found, loaded.dimension), "image")
        said = await front.ask(
            service.identify,
            probe,
            limit=limit,
            enrolled_prior=0.5 if share is None else share,
            key=key.name,
            loaded=loaded,
        )
        return answer(
            {
                "id": said.id,
                "candidates": [asdict(each) for each in said.candidates],
                "nobody": said.nobody,
                "enrolled": said.enrolled,
                "enrolled_prior": 0.5 if share is None else share,
                "operating_point": point_json(said.loaded.judge.point),
                "model": said.loaded.digest,
            }
        )

    return router


def _told(info: TemplateInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "enrolled_at": info.enrolled_at.isoformat(),
        "dimension": info.dimension,
    }


def _named(request: Request) -> str:
    return fields.template_id(request.path_params["name"], "id")


def _unknown() -> Refused:
    return Refused(404, "template", "no such template; see GET /v1/templates", "id")
