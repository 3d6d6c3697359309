"""Reports of face verification: benchmarks, audits, and the paper's experiment."""

from __future__ import annotations

import math

from faircal.metrics.results import GLOBAL, Condition, Interval
from faircal.report.differences import difference_tables
from faircal.report.explorer import explorer
from faircal.report.figures import standard_figures
from faircal.report.findings import Measured, Told
from faircal.report.outline import outline
from faircal.report.store import Store
from faircal.report.subject import IntervalLine, Subject
from faircal.report.tables import Table, Variant, further_tables, main_tables, percent
from faircal.report.words import summary


def _main(store: Store, attribute: str) -> list[Table]:
    return main_tables(Told(store), attribute)


def _further(store: Store, attribute: str) -> list[Table]:
    return further_tables(Told(store), attribute)


def _blocks(store: Store) -> list[tuple[str, list[IntervalLine]]]:
    """Return the rates of an audit by what they are of, in words: groups under each other."""
    if store.kind != "audit":
        return []
    blocks: dict[str, list[Interval]] = {}
    for row in store.intervals:
        if row.metric not in ("fpr", "fnr", "tpr"):
            continue
        where = "at the given threshold"
        if row.condition:
            kind = Condition.of(row.condition).metric.upper()
            where = f"at a global {kind} of {percent(row.condition)}"
        feature = f", {row.feature}" if len(store.results.features) > 1 else ""
        blocks.setdefault(f"{row.metric.upper()} {where}{feature}", []).append(row)
    # The decision in use first, and what people are told before what follows from it.
    ordered = sorted(
        blocks.items(), key=lambda block: (block[1][0].condition != "", block[1][0].metric == "tpr")
    )
    return [(title, [_interval_line(store, row) for row in rows]) for title, rows in ordered]


def _interval_line(store: Store, row: Interval) -> IntervalLine:
    variant = Variant(row.method, row.calibrator, row.clusters)
    found = Measured(store, row.attribute, row.feature, variant)
    name = "All pairs" if row.group == GLOBAL else row.group
    pairs = f"{row.trials:,.0f}"
    lacking = found.lacking(row.metric, row.group, row.condition)
    if lacking is not None:
        return IntervalLine(name, "–", lacking, pairs)
    value = found.value(row.metric, row.group, row.condition)
    if math.isnan(value.mean):
        return IntervalLine(name, "–", "not defined", pairs)
    return IntervalLine(name, value.text, value.interval.replace("–", " to ") or "not known", pairs)


_TERMS = {
    "FPR": (
        "False-positive or false-match rate: the share of pairs of two different people that are "
        "taken for the same person."
    ),
    "FNR, TPR": (
        "False-negative or false non-match rate: the share of pairs of one person that are "
        "missed; TPR is the rest."
    ),
    "AUROC": (
        "The chance that a pair of one person scores higher than a pair of two; 100 is perfect."
    ),
    "KS, ECE, Brier": (
        "How far stated probabilities are from what happens; 0 is perfect. With few pairs they "
        "are above 0 even for perfect probabilities."
    ),
    "AAD, MAD, STD": (
        "Average and largest absolute deviation of the groups from their mean, and their standard "
        "deviation: 0 means that all groups fare alike."
    ),
    "(1.13–1.71)": (
        "An interval: where the number could lie as well, had other people been in the data; "
        "nominally it covers the truth 95 times in 100."
    ),
    "Effective people": (
        "How many people, each in equally many pairs, would tell as much as those who are there."
    ),
    "±": "Standard deviation over the folds.",
}

FACES = Subject(
    kinds={
        "benchmark": "Benchmark of methods",
        "audit": "Audit of scores",
        "reproduce": "The paper's experiment, run again",
    },
    lead="Who is treated differently by a face-verification system, and by how much.",
    simulated=(
        "These figures come from a model of a population, not from people. They show how the "
        "methods behave; they say nothing about any real system or group."
    ),
    everything="All pairs",
    more="equal opportunity, ECE, Brier, every group, fairness measures",
    terms=_TERMS,
    facts=(
        "pairs",
        "images",
        "people",
        "folds",
        "attributes",
        "data_sha256",
        "wall_time_s",
        "jobs",
    ),
    summary=summary,
    main=_main,
    differences=difference_tables,
    further=_further,
    figures=standard_figures,
    outline=outline,
    blocks=_blocks,
    explorer=explorer,
)
