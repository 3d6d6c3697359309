"""A report's findings in plain sentences: for people who decide, not for people who measure.

No sentence says more than the data can carry: a group without enough data is named as such and gets
no number (`faircal.metrics.intervals.sufficient_data` is the rule), and groups whose intervals
overlap are not called different.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faircal.evaluation.compare import REFERENCE
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.sufficient_data import NOT_ENOUGH, TRIALS, least_people
from faircal.metrics.results import GLOBAL, Result, ResultKey
from faircal.report.changes import changes
from faircal.report.findings import (
    RatesAtPoint,
    RatesByGroup,
    VariantResults,
    caution,
    effective_people,
    main_condition,
    people,
)
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import listing, percent, ranged, rate_text, times

ERRORS = {
    "fpr": "False matches (two strangers taken for one person)",
    "fnr": "False non-matches (a person not recognised)",
}
NOT_APART = "the data does not tell them apart"
#: So many groups with too few pairs get a sentence each; more are listed in one.
_ONE_BY_ONE = 3


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
    return Summary(
        _who(store, variant, points),
        _sure(store, attribute, points),
        changes(store, attribute, condition) if store.kind != "audit" else [],
        limits(store, attribute, points),
    )


# ------------------------------------------------- who is treated differently, by how much


def _who(store: ResultsFolder, variant: Variant, points: Sequence[RatesAtPoint]) -> list[str]:
    if not points:
        return ["No error rates were measured, so nothing can be said about groups."]
    if points[0].condition and points[0].rates["fpr"].overall.trials == 0:
        return ["There are no pairs of strangers, so no threshold is set and no error rate told."]
    sentences = [_decision(store, points[0])]
    if store.kind != "audit":
        raw = ", the scores as they come" if variant.method == REFERENCE else ""
        sentences.append(f"These are the rates of {store.results.label_in_sentence(variant)}{raw}.")
    for point in points:
        front = f"{point.feature}: " if len(points) > 1 else ""
        groups = point.rates["fpr"].groups
        if not groups or not point.condition:
            sentences.append(front + _overall(point))
        if groups:
            for rates in point.rates.values():
                sentences += [front + text for text in (_contrast(rates), *_too_few(rates))]
    if not points[0].rates["fpr"].groups:
        sentences.append("The data names no groups: who is treated differently cannot be told.")
    if store.kind == "audit":
        sentences += _calibration(store, variant, points)
    return sentences


def _calibration(
    store: ResultsFolder, variant: Variant, points: Sequence[RatesAtPoint]
) -> Iterator[str]:
    """Say how far stated probabilities are from what happens, in the worst group and the best."""
    attribute, results = store.results.attributes[0], store.reportable
    for point in points:
        values = {
            group: results.value(ResultKey(point.feature, *variant, attribute, group, "", "ks"))
            for group in store.results.groups(attribute)
        }
        errors = {group: value for group, value in values.items() if not math.isnan(value.mean)}
        if len(errors) > 1:
            front = f"{point.feature}: " if len(points) > 1 else ""
            worst = max(errors, key=lambda group: errors[group].mean)
            best = min(errors, key=lambda group: errors[group].mean)
            yield (
                f"{front}Stated probabilities are off by {ranged(errors[worst])} for {worst} and "
                f"by {ranged(errors[best])} for {best} (KS: the largest share by which they are "
                "too high or too low on the whole; with few pairs some of it is chance)."
            )


def _decision(store: ResultsFolder, point: RatesAtPoint) -> str:
    """Say when two pictures are taken for one person."""
    everybody = "all of the simulated people" if store.simulated else "everybody"
    if not point.condition:
        return (
            f"Two pictures count as one person when their score is {point.threshold:g} or more, "
            f"the same for {everybody}."
        )
    on = store.run.get("settings", {}).get("threshold_on")
    other = store.moved_from or "the other folds"
    where = f"of {other} " if on == "calibration" else ""
    fold = "In each part (fold) of the data one" if len(store.curves.folds) > 1 else "One"
    at = "" if math.isnan(point.threshold) else f" ({point.threshold:.4g})"
    return (
        f"{fold} threshold{at} for {everybody}, set so that {rate_text(point.condition)} of all "
        f"pairs of strangers {where}are taken for one person."
    )


def _overall(point: RatesAtPoint) -> str:
    wrong = {"fpr": "are taken for one person", "fnr": "are not recognised"}
    sentences = []
    for metric, rates in point.rates.items():
        shown = f"{_told(rates.overall)} of {TRIALS[metric]} {wrong[metric]}"
        sentences.append(rates.overall.withheld or shown)
    return f"Over all pairs: {' and '.join(sentences)}."


def _told(rate: Result) -> str:
    """Give a rate with its interval, or say why not."""
    if rate.withheld:
        return rate.withheld
    if math.isnan(rate.low):
        return percent(rate.value)
    return f"{percent(rate.value)} ({percent(rate.low)} to {percent(rate.high)})"


def _contrast(rates: RatesByGroup) -> str:
    """Say how the worst group and the best one compare, as far as the data can tell them apart."""
    kind, trials, shown = ERRORS[rates.metric], TRIALS[rates.metric], rates.reportable
    if rates.overall.trials == 0:
        return f"{kind}: there are no {trials}, so nothing can be said."
    if not shown:
        return f"{kind}: no group has enough {trials}; {NOT_APART}."
    if rates.worst is None or rates.best is None:
        (only,) = shown
        return (
            f"{kind}: {_told(shown[only])} of {trials} of {only}, the only group with enough of "
            "them; there is no other to compare it with."
        )
    if shown[rates.worst].value == shown[rates.best].value:
        return f"{kind}: {percent(shown[rates.worst].value)} in each group; {NOT_APART}."
    return (
        f"{kind}: most among {rates.worst} with {_told(shown[rates.worst])} of {trials}, fewest "
        f"among {rates.best} with {_told(shown[rates.best])}; {_verdict(rates)}."
    )


def _verdict(rates: RatesByGroup) -> str:
    if rates.differ is False:
        if rates.overlap:
            return f"their intervals overlap: {NOT_APART}"
        return f"among {len(rates.reportable)} groups chance alone can part two so far: {NOT_APART}"
    many = f"that is {times(rates.ratio)} times as many" if math.isfinite(rates.ratio) else ""
    if rates.differ is None:
        return f"{many or 'that is some against none'}, with no interval to say how sure"
    least = times(rates.least_ratio, down=True)
    if not many:
        return f"that is at least {least} times as many"
    return many if least == "1.0" else f"{many}, and at least {least} times"


def _too_few(rates: RatesByGroup) -> list[str]:
    """Name the groups with too few pairs; nothing where no group can have any."""
    withheld = rates.withheld
    if len(withheld) <= _ONE_BY_ONE:
        return [f"{group}: {rate.withheld}." for group, rate in withheld.items()]
    named = listing(f"{group} ({_little(rate)})" for group, rate in withheld.items())
    return [f"{len(withheld)} groups: {NOT_ENOUGH} on {TRIALS[rates.metric]}: {named}."]


def _little(rate: Result) -> str:
    """Say what a group has too little of, shortly."""
    what = rate.withheld.partition(":")[0].removeprefix("only ")
    return what.partition(" of ")[0]


# ---------------------------------------------------------------------- how sure are we


def _sure(store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]) -> list[str]:
    rates = [rates for point in points for rates in point.rates.values()]
    names = list(points[0].rates["fpr"].groups) if points else []
    sentences = []
    if any(each.overall.trials is None for each in rates):
        sentences.append("No intervals can be given: there are no counts of pairs in this folder.")
    elif any(not math.isnan(each.overall.low) for each in rates):
        sentences += [*_intervals(store), *_apart(rates)]
    return [*sentences, *_people(store, attribute, names)]


def _intervals(store: ResultsFolder) -> Iterator[str]:
    """Say how the intervals are made and what they leave out."""
    if store.kind != "audit":
        on = f"fitted on {store.moved_from} and " if store.moved_from else ""
        yield (
            f"The data is split into {len(store.curves.folds)} parts (folds). Methods are {on}"
            "tested on each in turn, and rates are means over them."
        )
    what = f"The ranges in brackets are {100 * LEVEL:g} % intervals"
    kind = str(store.run.get("interval_kind", ""))
    if kind.startswith("identity-aware"):
        yield (
            f"{what}. They are identity-aware: they know that pairs share people, and say how far "
            "the numbers could be off because other people could have been in the data."
        )
    elif kind:
        streamed = "of pairs that were streamed it is not kept who is in them"
        why = streamed if store.run.get("streamed") else "the data does not say who is in the pairs"
        yield (
            f"Warning: {what[0].lower()}{what[1:]}, but {why}, so they take every pair as "
            "independent of the others. Pairs share people and pictures, so the ranges are too "
            "narrow, maybe by far."
        )
    else:
        yield (
            f"{what} (Wilson) of the counted pairs, wider where a rate varies from fold to fold by "
            "more than chance explains. They do not know who is in the pairs. Pairs share people "
            "and pictures, so the ranges are too narrow."
        )


def _apart(rates: Sequence[RatesByGroup]) -> Iterator[str]:
    """Say when groups are called different, where any two were compared."""
    compared = [len(each.reportable) for each in rates if each.worst is not None]
    if compared:
        yield (
            "Two groups are called different only where their intervals stay apart when widened "
            f"to hold for all groups at once (up to {max(compared)} here), since the worst and the "
            "best are picked after looking; “at least” compares the near ends of these."
        )


def _people(store: ResultsFolder, attribute: str, names: Sequence[str]) -> Iterator[str]:
    """Say how many people are behind the pairs."""
    counted = people(store, attribute)
    if GLOBAL in counted:
        groups = {name: counted[name] for name in names if name in counted}
        smallest = min(groups, key=groups.__getitem__, default=None)
        more = f"; the smallest group, {smallest}, has {groups[smallest]:,}" if smallest else ""
        yield f"The pairs show {counted[GLOBAL]:,} people{more}."
        effective = effective_people(store, attribute)
        fewest = min((n for n in names if n in effective), key=effective.__getitem__, default=None)
        if fewest is not None:
            yield (
                "Some people are in many more pairs than others, so groups tell as much as fewer "
                f"people, each in equally many pairs, would: {fewest} as much as "
                f"{round(effective[fewest]):,} (effective people). A rate of 1 % is told from "
                f"{least_people('fpr', 0.01)} effective people on."
            )
    elif store.kind == "audit":
        yield "The data does not say who is in the pairs, so the number of people is not known."


def limits(store: ResultsFolder, attribute: str, points: Sequence[RatesAtPoint]) -> list[str]:
    """Say what a run cannot tell of the groups of `attribute`; `points` is what it speaks of."""
    return [
        *_simulated(store),
        *_withheld(points),
        *_few_people(store, attribute),
        *_in_no_group(store, attribute),
        *_of_scores(store, points),
        *_scope(store),
    ]


def _simulated(store: ResultsFolder) -> Iterator[str]:
    if store.simulated:
        yield "The people are simulated: nothing here is about real people or a real system."


def _withheld(points: Sequence[RatesAtPoint]) -> Iterator[str]:
    names = dict.fromkeys(
        group for point in points for rates in point.rates.values() for group in rates.withheld
    )
    if names:
        yield (
            f"A group without a number may be treated well or badly: {listing(names)} "
            f"{'needs' if len(names) == 1 else 'need'} more data to tell."
        )


def _few_people(store: ResultsFolder, attribute: str) -> Iterator[str]:
    for group in store.results.groups(attribute):
        warning = caution(store, attribute, group)
        if warning is not None:
            yield f"{group}: {warning}."


def _in_no_group(store: ResultsFolder, attribute: str) -> Iterator[str]:
    """Give the shares of pairs that count in no group."""
    shares = store.run.get("groups", {}).get(attribute, {})
    everything = shares.get("pairs", 0)
    for key, why in (
        ("cross_group_pairs", "join two groups"),
        ("unknown_pairs", f"have no known {attribute}"),
    ):
        if shares.get(key):
            yield (
                f"{shares[key]:,} of {everything:,} pairs ({percent(shares[key] / everything)}) "
                f"{why}: they count in the overall numbers and in no group's."
            )


def _of_scores(store: ResultsFolder, points: Sequence[RatesAtPoint]) -> Iterator[str]:
    """Say what scores and threshold leave open."""
    settings = store.run.get("settings", {})
    if not any(row.metric == "ks" for row in store.results.rows):
        yield "There are scores and no probabilities, so none can be checked (no calibration)."
    if store.kind == "audit" and settings.get("model"):
        yield (
            "The scores come from a model of faircal. Where it was fitted on pairs or people of "
            "this data, it looks better here than it will be on others."
        )
    chosen = any(p.condition and p.rates["fpr"].overall.trials != 0 for p in points)
    if chosen and settings.get("threshold_on") != "calibration":
        yield (
            "The threshold was chosen on the same pairs that it is tested on. That is optimistic: "
            "one that is set beforehand, as in use, may miss the wanted rate."
        )


def _scope(store: ResultsFolder) -> Iterator[str]:
    for note in store.run.get("notes", []):
        if str(note).startswith("folds drawn") and store.kind != "audit":
            yield f"F{str(note)[1:]}."
    many = len(store.results.features)
    yield (
        f"One dataset and {'one system' if many == 1 else f'{many} systems'} were measured: this "
        "says nothing about other people, pictures or systems. It does not say why groups differ."
    )
