"""What differs between methods of a benchmark, and between two runs: in sentences and in tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from faircal.evaluation.compare import REFERENCE, ComparedRuns, Comparison, GateVerdict, group_title
from faircal.methods import METHODS
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.findings import VariantResults
from faircal.report.rendering import sentences
from faircal.report.store import ResultsFolder
from faircal.report.wording import (
    listing,
    method_title,
    metric_title,
    percent,
    percentage_points,
    ranged,
    rate_text,
    unit_of,
)

#: Comparisons with the reference by feature, method, group, condition and metric.
Compared: TypeAlias = Mapping[tuple[str, ...], Comparison]

#: The method that is always spoken of.
OURS = "faircal"


class MethodChanges(NamedTuple):
    """What a method changes, each in words, empty where it can't be told; `small` says why."""

    title: str
    label: str
    recognised: str
    ranking: str
    gap: str
    error: str
    small: list[str]


def changes(store: ResultsFolder, attribute: str, condition: str | None) -> list[str]:
    """Say what methods change in accuracy, calibration error and gap between groups.

    Speaks of the method without group labels that leaves the smallest gap, of FairCal, of methods
    that are the user's own, and of the yardstick; nothing where there is no Baseline to compare
    with. The sentences are in ``changes.txt``.
    """
    methods = store.main_variants
    if REFERENCE not in methods or len(methods) < 2 or condition is None:
        return []
    compared = _compared(store, attribute)
    features = []
    for feature in store.results.features:
        measured = {
            name: VariantResults(store, attribute, feature, methods[name]) for name in methods
        }
        spoken_of = _chosen(measured, condition)
        said = {
            name: _changes_of(one, measured[REFERENCE], condition, compared)
            for name, one in measured.items()
        }
        yardsticks = [name for name, one in measured.items() if one.variant.yardstick]
        others = {*spoken_of, *yardsticks}
        own = [name for name in measured if name not in others and not _is_ours(name)]
        lists = ([said[name] for name in names] for names in (spoken_of, own, yardsticks))
        features.append((feature, *lists))
    return sentences(
        "changes.txt",
        {"listing": listing, "rate": rate_text},
        features=features,
        condition=condition,
        unlabelled=not any(_without_labels(name) for name in methods if name != REFERENCE),
        ours=METHODS[OURS].title,
        left_out=store.run.get("left_out", {}).get(OURS),
        by_chance=_chance(store, attribute, condition),
    )


def _compared(store: ResultsFolder, attribute: str) -> Compared:
    """Return how methods differ from the reference on the same people, as far as that is known."""
    comparisons = store.compared(attribute)
    return {(c.feature, c.method_b, c.group, c.condition, c.metric): c for c in comparisons}


def _is_ours(name: str) -> bool:
    """Whether a method comes with this package."""
    return name in METHODS and METHODS[name].__module__.startswith("faircal.")


def _without_labels(name: str) -> bool:
    """Whether a method needs no groups, neither to be fitted nor to be used."""
    if name not in METHODS:
        return False
    needs = METHODS[name].needs
    return not (needs.groups_to_fit or needs.groups_to_apply)


def _chosen(measured: dict[str, VariantResults], condition: str) -> list[str]:
    """Return whom to speak of: the smallest gap without group labels, and FairCal."""
    free = [name for name in measured if name != REFERENCE and _without_labels(name)]
    gaps = {name: measured[name].value("fpr_mad", ALL, condition).mean for name in free}
    known = {name: gap for name, gap in gaps.items() if not math.isnan(gap)}
    best = [min(known, key=known.__getitem__)] if known else free[:1]
    return list(dict.fromkeys([*best, *(name for name in free if name == OURS)]))


def _changes_of(
    one: VariantResults, reference: VariantResults, condition: str, compared: Compared
) -> MethodChanges:
    """Put in words what becomes of accuracy, of the gap between groups, and of calibration."""

    def change(metric: str, group: str, under: str, text: Callable[[float], str] = percent) -> str:
        return _change(one, reference, metric, group, under, compared, text)

    label = one.store.results.label_in_sentence(one.variant)
    title = one.store.results.label(one.variant).partition(", ")[0]
    small = _too_small(one if one.variant.yardstick else reference, condition)
    return MethodChanges(
        title,
        label,
        change("tpr", GLOBAL, condition.removeprefix("global_")),
        change("auroc", GLOBAL, ""),
        "" if small else change("fpr_mad", ALL, condition, percentage_points),
        "" if small else change("ks_mean", ALL, ""),
        small,
    )


def _chance(store: ResultsFolder, attribute: str, condition: str) -> str:
    """Return how large a gap equal groups would show; nothing where that can't be told."""
    variant = store.main_variants[REFERENCE]
    reference = VariantResults(store, attribute, store.results.features[0], variant)
    gap = reference.value("fpr_mad_by_chance", ALL, condition).mean
    known = reference.groups and not _too_small(reference, condition) and not math.isnan(gap)
    return percentage_points(gap) if known else ""


def _change(
    one: VariantResults,
    reference: VariantResults,
    metric: str,
    group: str,
    condition: str,
    compared: Compared,
    text: Callable[[float], str] = percent,
) -> str:
    """Say what a value is and was; empty where either is not known."""
    now, before = (of.value(metric, group, condition) for of in (one, reference))
    if math.isnan(now.mean) or math.isnan(before.mean):
        return ""
    if text(now.mean) == text(before.mean):
        return f"{ranged(now, text)}, as with Baseline"
    way = "up" if now.mean > before.mean else "down"
    said = f"{ranged(now, text)}, {way} from {ranged(before, text)} with Baseline"
    return said + _doubt(
        now, before, compared.get((one.feature, one.variant.method, group, condition, metric))
    )


def _doubt(now: TableValue, before: TableValue, compared: Comparison | None) -> str:
    """Say where a change may be none: on the same people, by intervals, or by the folds."""
    if compared is not None:
        apart = compared.verdict in ("better", "worse")
        return "" if apart else " (on the same people, a change that chance could have made)"
    if now.interval and before.interval:
        overlap = now.low <= before.high and before.low <= now.high
        return "; the intervals overlap" if overlap else ""
    spread = float(np.nanmax([now.std, before.std, 0.0]))
    if abs(now.mean - before.mean) < spread:
        return f" (a change smaller than the spread over folds, {percentage_points(spread)})"
    return ""


def _too_small(measured: VariantResults, condition: str) -> list[str]:
    """Return the groups too small for a number over groups to be told."""
    withheld = measured.point(condition).rates["fpr"].withheld
    return [
        group
        for group in measured.groups
        if group in withheld or measured.result("ks", group).withheld
    ]


def difference_tables(store: ResultsFolder, attribute: str) -> list[Table]:
    """Return the table of differences to Baseline; none without replicates or other methods."""
    comparisons = store.compared(attribute)
    if not comparisons:
        return []
    columns = list(dict.fromkeys((c.feature, c.group, c.condition, c.metric) for c in comparisons))
    by = {(c.method_b, c.feature, c.group, c.condition, c.metric): c for c in comparisons}
    headings = tuple(
        Heading(feature, _column_title(group, condition, metric), "")
        for feature, group, condition, metric in columns
    )
    lines = tuple(
        Line(
            method_title(variant.method),
            tuple(_value(by.get((variant.method, *column))) for column in columns),
            variant.yardstick,
        )
        for variant in store.main_variants.values()
        if variant.method != REFERENCE
    )
    caption = (
        "Value of each method less that of Baseline, on the same people, in points of percent (NLL "
        "as it is). Bold: better, and told apart from none after correction for all "
        f"{comparisons[0].family:.0f} comparisons (Holm); a star: worse, and told apart."
    )
    return [Table("differences", "Difference to Baseline", caption, headings, lines)]


def _column_title(group: str, condition: str, metric: str) -> str:
    return metric_title(metric, condition) + (" (all pairs)" if group == "global" else "")


def _value(compared: Comparison | None) -> TableValue:
    """Return a difference with its interval, or why there is none."""
    if compared is None:
        return TableValue(math.nan)
    if not compared.reportable:
        return TableValue(math.nan, says=compared.verdict)
    return TableValue(
        compared.difference,
        best=compared.verdict == "better",
        worse=compared.verdict == "worse",
        low=compared.low,
        high=compared.high,
        unit=unit_of(compared.metric),
        digits=2 if unit_of(compared.metric) > 1 else 4,
    )


def comparison_words(compared: ComparedRuns, margin: float | None) -> list[str]:
    """Say how to read the values, what was found, and what would have been noticed."""
    comparisons = compared.comparisons
    first = comparisons[0]
    level = f"{100 * first.level:g} %"
    return [
        f"Differences are B less A; intervals are {level} ones, of each alone.",
        f"p is corrected for the {first.family:.0f} comparisons that tell anything (Holm).",
        *_counted(comparisons),
        *_noticeable(comparisons),
        *_gate_words(comparisons, compared.gate, margin),
    ]


def is_share(metric: str) -> bool:
    """Whether a metric is a share, told in percent; ratios, bits and losses are not."""
    return unit_of(metric) > 1


def _counted(compared: Sequence[Comparison]) -> list[str]:
    verdicts = ("worse", "better", "not told apart", "not enough data", "not known")
    counts = {name: sum(each.verdict == name for each in compared) for name in verdicts}
    lines = [", ".join(f"{count} {name}" for name, count in counts.items() if count) + "."]
    if counts["not enough data"]:
        lines.append("Not enough data is no good news: such values may be worse by any amount.")
    return lines


def _noticeable(compared: Sequence[Comparison]) -> list[str]:
    """Say how large a worsening would have been noticed: the largest over groups."""
    lines = []
    told = [
        each for each in compared if each.reportable and each.verdict != "worse" and not each.same
    ]
    for (metric, condition), rows in _by_metric(told).items():
        worst = max(rows, key=lambda each: each.detectable)
        least = min(rows, key=lambda each: each.detectable)
        ends = dict.fromkeys((least.group, worst.group))
        said = [
            f"{_size(row.detectable, metric, '.2g')} ({group_title(row.group)})"
            for row in (least, worst)[: len(ends)]
        ]
        lines.append(f"  {metric_title(metric, condition)}: {' to '.join(said)}")
    if lines:
        lines.insert(0, "A worsening would have been noticed, 8 times in 10, from this size on:")
    return lines


def _by_metric(compared: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    kinds: dict[tuple[str, str], list[Comparison]] = {}
    for each in compared:
        kinds.setdefault((each.metric, each.condition), []).append(each)
    return kinds


def _gate_words(
    compared: Sequence[Comparison], gate: GateVerdict | None, margin: float | None
) -> list[str]:
    if gate is None:
        return []
    if margin is None:
        if gate.passed:
            untold = sum(not each.reportable for each in compared)
            but = f", but {untold} values could not be judged" if untold else ""
            return [f"gate: passed; nothing has been shown to be worse{but}"]
        return [f"gate: failed; worse: {_named(gate)}"]
    sizes = {is_share(each.metric): _size(margin, each.metric, "g") for each in compared}
    size = " or ".join(sizes[share] for share in (True, False) if share in sizes)
    if gate.passed:
        return [
            f"gate: passed; everything has been shown to be worse by less than {size}, if at all"
        ]
    return [f"gate: failed; not shown to be worse by less than {size}: {_named(gate)}"]


def _named(gate: GateVerdict) -> str:
    kinds = _by_metric(gate.against)
    return "; ".join(
        f"{metric_title(*kind)} of {', '.join(dict.fromkeys(group_title(r.group) for r in rows))}"
        for kind, rows in kinds.items()
    )


def _size(value: float, metric: str, how: str) -> str:
    return f"{100 * value:{how}} points" if is_share(metric) else f"{value:{how}}"
