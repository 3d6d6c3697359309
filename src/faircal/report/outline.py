"""An audit along the outline of ISO/IEC 19795-1 and 19795-10: aligned with them, no more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from faircal.evaluation.audit.label_noise import over_groups
from faircal.evaluation.audit.regions import distinct
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import (
    NOT_ENOUGH,
    insufficient_data_reason,
    least_people,
)
from faircal.metrics.results import ALL, GLOBAL, Condition
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.findings import (
    Rate,
    VariantResults,
    conditions,
    effective_people,
    main_condition,
    people,
)
from faircal.report.store import ResultsFolder
from faircal.report.tables import fairness_measures
from faircal.report.wording import listing, rate_text

ABOUT = (
    "Aligned with the outline of ISO/IEC 19795-1 (testing and reporting) and 19795-10 (differences "
    "between demographic groups). What is FPR here they call false match rate (FMR), what is FNR "
    "false non-match rate (FNMR). Whether a test meets these standards also depends on how people "
    "were recruited and pictures taken, which the data does not say."
)


@dataclass(frozen=True)
class OutlineSection:
    """A part of the outline: sentences, then tables; `folded` ones open on request."""

    title: str
    sentences: list[str]
    tables: list[Table] = field(default_factory=list)
    folded: bool = False


def outline(store: ResultsFolder, attribute: str) -> list[OutlineSection]:
    """Return the sections of an audit's outline; none of a benchmark.

    Parameters
    ----------
    store : ResultsFolder
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """
    if store.kind != "audit":
        return []
    variant = store.results.variants[0]
    measured = [VariantResults(store, attribute, f, variant) for f in store.results.features]
    point = main_condition(store.results, attribute)
    sections = [
        OutlineSection(
            "Population", list(_population(store, attribute)), [people_table(measured[0])]
        ),
        OutlineSection("Protocol", list(_protocol(store))),
        OutlineSection(
            "Operating points",
            list(_operating(store, attribute)),
            [threshold_table(measured)],
        ),
        OutlineSection(
            "Error rates by group",
            ["With intervals; curves over all thresholds are the figures ROC and DET by group."],
            rate_tables(measured),
            folded=True,
        ),
        OutlineSection("Fairness measures", list(_fairness(measured)), fairness_tables(measured)),
        OutlineSection(
            "Between groups", list(_between(store, point)), group_pair_tables(store, point), True
        ),
        OutlineSection("Strength of evidence", [_EVIDENCE], cllr_tables(measured), True),
        OutlineSection("Wrong labels", [_WRONG], label_noise_tables(store), True),
        OutlineSection("Regions without labels", [_REGIONS], region_tables(store), True),
        OutlineSection("Uncertainty", list(_uncertainty(store, attribute))),
    ]
    kept = ("Population", "Protocol", "Operating points", "Between groups", "Uncertainty")
    return [s for s in sections if any(t.measured for t in s.tables) or s.title in kept]


_EVIDENCE = (
    "Cllr is what the probabilities cost as evidence, in bits per pair: 0 is perfect, 1 is as good "
    "as saying nothing. Min. Cllr is what would be left if they were perfectly calibrated for "
    "the group; the rest is lost by calibration. The prior is the share of genuine pairs of all."
)
_WRONG = (
    "Labels of groups may be wrong. So many were drawn anew at random: how far gaps move, and what "
    "they would be if as many labels are wrong already and are taken back."
)
_REGIONS = (
    "Where in embedding space it is worst, found without labels of groups on one half of the "
    "people and tested on the other, with control of false discoveries."
)


def _population(store: ResultsFolder, attribute: str) -> Iterator[str]:
    run, counted = store.run, people(store, attribute)
    known = f"{counted[GLOBAL]:,} people" if GLOBAL in counted else "an unknown number of people"
    images = f", {run['images']:,} images" if isinstance(run.get("images"), int) else ""
    kind = "simulated" if store.simulated else "as the data names them"
    pairs = f"{run['pairs']:,} pairs" if isinstance(run.get("pairs"), int) else "pairs"
    yield f"{store.results.dataset}: {known}{images}, {pairs}; people are {kind}."
    if not attribute:
        yield "The data names no groups."
        return
    yield (
        f"Groups by {attribute.replace('+', ' and ')}, as labelled in the data; labels were not "
        "checked."
    )


def _protocol(store: ResultsFolder) -> Iterator[str]:
    settings = store.run.get("settings", {})
    made = "scores as the data has them, or cosines of its embeddings"
    if settings.get("model"):
        made = f"scores and probabilities of the model {settings['model']}"
    yield f"Measured: {made}. Pairs are those of the data; the audit draws none."
    if settings.get("fold") is not None:
        yield f"Only pairs of fold {settings['fold']}."
    given = settings.get("threshold")
    if given is not None:
        yield f"The threshold {given:g} was given; its error rates are counted."
    if store.run.get("streamed"):
        yield "Pairs were streamed and counted in bins; notes say how exact that is."


def _operating(store: ResultsFolder, attribute: str) -> Iterator[str]:
    every = conditions(store.results, attribute)
    if "" in every:
        yield "The given threshold."
    for metric in ("fpr", "fnr"):
        of_metric = [condition for condition in every if condition.startswith(f"global_{metric}")]
        if of_metric:
            rates = listing(rate_text(condition) for condition in of_metric)
            yield f"{metric.upper()} of {rates} over all pairs."


def _fairness(measured: list[VariantResults]) -> Iterator[str]:
    yield (
        "Max − min, max / min and max / geometric mean of the groups' rates; Gini: 0 where groups "
        "are alike; FDR: 1 where they are alike (both errors weigh half); inequity rate: 1; GARBE: "
        "0. “Undefined”: a ratio to a group without an error; more pairs or a laxer threshold "
        "would tell. All groups count, whatever their size."
    )
    point = main_condition(measured[0].store.results, measured[0].attribute)
    if point is None:
        return
    rates = measured[0].point(point).rates.values()
    small = list(dict.fromkeys(group for each in rates for group in each.withheld))
    if small:
        has = "has" if len(small) == 1 else "have"
        yield f"Among them {listing(small)}, which {has} not enough data to be told."


def _between(store: ResultsFolder, point: str | None) -> Iterator[str]:
    rows = [row for row in store.matrix if row.condition == point]
    if not rows:
        yield "Who is taken for whom is not known: there are no pairs of strangers in known groups."
    elif all(row.left_group == row.right_group for row in rows):
        yield (
            "The data has no pairs of strangers of two different groups: who is taken for whom "
            "across groups cannot be told."
        )
    else:
        yield "Who is taken for whom: pairs of strangers by the groups of both, at one threshold."


def _uncertainty(store: ResultsFolder, attribute: str) -> Iterator[str]:
    kind = store.run.get("interval_kind")
    yield f"Intervals of {100 * LEVEL:g} %: {kind or 'Wilson, of pairs taken as independent'}."
    groups = len(store.results.groups(attribute))
    if groups > 1:
        level = 100 * (1 - (1 - LEVEL) / groups)
        yield (
            "Intervals hold one at a time. Where two groups are called different, both intervals "
            f"are widened to hold at once for all groups that are told (Bonferroni: {level:.4g} % "
            f"where all {groups} are)."
        )
    yield (
        "A rate is told from 100 pairs on, at a global rate r from 3 / r pairs on; and, where "
        f"people are known, from {least_people('fpr')} effective people on, at an FPR of 1 % from "
        f"{least_people('fpr', 0.01)}, at 0.1 % from {least_people('fpr', 0.001)}. Under that the "
        "answer is “not enough data”."
    )


_NAN = math.nan


def _table(key: str, title: str, caption: str, names: list[str], lines: list[Line]) -> Table:
    headings = tuple(Heading("", name, "") for name in names)
    return Table(key, title, caption, headings, tuple(lines), spreads=False, stub="")


def _count(n: float | None, digits: int = 0) -> TableValue:
    return TableValue(_NAN if n is None else float(n), unit=1, digits=digits)


def point_name(condition: str) -> str:
    """Return an operating point in few words."""
    if not condition:
        return "given threshold"
    return f"{rate_text(condition)} global {Condition.of(condition).metric.upper()}"


def people_table(measured: VariantResults) -> Table:
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


def threshold_table(measured: Sequence[VariantResults]) -> Table:
    """Thresholds, and what they mean over all pairs."""
    lines = []
    for of in measured:
        for condition in conditions(of.store.results, of.attribute):
            point = of.point(condition)
            values = [TableValue(of.value("threshold", condition=condition).mean, unit=1, digits=4)]
            for metric in ("fpr", "fnr"):
                rates = point.rates.get(metric)
                values.append(TableValue(_NAN) if rates is None else rate_value(rates.overall))
            lines.append(Line(point_name(condition), tuple(values), block=_feature(of)))
    caption = "Over all pairs, those of two groups included. Percent."
    names = ["Threshold", "FPR", "FNR"]
    return _table("operating-points", "Thresholds", caption, names, lines)


def rate_value(rate: Rate) -> TableValue:
    """Return a rate with its interval, or that there is not enough data."""
    if rate.insufficient_data:
        return TableValue(_NAN, says=NOT_ENOUGH)
    return TableValue(rate.value, low=rate.low, high=rate.high)


def rate_tables(measured: Sequence[VariantResults]) -> list[Table]:
    """Error rates of each group at each operating point."""
    tables = []
    for metric, name in (("fpr", "False positive rate"), ("fnr", "False negative rate")):
        for of in measured:
            points = [of.point(c) for c in conditions(of.store.results, of.attribute)]
            points = [point for point in points if metric in point.rates]
            lines = [
                Line(
                    group, tuple(rate_value(point.rates[metric].groups[group]) for point in points)
                )
                for group in of.groups
            ]
            everybody = tuple(rate_value(point.rates[metric].overall) for point in points)
            lines.insert(0, Line("All pairs", everybody))
            title = f"{name} by group" + (f" ({of.feature})" if len(measured) > 1 else "")
            key = f"rates-{metric}" + (f"-{of.feature}" if len(measured) > 1 else "")
            names = [point_name(point.condition) for point in points]
            tables.append(_table(key, title, "Percent; equal is better.", names, lines))
    return tables


def fairness_tables(measured: Sequence[VariantResults]) -> list[Table]:
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
            tables.append(_table(key, title, caption, [point_name(c) for c in points], lines))
    return tables


def group_pair_tables(store: ResultsFolder, point: str | None) -> list[Table]:
    """Imposter pairs of every two groups."""
    rows = [row for row in store.matrix if row.condition == point]
    if all(row.left_group == row.right_group for row in rows):
        return []
    lines = []
    for row in rows:
        known = None if math.isnan(row.effective_people) else row.effective_people
        target = Condition.of(row.condition).wanted("fpr")
        few = insufficient_data_reason("fpr", round(row.imposters), known, target)
        rate = TableValue(row.fpr, low=row.low, high=row.high)
        counts = _count(row.imposters), _count(known), _count(row.errors)
        both = f"{row.left_group} – {row.right_group}"
        conditions_of = TableValue(_NAN, says=NOT_ENOUGH) if few else rate
        several = len(store.results.features) > 1
        lines.append(Line(both, (*counts, conditions_of), block=row.feature if several else ""))
    names = ["Pairs of strangers", "Effective people", "False matches", "FPR"]
    title = f"Pairs of strangers by both groups, {point_name(point or '')}"
    return [_table("matrix", title, "FPR in percent.", names, lines)]


def cllr_tables(measured: Sequence[VariantResults]) -> list[Table]:
    """Cllr and its least value for each group."""
    lines = []
    for of in measured:
        for group in (GLOBAL, *of.groups):
            few = of.insufficient_data("cllr", group)
            costs = [of.value(metric, group) for metric in ("cllr", "min_cllr")]
            values = [TableValue(_NAN, says=NOT_ENOUGH) if few else _fine(v) for v in costs]
            name = "All pairs" if group == GLOBAL else group
            lines.append(Line(name, tuple(values), block=_feature(of)))
    names = ["Cllr", "Min. Cllr"]
    return [_table("cllr", "Cllr by group", "Bits; lower is better.", names, lines)]


def _fine(value: TableValue) -> TableValue:
    return TableValue(value.mean, low=value.low, high=value.high, unit=1, digits=3)


def label_noise_tables(store: ResultsFolder) -> list[Table]:
    """How far gaps move when labels are wrong."""
    lines = []
    several = len(store.results.features) > 1
    for row in over_groups(store.label_noise):
        drawn = TableValue(row.median, low=row.low, high=row.high)
        back = TableValue(_NAN, says="not known")
        if row.reliable:
            said = row.taken_back(lambda value: TableValue(value).text)
            back = TableValue(row.corrected, says=said if " to " in said else "")
        name = f"{row.name}, {point_name(row.condition)}" if row.of_rate else row.name
        block = row.feature if several else ""
        lines.append(Line(name, (TableValue(row.value), drawn, back), block=block))
    if not lines:
        return []
    share = 100 * store.label_noise[0].noise
    names = ["As labelled", f"With {share:g} % wrong", f"If {share:g} % are wrong already"]
    made = _table("label-noise", "How far the gaps move", "Percent.", names, lines)
    return [replace(made, brackets="where 95 % of the draws lie")]


def region_tables(store: ResultsFolder) -> list[Table]:
    """The regions that were found to be worse than the rest."""
    lines = [
        Line(
            row.region,
            (
                _count(row.people),
                _count(row.imposters),
                TableValue(row.fpr, low=row.low, high=row.high),
                TableValue(row.rest_fpr),
                TableValue(row.gap, low=row.gap_low, high=row.gap_high),
                TableValue(row.rest_gap),
                TableValue(_NAN, says=row.composition or "–"),
            ),
        )
        for row in distinct(store.regions)
    ]
    names = ["People", "Pairs of strangers", "FPR", "Rest", "Probabilities off by", "Rest ", "Who"]
    caption = "As the half of the people that did not make a region shows it. Percent."
    return [_table("regions", "Regions that are worse", caption, names, lines)] if lines else []


def _feature(of: VariantResults) -> str:
    return of.feature if len(of.store.results.features) > 1 else ""
