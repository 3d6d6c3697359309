"""Everything that is measured of one set of scored pairs: all pairs, each group, over groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.errors import DataError
from faircal.metrics import (
    DEVIATIONS,
    METRICS,
    Ranking,
    fnr_at_threshold,
    fpr_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_at_threshold,
)
from faircal.results import ALL, GLOBAL

Float64 = NDArray[np.float64]

#: The false-positive (and false-negative) rates that the paper reports.
RATES = (1e-3, 1e-2)


class Measure(NamedTuple):
    """One measured value: of which group, under which condition, which metric."""

    group: str
    condition: str
    metric: str
    value: float


@dataclass(frozen=True, eq=False)
class Rankings:
    """The sorted scores of all pairs and of each group, and the same for probabilities.

    Either of `scores` and `probabilities` may be missing; what needs it is then not measured.
    """

    scores: dict[str, Ranking]
    probabilities: dict[str, Ranking]
    upper: float

    @classmethod
    def of(
        cls,
        score: Float64 | None,
        probability: Float64 | None,
        genuine: NDArray[np.bool_],
        groups: Groups | None,
        upper: float = 1.0,
    ) -> Rankings:
        """Sort once for scores, once for probabilities; groups are cut out of the sorted order."""
        for name in (GLOBAL, ALL):
            if groups is not None and name in groups.names:
                raise DataError(
                    f"a group is called {name!r}, a name that results keep for numbers over all "
                    "pairs or groups; rename the group"
                )

        def cut(values: Float64 | None) -> dict[str, Ranking]:
            if values is None:
                return {}
            overall = Ranking.of(values, genuine)
            parts = enumerate(groups.names) if groups is not None else ()
            return {GLOBAL: overall} | {
                name: overall.subset(groups.pair == code)  # type: ignore[union-attr]
                for code, name in parts
            }

        probabilities = cut(probability)
        return cls(probabilities if score is probability else cut(score), probabilities, upper)


def condition(kind: str, rate: float) -> str:
    """Return a condition as it is written in results, ``global_fpr=0.001``."""
    return f"{kind}={rate:g}"


def measure(
    test: Rankings, *, rates: Sequence[float] = RATES, threshold_from: Rankings | None = None
) -> list[Measure]:
    """Measure everything of `test`.

    Parameters
    ----------
    test : Rankings
    rates : sequence of float
        Global false-positive rates (predictive equality) and false-negative rates (equal
        opportunity) at which groups are compared.
    threshold_from : Rankings, optional
        Where thresholds come from: the calibration pairs, as in use. From `test` itself unless
        told, as in the paper.
    """
    found = [*_scalars(test)]
    if test.scores:
        found += _accuracy(test, rates, threshold_from)
        found += _at_rates(test, threshold_from or test, rates)
    return found


def _scalars(test: Rankings) -> Iterator[Measure]:
    for metric in METRICS.values():
        rankings = test.scores if metric.of == "score" else test.probabilities
        values = {group: metric.function(ranking) for group, ranking in rankings.items()}
        for group, value in values.items():
            yield Measure(group, "", metric.name, value)
        if metric.deviations:
            yield from _deviations(metric.name, "", values)


def _deviations(metric: str, under: str, values: dict[str, float]) -> Iterator[Measure]:
    of_groups = [value for group, value in values.items() if group != GLOBAL]
    if of_groups:
        for name, function in DEVIATIONS.items():
            yield Measure(ALL, under, f"{metric}_{name}", function(of_groups))


def _accuracy(test: Rankings, rates: Sequence[float], source: Rankings | None) -> Iterator[Measure]:
    """TPR at a false-positive rate, of the test pairs' ROC or at the calibration threshold."""
    overall = test.scores[GLOBAL]
    if source is None:
        values = tpr_at_fpr(overall, rates)
    else:
        at = threshold_at_fpr(source.scores[GLOBAL], rates, upper=source.upper)
        values = tpr_at_threshold(overall, at, upper=test.upper)
    for rate, value in zip(rates, values, strict=True):
        yield Measure(GLOBAL, condition("fpr", rate), "tpr", float(value))


def _at_rates(test: Rankings, source: Rankings, rates: Sequence[float]) -> Iterator[Measure]:
    """Group rates at the thresholds of given global rates."""
    rate_of = {"fpr": fpr_at_threshold, "fnr": fnr_at_threshold}
    points: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
        ("global_fpr", threshold_at_fpr, ("fpr", "fnr")),
        ("global_fnr", threshold_at_fnr, ("fnr",)),
    )
    for kind, threshold_at, reported in points:
        thresholds = threshold_at(source.scores[GLOBAL], rates, upper=source.upper)
        at_all = {
            metric: {
                group: rate_of[metric](ranking, thresholds, upper=test.upper)
                for group, ranking in test.scores.items()
            }
            for metric in reported
        }
        for i, rate in enumerate(rates):
            under = condition(kind, rate)
            yield Measure(GLOBAL, under, "threshold", float(thresholds[i]))
            for metric, of_groups in at_all.items():
                values = {group: float(at[i]) for group, at in of_groups.items()}
                for group, value in values.items():
                    yield Measure(group, under, metric, value)
                yield from _deviations(metric, under, values)
