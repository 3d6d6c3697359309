"""What was found of a classifier, in plain sentences; none says more than the data can carry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.cells import TableValue
from faircal.report.classes.groups import who
from faircal.report.classes.results import (
    REFERENCES,
    Change,
    ClassResults,
    MetricColumn,
    ReportedMethod,
    Verdict,
)
from faircal.report.store import ResultsFolder
from faircal.report.wording import listing, percent, percentage_points, ranged
from faircal.report.words import Summary

#: What methods change, in the order of telling: metric, group, and its words.
_CHANGES = {
    ("nll", GLOBAL): "NLL",
    ("accuracy", GLOBAL): "accuracy",
    ("top_ks", GLOBAL): "top-label KS of all rows",
    ("top_ks_mean", ALL): "top-label KS, mean over groups",
    ("top_ks_mad", ALL): "top-label KS, largest deviation of a group (MAD)",
    ("class_ks_mean", ALL): "class-wise KS, mean over groups",
}
#: Told only where it is clearly better or worse.
_CLEAR_ONLY = {
    ("brier", GLOBAL): "Brier",
    ("class_ks", GLOBAL): "class-wise KS of all rows",
    ("class_ks_mad", ALL): "class-wise KS, largest deviation of a group (MAD)",
}
_VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no clear difference")


def class_summary(store: ResultsFolder, attribute: str) -> Summary:
    """Say how a classifier treats the groups of `attribute`, and what methods change.

    Parameters
    ----------
    store : ResultsFolder
        Of kind ``classify``.
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """
    results = ClassResults(store, attribute)
    return Summary(
        list(who(results)), list(_sure(results)), list(_changes(results)), list(_limits(results))
    )


# ---------------------------------------------------------------------- how sure are we


def _sure(results: ClassResults) -> Iterator[str]:
    units = results.store.run.get("units")
    brackets = f"The ranges in brackets are {100 * LEVEL:g} % intervals"
    if units is not None:
        yield (
            f"{brackets}. They know that rows of one unit belong together, and say how far the "
            "numbers could be off because other units could have been in the data. The rows are of "
            f"{units:,} units{_smallest(results)}."
        )
    else:
        yield (
            f"{brackets}: how far the numbers could be off because other rows could have been in "
            "the data. The data does not say which rows belong together, so every row counts as "
            "independent; where several come from one person, patient or machine, the ranges are "
            "too narrow."
        )
    if len(results.reportable) > 1:
        yield (
            "Groups are called different only where the interval of their deviation from their "
            "mean (MAD or AAD) leaves out 0, or where the intervals of the worst and the best stay "
            f"apart when widened to hold for all groups at once ({len(results.reportable)} here), "
            "since these are picked after looking. Where neither holds, they may differ "
            "nonetheless."
        )
    yield from _sizes(results, results.reportable)
    if results.references:
        yield (
            "Methods are compared on the same rows, and called better or worse only where the "
            "interval of the difference leaves out 0. Each such interval is by itself: of 20 "
            "comparisons without any difference, about one would seem clear."
        )


def _smallest(results: ClassResults) -> str:
    units = results.store.run.get("group_units") or {}
    known = {group: units[group] for group in results.groups if group in units}
    group = min(known, key=known.__getitem__, default=None)
    return "" if group is None else f"; the smallest group, {group}, has {known[group]:,}"


def _sizes(results: ClassResults, reportable: Sequence[str]) -> Iterator[str]:
    counted = {group: rows for group in reportable if (rows := results.rows(group))}
    if len(counted) > 1:
        low, high = (end(counted, key=counted.__getitem__) for end in (min, max))
        yield (
            f"The groups compared have from {counted[low]:,} ({low}) to {counted[high]:,} ({high}) "
            "rows."
            if counted[low] < counted[high]
            else f"The groups compared have {counted[low]:,} rows each."
        )


# ------------------------------------------------------------- what do the methods change


def _changes(results: ClassResults) -> Iterator[str]:
    """Say what each method changes against each reference: better, worse, no clear difference.

    Yardsticks are compared with the last reference only, the strongest that can be used.
    """
    reportable: list[ReportedMethod] = []
    for reference in results.references:
        reportable.append(reference)
        last = reference is results.references[-1]
        for method in results.methods:
            if method in reportable or (method.yardstick and not last):
                continue
            changes = _told(results, method, reference)
            if changes:
                what = REFERENCES.get(reference.name, "")
                yield (
                    f"{method.title}{' (a yardstick)' * method.yardstick} against "
                    f"{reference.title}{f' ({what})' if what else ''}: {_sorted(changes)}."
                )
    if results.references and results.small:
        yield (
            "What methods change over the groups cannot be told, since "
            f"{listing(results.small)} {'has' if len(results.small) == 1 else 'have'} not enough "
            "data."
        )


def _told(
    results: ClassResults, method: ReportedMethod, reference: ReportedMethod
) -> dict[str, Change]:
    """Return what is told of a method against another, by its words."""
    reportable = {}
    for (metric, group), words in {**_CHANGES, **_CLEAR_ONLY}.items():
        change = results.change(metric, method, reference, group)
        if change is not None and ((metric, group) in _CHANGES or change.clear):
            reportable[words] = change
    return reportable


def _sorted(reportable: dict[str, Change]) -> str:
    said = []
    for verdict in _VERDICTS:
        clear = verdict != "no clear difference"
        of = [
            f"{words} {_moved(change)}" if clear else words
            for words, change in reportable.items()
            if change.verdict == verdict
        ]
        if of:
            said.append(f"{verdict}: {'; '.join(of)}" if clear else f"{verdict}: {listing(of)}")
    text = ". ".join(said)
    return text[0] + re.sub(r"(?<=\. )[a-z]", lambda letter: letter[0].upper(), text[1:])


def _moved(change: Change) -> str:
    """Say by how much a value went up or down, ``down by 1.2 points (0.8 to 1.6)``.

    Only the interval, where it lies beyond what was found; see `tables.BEYOND`.
    """
    value = change.value
    low, high = sorted(map(abs, (value.low, value.high)))
    text = percentage_points if MetricColumn.of(change.metric).share else _cost
    way = "up" if value.low > 0 else "down"
    if not low <= abs(value.mean) <= high:
        return f"{way} by {text(low).removesuffix(' points')} to {text(high)}"
    return f"{way} by {ranged(TableValue(abs(value.mean), low=low, high=high), text)}"


def _cost(value: float) -> str:
    return f"{value:.4f}"


# ------------------------------------------------------------------ what this cannot tell


def _limits(results: ClassResults) -> Iterator[str]:
    run = results.store.run
    if results.store.simulated:
        yield "The rows are simulated: nothing here is about a real classifier or real people."
    if results.small:
        yield (
            f"A group without a number may be treated well or badly: {listing(results.small)} "
            f"{'needs' if len(results.small) == 1 else 'need'} more data to tell."
        )
    shares = run.get("groups", {}).get(results.attribute, {})
    everything, unknown = run.get("rows", 0), shares.get("unknown_rows", 0)
    if unknown and everything:
        yield (
            f"{unknown:,} of {everything:,} rows ({percent(unknown / everything)}) have no known "
            f"{results.attribute}: they count in the overall numbers and in no group's."
        )
    if any(method.yardstick for method in results.methods):
        names = listing(method.title for method in results.methods if method.yardstick)
        yield f"Yardsticks and no tools, since they must be told each row's group: {names}."
    yield (
        "A calibrated probability is right on the average of a group, not for every row in it, and "
        "equal calibration does not make equal accuracy."
    )
    yield (
        "One dataset and one classifier were measured: this says nothing about other data or "
        "classifiers. It does not say why groups differ."
    )
