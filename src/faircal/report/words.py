"""A report's findings in plain sentences: for people who decide, not for people who measure.

The sentences are in ``summary.txt`` and ``changes.txt``; here is gathered what stands in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from faircal.evaluation.compare import REFERENCE, Comparison
from faircal.methods import METHODS
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import (
    NOT_ENOUGH,
    TRIALS,
    DataNeeded,
    PeopleByGroup,
)
from faircal.metrics.results import ALL, GLOBAL, Condition, Result
from faircal.report.rendering import sentences
from faircal.report.store import (
    RatesAtPoint,
    ResultsFolder,
    Variant,
    VariantResults,
    caution,
    main_condition,
)
from faircal.report.wording import (
    exact,
    listing,
    percent,
    percentage_points,
    ranged,
    rate_text,
    times,
)

#: The method that is always spoken of.
OURS = "faircal"


@dataclass(frozen=True)
class Summary:
    """What a report says first, in sentences.

    Attributes
    ----------
    who : list of str
        Who is treated differently, and by how much?
    sure : list of str
        How sure are we?
    changes : list of str
        What do the methods change? Empty in an audit.
    limits : list of str
        What this cannot tell.
    """

    who: list[str]
    sure: list[str]
    changes: list[str]
    limits: list[str]


def summary(store: ResultsFolder, attribute: str) -> Summary:
    """Say what was found of the groups of `attribute`, how sure it is, and what it leaves open.

    Speaks of one operating point: the threshold of an audit, else the highest global
    false-positive rate. In a benchmark it speaks of the first method, the Baseline, and then of
    what others change.

    Parameters
    ----------
    store : ResultsFolder
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """
    variant = next(iter(store.main_variants.values()))
    condition = main_condition(store.results, attribute)
    points = [
        VariantResults(store, attribute, feature, variant).point(condition, whole_errors=True)
        for feature in store.results.features
        if condition is not None
    ]
    audit, settings = store.kind == "audit", store.run.get("settings", {})
    given = {
        "store": store,
        "attribute": attribute,
        "variant": variant,
        "reference": REFERENCE,
        "not_enough": NOT_ENOUGH,
        "trials_of": TRIALS,
        "points": points,
        "audit": audit,
        "ties": store.run.get("ties", {}),
        "settings": settings,
        "calibrated_on_others": settings.get("threshold_on") == "calibration",
        "calibration": list(_calibration(store, variant, points)) if audit else [],
        **_reliability(store, attribute, points),
    }
    filters: dict[str, Callable[..., Any]] = {
        "isfinite": math.isfinite,
        "listing": listing,
        "percent": percent,
        "ranged": ranged,
        "rate": rate_text,
        "exact": exact,
        "shortages": _shortages,
        "times": times,
    }
    who, uncertainty, limits = (
        sentences("summary.txt", filters, section=section, **given)
        for section in ("who", "sure", "limits")
    )
    return Summary(who, uncertainty, [] if audit else changes(store, attribute, condition), limits)


def _calibration(
    store: ResultsFolder, variant: Variant, points: Sequence[RatesAtPoint]
) -> Iterator[tuple[str, tuple[str, Result], tuple[str, Result]]]:
    """Give, of each feature, the groups whose probabilities are furthest off, and least."""
    attribute = store.results.attributes[0]
    for point in points:
        of = VariantResults(store, attribute, point.feature, variant)
        errors = {group: of.result("ks", group) for group in store.results.groups[attribute]}
        ranked = sorted(
            (error for error in errors.items() if error[1].reportable),
            key=lambda error: error[1].value,
        )
        if len(ranked) > 1:
            yield point.feature, ranked[-1], ranked[0]


def _shortages(withheld: Mapping[str, Result]) -> Iterable[str]:
    """Give each group with what it has too little of, shortly: ``A (50 pairs)``."""
    for group, rate in withheld.items():
        what = rate.withheld.partition(":")[0].removeprefix("only ").partition(" of ")[0]
        yield f"{group} ({what})"


def _reliability(
    store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]
) -> dict[str, Any]:
    """Return how many people and pairs are behind the rates, and what that leaves unreported."""
    rates = [rates for point in points for rates in point.rates.values()]
    groups = store.results.groups[attribute]
    people = PeopleByGroup.of(store.run, attribute)
    smallest, fewest = (
        min(
            ((group, counts[group]) for group in groups if points and group in counts),
            key=lambda each: each[1],
            default=None,
        )
        for counts in (people.people, people.effective["fpr"])
    )
    warnings = {group: caution(people.people.get(group)) for group in groups}
    return {
        "bounded": any(not math.isnan(each.overall.low) for each in rates),
        "level": LEVEL,
        "kind": str(store.run.get("interval_kind", "")),
        "compared": max((len(r.reportable) for r in rates if r.worst is not None), default=0),
        "people": people.people.get(GLOBAL),
        "smallest": smallest,
        "fewest": fewest,
        "least_people": DataNeeded.of("fpr", 0.01).people,
        "withheld": list(dict.fromkeys(group for each in rates for group in each.withheld)),
        "cautions": {group: words for group, words in warnings.items() if words},
        "shares": store.run.get("groups", {}).get(attribute, {}),
        "probabilities": any(row.metric == "ks" for row in store.results.rows),
        "tied": [] if store.kind == "audit" else list(_tied(store, attribute, points)),
        # Without imposters no threshold was chosen, whatever was asked for.
        "chosen": any(p.condition and p.rates["fpr"].overall.trials != 0 for p in points),
    }


def _tied(
    store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]
) -> Iterator[tuple[float, float, float]]:
    """Give each rate that no threshold comes near, since scores are alike, with its neighbours.

    Rates there are interpolated between two scores that many pairs have.
    """
    for point in points:
        wanted = Condition.of(point.condition).wanted("fpr")
        curves = store.curves
        of = (point.feature, attribute)
        source = next((s for s in curves.sources if (s.feature, s.attribute) == of), None)
        if wanted is None or math.isnan(point.threshold) or source is None:
            continue
        overall = curves.get(source=source)
        above = float(overall.fpr[overall.fpr <= wanted].max(initial=0.0))
        below = float(overall.fpr[overall.fpr > wanted].min(initial=1.0))
        if below - above > wanted / 2 and (below - above) * overall.n_imposter >= 3:
            yield wanted, above, below


class MethodChanges(NamedTuple):
    """What a method changes, each in words, empty where it can't be reported; `small` says why."""

    title: str
    label: str
    small: list[str]
    recognised: str
    ranking: str
    gap: str
    error: str


def changes(store: ResultsFolder, attribute: str, condition: str | None) -> list[str]:
    """Say what methods change in accuracy, calibration error and gap between groups.

    Speaks of the method without group labels that leaves the smallest gap, of FairCal, of methods
    that are the user's own, and of the yardstick; nothing where there is no Baseline to compare
    with. The sentences are in ``changes.txt``.
    """
    methods, features = store.main_variants, store.results.features
    if REFERENCE not in methods or len(methods) < 2 or condition is None:
        return []
    # Methods that need no groups, neither to be fitted nor to be used.
    needs = {name: METHODS[name].needs for name in methods if name in METHODS}
    free = [
        name
        for name, of in needs.items()
        if name != REFERENCE and not (of.groups_to_fit or of.groups_to_apply)
    ]
    reference = VariantResults(store, attribute, features[0], methods[REFERENCE])
    by_chance = reference.result("fpr_mad_by_chance", ALL, condition).value
    if not store.results.groups[attribute] or _too_small(reference, condition):
        by_chance = math.nan
    return sentences(
        "changes.txt",
        {"listing": listing, "rate": rate_text},
        features=[
            (feature, *_spoken_of(store, attribute, feature, condition, free))
            for feature in features
        ],
        condition=condition,
        unlabelled=not free,
        ours=METHODS[OURS].title,
        left_out=store.run.get("left_out", {}).get(OURS),
        by_chance="" if math.isnan(by_chance) else percentage_points(by_chance),
    )


def _spoken_of(
    store: ResultsFolder, attribute: str, feature: str, condition: str, free: list[str]
) -> tuple[list[MethodChanges], list[MethodChanges], list[MethodChanges]]:
    """Return the changes of the methods to speak of: of those that are `free`, own, yardsticks.

    Of the free ones, which need no group labels: the smallest gap, and FairCal.
    """
    measured = {
        name: VariantResults(store, attribute, feature, variant)
        for name, variant in store.main_variants.items()
    }
    gaps = {name: measured[name].result("fpr_mad", ALL, condition).value for name in free}
    finite = {name: gap for name, gap in gaps.items() if not math.isnan(gap)}
    best = [min(finite, key=finite.__getitem__)] if finite else free[:1]
    chosen = dict.fromkeys([*best, *(name for name in free if name == OURS)])
    yardsticks = [name for name, one in measured.items() if one.variant.yardstick]
    plugins = [
        name
        for name in measured
        if not (name in METHODS and METHODS[name].__module__.startswith("faircal."))
        and name not in {*chosen, *yardsticks}
    ]
    compared = {
        (each.method_b, each.group, each.condition, each.metric): each
        for each in store.comparisons
        if (each.feature, each.attribute) == (feature, attribute)
    }
    first, second, third = (
        [_changes_of(measured[name], measured[REFERENCE], condition, compared) for name in names]
        for names in (chosen, plugins, yardsticks)
    )
    return first, second, third


def _changes_of(
    one: VariantResults,
    reference: VariantResults,
    condition: str,
    compared: Mapping[tuple[str, str, str, str], Comparison],
) -> MethodChanges:
    """Put in words what becomes of accuracy, of the gap between groups, and of calibration."""
    results, variant = one.store.results, one.variant
    small = _too_small(one if variant.yardstick else reference, condition)
    texts: list[str] = []
    for metric, group, under, text in (
        ("tpr", GLOBAL, condition.removeprefix("global_"), percent),
        ("auroc", GLOBAL, "", percent),
        ("fpr_mad", ALL, condition, percentage_points),
        ("ks_mean", ALL, "", percent),
    ):
        now, before = (of.result(metric, group, under) for of in (one, reference))
        if math.isnan(now.value) or math.isnan(before.value) or (small and group == ALL):
            texts.append("")
        elif text(now.value) == text(before.value):
            texts.append(f"{ranged(now, text)}, as with Baseline")
        else:
            way = "up" if now.value > before.value else "down"
            spread = float(
                np.nanmax(
                    [
                        results.spread(now.key),
                        results.spread(before.key),
                        0.0,
                    ]
                )
            )
            doubt = _doubt(now, before, spread, compared.get((variant.method, *now.what)))
            texts.append(
                f"{ranged(now, text)}, {way} from {ranged(before, text)} with Baseline{doubt}"
            )
    title = results.label(variant).partition(", ")[0]
    return MethodChanges(title, results.label(variant, in_sentence=True), small, *texts)


def _doubt(now: Result, before: Result, spread: float, compared: Comparison | None) -> str:
    """Say where a change may be none: on the same people, by intervals, or by the folds."""
    if compared is not None:
        apart = compared.verdict in ("better", "worse")
        return "" if apart else " (on the same people, a change that chance could have made)"
    if not any(map(math.isnan, (now.low, now.high, before.low, before.high))):
        overlap = now.low <= before.high and before.low <= now.high
        return "; the intervals overlap" if overlap else ""
    if abs(now.value - before.value) < spread:
        return f" (a change smaller than the spread over folds, {percentage_points(spread)})"
    return ""


def _too_small(measured: VariantResults, condition: str) -> list[str]:
    """Return the groups too small for a number over groups to be reported."""
    rates = measured.point(condition).rates["fpr"]
    return [
        group
        for group in rates.groups
        if group in rates.withheld or measured.result("ks", group).withheld
    ]
