"""What was found of a classifier, in plain sentences; none says more than the data can carry."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from faircal.metrics.intervals import joint_level
from faircal.report.classes.found import REFERENCES, Change, Found, Method, Metric, Verdict
from faircal.report.numbers import listing, percent, points, ranged
from faircal.report.store import Store
from faircal.report.tables import Value
from faircal.report.words import NOT_APART, Summary
from faircal.results import ALL, GLOBAL
from faircal.uncertainty import LEVEL

#: What is told of groups: what it is in words, and how its ends are called.
_TOLD = {
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
#: What methods change, in the order of telling: metric, group, and its words.
_CHANGES = {
    ("nll", GLOBAL): "NLL",
    ("accuracy", GLOBAL): "accuracy",
    ("top_ks_mean", ALL): "top-label KS, mean over groups",
    ("top_ks_mad", ALL): "top-label KS, largest deviation of a group (MAD)",
    ("class_ks_mean", ALL): "class-wise KS, mean over groups",
}
#: The same where there are no groups, or some are too small for numbers over all of them.
_CHANGES_OVERALL = {
    ("nll", GLOBAL): "NLL",
    ("accuracy", GLOBAL): "accuracy",
    ("top_ks", GLOBAL): "top-label KS of all rows",
    ("class_ks", GLOBAL): "class-wise KS of all rows",
}
_VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no clear difference")


def class_summary(store: Store, attribute: str) -> Summary:
    """Say how a classifier treats the groups of `attribute`, and what methods change.

    Parameters
    ----------
    store : Store
        Of kind ``classify``.
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """
    found = Found(store, attribute)
    return Summary(
        list(_who(found)), list(_sure(found)), list(_changes(found)), list(_limits(found))
    )


# ------------------------------------------------- who is treated differently, by how much


@dataclass(frozen=True)
class Contrast:
    """A metric of the groups that can be told: the worst, the best, and whether they differ."""

    metric: Metric
    values: dict[str, Value]

    @property
    def worst(self) -> str:
        """The group that fares worst."""
        return self._end(worst=True)

    @property
    def best(self) -> str:
        """The group that fares best."""
        return self._end(worst=False)

    def _end(self, worst: bool) -> str:
        highest = (self.metric.better == "lower") == worst
        return (max if highest else min)(self.values, key=lambda group: self.values[group].mean)

    @property
    def overlap(self) -> bool:
        """Whether the intervals of the two overlap; so do those that are not known."""
        return not _apart(self.values[self.worst], self.values[self.best])

    @property
    def told_apart(self) -> bool:
        """Whether they part when widened to hold for all groups at once."""
        many = len(self.values)
        ends = (_widened(self.values[group], many) for group in (self.worst, self.best))
        return _apart(*ends)


def _apart(one: Value, other: Value) -> bool:
    return one.low > other.high or other.low > one.high


def _widened(value: Value, many: int) -> Value:
    """Return a value with the interval that holds for so many groups at once, about.

    Each side is widened as that of a normal distribution would be.
    """
    normal = NormalDist()
    quantiles = [normal.inv_cdf((1 + level) / 2) for level in (joint_level(many, LEVEL), LEVEL)]
    wider = quantiles[0] / quantiles[1]
    low, high = (value.mean + wider * (end - value.mean) for end in (value.low, value.high))
    return Value(value.mean, low=low, high=high)


def contrast(found: Found, name: str, method: Method) -> Contrast:
    """Return what is known of the groups by one metric."""
    values = {group: found.value(name, method, group) for group in found.groups}
    told = {group: value for group, value in values.items() if not math.isnan(value.mean)}
    return Contrast(Metric.of(name), told)


def _who(found: Found) -> Iterator[str]:
    method = found.spoken_of
    if len(found.methods) > 1:
        raw = ", the probabilities as they come" if method.name == "uncalibrated" else ""
        yield f"These are the numbers of {method.title}{raw}."
    overall = [
        f"{title} {ranged(value)}"
        for name, title in (("accuracy", "accuracy"), ("top_ks", "top-label KS"))
        if not math.isnan((value := found.value(name, method)).mean)
    ]
    if overall:
        yield f"Over all rows: {listing(overall)}."
    if not found.groups:
        yield "The data names no groups: who is treated differently cannot be told."
        return
    for name in _TOLD:
        yield from _contrasted(found, contrast(found, name, method), name)
    for group in found.small:
        yield f"{group}: {found.lacking[group]}."


def _contrasted(found: Found, groups: Contrast, name: str) -> Iterator[str]:
    """Say how the worst group and the best one compare, as far as they can be told apart."""
    what, most, least = _TOLD[name]
    by = "" if name == "accuracy" else "by "
    of = " of rows" if name == "accuracy" else ""
    if not groups.values:
        return
    if len(groups.values) == 1:
        ((only, value),) = groups.values.items()
        yield (
            f"{what}: {by}{ranged(value)}{of} for {only}, the only group with enough data; there "
            "is no other to compare it with."
        )
        return
    worst, best = groups.values[groups.worst], groups.values[groups.best]
    if worst.mean == best.mean:
        yield f"{what}: {by}{ranged(worst)}{of} in each group; {NOT_APART}."
        return
    yield (
        f"{what} {most} for {groups.worst}, {by}{ranged(worst)}{of}, and {least} for "
        f"{groups.best}, {by}{ranged(best)}{_MEANING.get(name, '')}; {_verdict(groups)}."
    )
    if name == "top_ks" and groups.told_apart:
        yield from _direction(found, groups.worst)


def _verdict(groups: Contrast) -> str:
    worst, best = groups.values[groups.worst], groups.values[groups.best]
    if math.isnan(worst.low) or math.isnan(best.low):
        return "there are no intervals to say how sure that is"
    if groups.overlap:
        return f"their intervals overlap: {NOT_APART}"
    if not groups.told_apart:
        return f"among {len(groups.values)} groups chance alone can part two so far: {NOT_APART}"
    return f"that is {points(abs(worst.mean - best.mean))} apart"


def _direction(found: Found, group: str) -> Iterator[str]:
    """Say whether the classifier is too sure of a group's rows, or not sure enough."""
    histogram = found.counted(group)
    if histogram is None:
        return
    rows = histogram.n_genuine + histogram.n_imposter
    stated, right = float(histogram.total.sum()) / rows, histogram.n_genuine / rows
    way = "too sure" if stated > right else "not sure enough"
    yield (
        f"For {group} it is {way} on the whole: it states a confidence of {percent(stated)} and is "
        f"right {percent(right)} of the time."
    )


# ---------------------------------------------------------------------- how sure are we


def _sure(found: Found) -> Iterator[str]:
    units = found.store.run.get("units")
    brackets = f"The ranges in brackets are {100 * LEVEL:g} % intervals"
    if units is not None:
        yield (
            f"{brackets}. They know that rows of one unit belong together, and say how far the "
            "numbers could be off because other units could have been in the data. The rows are of "
            f"{units:,} units{_smallest(found)}."
        )
    else:
        yield (
            f"{brackets}: how far the numbers could be off because other rows could have been in "
            "the data. The data does not say which rows belong together, so every row counts as "
            "independent; where several come from one person, patient or machine, the ranges are "
            "too narrow."
        )
    told = [group for group in found.groups if found.enough(group)]
    if len(told) > 1:
        yield (
            "Two groups are called different only where their intervals stay apart when widened "
            f"to hold for all groups at once ({len(told)} here), since the worst and the best are "
            "picked after looking."
        )
    yield from _sizes(found, told)
    if found.references:
        yield (
            "Methods are compared on the same rows, and called better or worse only where the "
            "interval of the difference leaves out 0. Each such interval is by itself: of 20 "
            "comparisons without any difference, about one would seem clear."
        )


def _smallest(found: Found) -> str:
    units = found.store.run.get("group_units") or {}
    known = {group: units[group] for group in found.groups if group in units}
    group = min(known, key=known.__getitem__, default=None)
    return "" if group is None else f"; the smallest group, {group}, has {known[group]:,}"


def _sizes(found: Found, told: Sequence[str]) -> Iterator[str]:
    counted = {group: rows for group in told if (rows := found.rows(group))}
    if len(counted) > 1:
        low, high = (end(counted, key=counted.__getitem__) for end in (min, max))
        yield (
            f"The groups compared have from {counted[low]:,} ({low}) to {counted[high]:,} ({high}) "
            "rows."
            if counted[low] < counted[high]
            else f"The groups compared have {counted[low]:,} rows each."
        )


# ------------------------------------------------------------- what do the methods change


def _changes(found: Found) -> Iterator[str]:
    """Say what each method changes against each reference: better, worse, no clear difference.

    Yardsticks are compared with the last reference only, the strongest that can be used.
    """
    wanted = _CHANGES if found.groups and not found.small else _CHANGES_OVERALL
    told: list[Method] = []
    for reference in found.references:
        told.append(reference)
        last = reference is found.references[-1]
        for method in found.methods:
            if method in told or (method.yardstick and not last):
                continue
            changes = {
                words: change
                for (metric, group), words in wanted.items()
                if (change := found.change(metric, method, reference, group)) is not None
            }
            if changes:
                what = REFERENCES.get(reference.name, "")
                yield (
                    f"{method.title}{' (a yardstick)' * method.yardstick} against "
                    f"{reference.title}{f' ({what})' if what else ''}: {_sorted(changes)}."
                )
    if found.references and found.small:
        yield (
            "What methods change over the groups cannot be told, since "
            f"{listing(found.small)} {'has' if len(found.small) == 1 else 'have'} not enough data."
        )


def _sorted(told: dict[str, Change]) -> str:
    said = []
    for verdict in _VERDICTS:
        clear = verdict != "no clear difference"
        of = [
            f"{words} {_moved(change)}" if clear else words
            for words, change in told.items()
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
    text = points if Metric.of(change.metric).share else _cost
    way = "up" if value.low > 0 else "down"
    if not low <= abs(value.mean) <= high:
        return f"{way} by {text(low).removesuffix(' points')} to {text(high)}"
    return f"{way} by {ranged(Value(abs(value.mean), low=low, high=high), text)}"


def _cost(value: float) -> str:
    return f"{value:.4f}"


# ------------------------------------------------------------------ what this cannot tell


def _limits(found: Found) -> Iterator[str]:
    run = found.store.run
    if found.store.simulated:
        yield "The rows are simulated: nothing here is about a real classifier or real people."
    if found.small:
        yield (
            f"A group without a number may be treated well or badly: {listing(found.small)} "
            f"{'needs' if len(found.small) == 1 else 'need'} more data to tell."
        )
    shares = run.get("groups", {}).get(found.attribute, {})
    everything, unknown = run.get("rows", 0), shares.get("unknown_rows", 0)
    if unknown and everything:
        yield (
            f"{unknown:,} of {everything:,} rows ({percent(unknown / everything)}) have no known "
            f"{found.attribute}: they count in the overall numbers and in no group's."
        )
    if any(method.yardstick for method in found.methods):
        names = listing(method.title for method in found.methods if method.yardstick)
        yield f"Yardsticks and no tools, since they must be told each row's group: {names}."
    yield (
        "A calibrated probability is right on the average of a group, not for every row in it, and "
        "equal calibration does not make equal accuracy."
    )
    yield (
        "One dataset and one classifier were measured: this says nothing about other data or "
        "classifiers. It does not say why groups differ."
    )
