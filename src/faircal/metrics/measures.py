"""Everything that is measured of one set of scored pairs: all pairs, each group, over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute.counting import FilledBins, ScoreCounts
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
from faircal.metrics.bounds import (
    Range,
    as_counted,
    counted_range,
    deviation_bound,
    largest_error,
    rate_range,
    threshold_range,
    tpr_range,
)
from faircal.metrics.results import ALL, GLOBAL

Float64 = NDArray[np.float64]

#: The false-positive (and false-negative) rates that the paper reports.
RATES = (1e-3, 1e-2)
_KINDS: tuple[Literal["fpr"], Literal["fnr"]] = ("fpr", "fnr")


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
    Where they were counted, `score_bins` and `probability_bins` hold the bins they come from.
    """

    scores: dict[str, Ranking]
    probabilities: dict[str, Ranking]
    upper: float
    score_bins: Mapping[str, FilledBins] = field(default_factory=dict)
    probability_bins: Mapping[str, FilledBins] = field(default_factory=dict)

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
        """Take scores that were counted: of all pairs, the first set, and then of each group."""
        check_names(names)

        def bins(counts: ScoreCounts | None) -> dict[str, FilledBins]:
            if counts is None:
                return {}
            return {name: counts.means(k) for k, name in enumerate((GLOBAL, *names))}

        def rank(of: dict[str, FilledBins]) -> dict[str, Ranking]:
            return {name: as_counted(filled) for name, filled in of.items()}

        probability_bins = bins(probabilities)
        of_probability = rank(probability_bins)
        if scores is probabilities:
            return cls(of_probability, of_probability, upper, probability_bins, probability_bins)
        score_bins = bins(scores)
        return cls(rank(score_bins), of_probability, upper, score_bins, probability_bins)

    @property
    def groups(self) -> list[str]:
        """The groups, without that of all pairs."""
        return [name for name in self.scores or self.probabilities if name != GLOBAL]


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
) -> list[Measure]:
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
    return measures


def _scalars(test: Rankings) -> Iterator[Measure]:
    for metric in METRICS.values():
        rankings = test.scores if metric.of == "score" else test.probabilities
        values = {group: metric.function(ranking) for group, ranking in rankings.items()}
        for group, value in values.items():
            yield Measure(group, "", metric.name, value)
        if metric.deviations:
            yield from _deviations(metric.name, "", values)


def _likelihood(test: Rankings) -> Iterator[Measure]:
    """What the probabilities cost as evidence; their prior is the share of genuine pairs of all.

    Of counted scores these have no bound, so they are measured of single pairs only.
    """
    if test.score_bins or test.probability_bins:
        return
    if test.probabilities:
        overall = test.probabilities[GLOBAL]
        prior = overall.n_genuine / max(len(overall), 1)
        for group, ranking in test.probabilities.items():
            value = cllr(ranking, prior=prior) if 0 < prior < 1 else float("nan")
            yield Measure(group, "", "cllr", value)
    for group, ranking in test.scores.items():
        yield Measure(group, "", "min_cllr", min_cllr(ranking))


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
            if "fpr" in at_all:
                rates_here = {
                    metric: [float(at_all[metric][group][i]) for group in test.groups]
                    for metric in _KINDS
                }
                yield from _fairness(under, rates_here, exact=not test.score_bins)


def _fairness(under: str, rates: dict[Any, list[float]], *, exact: bool) -> Iterator[Measure]:
    """How unequal groups are at one threshold; of rates that are not exact only what has a bound.

    Interpolated rates may leave the range by rounding.
    """
    if len(rates["fpr"]) < 2:
        return
    inside = {metric: np.clip(values, 0, 1) for metric, values in rates.items()}
    for name, value in unfairness(inside["fpr"], inside["fnr"]).items():
        if exact or name.endswith("_gap"):
            yield Measure(ALL, under, name, float(value))


def at_threshold(test: Rankings, at: float) -> Iterator[Measure]:
    """Counted error rates of the decision ``score >= at``."""
    yield Measure(GLOBAL, "", "threshold", at)
    counted = {group: rates_at_threshold(ranking, at) for group, ranking in test.scores.items()}
    for group, counts in counted.items():
        for metric in ("fpr", "fnr", "tpr"):
            yield Measure(group, "", metric, float(getattr(counts, metric)))
    rates = {
        metric: {group: float(getattr(counts, metric)) for group, counts in counted.items()}
        for metric in _KINDS
    }
    for metric, values in rates.items():
        yield from _deviations(metric, "", values)
    of_groups = {metric: [of[group] for group in test.groups] for metric, of in rates.items()}
    yield from _fairness("", of_groups, exact=True)


#: Values from 0 to 1.
_WITHIN_1 = ("auroc", "tpr", "fpr", "fnr", "ks", "ece", "brier")


def error_bounds(
    test: Rankings, measures: Sequence[Measure], rates: Sequence[float] = RATES
) -> list[Measure]:
    """Return how far each value that was measured of counted scores can be from the exact one.

    The bounds are in the order of `measures`; NaN where a value is undefined, infinite where a
    metric has no bound.

    Parameters
    ----------
    test : Rankings
        Made by `Rankings.counted`.
    measures : sequence of Measure
        What `measure` and `at_threshold` gave for it.
    rates : sequence of float
        Those that `measure` was given.
    """
    bounds = _Bounds(test, rates, measures)
    bound_of: dict[tuple[str, str, str], float] = {}
    for group, under, metric, value in measures:
        of, _, deviation = metric.partition("_")
        if group == ALL:
            kinds = (of,) if deviation else _KINDS
            errors = [bound_of[name, under, kind] for name in test.groups for kind in kinds]
            bound = deviation_bound(deviation, errors)
        else:
            bound = bounds.of(group, under, metric, value)
        # Nothing between 0 and 1 can be off by more than 1, deviations included.
        within = metric.partition("_")[0] in _WITHIN_1
        bound_of[group, under, metric] = min(bound, 1.0) if within else bound
    return [Measure(*key, bound) for key, bound in bound_of.items()]


class _Bounds:
    """The bound of each value of one group."""

    def __init__(self, test: Rankings, rates: Sequence[float], measures: Sequence[Measure]) -> None:
        self._test = test
        overall = test.score_bins.get(GLOBAL)
        # By condition: the wanted rate, and where the threshold lies that it sets.
        self._rates = {condition("fpr", rate): rate for rate in rates}
        self._thresholds: dict[str, Range] = {}
        if overall is not None:
            self._thresholds = {
                condition(f"global_{of}", rate): threshold_range(overall, rate, of, test.upper)
                for of in _KINDS
                for rate in rates
            }
        own = [m.value for m in measures if (m.condition, m.metric) == ("", "threshold")]
        self._own = own[0] if own else float("nan")

    def of(self, group: str, under: str, metric: str, value: float) -> float:
        if not under and metric in METRICS:
            kind = METRICS[metric]
            bins = self._test.score_bins if kind.of == "score" else self._test.probability_bins
            return float("inf") if kind.bound is None else kind.bound(bins[group])
        if not under and metric == "threshold":
            return 0.0
        return largest_error(value, self._range(self._test.score_bins[group], under, metric))

    def _range(self, bins: FilledBins, under: str, metric: str) -> Range:
        """Return where the exact value must lie."""
        if under in self._rates:
            return tpr_range(bins, self._rates[under])
        if metric == "threshold":
            return self._thresholds[under]
        label: Literal["genuine", "imposter"] = "imposter" if metric == "fpr" else "genuine"
        if under:
            low, high = rate_range(bins, label, *self._thresholds[under], self._test.upper)
        else:
            low, high = counted_range(bins, label, self._own)
        return (1 - high, 1 - low) if metric == "fnr" else (low, high)
