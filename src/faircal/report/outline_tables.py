"""The tables of an audit's outline: population, operating points, rates, fairness, evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from faircal.evaluation.audit.label_noise import over_groups
from faircal.evaluation.audit.regions import distinct
from faircal.metrics.results import ALL, GLOBAL, Condition
from faircal.report.enough import NOT_ENOUGH, effective_people, lacking, people
from faircal.report.findings import Measured, conditions
from faircal.report.rates import Rate
from faircal.report.store import Store
from faircal.report.tables import Heading, Line, Table, Value, fairness_measures
from faircal.report.tables import percent as percent_of

_NAN = math.nan


def _table(key: str, title: str, caption: str, names: list[str], lines: list[Line]) -> Table:
    headings = tuple(Heading("", name, "") for name in names)
    return Table(key, title, caption, headings, tuple(lines), spreads=False, stub="")


def _count(n: float | None, digits: int = 0) -> Value:
    return Value(_NAN if n is None else float(n), unit=1, digits=digits)


def at(condition: str) -> str:
    """Return an operating point in few words."""
    if not condition:
        return "given threshold"
    return f"{percent_of(condition)} global {Condition.of(condition).metric.upper()}"


def population(measured: Measured) -> Table:
    """People and pairs of each group."""
    counted = people(measured.store, measured.attribute)
    genuine, imposter = (
        effective_people(measured.store, measured.attribute, of) for of in ("fnr", "fpr")
    )
    lines = []
    for group in (GLOBAL, *measured.groups):
        same, strangers = measured.counts(group) or (None, None)
        values = [counted.get(group), strangers, imposter.get(group), same, genuine.get(group)]
        name = "All pairs" if group == GLOBAL else group
        lines.append(Line(name, tuple(map(_count, values))))
    return _table(
        "population",
        "People and pairs",
        "Effective people: how many, each in equally many such pairs, would tell as much.",
        [
            "People",
            "Pairs of strangers",
            "Effective people in them",
            "Pairs of one person",
            "Effective people in these",
        ],
        lines,
    )


def operating_points(measured: Sequence[Measured]) -> Table:
    """Thresholds, and what they mean over all pairs."""
    lines = []
    for of in measured:
        for condition in conditions(of.store.results, of.attribute):
            point = of.point(condition)
            values = [Value(of.value("threshold", condition=condition).mean, unit=1, digits=4)]
            for metric in ("fpr", "fnr"):
                rates = point.rates.get(metric)
                values.append(Value(_NAN) if rates is None else told(rates.overall))
            lines.append(Line(at(condition), tuple(values), block=_feature(of)))
    caption = "Over all pairs, those of two groups included. Percent."
    names = ["Threshold", "FPR", "FNR"]
    return _table("operating-points", "Thresholds", caption, names, lines)


def told(rate: Rate) -> Value:
    """Return a rate with its interval, or that there is not enough data."""
    if rate.too_few:
        return Value(_NAN, says=NOT_ENOUGH)
    return Value(rate.value, low=rate.low, high=rate.high)


def error_rates(measured: Sequence[Measured]) -> list[Table]:
    """Error rates of each group at each operating point."""
    tables = []
    for metric, name in (("fpr", "False positive rate"), ("fnr", "False negative rate")):
        for of in measured:
            points = [of.point(c) for c in conditions(of.store.results, of.attribute)]
            points = [point for point in points if metric in point.rates]
            lines = [
                Line(group, tuple(told(point.rates[metric].groups[group]) for point in points))
                for group in of.groups
            ]
            everybody = tuple(told(point.rates[metric].overall) for point in points)
            lines.insert(0, Line("All pairs", everybody))
            title = f"{name} by group" + (f" ({of.feature})" if len(measured) > 1 else "")
            key = f"rates-{metric}" + (f"-{of.feature}" if len(measured) > 1 else "")
            names = [at(point.condition) for point in points]
            tables.append(_table(key, title, "Percent; equal is better.", names, lines))
    return tables


def fairness(measured: Sequence[Measured]) -> list[Table]:
    """How unequal groups are at each operating point that has both errors."""
    tables = []
    for of in measured:
        points = [
            c for c in conditions(of.store.results, of.attribute) if not c.startswith("global_fnr")
        ]
        lines = [
            Line(title, tuple(of.value(metric, ALL, c) for c in points))
            for _, metric, title in fairness_measures()
            if any(of.has(metric, ALL, c) for c in points)
        ]
        if lines:
            title = "Fairness measures" + (f" ({of.feature})" if len(measured) > 1 else "")
            key = "fairness" + (f"-{of.feature}" if len(measured) > 1 else "")
            caption = "Differences in percent, the rest as it is."
            tables.append(_table(key, title, caption, [at(c) for c in points], lines))
    return tables


def between(store: Store, point: str | None) -> list[Table]:
    """Imposter pairs of every two groups."""
    rows = [row for row in store.matrix if row.condition == point]
    if all(row.left_group == row.right_group for row in rows):
        return []
    lines = []
    for row in rows:
        known = None if math.isnan(row.effective_people) else row.effective_people
        wanted = Condition.of(row.condition).wanted("fpr")
        few = lacking("fpr", round(row.imposters), known, wanted)
        rate = Value(row.fpr, low=row.low, high=row.high)
        counts = _count(row.imposters), _count(known), _count(row.errors)
        both = f"{row.left_group} – {row.right_group}"
        found = Value(_NAN, says=NOT_ENOUGH) if few else rate
        several = len(store.results.features) > 1
        lines.append(Line(both, (*counts, found), block=row.feature if several else ""))
    names = ["Pairs of strangers", "Effective people", "False matches", "FPR"]
    title = f"Pairs of strangers by both groups, {at(point or '')}"
    return [_table("matrix", title, "FPR in percent.", names, lines)]


def evidence(measured: Sequence[Measured]) -> list[Table]:
    """Cllr and its least value for each group."""
    lines = []
    for of in measured:
        for group in (GLOBAL, *of.groups):
            few = of.too_few("cllr", group, "")
            found = [of.value(metric, group) for metric in ("cllr", "min_cllr")]
            values = [Value(_NAN, says=NOT_ENOUGH) if few else _fine(v) for v in found]
            name = "All pairs" if group == GLOBAL else group
            lines.append(Line(name, tuple(values), block=_feature(of)))
    names = ["Cllr", "Min. Cllr"]
    return [_table("cllr", "Cllr by group", "Bits; lower is better.", names, lines)]


def _fine(value: Value) -> Value:
    return Value(value.mean, low=value.low, high=value.high, unit=1, digits=3)


def wrong_labels(store: Store) -> list[Table]:
    """How far gaps move when labels are wrong."""
    lines = []
    several = len(store.results.features) > 1
    for row in over_groups(store.label_noise):
        drawn = Value(row.median, low=row.low, high=row.high)
        back = Value(_NAN, says="not known")
        if row.reliable:
            said = row.taken_back(lambda value: Value(value).text)
            back = Value(row.corrected, says=said if " to " in said else "")
        name = f"{row.name}, {at(row.condition)}" if row.of_rate else row.name
        block = row.feature if several else ""
        lines.append(Line(name, (Value(row.value), drawn, back), block=block))
    if not lines:
        return []
    share = 100 * store.label_noise[0].noise
    names = ["As labelled", f"With {share:g} % wrong", f"If {share:g} % are wrong already"]
    made = _table("label-noise", "How far the gaps move", "Percent.", names, lines)
    return [replace(made, brackets="where 95 % of the draws lie")]


def regions(store: Store) -> list[Table]:
    """The regions that were found to be worse than the rest."""
    lines = [
        Line(
            row.region,
            (
                _count(row.people),
                _count(row.imposters),
                Value(row.fpr, low=row.low, high=row.high),
                Value(row.rest_fpr),
                Value(row.gap, low=row.gap_low, high=row.gap_high),
                Value(row.rest_gap),
                Value(_NAN, says=row.composition or "–"),
            ),
        )
        for row in distinct(store.regions)
    ]
    names = ["People", "Pairs of strangers", "FPR", "Rest", "Probabilities off by", "Rest ", "Who"]
    caption = "As the half of the people that did not make a region shows it. Percent."
    return [_table("regions", "Regions that are worse", caption, names, lines)] if lines else []


def _feature(of: Measured) -> str:
    return of.feature if len(of.store.results.features) > 1 else ""
