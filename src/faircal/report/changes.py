"""What differs between methods of a benchmark, and between two runs: in sentences and in tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from faircal.evaluation.compare import REFERENCE, ComparedRuns, Comparison, GateVerdict, group_title
from faircal.methods import METHODS
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.findings import VariantResults
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


def changes(store: ResultsFolder, attribute: str, condition: str | None) -> list[str]:
    """Say what methods change in accuracy, calibration error and gap between groups.

    Speaks of the method without group labels that leaves the smallest gap, of FairCal, of methods
    that are the user's own, and of the yardstick; nothing where there is no Baseline to compare
    with.
    """
    methods = store.main_variants
    if REFERENCE not in methods or len(methods) < 2 or condition is None:
        return []
    measured = [
        {name: VariantResults(store, attribute, feature, methods[name]) for name in methods}
        for feature in store.results.features
    ]
    said, compared = [], _compared(store, attribute)
    for of_feature in measured:
        front = f"{of_feature[REFERENCE].feature}: " if len(measured) > 1 else ""
        texts = (
            *_of_methods(of_feature, condition, compared),
            *_own_methods(of_feature, condition, compared),
            *_yardsticks(of_feature, condition, compared),
        )
        said += [front + text for text in texts]
    if not any(_without_labels(name) for name in methods if name != REFERENCE):
        said.append(_none_without_labels(store))
    return [*said, *_chance(measured[0][REFERENCE], condition)]


def _compared(store: ResultsFolder, attribute: str) -> Compared:
    """Return how methods differ from the reference on the same people, as far as that is known."""
    comparisons = store.compared(attribute)
    return {(c.feature, c.method_b, c.group, c.condition, c.metric): c for c in comparisons}


def _of_methods(
    measured: dict[str, VariantResults], condition: str, compared: Compared
) -> Iterator[str]:
    reference = measured[REFERENCE]
    for name in _chosen(measured, condition):
        yield from _accuracy(measured[name], reference, condition, compared)
        yield from _fairness(measured[name], reference, condition, compared)


def _own_methods(
    measured: dict[str, VariantResults], condition: str, compared: Compared
) -> Iterator[str]:
    """Say of each method that is none of this package's what it changes, where nothing is said."""
    reference, spoken_of = measured[REFERENCE], _chosen(measured, condition)
    for name, one in measured.items():
        ours = name in METHODS and METHODS[name].__module__.startswith("faircal.")
        if ours or name in spoken_of or one.variant.yardstick:
            continue
        gap = _gap_change(one, reference, condition, compared)
        under = condition.removeprefix("global_")
        recognised = _change(one, reference, "tpr", GLOBAL, under, compared)
        if gap and not _too_small(reference, condition):
            yield f"{_title(one)}: the largest gap is {gap}."
        elif recognised:
            share = "the share of pairs of one person that it recognises"
            yield f"{_title(one)}: {share} is {recognised}."


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


def _none_without_labels(store: ResultsFolder) -> str:
    why = store.run.get("left_out", {}).get(OURS)
    reason = f" ({METHODS[OURS].title}: {why})" if why else ""
    return f"No method was run that works without group labels{reason}."


def _gap_change(
    one: VariantResults, reference: VariantResults, condition: str, compared: Compared
) -> str:
    """Say how the largest deviation of a group's false-match rate from their mean changes."""
    return _change(one, reference, "fpr_mad", ALL, condition, compared, percentage_points)


def _accuracy(
    one: VariantResults, reference: VariantResults, condition: str, compared: Compared
) -> Iterator[str]:
    """Say what becomes of accuracy."""
    name = one.store.results.label_in_sentence(one.variant)
    under = condition.removeprefix("global_")
    recognised = _change(one, reference, "tpr", GLOBAL, under, compared)
    ranking = _change(one, reference, "auroc", GLOBAL, "", compared)
    if recognised:
        yield (
            f"{name} needs no group labels. Where {rate_text(condition)} of strangers pass for "
            f"one person, the share of pairs of one person that it recognises is {recognised}."
        )
    if ranking:
        yield (
            f"{_title(one)}: the share of cases in which a pair of one person scores above a pair "
            f"of strangers (AUROC) is {ranking}."
        )


def _fairness(
    one: VariantResults, reference: VariantResults, condition: str, compared: Compared
) -> Iterator[str]:
    """Say what becomes of the gap between groups and of the calibration error."""
    small = _too_small(reference, condition)
    if small:
        yield (
            f"{_title(one)}: what it changes between the groups cannot be told, since "
            f"{listing(small)} {'has' if len(small) == 1 else 'have'} not enough data."
        )
        return
    gap = _gap_change(one, reference, condition, compared)
    error = _change(one, reference, "ks_mean", ALL, "", compared)
    if gap:
        yield (
            f"{_title(one)}: the largest gap between a group's false-match rate and the groups' "
            f"mean is {gap}."
        )
    if error:
        yield (
            f"{_title(one)}: the calibration error, how far stated probabilities are from what "
            f"happens (KS, mean over the groups), is {error}."
        )


def _title(one: VariantResults) -> str:
    return one.store.results.label(one.variant).partition(", ")[0]


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


def _yardsticks(
    measured: dict[str, VariantResults], condition: str, compared: Compared
) -> Iterator[str]:
    for one in measured.values():
        gap = _change(
            one, measured[REFERENCE], "fpr_mad", ALL, condition, compared, percentage_points
        )
        if one.variant.yardstick and gap and not _too_small(one, condition):
            yield (
                f"{_title(one)} is a yardstick and no tool, since it must be told each person's "
                f"group: its largest gap is {gap}."
            )


def _chance(reference: VariantResults, condition: str) -> Iterator[str]:
    """Say how large a gap equal groups would show."""
    if _too_small(reference, condition) or not reference.groups:
        return
    gap = reference.value("fpr_mad_by_chance", ALL, condition).mean
    if not math.isnan(gap):
        yield (
            "Even groups treated exactly alike would show a largest gap of about "
            f"{percentage_points(gap)} by chance, with so many pairs in a fold."
        )


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
