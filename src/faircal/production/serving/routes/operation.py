"""For those who run the service: health, metrics, model, monitoring, feedback, the audit trail.

``/healthz``, ``/readyz``, ``/metrics``, ``/v1/model``, ``/v1/monitor``, ``/v1/feedback`` and
``/v1/decisions``.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from faircal._base.errors import FairCalError
from faircal.metrics.results import without_nan
from faircal.production.serving.audit_trail import pairs_of, trail_lines
from faircal.production.serving.bodies import Refused
from faircal.production.serving.fields import (
    LABEL,
    RELOAD,
    ROUTES,
    query_integer,
    query_text,
    template_id,
)
from faircal.production.serving.routes import RouteContext, answer
from faircal.production.serving.store.records import Decision
from faircal.production.serving.verification import ModelInUse

#: Seconds within which the database must answer.
PATIENCE = 2.0


def health_router(context: RouteContext) -> APIRouter:
    """Return the routes for supervisors; the first two ask for no key."""
    router, service = APIRouter(tags=["health"]), context.service

    @router.get("/healthz", openapi_extra=ROUTES["open"], summary="Is it alive?")
    async def healthz(request: Request) -> Response:  # noqa: ARG001
        """Answer, which is all that can be asked of it."""
        return answer({"status": "alive"})

    @router.get("/readyz", openapi_extra=ROUTES["open"], summary="Can it decide?")
    async def readyz(request: Request) -> Response:  # noqa: ARG001
        """Say whether decisions can be made and recorded now; 503 where not."""
        try:
            service.recorder.check()
            if service.store is not None:
                async with asyncio.timeout(PATIENCE):
                    await context.ask(service.store.check)
        except TimeoutError:
            raise _not_ready("the database does not answer in time") from None
        except FairCalError as error:
            raise _not_ready(str(error)) from error
        return answer({"status": "ready"})

    @router.get("/metrics", openapi_extra=ROUTES["get"], summary="Numbers for Prometheus")
    async def metrics(request: Request) -> Response:
        """Return counters; open where the service has no keys, else any key will do."""
        context.access.admit(request, None)
        text = await context.ask(context.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _not_ready(message: str) -> Refused:
    return Refused(503, "not_ready", message, Retry_After="2")


def model_router(context: RouteContext) -> APIRouter:
    """Return the routes of the model and its monitoring."""
    router, service = APIRouter(tags=["model"]), context.service

    @router.get("/v1/model", openapi_extra=ROUTES["get"], summary="The model's card")
    async def model(request: Request) -> Response:
        """Tell what the model is, where it is from, and where it decides."""
        context.access.admit(request, None)
        return answer(await context.work(_about, service.in_use))

    @router.post("/v1/model", openapi_extra=ROUTES["reload"], summary="Read the model file again")
    async def reload(request: Request) -> Response:
        """Use the model file as it is now; requests under way end with the old one.

        The service reads no other file than the one it was started with; `path` may be given to
        make sure that it is this one. One that can't be used is refused, and the old one stays.
        """
        context.access.admit(request, "admin")
        path = RELOAD.read(await context.json(request))["path"]
        # A key must not have the service read any file it likes: models come from who runs it.
        if path not in (None, str(service.settings.model)):
            raise Refused(
                403, "path", "the service reads the file that it was started with only", "path"
            )
        swapped = await context.work(service.reload)
        return answer({"swapped": swapped, "model": service.in_use.digest})

    @router.get("/v1/monitor", openapi_extra=ROUTES["get"], summary="Does the model still fit?")
    async def monitor(request: Request) -> Response:
        """Tell whether pairs in use are what the model was calibrated for."""
        context.access.admit(request, None)
        verdict = await context.work(service.monitor.update)
        if verdict is None:
            words = "the model file has no population to compare with; fit it again"
            return answer({"monitored": False, "due": None, "words": words})
        return answer(without_nan({"monitored": True, **verdict.as_json()}))

    return router


def _about(in_use: ModelInUse) -> dict[str, Any]:
    bounds = in_use.model.about_.evidence
    facts: dict[str, Any] = without_nan(
        {
            "model": in_use.digest,
            "prior": in_use.judge.prior,
            "calibrated_at": in_use.judge.calibrated_at,
            "dimension": in_use.dimension,
            "evidence_bounds": bounds and bounds._asdict(),
            "operating_point": in_use.judge.point.as_json(),
            "card": in_use.facts,
        }
    )
    return facts


#: Lines of one answer in JSON; in CSV all of them come by default.
_MOST_LINES, _ALL = 1000, 1_000_000_000
_NAMES = [field.name for field in fields(Decision)]


def decisions_router(context: RouteContext) -> APIRouter:
    """Return the routes of the audit trail."""
    router, service = APIRouter(tags=["decisions"]), context.service

    @router.post("/v1/feedback", openapi_extra=ROUTES["feedback"], summary="Tell how it was")
    async def feedback(request: Request) -> Response:
        """Tell whether the pair of a decision was genuine; monitoring checks calibration by it."""
        context.access.admit(request, "verify")
        label = LABEL.read(await context.json(request))
        context.store()
        line = await context.ask(service.feedback, label["decision"], label["genuine"])
        if line is None:
            raise _unknown()
        return answer({"decision": line.id, "genuine": label["genuine"]})

    @router.get("/v1/decisions", openapi_extra=ROUTES["decisions"], summary="The audit trail")
    async def decisions(request: Request) -> Response:
        """Return lines of the audit trail, oldest first.

        In JSON a batch is one line without a score. In CSV (`format=csv`) each pair of a batch is
        a line, and all lines come: it is what `faircal monitor` reads.
        """
        context.access.admit(request, "admin")
        store = context.store()
        # A pair of a batch stands for the batch: what an export ended with is where to go on.
        after = (query_text(request, "after") or "").partition(".")[0] or None
        await context.ask(service.recorder.flush, 2.0)
        if request.query_params.get("format") == "csv":
            limit = query_integer(request, "limit", _ALL, _ALL)
            lines = trail_lines(store, after, limit, by_pair=True)
            # Before the answer begins: a store that is away must not become half a file.
            first = await context.ask(_first_lines, lines)
            return StreamingResponse(_csv(first, lines), media_type="text/csv; charset=utf-8")
        limit = query_integer(request, "limit", 100, _MOST_LINES)
        lines = trail_lines(store, after, limit)
        listed = [_decision_json(line) for line in await context.ask(list, lines)]
        following = listed[-1]["id"] if len(listed) == limit else None
        return answer({"decisions": listed, "next": following})

    @router.get(
        "/v1/decisions/{name}", openapi_extra=ROUTES["named"], summary="One line, or a batch"
    )
    async def decision(request: Request) -> Response:
        """Return one decision; for a batch, those of all its pairs."""
        context.access.admit(request, "admin")
        store, name = context.store(), template_id(request.path_params["name"], "decision")
        line = await context.ask(store.decision, name)
        if line is None:
            raise _unknown()
        lines = await context.ask(pairs_of, store, line)
        return answer({"decisions": [_decision_json(each) for each in lines]})

    return router


def _first_lines(lines: Iterator[Decision]) -> list[Decision]:
    return list(islice(lines, _MOST_LINES))


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {**asdict(decision), "at": decision.at.isoformat()}


def _csv(first: list[Decision], rest: Iterator[Decision]) -> Iterator[str]:
    """Yield the lines of a CSV file; called in threads by the framework."""
    yield ",".join(_NAMES) + "\r\n"
    while first:
        text = io.StringIO()
        rows = (_decision_json(line) for line in first)
        csv.writer(text).writerows([_cell(row[name]) for name in _NAMES] for row in rows)
        yield text.getvalue()
        first = _first_lines(rest)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    # Ids are data of strangers, and a spreadsheet would run what begins so.
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t" and value else value


def _unknown() -> Refused:
    return Refused(404, "decision", "no such decision; see GET /v1/decisions", "decision")
