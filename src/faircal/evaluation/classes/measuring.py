"""All that is measured of one method's class probabilities: values, and histograms for figures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from faircal.evaluation.classes.rows import CLASS, ClassRows
from faircal.evaluation.curves import ScoreHistogram, ScoreSource
from faircal.metrics import DEVIATIONS, Histogram, Ranking, ece, ks, probability_edges
from faircal.metrics.classes import CLASS_METRICS, top_label
from faircal.metrics.decomposition import decompose_binary
from faircal.metrics.intervals.sharing import Float64
from faircal.metrics.measures import Measure
from faircal.metrics.results import ALL, GLOBAL

#: Calibration errors: of the top label, and of each class and their mean.
TOP, EACH = {"ks": "top_ks", "ece": "top_ece"}, {"ks": "class_ks", "ece": "class_ece"}
#: What the Brier score comes from: miscalibration − discrimination + uncertainty.
PARTS = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")

Rankings = dict[str, Ranking]


def class_condition(name: str) -> str:
    """Return the condition of a value of one class, as in results: ``class=cat``."""
    return f"{CLASS}={name}"


def rank(rows: ClassRows, probability: Float64, true: NDArray[np.bool_]) -> Rankings:
    """Sort a binary question's rows once; groups are cut out of the sorted order."""
    overall = Ranking.of(probability, true)
    if rows.groups is None:
        return {GLOBAL: overall}
    parts = overall.split(rows.groups.codes, len(rows.groups.names))
    return {GLOBAL: overall} | dict(zip(rows.groups.names, parts, strict=True))


def top_rankings(rows: ClassRows, method: str) -> Rankings:
    """Rank rows by confidence, by whether the top label is right."""
    return rank(rows, *top_label(rows.methods[method], rows.codes))


def class_rankings(rows: ClassRows, method: str) -> Iterator[tuple[str, Rankings]]:
    """Rank rows by the probability of each class, one class after the other."""
    for code, name in enumerate(rows.classes):
        column = np.ascontiguousarray(rows.methods[method][:, code])
        yield name, rank(rows, column, rows.codes == code)


def measure_method(
    rows: ClassRows, method: str, attribute: str = ""
) -> tuple[list[Measure], list[ScoreHistogram]]:
    """Measure one method: all rows, each group, each class, over groups."""
    found: dict[tuple[str, str], float] = {}
    curves: list[ScoreHistogram] = []
    for name, loss in rows.losses(method).items():
        for group, which in rows.rows.items():
            part = loss[which]
            found[group, name] = float(part.mean()) if len(part) else float("nan")
    edges = probability_edges()
    source = ScoreSource(method=method, attribute=attribute)
    for group, ranking in top_rankings(rows, method).items():
        found[group, TOP["ks"]], found[group, TOP["ece"]] = ks(ranking), ece(ranking)
        curves.append(ScoreHistogram(source, group, "probability", Histogram.of(ranking, edges)))
    of_classes: list[Measure] = []
    for name, rankings in class_rankings(rows, method):
        whole = Histogram.of(rankings[GLOBAL], edges)
        curves.append(ScoreHistogram(source._replace(attribute=CLASS), name, "probability", whole))
        for group, ranking in rankings.items():
            split = decompose_binary(ranking)
            terms = split.miscalibration, split.discrimination, split.uncertainty
            for part_name, value in zip(PARTS, terms, strict=True):
                found[group, part_name] = found.get((group, part_name), 0.0) + value
            for metric, value in ((EACH["ks"], ks(ranking)), (EACH["ece"], ece(ranking))):
                of_classes.append(Measure(group, class_condition(name), metric, value))
                share = value / len(rows.classes)
                found[group, metric] = found.get((group, metric), 0.0) + share
    return [*_listed(found, rows), *of_classes], curves


def _listed(found: dict[tuple[str, str], float], rows: ClassRows) -> Iterator[Measure]:
    """Put values in the order of the metrics, deviations over groups behind those they are of."""
    for metric in (*CLASS_METRICS, *PARTS):
        for group in rows.rows:
            yield Measure(group, "", metric, found[group, metric])
        if rows.group_names and metric in CLASS_METRICS:
            of_groups = [found[group, metric] for group in rows.group_names]
            for name, function in DEVIATIONS.items():
                yield Measure(ALL, "", f"{metric}_{name}", function(of_groups))
