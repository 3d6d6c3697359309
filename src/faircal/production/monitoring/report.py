"""The report of ``faircal monitor``: ``report.html``, ``monitor.json``, ``monitor.csv``.

Nothing is worked out here: what a watch says is written down and drawn. Of each thing that is
watched the page shows the look that counts: the one that raised the alarm, else the latest of the
longest. Its words are in its template, ``monitor.html``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from faircal._base.files import output_folder, write_text
from faircal._version import __version__
from faircal.metrics.proportions import wilson
from faircal.metrics.results import REPORT, without_nan, write_rows
from faircal.model import Population, versions
from faircal.production.monitoring.counts import Float64
from faircal.production.monitoring.findings import Finding, Verdict
from faircal.production.monitoring.pairs_in_use import PairsInUse
from faircal.report.rendering import render, resource
from faircal.report.svg import CHANGE_LOOKS, bars, histogram, number, points

RECORD, TABLE = "monitor.json", "monitor.csv"
QUIET, DUE, WAIT = "quiet", "recalibration is due", "not enough data"
#: What to do about an alarm.
_ADVICE = {
    "clusters": "other people, or other images of them, come than the model was calibrated for: "
    "collect labelled pairs of them and fit again ('faircal fit')",
    "outside": "many images are of a kind that was not in calibration: look at cameras, lighting "
    "and face detection first; where the images are sound, fit again with such people among them",
    "scores": "scores are spread in another way: where only the share of genuine pairs changed, "
    "'faircal score --prior estimate' is enough; where strangers score higher than they did, "
    "find a new threshold ('faircal threshold') and fit again",
    "calibration": "probabilities do not mean what they say any more: fit again with the labelled "
    "feedback ('faircal fit'), or, where only the share of genuine pairs changed, give it with "
    "--prior",
}


class Stretch(NamedTuple):
    """A stretch of the stream of pairs: means and counts.

    Attributes
    ----------
    source : str
        The file or folder.
    pairs : int
    score, probability : float
        Means.
    images, outside : int
        Images (two a pair) whose place is known, and how many of them lie outside.
    feedback, genuine : int
        Labelled pairs, and the genuine ones.
    expected : float
        How many genuine ones their probabilities promise.
    """

    source: str
    pairs: int
    score: float
    probability: float
    images: int
    outside: int
    feedback: int
    genuine: int
    expected: float

    @classmethod
    def of(cls, pairs: PairsInUse, source: str) -> Self:
        """Count pairs."""
        outside, (shown, genuine, _) = pairs.sides("outside"), pairs.labels()
        return cls(
            source=source,
            pairs=len(pairs),
            score=float(np.mean(pairs.score)),
            probability=float(np.mean(pairs.probability)),
            images=int((outside >= 0).sum()),
            outside=int((outside == 1).sum()),
            feedback=len(shown),
            genuine=int(genuine.sum()),
            expected=float(shown.sum()),
        )


class MonitorRow(NamedTuple):
    """A line of ``monitor.csv``: of what, of which part of it, which quantity."""

    what: str
    part: str
    quantity: str
    value: float


@dataclass(frozen=True, eq=False)
class MonitoringResult:
    """All that a report of monitoring shows.

    Attributes
    ----------
    verdict : Verdict
    population : Population
        Of calibration.
    timeline : sequence of Stretch
    model : mapping
        ``name``, ``method``, ``sha256``, ``data``, ``simulated``.
    false_alarms : float
    sources : mapping of str to int
        Files of this call, and the pairs in each.
    notes : sequence of str
    """

    verdict: Verdict
    population: Population
    timeline: Sequence[Stretch]
    model: Mapping[str, Any]
    false_alarms: float
    sources: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return all of it, as JSON knows it; numbers that are not known are None."""
        values: dict[str, Any] = without_nan(
            {
                "kind": "monitor",
                **self.verdict.as_json(),
                "advice": advice(self.verdict),
                "false_alarms": self.false_alarms,
                "model": dict(self.model),
                "sources": dict(self.sources),
                "timeline": [stretch._asdict() for stretch in self.timeline],
                "notes": list(self.notes),
                "versions": versions(),
            }
        )
        return values

    def rows(self) -> Iterator[MonitorRow]:
        """Yield every number as a line."""
        for name in ("due", "pairs", "feedback"):
            yield MonitorRow("verdict", "", name, float(getattr(self.verdict, name)))
        for finding in self.verdict.findings:
            for name in ("statistic", "p_value", "level", "alarm", "enough"):
                yield MonitorRow(finding.name, "", name, float(getattr(finding, name)))
            yield from _numbers(finding.name, "", finding.details)
        for i, stretch in enumerate(self.timeline, start=1):
            yield from _numbers("timeline", str(i), stretch._asdict())


def _numbers(what: str, part: str, details: Mapping[str, Any]) -> Iterator[MonitorRow]:
    """Yield the numbers of nested details; elements of a list are counted from 0."""
    for key, value in details.items():
        inner = f"{part}.{key}".lstrip(".")
        if isinstance(value, Mapping):
            yield from _numbers(what, inner, value)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for i, one in enumerate(value):
                yield MonitorRow(what, f"{part}.{i}".lstrip("."), key, float(one))
        elif isinstance(value, int | float):
            yield MonitorRow(what, part, key, float(value))


def write_monitoring(folder: str | Path, result: MonitoringResult) -> dict[str, Path]:
    """Write page, record and table into `folder`; return their paths by name."""
    home = output_folder(folder)
    paths = {"report": home / REPORT, "record": home / RECORD, "table": home / TABLE}
    write_text(paths["record"], json.dumps(result.as_json(), indent=2, default=str) + "\n")
    write_rows(paths["table"], MonitorRow, result.rows())
    write_text(paths["report"], monitoring_page(result))
    return paths


def monitoring_page(result: MonitoringResult) -> str:
    """Return the page: self-contained, opens offline, has no script."""
    verdict = result.verdict
    return render(
        "monitor.html",
        {"figure": _figure, "share": _share},
        result=result,
        verdict=verdict,
        of={finding.name: finding for finding in verdict.findings},
        words={finding.name: verdict_of(finding) for finding in verdict.findings},
        advice=advice(verdict),
        headline=headline(verdict),
        charts=pictures(verdict, result.population, result.timeline),
        style=resource("page.css"),
        version=__version__,
    )


def _figure(value: float | None) -> str:
    """Return a number in three figures; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:.3g}".replace("-", "−")


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def verdict_of(finding: Finding) -> str:
    """Say what a finding comes to, in a word or two."""
    if finding.alarm:
        return "ALARM"
    return QUIET if finding.enough else WAIT


def headline(verdict: Verdict) -> str:
    """Say what all findings come to."""
    if verdict.due:
        return DUE
    return QUIET if any(finding.enough for finding in verdict.findings) else WAIT


def advice(verdict: Verdict) -> list[str]:
    """Say what to do; a sentence for each alarm.

    >>> advice(Verdict(False, (), 0, 0, ""))
    []
    """
    sentences = [
        f"{finding.title}: {_ADVICE[finding.name]}."
        for finding in verdict.findings
        if finding.alarm
    ]
    if sentences:
        sentences.append(
            "An alarm stays until the model was fitted again; then begin a new --state, since what "
            "was counted was of the old model."
        )
    return sentences


# ---------------------------------------------------------------------------- charts

THEN, NOW = "calibration", "in use"
#: Clusters of a region that are named.
_NAMED = 8
#: Narrow enough that text can be read on a phone.
_WIDTH = 420
#: Bins of scores that are drawn, at most.
_SCORE_BINS = 20
#: With fewer labelled pairs a bin of the reliability diagram tells next to nothing.
_LEAST = 10


class MonitoringChart(NamedTuple):
    """A figure with the table behind it; `drawing` is an ``<svg>`` element."""

    drawing: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def pictures(
    verdict: Verdict, population: Population, timeline: Sequence[Stretch]
) -> dict[str, MonitoringChart]:
    """Return what there is to see, by section."""
    of = {finding.name: finding for finding in verdict.findings if finding.enough}
    charts: dict[str, MonitoringChart] = {}
    if "clusters" in of:
        charts["clusters"] = _clusters(of["clusters"], population)
    if "scores" in of:
        charts["scores"] = _scores(of["scores"])
    if any(stretch.images for stretch in timeline):
        charts["outside"] = _outside(of.get("outside"), timeline)
    if "calibration" in of:
        charts["calibration"] = _reliability(of["calibration"])
    if timeline:
        charts["time"] = _over_time(timeline)
    return charts


def _clusters(finding: Finding, population: Population) -> MonitoringChart:
    """Draw the share of images in each region of clusters, the biggest changes first."""
    then, now = _both(finding, "regions")
    order = np.argsort(-np.abs(now - then), kind="stable").tolist()
    rows = []
    for region in order:
        members = np.flatnonzero(population.region == region).tolist()
        named = ", ".join(map(str, members[:_NAMED]))
        named += f" and {len(members) - _NAMED} more" if len(members) > _NAMED else ""
        rows.append((f"region {region}", *_change(then[region], now[region]), named))
    return MonitoringChart(
        bars(
            [f"region {region}" for region in order],
            {THEN: then[order].tolist(), NOW: now[order].tolist()},
            title="Share of images in each region, in calibration and in use",
            width=_WIDTH,
        ),
        ("region", THEN, NOW, "change", "clusters"),
        tuple(rows),
    )


def _scores(finding: Finding) -> MonitoringChart:
    """Draw how what the model ranks by is spread, in bins that calibration fills alike."""
    then, now = _joined_bins(*_both(finding, "bins"))
    ends = [round(100 * float(end)) for end in (0.0, *np.cumsum(then))]
    at = np.unique(np.linspace(0, len(then), 6).astype(int)).tolist()
    return MonitoringChart(
        histogram(
            np.arange(len(now) + 1),
            {THEN: then, NOW: now},
            title="Pairs by score, in calibration and in use",
            looks=CHANGE_LOOKS,
            x_label="score, as percentile of calibration",
            x_ticks={float(i): f"{ends[i]} %" for i in at},
            width=_WIDTH,
        ),
        ("score, percentile of calibration", THEN, NOW, "change"),
        tuple(
            (f"{low} to {high} %", *_change(then[i], now[i]))
            for i, (low, high) in enumerate(pairwise(ends))
        ),
        f"Calibration is shown with {number(finding.details['share_genuine'], True)} genuine "
        "pairs, which fits what is in use best: another share alone is no alarm.",
    )


def _joined_bins(then: Float64, now: Float64) -> tuple[Float64, Float64]:
    """Join bins until calibration has about as many pairs in each."""
    quantiles = np.arange(1, _SCORE_BINS) / _SCORE_BINS
    grown = np.cumsum(then)[:-1]
    if not len(grown):
        return then, now
    ends = np.unique(np.abs(grown[:, None] - quantiles).argmin(axis=0))
    starts = np.concatenate([[0], ends + 1])
    return np.add.reduceat(then, starts), np.add.reduceat(now, starts)


def _outside(finding: Finding | None, timeline: Sequence[Stretch]) -> MonitoringChart:
    """Draw the share of images outside, stretch by stretch."""
    with_images = [(i, stretch) for i, stretch in enumerate(timeline, start=1) if stretch.images]
    outside, images = zip(*((part.outside, part.images) for _, part in with_images), strict=True)
    share, low, high, cells = _proportions(outside, images)
    return MonitoringChart(
        points(
            [float(i) for i, _ in with_images],
            share,
            low=low,
            high=high,
            level=None if finding is None else float(finding.details["expected"]),
            title="Share of images outside, over time",
            x_label="stretch",
            y_label="images outside",
            x_integers=True,
            width=_WIDTH,
        ),
        ("stretch", "images", "outside", "share", "95 % interval"),
        tuple(
            (f"{i}: {part.source}", f"{part.images:,}", f"{part.outside:,}", *cells[k])
            for k, (i, part) in enumerate(with_images)
        ),
    )


def _reliability(finding: Finding) -> MonitoringChart:
    """Draw what share of pairs with about the same probability turned out to be genuine."""
    curve = finding.details["curve"]
    probability, pairs, genuine = (
        np.array(curve[key]) for key in ("probability", "labels", "genuine")
    )
    bins = np.flatnonzero(pairs)
    share, low, high, cells = _proportions(genuine[bins], pairs[bins])
    drawn = [k for k, b in enumerate(bins) if pairs[b] >= _LEAST]
    return MonitoringChart(
        points(
            probability[bins][drawn].tolist(),
            [share[k] for k in drawn],
            low=[low[k] for k in drawn],
            high=[high[k] for k in drawn],
            diagonal=True,
            x_percent=True,
            title="Share of genuine pairs against probability, of pairs with feedback",
            x_label="probability",
            y_label="genuine",
            width=_WIDTH,
            height=300,
        ),
        ("probability", "pairs", "genuine", "share", "95 % interval"),
        tuple(
            (number(float(probability[b]), True), f"{pairs[b]:,}", f"{genuine[b]:,}", *cells[k])
            for k, b in enumerate(bins)
        ),
        f"Bins with fewer than {_LEAST} pairs are in the table only."
        if len(drawn) < len(bins)
        else "",
    )


def _over_time(timeline: Sequence[Stretch]) -> MonitoringChart:
    """Draw all stretches: how many pairs, and what they were like."""
    return MonitoringChart(
        points(
            [float(i) for i in range(1, len(timeline) + 1)],
            [part.probability for part in timeline],
            title="Mean probability over time",
            x_label="stretch",
            y_label="mean probability",
            x_integers=True,
            width=_WIDTH,
        ),
        ("stretch", "pairs", "mean score", "mean probability", "feedback", "genuine", "promised"),
        tuple(
            (
                f"{i}: {part.source}",
                f"{part.pairs:,}",
                number(part.score),
                number(part.probability, True),
                f"{part.feedback:,}",
                f"{part.genuine:,}" if part.feedback else "–",
                f"{part.expected:,.1f}" if part.feedback else "–",
            )
            for i, part in enumerate(timeline, start=1)
        ),
    )


def _both(finding: Finding, key: str) -> tuple[Float64, Float64]:
    """Return the expected shares, and those observed."""
    of = finding.details[key]
    return np.array(of["expected"], np.float64), np.array(of["found"], np.float64)


def _change(then: float, now: float) -> tuple[str, str, str]:
    """Return two shares, and their difference in percentage points."""
    change = f"{100 * (now - then):+.2f} pp".replace("-", "−")
    return number(float(then), True), number(float(now), True), change


def _proportions(
    counts: Any, trials: Any
) -> tuple[list[float], list[float], list[float], list[tuple[str, str]]]:
    """Return shares, ends of Wilson intervals as if trials were independent, and both as cells."""
    share = [count / n for count, n in zip(counts, trials, strict=True)]
    low, high = (end.tolist() for end in wilson(counts, trials))
    cells = [
        (number(float(at), True), f"{number(a, True)} to {number(b, True)}")
        for at, a, b in zip(share, low, high, strict=True)
    ]
    return share, low, high, cells
