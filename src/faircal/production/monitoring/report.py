"""The report of ``faircal monitor``: ``report.html``, ``monitor.json``, ``monitor.csv``.

Nothing is worked out here: what a watch found is written down, drawn and put in words.
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
from faircal.production.monitoring import Finding, Verdict
from faircal.production.monitoring.report_figures import TITLES, Stretch, pictures
from faircal.report.rendering import render, resource

RECORD, TABLE = "monitor.json", "monitor.csv"


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
        found: dict[str, Any] = without_nan(
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
        return found

    def rows(self) -> Iterator[MonitorRow]:
        """Yield every number as a line."""
        yield MonitorRow("verdict", "", "due", float(self.verdict.due))
        yield MonitorRow("verdict", "", "pairs", float(self.verdict.pairs))
        yield MonitorRow("verdict", "", "feedback", float(self.verdict.feedback))
        for finding in self.verdict.findings:
            for name in ("statistic", "p_value", "level", "alarm", "enough"):
                yield MonitorRow(finding.name, "", name, float(getattr(finding, name)))
            yield from _numbers(finding.name, finding.details)
        for i, stretch in enumerate(self.timeline, start=1):
            for name, value in stretch._asdict().items():
                if name != "source":
                    yield MonitorRow("timeline", str(i), name, float(value))


def write_monitoring(folder: str | Path, result: MonitoringResult) -> dict[str, Path]:
    """Write page, record and table into `folder`; return their paths by name."""
    home = output_folder(folder)
    paths = {"report": home / REPORT, "record": home / RECORD, "table": home / TABLE}
    write_text(paths["record"], json.dumps(result.as_json(), indent=2, default=str) + "\n")
    write_rows(paths["table"], MonitorRow, result.rows())
    write_text(paths["report"], monitoring_page(result))
    return paths


def monitoring_page(found: MonitoringResult) -> str:
    """Return the page: self-contained, opens offline, has no script."""
    drawn = pictures(found.verdict, found.population, found.timeline)
    said = headline(found.verdict)
    return render(
        "monitor.html",
        {"figure": _figure, "share": _share},
        found=found,
        verdict=found.verdict,
        words={finding.name: verdict_of(finding) for finding in found.verdict.findings},
        advice=advice(found.verdict),
        promise=promise(found.false_alarms),
        headline=said[0].upper() + said[1:],
        state=STATES[said],
        pictures=drawn,
        sections=[(name, TITLES[name]) for name in drawn],
        facts=_facts(found),
        glossary=GLOSSARY,
        style=resource("page.css"),
        version=__version__,
    )


def _facts(result: MonitoringResult) -> list[tuple[str, str]]:
    """Return what the verdict rests on, as (name, value) pairs."""
    model, population = result.model, result.population
    of = {"people": "people", "images": "images, as people were not known"}
    facts = [
        ("model", f"{model['name']} ({model['method']})"),
        ("model SHA-256", str(model["sha256"])),
        ("calibrated on", str(model["data"] or "not told")),
        (
            "calibration pairs counted",
            f"{int(population.genuine_counts.sum() + population.imposter_counts.sum()):,}",
        ),
        (
            "calibration varies with",
            f"{population.people:,} {of.get(population.lots_of, 'pairs: people were not known')}",
        ),
        ("pairs in use", f"{result.verdict.pairs:,}"),
        ("labelled pairs in use", f"{result.verdict.feedback:,}"),
    ]
    facts += [(f"read now: {name}", f"{count:,} pairs") for name, count in result.sources.items()]
    return facts


def _numbers(what: str, details: Mapping[str, Any], part: str = "") -> Iterator[MonitorRow]:
    """Yield the numbers of nested details; elements of a list are counted from 0."""
    for key, value in details.items():
        if isinstance(value, Mapping):
            yield from _numbers(what, value, f"{part}{key}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for i, one in enumerate(value):
                if isinstance(one, Mapping):
                    yield from _numbers(what, one, f"{part}{key}.{i}.")
                elif isinstance(one, int | float):
                    yield MonitorRow(what, f"{part}{i}", key, float(one))
        elif isinstance(value, int | float):
            yield MonitorRow(what, part.rstrip("."), key, float(value))


def _figure(value: float | None) -> str:
    """Return a number in three figures; a dash where there is none."""
    if value is None or value != value:
        return "–"
    return f"{value:.3g}".replace("-", "−")


def _share(value: float | None) -> str:
    return "–" if value is None or value != value else f"{100 * value:.3g} %"


QUIET, DUE, WAIT = "quiet", "recalibration is due", "not enough data"
#: Classes of the page's style.
STATES = {QUIET: "quiet", DUE: "due", WAIT: "wait"}

GLOSSARY = {
    "Pair": "Two face images that were compared.",
    "Score": "What the model ranks pairs by; higher is more alike.",
    "Probability": "How likely the two images are of one person, as the model says.",
    "Calibration": "Making probabilities mean what they say: of pairs with 80 %, eight in ten are "
    "of one person. It was done on the calibration population.",
    "Cluster": "A region of embedding space: images that look alike to the network. The model may "
    "treat each in its own way.",
    "Occupancy": "The share of images that lie in each cluster: who is seen, without asking.",
    "Outside": "An image further from every cluster than nearly all images of calibration: a blur, "
    "a thing that is no face, or a kind of face that the model has not been calibrated for.",
    "Feedback": "Pairs of which it became known later whether they are of one person.",
    "Tolerance": "How far use may be from calibration before it matters. Less than that is not an "
    "alarm, however surely it is there.",
    "p-value": "The chance of finding as much as was found if use were just at the tolerance.",
    "Level": "The part of the false-alarm rate that this look may use up; an alarm is a p-value of "
    "at most the level.",
    "Recalibration": "Fitting the model again, on pairs of the people it is used on now.",
}

_DO = {
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
        f"{finding.title}: {_DO[finding.name]}." for finding in verdict.findings if finding.alarm
    ]
    if sentences:
        sentences.append(
            "An alarm stays until the model was fitted again; then begin a new --state, since what "
            "was counted was of the old model."
        )
    return sentences


def promise(false_alarms: float) -> str:
    """Say what is promised about false alarms."""
    return (
        f"While pairs in use stay as they were in calibration, or nearer than the tolerance, all "
        f"tests together raise an alarm in at most {100 * false_alarms:g} % of streams, however "
        "long they are and however often one looks."
    )
