"""What a report cannot tell, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from faircal.metrics.results import Condition
from faircal.report.enough import caution
from faircal.report.numbers import listing, percent
from faircal.report.rates import Point
from faircal.report.store import Store


def limits(store: Store, attribute: str, found: Sequence[Point]) -> list[str]:
    """Say what a run cannot tell of the groups of `attribute`; `found` is what it speaks of."""
    return [
        *_simulated(store),
        *_withheld(found),
        *_few_people(store, attribute),
        *_in_no_group(store, attribute),
        *_uncalibrated(store),
        *_tied(store, attribute, found),
        *_by_model(store),
        *_chosen_on_test(store, found),
        *_drawn(store),
        *_scope(store),
    ]


def _simulated(store: Store) -> Iterator[str]:
    if store.simulated:
        yield "The people are simulated: nothing here is about real people or a real system."


def _withheld(found: Sequence[Point]) -> Iterator[str]:
    names = dict.fromkeys(
        group for point in found for rates in point.rates.values() for group in rates.withheld
    )
    if names:
        yield (
            f"A group without a number may be treated well or badly: {listing(names)} "
            f"{'needs' if len(names) == 1 else 'need'} more data to tell."
        )


def _few_people(store: Store, attribute: str) -> Iterator[str]:
    for group in store.results.groups(attribute):
        said = caution(store, attribute, group)
        if said is not None:
            yield f"{group}: {said}."


def _in_no_group(store: Store, attribute: str) -> Iterator[str]:
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


def _uncalibrated(store: Store) -> Iterator[str]:
    if not any(row.metric == "ks" for row in store.results.rows):
        yield "There are scores and no probabilities, so none can be checked (no calibration)."


def _chosen_on_test(store: Store, found: Sequence[Point]) -> Iterator[str]:
    chosen = [p for p in found if p.condition and p.rates["fpr"].overall.trials != 0]
    if chosen and store.run.get("settings", {}).get("threshold_on") != "calibration":
        yield (
            "The threshold was chosen on the same pairs that it is tested on. That is optimistic: "
            "one that is set beforehand, as in use, may miss the wanted rate."
        )


def _tied(store: Store, attribute: str, found: Sequence[Point]) -> Iterator[str]:
    """Say where no threshold gives the wanted rate, since many pairs have the same score."""
    for point in found:
        wanted = Condition.of(point.condition).wanted("fpr")
        if wanted is None or math.isnan(point.threshold):
            continue
        known = [
            source
            for source in store.curves.sources
            if (source.feature, source.attribute) == (point.feature, attribute)
        ]
        if not known:
            continue
        overall = store.curves.get(source=known[0])
        above = float(overall.fpr[overall.fpr <= wanted].max(initial=0.0))
        below = float(overall.fpr[overall.fpr > wanted].min(initial=1.0))
        if below - above > wanted / 2 and (below - above) * overall.n_imposter >= 3:
            yield (
                f"Many pairs have the same score: no threshold gives {percent(wanted)}, only "
                f"{percent(above)} or {percent(below)}. Rates there are estimates between the two."
            )


def _by_model(store: Store) -> Iterator[str]:
    model = store.run.get("settings", {}).get("model")
    if store.kind == "audit" and model:
        yield (
            "The scores come from a model of faircal. Where it was fitted on pairs or people of "
            "this data, it looks better here than it will be on others."
        )


def _scope(store: Store) -> Iterator[str]:
    many = len(store.results.features)
    yield (
        f"One dataset and {'one system' if many == 1 else f'{many} systems'} were measured: this "
        "says nothing about other people, pictures or systems. It does not say why groups differ."
    )


def _drawn(store: Store) -> Iterator[str]:
    """Give the note on folds that were drawn and not given, as a sentence."""
    for note in store.run.get("notes", []):
        if str(note).startswith("folds drawn") and store.kind != "audit":
            yield f"F{str(note)[1:]}."
