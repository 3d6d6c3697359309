"""The report of ``faircal monitor``: ``report.html``, ``monitor.json``, ``monitor.csv``.

Nothing is worked out here: what a watch says is written down and drawn. The page's words are in its
template, ``monitor.html``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.files import output_folder, write_text
from faircal._version import __version__
from faircal.metrics.results import REPORT, versions, without_nan, write_rows
from faircal.model import Population
from faircal.production.monitoring.findings import Finding, Verdict
from faircal.production.monitoring.report_figures import Stretch, pictures
from faircal.report.rendering import render, resource

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
