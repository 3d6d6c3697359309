"""``/v1/feedback`` and ``/v1/decisions``: the truth that comes later, and the audit trail."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from faircal.production.serving.bodies import only
from faircal.production.serving.fields import flag, template_id
from faircal.production.serving.front import Front, answer
from faircal.production.serving.problems import Refused
from faircal.production.serving.queries import query_text, query_whole
from faircal.production.serving.routes.schemas import DECISION, DECISIONS, FEEDBACK
from faircal.production.serving.store.base import Decision, Store

#: Lines of one answer in JSON; in CSV all of them come unless told.
_MOST_LINES, _ALL = 1000, 1_000_000_000
_NAMES = [field.name for field in fields(Decision)]


def decisions_router(front: Front) -> APIRouter:
    """Return the routes of the audit trail."""
    router, service = APIRouter(tags=["decisions"]), front.service

    @router.post("/v1/feedback", openapi_extra=FEEDBACK, summary="Tell how it was")
    async def feedback(request: Request) -> Response:
        """Tell whether the pair of a decision was genuine; monitoring checks calibration by it."""
        front.access.admit(request, "verify")
        found = await front.json(request)
        only(found, "decision", "genuine")
        front.store()
        name = template_id(found.get("decision"), "decision")
        genuine = flag(found, "genuine")
        line = await front.ask(service.feedback, name, genuine)
        if line is None:
            raise _unknown()
        return answer({"decision": line.id, "genuine": genuine})

    @router.get("/v1/decisions", openapi_extra=DECISIONS, summary="The audit trail")
    async def decisions(request: Request) -> Response:
        """Return lines of the audit trail, oldest first.

        In JSON a batch is one line without a score. In CSV (`format=csv`) each pair of a batch is
        a line, and all lines come: it is what `faircal monitor` reads.
        """
        front.access.admit(request, "admin")
        # A pair of a batch stands for the batch: what an export ended with is where to go on.
        store, after = front.store(), (query_text(request, "after") or "").partition(".")[0] or None
        await front.ask(service.recorder.flush, 2.0)
        if request.query_params.get("format") == "csv":
            limit = query_whole(request, "limit", _ALL, _ALL)
            lines = service.recorder.lines(store, after, limit, whole=True)
            first = await front.ask(_some, lines)  # a store that is away is told in time
            return StreamingResponse(_csv(first, lines), media_type="text/csv; charset=utf-8")
        limit = query_whole(request, "limit", 100, _MOST_LINES)
        found = await front.ask(_listed, front, store, after, limit)
        following = found[-1]["id"] if len(found) == limit else None
        return answer({"decisions": found, "next": following})

    @router.get("/v1/decisions/{name}", openapi_extra=DECISION, summary="One line, or a batch")
    async def decision(request: Request) -> Response:
        """Return one decision; for a batch, those of all its pairs."""
        front.access.admit(request, "admin")
        store, name = front.store(), template_id(request.path_params["name"], "decision")
        found = await front.ask(_one, front, store, name)
        if not found:
            raise _unknown()
        return answer({"decisions": found})

    return router


def _some(lines: Iterator[Decision]) -> list[Decision]:
    found = []
    for line in lines:
        found.append(line)
        if len(found) >= _MOST_LINES:
            break
    return found


def _listed(front: Front, store: Store, after: str | None, limit: int) -> list[dict[str, Any]]:
    return [_told(each) for each in front.service.recorder.lines(store, after, limit)]


def _one(front: Front, store: Store, name: str) -> list[dict[str, Any]]:
    found = store.decision(name)
    return [] if found is None else [_told(each) for each in front.service.recorder.pairs(found)]


def _told(decision: Decision) -> dict[str, Any]:
    return {**asdict(decision), "at": decision.at.isoformat()}


def _csv(first: list[Decision], rest: Iterator[Decision]) -> Iterator[str]:
    """Yield the lines of a CSV file; called in threads by the framework."""
    yield ",".join(_NAMES) + "\r\n"
    while first:
        text = io.StringIO()
        csv.writer(text).writerows(_row(line) for line in first)
        yield text.getvalue()
        first = _some(rest)


def _row(decision: Decision) -> list[Any]:
    told = _told(decision)
    return [_cell(told[name]) for name in _NAMES]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    # A spreadsheet would run what begins so.
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t" and value else value


def _unknown() -> Refused:
    return Refused(404, "decision", "no such decision; see GET /v1/decisions", "decision")
