"""The service over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from faircal._version import __version__
from faircal.production.serving.service import Service

if TYPE_CHECKING:
    from fastapi import FastAPI


def make_app(service: Service) -> FastAPI:
    """Return the application that answers for `service`, and closes it when it ends.

    Raises
    ------
    MissingExtraError
        Where the packages of the extra ``serve`` are not installed.
    """
    check_installed()
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    from faircal.production.serving.access import RequestGate
    from faircal.production.serving.background_jobs import BackgroundJobs
    from faircal.production.serving.routes.context import RouteContext
    from faircal.production.serving.routes.operation import (
        decisions_router,
        health_router,
        model_router,
    )
    from faircal.production.serving.routes.verify import templates_router, verify_router

    context, jobs = RouteContext(service), BackgroundJobs(service)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG001
        jobs.start()
        yield
        jobs.close()
        context.close()
        service.close()

    app = FastAPI(
        title="faircal",
        version=__version__,
        summary="Fair, calibrated probabilities for face verification",
        docs_url=None,  # their pages come from elsewhere: nothing here does
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.jobs = jobs  # before it is started: a signal may come first
    for make in (verify_router, templates_router, decisions_router, model_router, health_router):
        app.include_router(make(context))
    if service.settings.page:
        from faircal.production.serving.page import page_router

        app.include_router(page_router(service, context.access))
    app.add_middleware(
        RequestGate,
        metrics=context.metrics,
        counts=service.counts,
        access_log=service.settings.access_log,
    )
    app.add_exception_handler(HTTPException, _answered)
    app.add_exception_handler(RequestValidationError, _invalid)
    _describe(app)
    return app


def check_installed() -> None:
    """Raise where a package is not installed that the service needs."""
    from faircal.embedding.weights import require

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require(package, "serve", "'faircal serve'")


async def _answered(request: Any, error: Any) -> Any:  # noqa: ARG001
    """Answer what the framework refuses (no such route, another method) as everything else."""
    from faircal.production.serving.problems import Refused

    words = {
        404: "no such address; see /openapi.json",
        405: "another method is expected here; see /openapi.json",
    }
    code = {404: "route", 405: "method"}.get(error.status_code, "refused")
    message = words.get(error.status_code, "the request can't be answered; see /openapi.json")
    return _response(Refused(error.status_code, code, message, headers=error.headers))


async def _invalid(request: Any, error: Any) -> Any:  # noqa: ARG001
    """Answer what the framework finds wrong; its own answer would repeat what was sent."""
    from faircal.production.serving.problems import unprocessable

    places = [".".join(map(str, each.get("loc", ()))) for each in error.errors()[:1]]
    return _response(unprocessable("not as expected; see /openapi.json", places[0] or None))


def _response(refused: Any) -> Any:
    from faircal.production.serving.routes.context import answer

    return answer(refused.as_json(), refused.status, refused.headers)


def _describe(app: FastAPI) -> None:
    """Put the ways to send a key into the description."""
    from faircal.production.serving.routes.schemas import SECURITY_SCHEMES

    original = app.openapi

    def described() -> dict[str, Any]:
        schema = original()
        schema.setdefault("components", {})["securitySchemes"] = SECURITY_SCHEMES
        return schema

    app.openapi = described  # type: ignore[method-assign]
