"""Imposter pairs of every two groups: who is taken for whom, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from faircal.evaluation.audit.found import Audit
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.thresholds.strangers import ImposterSet
from faircal.metrics import wilson
from faircal.metrics.intervals import LEVEL
from faircal.metrics.intervals.crowd import Crowd
from faircal.metrics.intervals.sharing import FEWEST
from faircal.metrics.matrix import cells
from faircal.metrics.results import GLOBAL, write_rows

MATRIX = "matrix.csv"


class MatrixRow(NamedTuple):
    """The false-positive rate of imposter pairs with one image of each of two groups.

    The interval is NaN where too few people are in the pairs to tell how they vary.
    """

    feature: str
    attribute: str
    condition: str
    left_group: str
    right_group: str
    imposters: float
    errors: float
    fpr: float
    low: float
    high: float
    effective_people: float


def imposter_matrix(pairs: ScoredPairs, audit: Audit) -> Iterator[MatrixRow]:
    """Give a row for every two groups with imposter pairs, at each operating point of an audit.

    Parameters
    ----------
    pairs : Scored
        With groups; what `audit` was made of.
    audit : Audit
    """
    groups, score = pairs.groups, pairs.ranked
    if groups is None or score is None:
        return
    n = len(groups.names)
    cell = np.where(pairs.genuine, -1, cells(groups.left, groups.right, n))
    people = pairs.people
    crowd = Crowd.of(pairs.genuine, people) if people is not None and people.names else None
    points = _thresholds(audit)
    for number, (i, j) in enumerate(zip(*np.triu_indices(n), strict=True)):
        rows = np.flatnonzero(cell == number)
        if len(rows):
            known = None
            if crowd is not None:
                known = ImposterSet(score[rows], crowd.left[rows], crowd.right[rows])
            names = groups.names[i], groups.names[j]
            for condition, threshold in points:
                front = audit.feature, audit.attribute, condition, *names
                errors = int((score[rows] >= threshold).sum())
                rate = errors / len(rows)
                ends = (
                    audit.interval("fpr", group=names[0], condition=condition)
                    if i == j
                    else _interval(errors, len(rows), known)
                )
                effective = np.nan if known is None else known.sharing.effective_people
                yield MatrixRow(*front, len(rows), errors, rate, *ends, effective)


def _interval(errors: int, trials: int, known: ImposterSet | None) -> tuple[float, float]:
    if known is None:
        low, high = wilson(errors, trials, LEVEL)
        return float(low), float(high)
    if known.sharing.people < FEWEST:
        return np.nan, np.nan
    return known.interval(errors, LEVEL)


def _thresholds(audit: Audit) -> Sequence[tuple[str, float]]:
    """Return the operating points that a false-positive rate is told at, and their thresholds."""
    return [
        (m.condition, m.value)
        for m in audit.measures
        if m.metric == "threshold"
        and m.group == GLOBAL
        and not m.condition.startswith("global_fnr")
        and not np.isnan(m.value)
    ]


def write_matrix(folder: Path, rows: Iterable[MatrixRow]) -> None:
    """Write ``matrix.csv``; without rows it is removed."""
    write_rows(folder / MATRIX, MatrixRow, rows)
