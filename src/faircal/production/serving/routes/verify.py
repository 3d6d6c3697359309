"""``/v1/verify`` and ``/v1/verify/batch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from faircal.production.serving import fields
from faircal.production.serving.arrow import groups_in, prior_in, read_table, side_of, write_batch
from faircal.production.serving.bodies import ARROW, JSON, kind_of, only, parse
from faircal.production.serving.front import Front, answer
from faircal.production.serving.jsonbatch import read_batch
from faircal.production.serving.loaded import Loaded
from faircal.production.serving.pairs import Side, joined
from faircal.production.serving.routes.schemas import BATCH, VERIFY
from faircal.production.serving.service import Service, Vector
from faircal.production.serving.verified import VerifiedBatch, point_json

if TYPE_CHECKING:
    from faircal.data import Groups

#: Length of embeddings that JSON has room for where the model does not tell.
_COMMON = 512
_FIELDS = ("left", "right", "left_group", "right_group", "prior")


def judged(
    service: Service,
    found: dict[str, Any],
    pair: tuple[Vector, Vector],
    key: str,
    loaded: Loaded,
    left_id: str | None = None,
    right_id: str | None = None,
) -> dict[str, Any]:
    """Judge a pair, with the groups and the share that a body asks for; return the answer."""
    verified = service.verify(
        *pair,
        left_group=fields.text(found, "left_group"),
        right_group=fields.text(found, "right_group"),
        prior=fields.share(found, "prior"),
        key=key,
        left_id=left_id,
        right_id=right_id,
        loaded=loaded,
    )
    verdict = service.verdict
    due = None if service.watch is None else verdict is not None and verdict.due
    return {**verified.as_json(), "recalibration_due": due}


def verify_router(front: Front) -> APIRouter:
    """Return the routes that judge pairs."""
    router, service = APIRouter(tags=["verify"]), front.service

    @router.post("/v1/verify", openapi_extra=VERIFY, summary="Judge one pair")
    async def verify(request: Request) -> Response:
        """Say of two faces whether they are of one person, and how likely that is.

        `probability` holds for the share of genuine pairs in `prior`; `log_likelihood_ratio` (nats)
        for any. The decision is made at `operating_point`; one on the score does not depend on
        `prior`.
        """
        key = front.access.admit(request, "verify")
        found = await front.json(request)
        only(found, *_FIELDS)
        loaded = service.loaded
        sides = [fields.side(found.get(s), s, loaded.dimension) for s in ("left", "right")]
        ids = [side.id if isinstance(side, fields.Template) else None for side in sides]
        # Nothing is awaited where both are embeddings: no thread is worth a quarter millisecond.
        left, right = [
            side if isinstance(side, np.ndarray) else await front.vector(side, name)
            for name, side in zip(("left", "right"), sides, strict=True)
        ]
        return answer(judged(service, found, (left, right), key.name, loaded, *ids))

    @router.post("/v1/verify/batch", openapi_extra=BATCH, summary="Judge many pairs")
    async def verify_batch(request: Request) -> Response:
        """Judge many pairs at once, in JSON or as an Arrow stream.

        The answer is of the same kind unless `Accept` names the other one. Its `id` names the
        batch in the audit trail, `ID.0`, `ID.1`, … its pairs, for feedback.
        """
        key = front.access.admit(request, "verify")
        kind = kind_of(request, JSON, ARROW)
        async with front.reader.body(request, service.settings.max_body) as body:
            loaded = service.loaded
            read = _from_arrow if kind == ARROW else _from_json
            made = await front.work(read, body, service.settings.max_pairs, loaded.dimension)
            left, right, groups, prior = made
            if left.ids or right.ids:
                known = await front.ask(front.store().vectors, list({*left.ids, *right.ids}))
                left, right = left.enrolled(known), right.enrolled(known)
            accept = request.headers.get("accept", "")
            wanted = ARROW if ARROW in accept else JSON if JSON in accept else kind

            def judge() -> bytes:
                batch = _judged(front, loaded, left, right, groups, prior, key.name)
                return write_batch(batch) if wanted == ARROW else _as_json(batch)

            return Response(await front.work(judge), media_type=wanted)

    return router


Made = tuple[Side, Side, "Groups | None", float | None]


def _from_json(body: bytearray, max_pairs: int, dimension: int | None) -> Made:
    return read_batch(parse(body, max_pairs, dimension or _COMMON), max_pairs)


def _from_arrow(body: bytearray, max_pairs: int, dimension: int | None) -> Made:  # noqa: ARG001
    table = read_table(body, max_pairs)
    return side_of(table, "left"), side_of(table, "right"), groups_in(table), prior_in(table)


def _judged(
    front: Front,
    loaded: Loaded,
    left: Side,
    right: Side,
    groups: Groups | None,
    prior: float | None,
    key: str,
) -> VerifiedBatch:
    embeddings, i, j = joined(left, right, loaded.dimension, loaded.normalize)
    return front.service.verify_many(
        embeddings,
        i,
        j,
        groups=groups,
        prior=prior,
        key=key,
        left_ids=left.templates,
        right_ids=right.templates,
        loaded=loaded,
    )


def _as_json(batch: VerifiedBatch) -> bytes:
    from pydantic_core import to_json

    found: dict[str, Any] = {
        "id": batch.id,
        "pairs": len(batch),
        "model": batch.model,
        "prior": batch.prior,
        "operating_point": point_json(batch.point),
    }
    for name, values in batch.columns().items():
        found[name] = None if values is None else values.tolist()
    return to_json(found)
