"""Everything that is measured of one set of scored pairs: all pairs, each group, over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute.counting import ScoreCounts
from faircal.data import Groups
from faircal.metrics import (
    DEVIATIONS,
    METRICS,
    Ranking,
    cllr,
    fnr_at_threshold,
    fpr_at_threshold,
    min_cllr,
    rates_at_threshold,
    threshold_at_fnr,
    threshold_at_fpr,
    tpr_at_fpr,
    tpr_at_threshold,
    unfairness,
)
from faircal.metrics.results import ALL, GLOBAL, Result

Float64 = NDArray[np.float64]

#: The false-positive (and false-negative) rates that the paper reports.
RATES = (1e-3, 1e-2)
_KINDS: tuple[Literal["fpr"], Literal["fnr"]] = ("fpr", "fnr")


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
        check_names(() if groups is None else groups.names)

        def cut(values: Float64 | None) -> dict[str, Ranking]:
            if values is None:
                return {}
            overall = Ranking.of(values, genuine)
            if groups is None:
                return {GLOBAL: overall}
            parts = overall.split(groups.pair, len(groups.names))
            return {GLOBAL: overall} | dict(zip(groups.names, parts, strict=True))

        probabilities = cut(probability)
        return cls(probabilities if score is probability else cut(score), probabilities, upper)

    @classmethod
    def counted(
        cls,
        names: Sequence[str],
        scores: ScoreCounts | None,
        probabilities: ScoreCounts | None,
        upper: float = 1.0,
    ) -> Rankings:
        """Take scores that were counted: of all pairs, the first set, and then of each group.

        The pairs of a bin are tied at its mean: the scores are those that are rounded so.
        """
        check_names(names)

        def rank(counts: ScoreCounts | None) -> dict[str, Ranking]:
            if counts is None:
                return {}
            bins = {name: counts.means(k) for k, name in enumerate((GLOBAL, *names))}
            return {n: Ranking.counted(of.mean, of.genuine, of.imposter) for n, of in bins.items()}

        of_probability = rank(probabilities)
        of_score = of_probability if scores is probabilities else rank(scores)
        return cls(of_score, of_probability, upper)

    @property
    def groups(self) -> list[str]:
        """The groups, without that of all pairs."""
        return [name for name in self.scores or self.probabilities if name != GLOBAL]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the genuine and the imposter pairs of all pairs and of each group."""
        of = self.scores or self.probabilities
        return {name: (ranking.n_genuine, ranking.n_imposter) for name, ranking in of.items()}


def check_names(groups: Sequence[str]) -> None:
    """Raise where a group has a name that results keep for totals."""
    for name in (GLOBAL, ALL):
        if name in groups:
            raise DataError(
                f"a group is called {name!r}, a name that results keep for numbers over all of "
                "them; rename the group"
            )


def condition(kind: str, rate: float) -> str:
    """Return a condition as it is written in results, ``global_fpr=0.001``."""
    return f"{kind}={rate:g}"


def measure(
    test: Rankings, *, rates: Sequence[float] = RATES, threshold_from: Rankings | None = None
) -> list[Result]:
    """Measure everything of `test`.

    Parameters
    ----------
    test : Rankings
    rates : sequence of float
        Global false-positive rates (predictive equality) and false-negative rates (equal
        opportunity) at which groups are compared.
    threshold_from : Rankings, optional
        Where thresholds come from: the calibration pairs, as in use. From `test` itself by
        default, as in the paper.
    """
    measures = [*_scalars(test), *_likelihood(test)]
    if test.scores:
        measures += _accuracy(test, rates, threshold_from)
        measures += _at_rates(test, threshold_from or test, rates)
    return _with_counts(measures, test)


def _result(group: str, under: str, metric: str, value: float) -> Result:
    return Result(group=group, condition=under, metric=metric, value=value)


def pairs_counted(metric: str, counts: tuple[int, int]) -> int:
    """Return how many of a set's (genuine, imposter) pairs a metric counts.

    Examples
    --------
    >>> [pairs_counted(metric, (3, 20)) for metric in ("fpr", "fnr", "tpr", "ks")]
    [20, 3, 3, 23]
    """
    genuine, imposter = counts
    if metric == "fpr":
        return imposter
    return genuine if metric in ("fnr", "tpr") else genuine + imposter


def _with_counts(measures: Sequence[Result], test: Rankings) -> list[Result]:
    """Say of each value of all pairs or of a group how many pairs it counts."""
    counts, counted = test.counts(), []
    for each in measures:
        if each.group != ALL and each.metric != "threshold":
            trials = pairs_counted(each.metric, counts[each.group])
            rate = each.metric in ("fpr", "fnr", "tpr")
            errors = round(each.value * trials, 6) if rate else np.nan
            each = each._replace(trials=float(trials), errors=errors)
        counted.append(each)
    return counted


def _scalars(test: Rankings) -> Iterator[Result]:
    for metric in METRICS.values():
        rankings = test.scores if metric.of == "score" else test.probabilities
        values = {group: metric.function(ranking) for group, ranking in rankings.items()}
        for group, value in values.items():
            yield _result(group, "", metric.name, value)
        if metric.deviations:
            yield from _deviations(metric.name, "", values)


def _likelihood(test: Rankings) -> Iterator[Result]:
    """What the probabilities cost as evidence; their prior is the share of genuine pairs of all."""
    if test.probabilities:
        overall = test.probabilities[GLOBAL]
        prior = overall.n_genuine / max(len(overall), 1)
        for group, ranking in test.probabilities.items():
            value = cllr(ranking, prior=prior) if 0 < prior < 1 else float("nan")
            yield _result(group, "", "cllr", value)
    for group, ranking in test.scores.items():
        yield _result(group, "", "min_cllr", min_cllr(ranking))


def _deviations(metric: str, under: str, values: dict[str, float]) -> Iterator[Result]:
    of_groups = [value for group, value in values.items() if group != GLOBAL]
    if of_groups:
        for name, function in DEVIATIONS.items():
            yield _result(ALL, under, f"{metric}_{name}", function(of_groups))


def _accuracy(test: Rankings, rates: Sequence[float], source: Rankings | None) -> Iterator[Result]:
    """TPR at a false-positive rate, of the test pairs' ROC or at the calibration threshold."""
    overall = test.scores[GLOBAL]
    if source is None:
        values = tpr_at_fpr(overall, rates)
    else:
        at = threshold_at_fpr(source.scores[GLOBAL], rates, upper=source.upper)
        values = tpr_at_threshold(overall, at, upper=test.upper)
    for rate, value in zip(rates, values, strict=True):
        yield _result(GLOBAL, condition("fpr", rate), "tpr", float(value))


def _at_rates(test: Rankings, source: Rankings, rates: Sequence[float]) -> Iterator[Result]:
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
            yield _result(GLOBAL, under, "threshold", float(thresholds[i]))
            for metric, of_groups in at_all.items():
                values = {group: float(at[i]) for group, at in of_groups.items()}
                for group, value in values.items():
                    yield _result(group, under, metric, value)
                yield from _deviations(metric, under, values)
            if "fpr" in at_all:
                rates_here = {
                    metric: [float(at_all[metric][group][i]) for group in test.groups]
                    for metric in _KINDS
                }
                yield from _fairness(under, rates_here)


def _fairness(under: str, rates: Mapping[Any, Sequence[float]]) -> Iterator[Result]:
    """How unequal groups are at one threshold; interpolated rates may leave 0 to 1 by rounding."""
    if len(rates["fpr"]) < 2:
        return
    inside = {metric: np.clip(values, 0, 1) for metric, values in rates.items()}
    for name, value in unfairness(inside["fpr"], inside["fnr"]).items():
        yield _result(ALL, under, name, float(value))


def at_threshold(test: Rankings, at: float) -> list[Result]:
    """Counted error rates of the decision ``score >= at``."""
    measures = [_result(GLOBAL, "", "threshold", at)]
    counted = {group: rates_at_threshold(ranking, at) for group, ranking in test.scores.items()}
    for group, counts in counted.items():
        measures += (
            _result(group, "", metric, float(getattr(counts, metric)))
            for metric in ("fpr", "fnr", "tpr")
        )
    rates = {
        metric: {group: float(getattr(counts, metric)) for group, counts in counted.items()}
        for metric in _KINDS
    }
    for metric, values in rates.items():
        measures += _deviations(metric, "", values)
    of_groups = {metric: [of[group] for group in test.groups] for metric, of in rates.items()}
    measures += _fairness("", of_groups)
    return _with_counts(measures, test)
