"""``report.html``: one self-contained page, made from the results store alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from faircal._version import __version__
from faircal.errors import DataError
from faircal.files import write_text
from faircal.report.svg import DotPlot
from faircal.report.tables import Results, Table, Variant, further_tables, main_tables, percent
from faircal.results import REPORT, Interval, read_intervals, read_results, read_run


@dataclass(frozen=True)
class Section:
    """What is shown for one attribute."""

    attribute: str
    summary: list[str]
    tables: list[Table]
    figures: list[DotPlot]
    further: list[Table]


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` into a folder of results, recomputing nothing; return its path."""
    home = Path(folder)
    results = Results(read_results(home))
    if not results.rows:
        raise DataError(f"{home}: results.csv has no rows; run the benchmark or audit again")
    run = read_run(home)
    intervals = read_intervals(home) if run.get("kind") == "audit" else []
    sections = [_section(results, attribute, intervals) for attribute in results.attributes]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_resource("page.html"))
    text = template.render(
        dataset=results.dataset,
        kind=run.get("kind", "benchmark"),
        simulated=bool(run.get("simulated")),
        sections=sections,
        intervals=intervals,
        interval_kind=run.get("interval_kind", ""),
        notes=_notes(run),
        facts=_facts(run),
        style=_resource("page.css"),
        version=__version__,
    )
    write_text(home / REPORT, text)
    return home / REPORT


def _resource(name: str) -> str:
    return files("faircal.report").joinpath(name).read_text(encoding="utf-8")


def _section(results: Results, attribute: str, intervals: list[Interval]) -> Section:
    return Section(
        attribute,
        _summary(results, attribute, intervals),
        main_tables(results, attribute),
        _figures(results, attribute, intervals),
        further_tables(results, attribute),
    )


def _by_group(
    results: Results, feature: str, variant: Variant, attribute: str, under: str, metric: str
) -> dict[str, float]:
    return {
        group: results.value(feature, variant, attribute, group, under, metric).mean
        for group in results.groups(attribute)
    }


def _points(results: Results, attribute: str) -> list[str]:
    """Return the operating points to show: a given threshold (""), else the highest global rate."""
    given = any(
        row.metric == "fpr" and not row.condition and row.attribute == attribute
        for row in results.rows
    )
    return [""] if given else results.rates("global_fpr")[-1:]


def _summary(results: Results, attribute: str, intervals: list[Interval]) -> list[str]:
    """Say in plain words who is treated differently, and what each method changes."""
    if not results.groups(attribute):
        return []
    said = []
    for under in _points(results, attribute):
        setting = (
            f"a threshold that does so to {percent(under)} of all" if under else "the given one"
        )
        said.append(
            "Share of pairs of strangers that are taken for the same person, in the worst and in "
            f"the best group, with one threshold for everybody ({setting}):"
        )
        for feature in results.features:
            for variant in results.variants:
                said += _contrast(results, feature, variant, attribute, under, intervals)
    return said


def _contrast(
    results: Results,
    feature: str,
    variant: Variant,
    attribute: str,
    under: str,
    intervals: list[Interval],
) -> list[str]:
    """Say how the worst group and the best one compare, as far as the data can tell them apart."""
    rates = _by_group(results, feature, variant, attribute, under, "fpr")
    known = {group: rate for group, rate in rates.items() if rate == rate}
    if not known:
        return []
    worst, best = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    times = known[worst] / known[best] if known[best] > 0 else np.inf
    ratio = f"{times:.1f} times as many" if np.isfinite(times) else "against none"
    ends = _ends_by_group(feature, attribute, under, intervals)
    if ends and ends[worst][0] <= ends[best][1]:
        ratio = "their intervals overlap: the data does not tell them apart"
    name = results.label(variant) + (f" ({feature})" if len(results.features) > 1 else "")
    said = [
        f"{100 * known[group]:.2f} % of {group}"
        + (f" ({100 * ends[group][0]:.2f} to {100 * ends[group][1]:.2f})" if ends else "")
        for group in (worst, best)
    ]
    return [f"{name}: {said[0]}, {said[1]}; {ratio}."]


def _ends_by_group(
    feature: str, attribute: str, under: str, intervals: list[Interval]
) -> dict[str, tuple[float, float]]:
    """Return the interval of each group's false-positive rate; none in a benchmark."""
    return {
        row.group: (row.low, row.high)
        for row in intervals
        if (row.feature, row.attribute, row.condition, row.metric)
        == (feature, attribute, under, "fpr")
    }


def _figures(results: Results, attribute: str, intervals: list[Interval]) -> list[DotPlot]:
    groups = results.groups(attribute)
    if not groups:
        return []
    figures = []
    for feature in results.features:
        name = f" ({feature})" if len(results.features) > 1 else ""
        for under in _points(results, attribute):
            low, high = _ends(results, feature, attribute, under, intervals)
            where = f"a global rate of {percent(under)}" if under else "the given threshold"
            figures.append(
                DotPlot(
                    f"False-positive rate of each group at {where}{name}",
                    "FPR, percent" + ("; the dashed line is the global rate" if under else ""),
                    groups,
                    _series(results, feature, attribute, under, "fpr"),
                    float(under.split("=")[1]) if under else None,
                    low,
                    high,
                )
            )
        calibration = _series(results, feature, attribute, "", "ks")
        if any(value == value for values in calibration.values() for value in values):
            title = f"Calibration error (KS) of each group{name}"
            figures.append(DotPlot(title, "KS, percent; 0 is perfect", groups, calibration))
    return figures


def _series(
    results: Results, feature: str, attribute: str, under: str, metric: str
) -> dict[str, list[float]]:
    return {
        results.label(variant): list(
            _by_group(results, feature, variant, attribute, under, metric).values()
        )
        for variant in results.variants
    }


def _ends(
    results: Results, feature: str, attribute: str, under: str, intervals: list[Interval]
) -> tuple[dict[str, list[float]] | None, dict[str, list[float]] | None]:
    """Return the intervals' ends for the figure; None where the store has none (a benchmark)."""
    found = _ends_by_group(feature, attribute, under, intervals)
    if not found:
        return None, None
    label = results.label(results.variants[0])
    pairs = [found.get(group, (np.nan, np.nan)) for group in results.groups(attribute)]
    return {label: [low for low, _ in pairs]}, {label: [high for _, high in pairs]}


def _notes(run: dict[str, Any]) -> list[str]:
    notes = [str(note) for note in run.get("notes", [])]
    notes += [f"{method} was left out: {why}." for method, why in run.get("left_out", {}).items()]
    fits = run.get("fits", [])
    notes += sorted({f"{fit['method']}: {note}" for fit in fits for note in fit.get("notes", [])})
    return notes


def _facts(run: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how it was computed, as (name, value) pairs."""
    plain = (
        "pairs",
        "images",
        "people",
        "folds",
        "attributes",
        "data_sha256",
        "wall_time_s",
        "jobs",
    )
    facts = [(key.replace("_", " "), _plain(run[key])) for key in plain if run.get(key) is not None]
    facts += [(f"setting: {key}", _plain(value)) for key, value in run.get("settings", {}).items()]
    facts += [(f"version: {key}", _plain(value)) for key, value in run.get("versions", {}).items()]
    facts += [(f"K-means objective, {name}", text) for name, text in _objectives(run).items()]
    return facts


def _objectives(run: dict[str, Any]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for fit in run.get("fits", []):
        if "inertia" in fit.get("figures", {}):
            name = f"{fit['feature']}, K = {fit['clusters']}"
            text = f"{fit['figures']['inertia']:.6g}"
            if text not in found.setdefault(name, []):
                found[name].append(text)
    return {name: ", ".join(values) for name, values in found.items()}


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "default"
    return str(value)
