"""A report's findings in plain sentences: for people who decide, not for people who measure.

The sentences are in ``summary.txt``; here is gathered what stands in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from faircal.evaluation.compare import REFERENCE
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH, TRIALS, DataNeeded
from faircal.metrics.results import GLOBAL, Condition, Result, ResultKey
from faircal.report.cells import TableValue
from faircal.report.changes import changes
from faircal.report.findings import (
    RatesAtPoint,
    VariantResults,
    caution,
    effective_people,
    main_condition,
    people,
)
from faircal.report.rendering import sentences
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import listing, percent, ranged, rate_text, times


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
        VariantResults(store, attribute, feature, variant).point(condition).whole_errors()
        for feature in store.results.features
        if condition is not None
    ]
    settings = store.run.get("settings", {})
    common = {
        "store": store,
        "points": points,
        "audit": store.kind == "audit",
        "settings": settings,
        "calibrated_on_others": settings.get("threshold_on") == "calibration",
    }
    return Summary(
        _said("who", common | _who(store, variant, points)),
        _said("sure", common | _sure(store, attribute, points)),
        changes(store, attribute, condition) if store.kind != "audit" else [],
        _said("limits", common | _limits(store, attribute, points)),
    )


def _said(section: str, values: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a section."""
    filters: dict[str, Callable[..., Any]] = {
        "isfinite": math.isfinite,
        "listing": listing,
        "percent": percent,
        "ranged": ranged,
        "rate": rate_text,
        "shortages": _shortages,
        "times": times,
    }
    return sentences("summary.txt", filters, section=section, trials_of=TRIALS, **values)


def _who(
    store: ResultsFolder, variant: Variant, points: Sequence[RatesAtPoint]
) -> dict[str, object]:
    return {
        "variant": variant,
        "reference": REFERENCE,
        "not_enough": NOT_ENOUGH,
        "calibration": list(_calibration(store, variant, points)) if store.kind == "audit" else [],
    }


def _calibration(
    store: ResultsFolder, variant: Variant, points: Sequence[RatesAtPoint]
) -> Iterator[tuple[str, tuple[str, TableValue], tuple[str, TableValue]]]:
    """Give, of each feature, the groups whose probabilities are furthest off, and least."""
    attribute = store.results.attributes[0]
    for point in points:
        errors = {}
        for group in store.results.groups(attribute):
            key = ResultKey(point.feature, *variant, attribute, group, "", "ks")
            value = store.reportable.value(key)
            if not math.isnan(value.mean):
                errors[group] = value
        if len(errors) > 1:
            ranked = sorted(errors.items(), key=lambda error: error[1].mean)
            yield point.feature, ranked[-1], ranked[0]


def _shortages(withheld: Mapping[str, Result]) -> Iterable[str]:
    """Give each group with what it has too little of, shortly: ``A (50 pairs)``."""
    for group, rate in withheld.items():
        what = rate.withheld.partition(":")[0].removeprefix("only ").partition(" of ")[0]
        yield f"{group} ({what})"


def _sure(
    store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]
) -> dict[str, object]:
    rates = [rates for point in points for rates in point.rates.values()]
    names = list(points[0].rates["fpr"].groups) if points else []
    counted, effective = people(store, attribute), effective_people(store, attribute)
    return {
        "uncounted": any(each.overall.trials is None for each in rates),
        "bounded": any(not math.isnan(each.overall.low) for each in rates),
        "level": LEVEL,
        "kind": str(store.run.get("interval_kind", "")),
        "compared": max((len(r.reportable) for r in rates if r.worst is not None), default=0),
        "people": counted.get(GLOBAL),
        "smallest": _least(names, counted),
        "fewest": _least(names, effective),
        "least_people": DataNeeded.of("fpr", 0.01).people,
    }


def _least(names: Sequence[str], counts: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the group with the lowest count, of those that have one."""
    there = [(name, counts[name]) for name in names if name in counts]
    return min(there, key=lambda each: each[1], default=None)


def _limits(
    store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]
) -> dict[str, object]:
    withheld = (
        group for point in points for rates in point.rates.values() for group in rates.withheld
    )
    warnings = {g: caution(store, attribute, g) for g in store.results.groups(attribute)}
    return {
        "attribute": attribute,
        "withheld": list(dict.fromkeys(withheld)),
        "cautions": {group: words for group, words in warnings.items() if words},
        "shares": store.run.get("groups", {}).get(attribute, {}),
        "probabilities": any(row.metric == "ks" for row in store.results.rows),
        "tied": list(_tied(store, attribute, points)),
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
