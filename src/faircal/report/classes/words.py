"""What was measured of a classifier, in plain sentences; none says more than the data can carry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import ALL, GLOBAL, Result
from faircal.report.cells import TableValue
from faircal.report.classes.tables import REFERENCES, Change, ClassResults, Verdict
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import (
    better_way,
    listing,
    percent,
    percentage_points,
    ranged,
    unit_of,
)
from faircal.report.words import Summary

#: What is said of groups: what it is in words, and how its ends are called.
_OF_GROUPS = {
    "accuracy": ("The predicted class is right", "least often", "most often"),
    "top_ks": ("The confidence in the predicted class is off", "most", "least"),
    "class_ks": ("The probabilities of all classes are off", "most", "least"),
}
_MEANING = {
    "top_ks": (
        " (top-label KS: the largest share by which stated confidence is too high or too low on "
        "the whole; with few rows some of it is chance)"
    ),
    "class_ks": " (class-wise KS: the same for the probability of each class, mean over classes)",
}
#: Up to so many groups without enough data are named one by one.
_SINGLY = 3
#: Below this the lower end of a deviation is 0, but for the last digits of a float.
_ZERO = 1e-9
#: What methods change, in the order of the sentences: metric, group, and its words.
_CHANGES = {
    ("nll", GLOBAL): "NLL",
    ("accuracy", GLOBAL): "accuracy",
    ("top_ks", GLOBAL): "top-label KS of all rows",
    ("top_ks_mean", ALL): "top-label KS, mean over groups",
    ("top_ks_mad", ALL): "top-label KS, largest deviation of a group (MAD)",
    ("class_ks_mean", ALL): "class-wise KS, mean over groups",
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
        list(_who(results)), list(_sure(results)), list(_changes(results)), list(_limits(results))
    )


# ------------------------------------------------- who is treated differently, by how much


def _who(results: ClassResults) -> Iterator[str]:
    """Say how groups fare, and whether that is more than chance."""
    if len(results.methods) > 1:
        method = results.spoken_of
        raw = ", the probabilities as they come" if method.method == "uncalibrated" else ""
        yield f"These are the numbers of {results.store.results.label(method)}{raw}."
    overall = [
        f"{title} {ranged(value)}"
        for name, title in (("accuracy", "accuracy"), ("top_ks", "top-label KS"))
        if not math.isnan((value := results.value(name)).mean)
    ]
    if overall:
        yield f"Over all rows: {listing(overall)}."
    if not results.groups:
        yield "The data names no groups: who is treated differently cannot be told."
        return
    for name in _OF_GROUPS:
        yield from _contrasted(results, name)
        if name == "top_ks":
            yield from _opposed(results)
    yield from _small(results)


def _small(results: ClassResults) -> Iterator[str]:
    """Say which groups have not enough data; of many, how many there are."""
    if len(results.small) > _SINGLY:
        yield (
            f"{len(results.small):,} of {len(results.groups):,} groups have not enough data: "
            f"{listing(results.small)}."
        )
    else:
        yield from (f"{group}: {results.withheld[group]}." for group in results.small)
    if not results.reportable:
        yield "No group has enough: who is treated differently cannot be told."


def _by_group(results: ClassResults, name: str) -> dict[str, Result]:
    """Return a metric of the groups with enough data."""
    rows = {group: results.result(name, None, group) for group in results.groups}
    return {group: row for group, row in rows.items() if row.reportable}


def _worst_and_best(name: str, rows: Mapping[str, Result]) -> tuple[str, str]:
    highest, lowest = (end(rows, key=lambda group: rows[group].value) for end in (max, min))
    lower_is_better = better_way(name) == "lower"
    return (highest, lowest) if lower_is_better else (lowest, highest)


def _contrasted(results: ClassResults, name: str) -> Iterator[str]:
    """Say how the worst group and the best one compare, as far as they can be told apart."""
    what, most, least = _OF_GROUPS[name]
    by, of = ("", " of rows") if name == "accuracy" else ("by ", "")
    rows = _by_group(results, name)
    if not rows:
        return
    text = {
        group: f"{by}{ranged(TableValue(row.value, low=row.low, high=row.high))}{of}"
        for group, row in rows.items()
    }
    if len(rows) == 1:
        (only,) = rows
        qualifier = " with enough data" if len(results.groups) > 1 else ""
        yield (
            f"{what}: {text[only]} for {only}, the only group{qualifier}; there is no other to "
            "compare it with."
        )
        return
    worst, best = _worst_and_best(name, rows)
    if rows[worst].value == rows[best].value:
        yield f"{what}: {text[worst]} in each group; no difference was found."
        return
    yield (
        f"{what} {most} for {worst}, {text[worst]}, and {least} for {best}, {text[best]}"
        f"{_MEANING.get(name, '')}; {_verdict(results, name, rows[worst], rows[best])}."
    )


def _verdict(results: ClassResults, name: str, worst: Result, best: Result) -> str:
    """Say whether groups differ; that they do not is more than data can tell."""
    if results.result(f"{name}_least_gap", None, ALL).value > 0:
        return f"that is {percentage_points(abs(worst.value - best.value))} apart"
    deviation = _deviation(results, name)
    if deviation:
        return f"groups differ by more than chance explains: {deviation}"
    if math.isnan(worst.low) or math.isnan(best.low):
        return "there are no intervals to say how sure that is"
    return "this could be chance"


def _deviation(results: ClassResults, name: str) -> str:
    """Describe a deviation over groups whose interval leaves out 0; empty without one.

    One that a group without enough data is part of says nothing of the others.
    """
    for suffix, which in (("mad", "largest"), ("aad", "average")):
        row = results.result(f"{name}_{suffix}", None, ALL)
        if row.low > _ZERO and not results.small:
            size = ranged(TableValue(row.value, low=row.low, high=row.high), percentage_points)
            return f"the {which} deviation of a group from their mean ({suffix.upper()}) is {size}"
    return ""


def _opposed(results: ClassResults) -> Iterator[str]:
    """Say where one group is treated too surely and another not surely enough.

    Where all are off to one side, it is said of the worst one alone, if groups differ.
    """
    gaps = _by_group(results, "overconfidence")
    order = sorted(gaps, key=lambda group: -abs(gaps[group].value))
    over = [group for group in order if gaps[group].low > 0]
    under = [group for group in order if gaps[group].high < 0]
    rows = _by_group(results, "top_ks")
    if over and under:
        yield (
            "KS does not say which way, and it is not the same for all: the classifier is too sure "
            f"for {_named(results, over)}, and not sure enough for {_named(results, under)}."
        )
    elif len(rows) > 1:
        worst, _ = _worst_and_best("top_ks", rows)
        differ = results.result("top_ks_least_gap", None, ALL).value > 0
        if worst in (*over, *under) and (differ or _deviation(results, "top_ks")):
            way = "too sure" if worst in over else "not sure enough"
            yield f"For {worst} it is {way} on the whole: {_stated(results, worst)}."


def _named(results: ClassResults, groups: list[str]) -> str:
    """Name groups, with the numbers of the first."""
    first = "" if len(groups) == 1 else f"{groups[0]}: "
    return f"{listing(groups)} ({first}{_stated(results, groups[0])})"


def _stated(results: ClassResults, group: str) -> str:
    right = results.result("accuracy", None, group).value
    stated = right + results.result("overconfidence", None, group).value
    return f"it states a confidence of {percent(stated)} and is right {percent(right)} of the time"


# ---------------------------------------------------------------------- how sure are we


def _sure(results: ClassResults) -> Iterator[str]:
    run, brackets = results.store.run, f"The ranges in brackets are {100 * LEVEL:g} % intervals"
    if run.get("units") is not None:
        units = run.get("group_units") or {}
        of_groups = {group: units[group] for group in results.groups if group in units}
        smallest = min(of_groups, key=of_groups.__getitem__, default=None)
        fewest = f"; the smallest group, {smallest}, has {units[smallest]:,}" if smallest else ""
        yield (
            f"{brackets}. They know that rows of one unit belong together, and say how far the "
            "numbers could be off because other units could have been in the data. The rows are of "
            f"{run['units']:,} units{fewest}."
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
    if results.references:
        yield (
            "Methods are compared on the same rows, and called better or worse only where the "
            "interval of the difference leaves out 0. Each such interval is by itself: of 20 "
            "comparisons without any difference, about one would seem clear."
        )


# ------------------------------------------------------------- what do the methods change


def _changes(results: ClassResults) -> Iterator[str]:
    """Say what each method changes against each reference: better, worse, no clear difference.

    Yardsticks are compared with the last reference only, the strongest that can be used.
    """
    for i, reference in enumerate(results.references):
        last, label = i + 1 == len(results.references), results.store.results.label(reference)
        for title, variant in results.methods.items():
            if variant in results.references[: i + 1] or (variant.yardstick and not last):
                continue
            changes = _against(results, variant, reference)
            if changes:
                what = REFERENCES.get(reference.method, "")
                yield (
                    f"{title}{' (a yardstick)' * variant.yardstick} against {label}"
                    f"{f' ({what})' if what else ''}. {_by_verdict(changes)}."
                )
    if results.references and results.small:
        yield (
            "What methods change over the groups cannot be told, since "
            f"{listing(results.small)} {'has' if len(results.small) == 1 else 'have'} not enough "
            "data."
        )


def _against(results: ClassResults, method: Variant, reference: Variant) -> dict[str, Change]:
    """Return what is said of a method against another, by its words."""
    changes = {
        words: results.change(metric, method, reference, group)
        for (metric, group), words in _CHANGES.items()
    }
    return {words: change for words, change in changes.items() if change is not None}


def _by_verdict(changes: Mapping[str, Change]) -> str:
    said = []
    for verdict in _VERDICTS:
        of = {words: change for words, change in changes.items() if change.verdict == verdict}
        clear = [f"{words} {_moved(change)}" for words, change in of.items() if change.clear]
        if of:
            said.append(f"{verdict.capitalize()}: {'; '.join(clear) if clear else listing(of)}")
    return ". ".join(said)


def _moved(change: Change) -> str:
    """Say by how much a value went up or down, ``down by 1.2 points (0.8 to 1.6)``.

    Only the interval, where it lies beyond the estimate; see `tables.BEYOND`.
    """
    value = change.value
    low, high = sorted(map(abs, (value.low, value.high)))
    text = percentage_points if unit_of(change.metric) > 1 else _cost
    way = "up" if value.low > 0 else "down"
    if not low <= abs(value.mean) <= high:
        return f"{way} by {text(low).removesuffix(' points')} to {text(high)}"
    return f"{way} by {ranged(TableValue(abs(value.mean), low=low, high=high), text)}"


def _cost(value: float) -> str:
    return f"{value:.4f}"


# ------------------------------------------------------------------ what this cannot tell


def _limits(results: ClassResults) -> Iterator[str]:
    if results.store.simulated:
        yield "The rows are simulated: nothing here is about a real classifier or real people."
    if results.small:
        yield (
            f"A group without a number may be treated well or badly: {listing(results.small)} "
            f"{'needs' if len(results.small) == 1 else 'need'} more data to tell."
        )
    yield (
        "A calibrated probability is right on the average of a group, not for every row in it, and "
        "equal calibration does not make equal accuracy. One dataset and one classifier were "
        "measured: this says nothing about other data or classifiers, nor why groups differ."
    )
