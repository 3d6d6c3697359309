"""How sure the means over folds are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from faircal.evaluation.benchmark.parts import Parts
from faircal.evaluation.benchmark.settings import Plan
from faircal.metrics.intervals import LEVEL, ValueInterval, over_folds
from faircal.metrics.results import Interval, Replicated


def intervals_over_folds(
    known: Mapping[tuple[str, ...], list[ValueInterval]],
) -> Iterator[Interval]:
    """Give the intervals of means over folds; keys are where in the results, and which value."""
    names = ("feature", "method", "calibrator", "clusters", "attribute")
    for key, folds in known.items():
        where = dict(zip(names, key[:5], strict=True))
        yield Interval.of(over_folds(folds)._asdict(), level=LEVEL, **where)


def replicates_over_folds(plan: Plan, parts: Parts) -> Iterator[Replicated]:
    """Give replicates of means over folds, of the cells that figures show."""
    folds: dict[tuple[str, ...], list[Replicated]] = {}
    for cell in filter(plan.is_main, plan.cells):
        for row in parts.read_replicates(cell):
            if not np.isnan(row.value):
                folds.setdefault(row[:8], []).append(row)
    for rows in folds.values():
        value = float(np.mean([row.value for row in rows]))
        noise = np.mean([row.noise for row in rows], axis=0)  # folds share no people
        yield rows[0]._replace(value=value, noise=noise.astype(np.float32))
