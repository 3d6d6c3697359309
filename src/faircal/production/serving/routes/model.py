"""``/v1/model`` and ``/v1/monitor``: what is in use, and whether it still fits."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal.metrics.results import without_nan
from faircal.production.serving.bodies import only
from faircal.production.serving.front import Front, answer
from faircal.production.serving.loaded import Loaded
from faircal.production.serving.problems import Refused
from faircal.production.serving.routes.schemas import GET, RELOAD


def model_router(front: Front) -> APIRouter:
    """Return the routes of the model and its monitoring."""
    router, service = APIRouter(tags=["model"]), front.service

    @router.get("/v1/model", openapi_extra=GET, summary="The model's card")
    async def model(request: Request) -> Response:
        """Tell what the model is, where it is from, and where it decides."""
        front.access.admit(request, None)
        return answer(await front.work(_about, service.loaded))

    @router.post("/v1/model", openapi_extra=RELOAD, summary="Read the model file again")
    async def reload(request: Request) -> Response:
        """Use the model file as it is now; requests under way end with the old one.

        The service reads no other file than the one it was started with; `path` may be given to
        make sure that it is this one. One that can't be used is refused, and the old one stays.
        """
        front.access.admit(request, "admin")
        found = await front.json(request)
        only(found, "path")
        if found.get("path") not in (None, str(service.settings.model)):
            raise Refused(
                403, "path", "the service reads the file that it was started with only", "path"
            )
        swapped = await front.work(service.reload)
        return answer({"swapped": swapped, "model": service.model_digest})

    @router.get("/v1/monitor", openapi_extra=GET, summary="Does the model still fit?")
    async def monitor(request: Request) -> Response:
        """Tell whether pairs in use are what the model was calibrated for."""
        front.access.admit(request, None)
        verdict = await front.work(service.watching.look)
        if verdict is None:
            words = "the model file has no population to compare with; fit it again"
            return answer({"monitored": False, "due": None, "words": words})
        return answer(without_nan({"monitored": True, **verdict.as_json()}))

    return router


def _about(loaded: Loaded) -> dict[str, Any]:
    found: dict[str, Any] = without_nan(
        {
            "model": loaded.digest,
            "prior": loaded.prior,
            "calibrated_at": loaded.calibrated_at,
            "dimension": loaded.dimension,
            "operating_point": loaded.judge.point.as_json(),
            "card": loaded.facts,
        }
    )
    return found
