"""``/healthz``, ``/readyz`` and ``/metrics``: for those who watch over the service."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal._base.errors import FairCalError
from faircal.production.serving.front import Front, answer
from faircal.production.serving.problems import Refused
from faircal.production.serving.routes.schemas import GET, OPEN

#: Seconds within which the database must answer.
PATIENCE = 2.0


def health_router(front: Front) -> APIRouter:
    """Return the routes for supervisors; the first two ask for no key."""
    router, service = APIRouter(tags=["health"]), front.service

    @router.get("/healthz", openapi_extra=OPEN, summary="Is it alive?")
    async def healthz(request: Request) -> Response:  # noqa: ARG001
        """Answer, which is all that can be asked of it."""
        return answer({"status": "alive"})

    @router.get("/readyz", openapi_extra=OPEN, summary="Can it decide?")
    async def readyz(request: Request) -> Response:  # noqa: ARG001
        """Say whether decisions can be made and recorded now; 503 where not."""
        try:
            service.recorder.check()
            if service.store is not None:
                async with asyncio.timeout(PATIENCE):
                    await front.ask(service.store.check)
        except TimeoutError:
            raise _not_ready("the database does not answer in time") from None
        except FairCalError as error:
            raise _not_ready(str(error)) from error
        return answer({"status": "ready"})

    @router.get("/metrics", openapi_extra=GET, summary="Numbers for Prometheus")
    async def metrics(request: Request) -> Response:
        """Return counters; open where the service has no keys, else any key will do."""
        front.access.admit(request, None)
        text = await front.ask(front.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _not_ready(message: str) -> Refused:
    return Refused(503, "not_ready", message, headers={"Retry-After": "2"})
