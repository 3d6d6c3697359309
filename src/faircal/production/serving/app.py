"""The service over HTTP: the application, the gate before it, and its start."""

from __future__ import annotations

import logging
import secrets
import signal
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base.errors import FairCalError
from faircal._base.files import existing
from faircal._version import __version__
from faircal.production.serving.access import KeyRing
from faircal.production.serving.bodies import Refused, answer_to, unprocessable
from faircal.production.serving.service import Service, ServiceSettings
from faircal.production.serving.store import read_key

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from faircal.production.serving.routes import Metrics

#: For `database`: keep nothing.
NONE = "none"
#: Methods that are counted by name: those that somebody makes up must not fill the memory.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: For whoever goes away before the answer; never sent.
_GONE = 499
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
#: What the framework refuses, in our words.
_NO_ROUTE = {
    404: ("route", "no such address; see /openapi.json"),
    405: ("method", "another method is expected here; see /openapi.json"),
}

_log = logging.getLogger("faircal.production.serving")
_access = logging.getLogger("faircal.access")


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

    from faircal.production.serving.fields import SECURITY_SCHEMES
    from faircal.production.serving.live_monitor import BackgroundJobs
    from faircal.production.serving.routes import RouteContext
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
        redirect_slashes=False,  # an id may end in one, and a redirection would repeat the address
        lifespan=lifespan,
    )
    app.state.jobs = jobs  # before it is started: a signal may come first
    for make in (verify_router, templates_router, decisions_router, model_router, health_router):
        app.include_router(make(context))
    if service.settings.page:
        from faircal.production.serving.page import page_router

        app.include_router(page_router(service, context.access))
    app.add_middleware(RequestGate, metrics=context.metrics, service=service)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(RequestValidationError, _invalid)
    described = app.openapi

    def openapi() -> dict[str, Any]:
        """Add the ways to send a key to the description."""
        schema = described()
        schema.setdefault("components", {})["securitySchemes"] = SECURITY_SCHEMES
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def check_installed() -> None:
    """Raise where a package is not installed that the service needs."""
    from faircal.embedding.weights import require

    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require(package, "serve", "'faircal serve'")


async def _no_route(request: Any, error: Any) -> Any:  # noqa: ARG001
    """Answer what the framework refuses (no such route, another method) as everything else."""
    other = "refused", "the request can't be answered; see /openapi.json"
    code, message = _NO_ROUTE.get(error.status_code, other)
    return _response(Refused(error.status_code, code, message, **(error.headers or {})))


async def _invalid(request: Any, error: Any) -> Any:  # noqa: ARG001
    """Answer what the framework finds wrong; its own answer would repeat what was sent."""
    places = [".".join(map(str, each.get("loc", ()))) for each in error.errors()[:1]]
    return _response(unprocessable("not as expected; see /openapi.json", places[0] or None))


def _response(refused: Refused) -> Any:
    from faircal.production.serving.routes import answer

    return answer(refused.as_json(), refused.status, refused.headers)


class RequestGate:
    """Wraps the application: answers errors, counts and logs requests.

    Neither bodies nor queries nor messages of unexpected errors go into the log, which could hold
    parts of an embedding; what stays are the kinds of errors and where in the code they were.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, service: Service) -> None:
        self._app, self._metrics, self._counts = app, metrics, service.counts
        self._access_log = service.settings.access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        from starlette.requests import ClientDisconnect

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Of our own making: one that came with the request could be anything, in our log.
        start, request_id = time.perf_counter(), secrets.token_hex(8)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                headers += [header for header in _HEADERS if header[0] not in names]
                message["headers"] = [*headers, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            status = status or _GONE
        except Exception as error:  # the last resort of a service
            refused = _refused(error, request_id)
            if not status:
                await _response(refused)(scope, receive, sending)
        finally:
            self._report(scope, status, time.perf_counter() - start, request_id)

    def _report(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        # By route, not by address: templates' ids are in addresses.
        route = getattr(scope.get("route"), "path", "(none)")
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        self._metrics.answered(method, route, status, seconds)
        if route.startswith("/v1/") or (method, route) == ("POST", "/"):
            self._counts.add(requests=1)  # not what only watches, such as the page's own counters
        if self._access_log:
            key, took = scope.get("faircal.key") or "-", 1e3 * seconds
            words = "%s %s %d %.1f ms key=%s id=%s"
            _access.info(words, method, route, status, took, key, request_id)


def _refused(error: Exception, request_id: str) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, FairCalError):
        return answer_to(error)
    # Places and type only: the text of an error may hold somebody's data, and logs are kept.
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in reversed(frames))
    _log.error("unexpected %s id=%s at %s", type(error).__name__, request_id, places)
    return Refused(
        500, "unexpected", f"something went wrong here; ask who runs the service about {request_id}"
    )


def serve(
    model: str | Path,
    *,
    database: str | None = None,
    encryption_key_file: Path | None = None,
    log_level: str = "info",
    note: Callable[[str], None] = lambda _: None,
    ready: Callable[[str], None] = print,
    **settings: Any,
) -> None:
    """Serve a model over HTTP until the process is told to end.

    Parameters
    ----------
    model : path
        Model file.
    database : str, optional
        An SQLite file, a postgresql:// URL, or "none"; the model's path with .db unless given.
    encryption_key_file : path, optional
        File with the key that templates are encrypted with.
    log_level : str
    note : callable
        Called with what is served, and what its user should know.
    ready : callable
        Called with the address when requests are taken.
    **settings
        Further fields of `faircal.production.serving.service.ServiceSettings`.

    Examples
    --------
    >>> import faircal
    >>> faircal.serve("m.faircal", database="none", port=8000)  # doctest: +SKIP
    """
    check_installed()
    from faircal.production.serving.server import run, start_logging

    model = existing(model)
    database = str(model.with_suffix(".db")) if database is None else database
    chosen = ServiceSettings(
        model=model,
        database=None if database == NONE else database,
        encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
        **settings,
    )
    start_logging(log_level)
    if hasattr(signal, "SIGHUP"):  # until it is listened for, it would end the process
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    service = Service(chosen)
    note(summary(service))
    for text in _missing(service):
        note(f"note: {text}")
    run(service, ready)


def summary(service: Service) -> str:
    """Say what is served, in one line; a database's URL may have a password in it, and is not."""
    in_use, settings = service.in_use, service.settings
    point, database, keys = in_use.judge.point, NONE, NONE
    promise = "no promise"
    if point.promised:
        terms = f"FPR {point.fpr:g} promised", point.within, point.assumption
        promise = ", ".join(filter(None, terms))
    if settings.database is not None:
        postgres = settings.database.startswith(("postgres://", "postgresql://"))
        sealed = "not encrypted" if settings.encryption_key is None else "encrypted"
        database = f"{'PostgreSQL' if postgres else 'SQLite'} ({sealed})"
    if settings.keys is not None:
        keys = str(len(KeyRing.load(settings.keys).keys))
    return (
        f"model {in_use.digest[:16]} ({in_use.model.name}), same where {point.on} >= "
        f"{point.threshold:.6g} ({promise}), prior {in_use.judge.prior:.6g}, database {database}, "
        f"keys {keys}"
    )


def _missing(service: Service) -> Iterator[str]:
    """Yield what a service should have, and does not."""
    settings = service.settings
    if settings.keys is None:
        yield "there are no keys: whoever can reach this machine's ports may do everything"
    if settings.database is None:
        yield "there is no storage: no templates, no audit trail"
    elif settings.encryption_key is None:
        yield "templates are not encrypted; give --encryption-key-file to have them so"
    if service.monitor.watch is None:
        yield "the model file has no population: pairs are not monitored, nor placed"
