"""What a service has counted since it started, and how Prometheus is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from faircal._base.errors import StorageError
from faircal.production.serving.verification import Verdicts

if TYPE_CHECKING:
    from faircal.production.serving.service import Service


#: Bins of equal width that probabilities are counted in.
BINS = 10


def _counted(name: str, words: str) -> int:
    """Return a field of `ServiceCounts` that Prometheus has under this name."""
    counted: int = field(default=0, metadata={"name": f"faircal_{name}", "words": words})
    return counted


@dataclass
class ServiceCounts:
    """Whole numbers; pairs of verifications only, unless their names say otherwise."""

    #: Of the API and of the page's form, whatever was answered.
    requests: int = 0
    #: Pairs that were taken for genuine, and by probability, in bins of equal width.
    same: int = 0
    probabilities: list[int] = field(default_factory=lambda: [0] * BINS)
    pairs: int = _counted("pairs", "Pairs judged.")
    batches: int = _counted("batches", "Batches judged.")
    identify: int = _counted("identifications", "Identifications.")
    enrol: int = _counted("enrolments", "Templates enrolled since the start.")
    delete: int = _counted("deletions", "Templates deleted since the start.")
    feedback: int = _counted("feedback", "Labels told afterwards.")
    swaps: int = _counted("model_swaps", "Models taken while running.")
    refused_swaps: int = _counted("model_swaps_refused", "Model files that were not taken.")
    outside: int = _counted("pairs_out_of_population", "Pairs with an image outside.")
    placed: int = _counted("pairs_placed", "Pairs of which it is known whether they are outside.")

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, **more: int) -> None:
        """Add to numbers by name."""
        with self._lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)

    def count(self, verdicts: Verdicts) -> None:
        """Count the pairs of a request."""
        judged = verdicts.judged
        place = np.minimum((judged.probability * BINS).astype(np.int64), BINS - 1)
        by_bin = np.bincount(place, minlength=BINS).tolist()
        with self._lock:
            self.batches += verdicts.images is not None
            self.pairs += len(verdicts)
            self.same += int(judged.same.sum())
            if judged.places is not None:
                outside = judged.places.outside
                self.placed += len(verdicts)
                self.outside += int((outside[verdicts.left] | outside[verdicts.right]).sum())
            self.probabilities = [a + b for a, b in zip(self.probabilities, by_bin, strict=True)]


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
        self._registry.register(_CountsCollector(service))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self._registry)


class _CountsCollector:
    """Turns the service's counters into metrics when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        """Return nothing: names are not checked against others, as none is taken."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all of them."""
        service, counts = self._service, self._service.counts
        for each in fields(counts):
            if each.metadata:
                value = getattr(counts, each.name)
                yield CounterMetricFamily(each.metadata["name"], each.metadata["words"], value)
        failures = service.recorder.failures
        yield CounterMetricFamily("faircal_store_errors", "Failed writes of the trail.", failures)
        by_decision = {"same": counts.same, "different": counts.pairs - counts.same}
        yield _counter("decisions", "By decision.", "decision", by_decision)
        words = "Pairs by probability; le is the upper end of the bin."
        by_bin = {f"{(k + 1) / BINS:g}": value for k, value in enumerate(counts.probabilities)}
        yield _counter("probability", words, "le", by_bin)
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        service, counts = self._service, self._service.counts
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


def _counter(name: str, words: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"faircal_{name}", words, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _gauge(name: str, words: str, values: Mapping[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(f"faircal_{name}", words, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family
