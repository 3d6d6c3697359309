"""An audit along the outline of ISO/IEC 19795-1 and 19795-10: aligned with them, no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import GLOBAL
from faircal.report import outline_tables as tables
from faircal.report.enough import least_people, people
from faircal.report.findings import Measured, conditions, main_condition
from faircal.report.numbers import listing, percent
from faircal.report.store import Store
from faircal.report.tables import Table
from faircal.report.tables import percent as percent_of

ABOUT = (
    "Aligned with the outline of ISO/IEC 19795-1 (testing and reporting) and 19795-10 (differences "
    "between demographic groups). What is FPR here they call false match rate (FMR), what is FNR "
    "false non-match rate (FNMR). Whether a test meets these standards also depends on how people "
    "were recruited and pictures taken, which the data does not say."
)


@dataclass(frozen=True)
class Section:
    """A part of the outline: sentences, then tables; `folded` ones open on request."""

    title: str
    sentences: list[str]
    tables: list[Table] = field(default_factory=list)
    folded: bool = False


def outline(store: Store, attribute: str) -> list[Section]:
    """Return the sections of an audit's outline; none of a benchmark.

    Parameters
    ----------
    store : Store
    attribute : str
        One of ``store.results.attributes``; empty where there are no groups.
    """
    if store.kind != "audit":
        return []
    variant = store.results.variants[0]
    measured = [Measured(store, attribute, f, variant) for f in store.results.features]
    point = main_condition(store.results, attribute)
    sections = [
        Section(
            "Population", list(_population(store, attribute)), [tables.population(measured[0])]
        ),
        Section("Protocol", list(_protocol(store))),
        Section(
            "Operating points",
            list(_operating(store, attribute)),
            [tables.operating_points(measured)],
        ),
        Section(
            "Error rates by group",
            ["With intervals; curves over all thresholds are the figures ROC and DET by group."],
            tables.error_rates(measured),
            folded=True,
        ),
        Section("Fairness measures", list(_fairness(measured)), tables.fairness(measured)),
        Section("Between groups", list(_between(store, point)), tables.between(store, point), True),
        Section("Strength of evidence", [_EVIDENCE], tables.evidence(measured), True),
        Section("Wrong labels", [_WRONG], tables.wrong_labels(store), True),
        Section("Regions without labels", [_REGIONS], tables.regions(store), True),
        Section("Uncertainty", list(_uncertainty(store, attribute))),
        Section("Limits", ["Those under “What this cannot tell” in the summary."]),
    ]
    kept = ("Population", "Protocol", "Operating points", "Between groups", "Uncertainty", "Limits")
    return [s for s in sections if any(t.measured for t in s.tables) or s.title in kept]


_EVIDENCE = (
    "Cllr is what the probabilities cost as evidence, in bits per pair: 0 is perfect, 1 is as good "
    "as saying nothing. Min. Cllr is what would be left if they were perfectly calibrated for "
    "the group; the rest is lost by calibration. The prior is the share of genuine pairs of all."
)
_WRONG = (
    "Labels of groups may be wrong. So many were drawn anew at random: how far gaps move, and what "
    "they would be if as many labels are wrong already and are taken back."
)
_REGIONS = (
    "Where in embedding space it is worst, found without labels of groups on one half of the "
    "people and tested on the other, with control of false discoveries."
)


def _population(store: Store, attribute: str) -> Iterator[str]:
    run, counted = store.run, people(store, attribute)
    known = f"{counted[GLOBAL]:,} people" if GLOBAL in counted else "an unknown number of people"
    images = f", {run['images']:,} images" if isinstance(run.get("images"), int) else ""
    kind = "simulated" if store.simulated else "as the data names them"
    pairs = f"{run['pairs']:,} pairs" if isinstance(run.get("pairs"), int) else "pairs"
    yield f"{store.results.dataset}: {known}{images}, {pairs}; people are {kind}."
    if not attribute:
        yield "The data names no groups."
        return
    yield (
        f"Groups by {attribute.replace('+', ' and ')}, as labelled in the data; labels were not "
        "checked."
    )
    shares = run.get("groups", {}).get(attribute, {})
    total = shares.get("pairs", 0)
    for key, why in (("unknown_pairs", "have no known group"), ("cross_group_pairs", "join two")):
        if total:
            n = shares.get(key, 0)
            yield f"{n:,} of {total:,} pairs ({percent(n / total)}) {why}."


def _protocol(store: Store) -> Iterator[str]:
    settings = store.run.get("settings", {})
    made = "scores as the data has them, or cosines of its embeddings"
    if settings.get("model"):
        made = f"scores and probabilities of the model {settings['model']}"
    yield f"Measured: {made}. Pairs are those of the data; the audit draws none."
    if settings.get("fold") is not None:
        yield f"Only pairs of fold {settings['fold']}."
    given = settings.get("threshold")
    if given is not None:
        yield f"The threshold {given:g} was given; its error rates are counted."
    yield (
        "Thresholds of global rates were set on the same pairs that they are tested on, those of "
        "two groups included."
    )
    if store.run.get("streamed"):
        yield "Pairs were streamed and counted in bins; notes say how exact that is."


def _operating(store: Store, attribute: str) -> Iterator[str]:
    every = conditions(store.results, attribute)
    if "" in every:
        yield "The given threshold."
    for metric in ("fpr", "fnr"):
        found = [condition for condition in every if condition.startswith(f"global_{metric}")]
        if found:
            rates = listing(percent_of(condition) for condition in found)
            yield f"{metric.upper()} of {rates} over all pairs."


def _fairness(measured: list[Measured]) -> Iterator[str]:
    yield (
        "Max − min, max / min and max / geometric mean of the groups' rates; Gini: 0 where groups "
        "are alike; FDR: 1 where they are alike (both errors weigh half); inequity rate: 1; GARBE: "
        "0. “Undefined”: a ratio to a group without an error; more pairs or a laxer threshold "
        "would tell. All groups count, whatever their size."
    )
    point = main_condition(measured[0].store.results, measured[0].attribute)
    if point is None:
        return
    rates = measured[0].point(point).rates.values()
    small = list(dict.fromkeys(group for each in rates for group in each.withheld))
    if small:
        has = "has" if len(small) == 1 else "have"
        yield f"Among them {listing(small)}, which {has} not enough data to be told."


def _between(store: Store, point: str | None) -> Iterator[str]:
    rows = [row for row in store.matrix if row.condition == point]
    if not rows:
        yield "Who is taken for whom is not known: there are no pairs of strangers in known groups."
    elif all(row.left_group == row.right_group for row in rows):
        yield (
            "The data has no pairs of strangers of two different groups: who is taken for whom "
            "across groups cannot be told."
        )
    else:
        yield "Who is taken for whom: pairs of strangers by the groups of both, at one threshold."


def _uncertainty(store: Store, attribute: str) -> Iterator[str]:
    kind = store.run.get("interval_kind")
    yield f"Intervals of {100 * LEVEL:g} %: {kind or 'Wilson, of pairs taken as independent'}."
    groups = len(store.results.groups(attribute))
    if groups > 1:
        level = 100 * (1 - (1 - LEVEL) / groups)
        yield (
            "Intervals hold one at a time. Where two groups are called different, both intervals "
            f"are widened to hold at once for all groups that are told (Bonferroni: {level:.4g} % "
            f"where all {groups} are)."
        )
    yield (
        "A rate is told from 100 pairs on, at a global rate r from 3 / r pairs on; and, where "
        f"people are known, from {least_people('fpr')} effective people on, at an FPR of 1 % from "
        f"{least_people('fpr', 0.01)}, at 0.1 % from {least_people('fpr', 0.001)}. Under that the "
        "answer is “not enough data”."
    )
