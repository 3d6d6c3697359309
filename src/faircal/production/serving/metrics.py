"""What Prometheus is told, in a registry of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from faircal._base.errors import StorageError
from faircal.production.serving.counts import BINS

if TYPE_CHECKING:
    from faircal.production.serving.service import Service

#: Seconds.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Requests as they end, and what the service has counted when somebody asks."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
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
        self._registry.register(_Counted(service))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)


class _Counted:
    """Turns the service's counters into metrics when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        service, counts = self._service, self._service.counts
        for name, value, words in (
            ("pairs", counts.pairs, "Pairs judged."),
            ("batches", counts.batches, "Batches judged."),
            ("identifications", counts.identify, "Identifications."),
            ("enrolments", counts.enrol, "Templates enrolled since the start."),
            ("deletions", counts.delete, "Templates deleted since the start."),
            ("feedback", counts.feedback, "Labels told afterwards."),
            ("model_swaps", counts.swaps, "Models taken while running."),
            ("model_swaps_refused", counts.refused_swaps, "Model files that were not taken."),
            ("store_errors", service.recorder.failures, "Failed writes of the audit trail."),
            ("pairs_out_of_population", counts.outside, "Pairs with an image outside."),
            ("pairs_placed", counts.placed, "Pairs of which it is known whether they are outside."),
        ):
            yield CounterMetricFamily(f"faircal_{name}", words, value=value)
        yield self._decisions()
        yield self._probabilities()
        yield self._gauge("trail_waiting", "Decisions not written yet.", service.recorder.waiting)
        yield self._gauge("started_seconds", "When it started.", service.started)
        share = counts.outside / counts.placed if counts.placed else 0.0
        yield self._gauge("out_of_population_share", "Of the pairs placed.", share)
        yield self._due()
        yield from self._templates()
        about = GaugeMetricFamily("faircal_model", "The model in use.", labels=["sha256", "method"])
        about.add_metric([service.model_digest, service.loaded.model.name], 1)
        yield about

    @staticmethod
    def _gauge(name: str, words: str, value: float) -> Metric:
        return GaugeMetricFamily(f"faircal_{name}", words, value=value)

    def _decisions(self) -> Metric:
        counts = self._service.counts
        found = CounterMetricFamily("faircal_decisions", "By decision.", labels=["decision"])
        found.add_metric(["same"], counts.same)
        found.add_metric(["different"], counts.pairs - counts.same)
        return found

    def _probabilities(self) -> Metric:
        words = "Pairs by probability; le is the upper end of the bin."
        found = CounterMetricFamily("faircal_probability", words, labels=["le"])
        for place, value in enumerate(self._service.counts.probabilities):
            found.add_metric([f"{(place + 1) / BINS:g}"], value)
        return found

    def _due(self) -> Metric:
        verdict = self._service.verdict
        words = "1 where monitoring says so; by finding, too. Absent until it has looked."
        found = GaugeMetricFamily("faircal_recalibration_due", words, labels=["finding"])
        if verdict is not None:
            found.add_metric(["any"], float(verdict.due))
            for each in verdict.findings:
                found.add_metric([each.name], float(each.alarm))
        return found

    def _templates(self) -> Iterator[Metric]:
        store = self._service.store
        if store is None:
            return
        try:
            yield self._gauge("templates", "Templates enrolled.", store.count())
        except StorageError:  # away: readiness tells
            return
