"""What all routes share: access, readers of bodies, threads for what takes time, metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.responses import Response

from faircal._base.errors import FairCalError, StorageError
from faircal.production.serving.access import Access
from faircal.production.serving.bodies import JSON, LARGE, BodyReader, Refused, answer_to, kind_of
from faircal.production.serving.bodies import parse as parse_json
from faircal.production.serving.fields import PictureBytes, TemplateRef, check_length
from faircal.production.serving.service import BINS, Service
from faircal.production.serving.store import Store
from faircal.production.serving.verification import ModelInUse, Vector

if TYPE_CHECKING:
    from starlette.requests import Request

P = ParamSpec("P")
T = TypeVar("T")

#: Bytes of a request that is not a batch and has no pictures; 16,000-d vectors fit.
_SMALL = 1024 * 1024
#: Batches that are read or judged at a time, in bodies of the largest size.
_BODIES = 6
#: Requests that are no batches, of the largest size, whose bodies are read at a time.
_SINGLES = 64
#: Threads for what computes, and for what waits for the database.
_HEAVY, _WAITING = 2, 8
#: Calls that such threads do or have yet to do; more would only wait for nothing.
_MOST_CALLS = 256


class RouteContext:
    """Between HTTP and the service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        settings = service.settings
        self.access, self.metrics = Access(service), Metrics(service)
        #: Of batches.
        self.reader = BodyReader(_BODIES * settings.max_body)
        # Two pictures in base64, four letters for three bytes.
        pictures = 2 * (settings.max_picture * 4 // 3 + 4) if service.takes_pictures else 0
        self._small = min(_SMALL + pictures, max(settings.max_body, 1))
        # Of their own: slow batches must not keep single pairs out.
        self._singles = BodyReader(_SINGLES * self._small)
        # Two kinds of threads: a database that does not answer must not hold up what computes.
        self._heavy = _WorkerThreads(_HEAVY, "faircal-work")
        self._waiting = _WorkerThreads(_WAITING, "faircal-store")

    async def work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what takes the processor's time off the event loop."""
        return await self._heavy.call(partial(function, *args, **kwargs))

    async def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what may wait for the database off the event loop."""
        return await self._waiting.call(partial(function, *args, **kwargs))

    async def json(self, request: Request) -> dict[str, Any]:
        """Return the JSON object that a request brings which is not a batch."""
        kind_of(request, JSON)
        async with self._singles.body(request, self._small) as body:
            if len(body) <= LARGE:  # no thread is worth some hundred microseconds
                return parse_json(body)
            return await self.work(parse_json, body)

    def store(self) -> Store:
        """Return the store; refuse where there is none."""
        if self.service.store is None:
            raise Refused(409, "no_storage", "there is no storage here; serve with --database PATH")
        return self.service.store

    async def vector(
        self, side: Vector | TemplateRef | PictureBytes, where: str, in_use: ModelInUse
    ) -> Vector:
        """Return the embedding that one side of a pair stands for, of the length of the model.

        Nothing is waited for where it is an embedding already.
        """
        if isinstance(side, TemplateRef):
            vectors = await self.ask(self.store().vectors, [side.id])
            if side.id not in vectors:
                raise Refused(404, "template", "no such template; enrol it first", where)
            return vectors[side.id]
        if isinstance(side, PictureBytes):
            try:
                side = await self.work(self.service.embed, side.data)
            except FairCalError as error:
                raise answer_to(error, where) from error
        check_length(len(side), where, in_use.dimension)
        return side

    def close(self) -> None:
        """End the threads, after what they do now."""
        self._heavy.pool.shutdown(cancel_futures=True)
        self._waiting.pool.shutdown(wait=False, cancel_futures=True)


class _WorkerThreads:
    """Threads, and how many calls they have been given and not done; for one event loop."""

    def __init__(self, threads: int, name: str) -> None:
        self.pool = ThreadPoolExecutor(threads, name)
        self._calls = 0

    async def call(self, function: Callable[[], T]) -> T:
        """Have a thread call `function`; refuse where too many calls are before it."""
        # An unbounded queue would answer everybody too late, instead of some at once.
        if self._calls >= _MOST_CALLS:
            raise Refused(
                503,
                "busy",
                "too many requests wait here already; try again in a moment",
                Retry_After="1",
            )
        self._calls += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, function)
        finally:
            self._calls -= 1


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        body.encode("utf-8", "backslashreplace"),  # a model file's names may be half characters
        status,
        dict(headers or {}),
        media_type="application/json",
    )


#: Seconds.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Requests as they end, and what the service has counted when somebody asks."""

    def __init__(self, service: Service) -> None:
        # A registry of its own: the default is of the process, which may hold several services.
        self._service, self._registry = service, CollectorRegistry()
        self._requests = Counter(
            "faircal_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "faircal_request_seconds",
            "Time to answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Return nothing: names are not checked against others, as none is taken."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what the service has counted."""
        service, counts = self._service, self._service.counts
        for each in fields(counts):
            if each.metadata:
                value = getattr(counts, each.name)
                yield CounterMetricFamily(each.metadata["name"], each.metadata["words"], value)
        failures = service.recorder.failures
        yield CounterMetricFamily("faircal_store_errors", "Failed writes of the trail.", failures)
        family = CounterMetricFamily("faircal_decisions", "By decision.", labels=["decision"])
        family.add_metric(["same"], counts.same)
        family.add_metric(["different"], counts.pairs - counts.same)
        yield family
        words = "Pairs by probability; le is the upper end of the bin."
        family = CounterMetricFamily("faircal_probability", words, labels=["le"])
        for number, value in enumerate(counts.probabilities, start=1):
            family.add_metric([f"{number / BINS:g}"], value)
        yield family
        yield _gauge("trail_waiting", "Decisions not written yet.", {(): len(service.recorder)})
        yield _gauge("started_seconds", "When it started.", {(): service.started})
        share = counts.outside / counts.placed if counts.placed else 0.0
        yield _gauge("out_of_population_share", "Of the pairs placed.", {(): share})
        verdict = service.monitor.verdict
        words = "1 where monitoring says so; by finding, too. Absent until it has looked."
        values: dict[tuple[str, ...], float] = {}
        if verdict is not None:
            values = {("any",): verdict.due}
            values |= {(each.name,): each.alarm for each in verdict.findings}
        yield _gauge("recalibration_due", words, values, "finding")
        with suppress(StorageError):  # away: readiness tells
            if service.store is not None:
                yield _gauge("templates", "Templates enrolled.", {(): service.store.count()})
        about = (service.in_use.digest, service.in_use.model.name)
        yield _gauge("model", "The model in use.", {about: 1}, "sha256", "method")


def _gauge(name: str, words: str, values: Mapping[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(f"faircal_{name}", words, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family
