"""What was measured of a classifier, put into the sentences of ``classes.txt``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import ALL, GLOBAL, Result
from faircal.report.classes.tables import REFERENCES, VERDICTS, Change, ClassResults
from faircal.report.rendering import sentences
from faircal.report.store import ResultsFolder
from faircal.report.wording import (
    better_way,
    is_share,
    listing,
    percent,
    percentage_points,
    ranged,
    rounded,
)
from faircal.report.words import Summary

#: By what groups are compared.
_OF_GROUPS = ("accuracy", "top_ks", "class_ks")
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
    overall = [("accuracy", "accuracy"), ("top_ks", "top-label KS")]
    values = [(title, results.result(name)) for name, title in overall]
    contrasts = [_contrast(results, name) for name in _OF_GROUPS]
    units = store.run.get("group_units") or {}
    of_groups = {group: units[group] for group in results.groups if group in units}
    given: dict[str, Any] = {
        "results": results,
        "label": store.results.label,
        "overall": [(title, value) for title, value in values if value.reportable],
        "contrasts": [each for each in contrasts if each is not None],
        "gaps": sorted(_gaps(results), key=lambda gap: -abs(gap.stated - gap.right)),
        "changes": list(_changes(results)),
        "level": rounded(LEVEL),
        "run": {
            "units": store.run.get("units"),
            "group_units": units,
            "smallest": min(of_groups, key=of_groups.__getitem__, default=""),
        },
    }
    filters: dict[str, Callable[..., Any]] = {
        "listing": listing,
        "percent": percent,
        "points": percentage_points,
        "ranged": ranged,
        "ranged_points": lambda value: ranged(value, percentage_points),
    }
    sections = ("who", "sure", "changes", "limits")
    return Summary(*(sentences("classes.txt", filters, section=name, **given) for name in sections))


class GroupContrast(NamedTuple):
    """A metric of the groups with enough data, and whether the worst and the best differ."""

    metric: str
    values: dict[str, Result]
    worst: str
    best: str
    apart: bool
    sure: bool
    deviation: tuple[str, Result] | None


def _contrast(results: ClassResults, name: str) -> GroupContrast | None:
    """Compare the worst group and the best one; None without groups with enough data.

    A deviation over groups counts where its interval leaves out 0; one that a group without enough
    data is part of says nothing of the others.
    """
    every = {group: results.result(name, None, group) for group in results.reportable}
    values = {group: value for group, value in every.items() if value.reportable}
    if not values:
        return None
    highest, lowest = (end(values, key=lambda group: values[group].value) for end in (max, min))
    worst, best = (highest, lowest) if better_way(name) == "lower" else (lowest, highest)
    over = {of: results.result(f"{name}_{of}", None, ALL) for of in ("mad", "aad")}
    clear = [
        (of, value)
        for of, value in over.items()
        if value.reportable and value.low > _ZERO and not results.small
    ]
    return GroupContrast(
        name,
        values,
        worst,
        best,
        results.result(f"{name}_least_gap", None, ALL).value > 0,
        not math.isnan(values[worst].low + values[best].low),
        next(iter(clear), None),
    )


class ConfidenceGap(NamedTuple):
    """A group whose confidence is clearly too high or too low: stated, and the share right."""

    group: str
    stated: float
    right: float

    @property
    def over(self) -> bool:
        """Whether it is too high."""
        return self.stated > self.right


def _gaps(results: ClassResults) -> Iterator[ConfidenceGap]:
    """Give the groups whose confidence is off by more than chance, all groups considered."""
    for group in results.reportable:
        gap = results.result("overconfidence", None, group)
        if gap.low > 0 or gap.high < 0:
            right = results.result("accuracy", None, group).value
            yield ConfidenceGap(group, right + gap.value, right)


class MethodChange(NamedTuple):
    """What a method changes against another: better, worse, no clear difference."""

    title: str
    yardstick: bool
    reference: str
    what: str
    by_verdict: dict[str, list[str]]


def _changes(results: ClassResults) -> Iterator[MethodChange]:
    """Give what each method changes against each reference.

    Yardsticks are compared with the last reference only, the strongest that can be used.
    """
    for i, reference in enumerate(results.references):
        label, what = results.store.results.label(reference), REFERENCES.get(reference.method, "")
        for title, variant in results.methods.items():
            last = i + 1 == len(results.references)
            if variant in results.references[: i + 1] or (variant.yardstick and not last):
                continue
            by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
            for (metric, group), words in _CHANGES.items():
                change = results.change(metric, variant, reference, group)
                if change is not None:
                    moved = f"{words} {_moved(change)}" if change.verdict != VERDICTS[-1] else words
                    by_verdict[change.verdict].append(moved)
            moved_by_verdict = {verdict: of for verdict, of in by_verdict.items() if of}
            if moved_by_verdict:
                yield MethodChange(title, variant.yardstick, label, what, moved_by_verdict)


def _moved(change: Change) -> str:
    """Say by how much a value went up or down, ``down by 1.2 points (0.8 to 1.6)``.

    Only the interval, where it lies beyond the estimate; see `tables.BEYOND`.
    """
    of = change.difference
    low, high = sorted(map(abs, (of.low, of.high)))
    text = percentage_points if is_share(of.metric) else "{:.4f}".format
    way = "up" if of.low > 0 else "down"
    if not low <= abs(of.difference) <= high:
        return f"{way} by {text(low).removesuffix(' points')} to {text(high)}"
    return f"{way} by {ranged(Result(value=abs(of.difference), low=low, high=high), text)}"
