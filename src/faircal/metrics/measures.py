"""Everything that is measured of one set of scored pairs: all pairs, each group, over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute.counting import ScoreCounts
from faircal.data import Groups
from faircal.metrics import (
    METRICS,
    Ranking,
    cllr,
    counted_threshold,
    deviations,
    interpolated_rate,
    min_cllr,
    rates_at_threshold,
    threshold_at_rate,
    tpr_at_fpr,
    unfairness,
)
from faircal.metrics.results import ALL, GLOBAL, Result

Float64 = NDArray[np.float64]

#: The false-positive (and false-negative) rates that the paper reports.
RATES = (1e-3, 1e-2)
#: The rate that a threshold is set for.
Kind: TypeAlias = Literal["fpr", "fnr"]
#: Group, condition, metric and value.
Measured: TypeAlias = tuple[str, str, str, float]


@dataclass(frozen=True, eq=False)
class Rankings:
    """The sorted scores of all pairs and of each group, and the same for probabilities.

    Either of `scores` and `probabilities` may be missing; what needs it is then not measured.

    Attributes
    ----------
    groups : list of str
        The groups, without that of all pairs.
    counts : dict from group to (int, int)
        The genuine and the imposter pairs of all pairs and of each group.
    """

    scores: dict[str, Ranking]
    probabilities: dict[str, Ranking]
    upper: float
    groups: list[str] = field(init=False)
    counts: dict[str, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        of = self.scores or self.probabilities
        vars(self).update(
            groups=[name for name in of if name != GLOBAL],
            counts={name: (ranking.n_genuine, ranking.n_imposter) for name, ranking in of.items()},
        )

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
        made: list[dict[str, Ranking]] = []
        for values in (probability, score):
            if made and values is probability:  # the same array, sorted already
                made.append(made[0])
            elif values is None:
                made.append({})
            else:
                overall = Ranking.of(values, genuine)
                made.append({GLOBAL: overall})
                if groups is not None:
                    parts = overall.split(groups.pair, len(groups.names))
                    made[-1].update(zip(groups.names, parts, strict=True))
        probabilities, scores = made
        return cls(scores, probabilities, upper)

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
            return {
                name: Ranking.counted(of.mean, of.genuine, of.imposter, (of.low, of.high))
                for name, of in bins.items()
            }

        of_probability = rank(probabilities)
        of_score = of_probability if scores is probabilities else rank(scores)
        return cls(of_score, of_probability, upper)


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
    test: Rankings,
    *,
    rates: Sequence[float] = RATES,
    threshold_from: Rankings | None = None,
    counted: bool = False,
    calibrated_at: float | None = None,
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
    counted : bool
        Count whole errors at thresholds that can be used, as audits do, where the paper
        interpolates threshold and rates between scores.
    calibrated_at : float, optional
        The share of genuine pairs that probabilities hold for, which Cllr takes out of them; that
        of all pairs of `test` by default, which is right only where they are drawn alike.
    """
    measured = [*_single_numbers(test, calibrated_at)]
    if test.scores:
        overall, source = test.scores[GLOBAL], threshold_from or test
        if threshold_from is None and not counted:
            tpr = tpr_at_fpr(overall, rates)
        else:  # at the threshold
            tpr = _rates(test, "tpr", _thresholds(source, "fpr", rates, counted), counted)[GLOBAL]
        for rate, value in zip(rates, tpr, strict=True):
            measured.append((GLOBAL, condition("fpr", rate), "tpr", float(value)))
        measured += _at_rates(test, source, rates, counted)
    return _with_counts(measured, test)


def _thresholds(source: Rankings, kind: Kind, rates: Sequence[float], counted: bool) -> Float64:
    """Return the thresholds at rates of all pairs."""
    overall = source.scores[GLOBAL]
    if counted:
        return counted_threshold(overall, kind, rates)
    return threshold_at_rate(overall, kind, rates, upper=source.upper)


def _rates(
    test: Rankings, metric: Literal["fpr", "fnr", "tpr"], at: Float64, counted: bool
) -> dict[str, Float64]:
    """Return an error rate of all pairs and of each group at thresholds."""
    return {
        group: getattr(rates_at_threshold(ranking, at), metric)
        if counted
        else interpolated_rate(ranking, metric, at, upper=test.upper)
        for group, ranking in test.scores.items()
    }


def _with_counts(measured: Sequence[Measured], test: Rankings) -> list[Result]:
    """Return values as results; of all pairs or of a group, with how many pairs each counts."""
    results = []
    for group, under, metric, value in measured:
        result = Result(group=group, condition=under, metric=metric, value=value)
        if group != ALL and metric != "threshold":
            genuine, imposter = test.counts[group]
            of_rate = {"fpr": imposter, "fnr": genuine, "tpr": genuine}
            trials = of_rate.get(metric, genuine + imposter)
            errors = round(value * trials, 6) if metric in of_rate else np.nan
            result = result._replace(trials=float(trials), errors=errors)
        results.append(result)
    return results


def _single_numbers(test: Rankings, calibrated_at: float | None) -> Iterator[Measured]:
    """Measure what is one number of a ranking."""
    for metric in METRICS.values():
        rankings = test.scores if metric.of == "score" else test.probabilities
        values = {group: metric.function(ranking) for group, ranking in rankings.items()}
        for group, value in values.items():
            yield group, "", metric.name, value
        if metric.deviations:
            yield from _deviations(metric.name, "", values)
    if test.probabilities:
        overall = test.probabilities[GLOBAL]
        prior = calibrated_at or overall.n_genuine / max(len(overall), 1)
        for group, ranking in test.probabilities.items():
            value = cllr(ranking, prior=prior) if 0 < prior < 1 else float("nan")
            yield group, "", "cllr", value
    for group, ranking in test.scores.items():
        yield group, "", "min_cllr", min_cllr(ranking)


def _deviations(metric: str, under: str, values: Mapping[str, float]) -> Iterator[Measured]:
    of_groups = [value for group, value in values.items() if group != GLOBAL]
    if of_groups:
        for name, value in deviations(of_groups).items():
            yield ALL, under, f"{metric}_{name}", value


def _at_rates(
    test: Rankings, source: Rankings, rates: Sequence[float], counted: bool
) -> Iterator[Measured]:
    """Group rates at the thresholds of given global rates."""
    points: dict[Kind, tuple[Kind, ...]] = {"fpr": ("fpr", "fnr"), "fnr": ("fnr",)}
    for kind, reported in points.items():
        thresholds = _thresholds(source, kind, rates, counted)
        at_all = {metric: _rates(test, metric, thresholds, counted) for metric in reported}
        for i, rate in enumerate(rates):
            under = condition(f"global_{kind}", rate)
            yield GLOBAL, under, "threshold", float(thresholds[i])
            by_metric: dict[str, dict[str, float]] = {
                metric: {group: float(at[i]) for group, at in of_groups.items()}
                for metric, of_groups in at_all.items()
            }
            for metric, values in by_metric.items():
                for group, value in values.items():
                    yield group, under, metric, value
                yield from _deviations(metric, under, values)
            yield from _unfairness(under, by_metric)


def _unfairness(under: str, rates: Mapping[str, Mapping[str, float]]) -> Iterator[Measured]:
    """Measure how unequal both rates of two or more groups are at one threshold."""
    groups = [group for group in rates["fnr"] if group != GLOBAL]
    if "fpr" in rates and len(groups) > 1:
        # Interpolated rates may leave 0 to 1 by rounding.
        fpr, fnr = (np.clip([rates[of][g] for g in groups], 0, 1) for of in ("fpr", "fnr"))
        for name, value in unfairness(fpr, fnr).items():
            yield ALL, under, name, float(value)


def ties_at(test: Rankings, rates: Sequence[float] = RATES) -> dict[str, int]:
    """Return, by condition, how many pairs are tied where they keep a rate from being met.

    They have the first score that a counted threshold leaves out: all of them would be too many
    errors, and without them there are fewer than the rate allows. None where scores were binned.
    """
    tied: dict[str, int] = {}
    overall = test.scores.get(GLOBAL)
    if overall is None or overall.ends[0] is not overall.thresholds:
        return tied
    kinds: tuple[Kind, ...] = ("fpr", "fnr")
    for kind in kinds:
        n = overall.n_imposter if kind == "fpr" else overall.n_genuine
        errors = overall.fp if kind == "fpr" else n - overall.tp
        at = rates_at_threshold(overall, counted_threshold(overall, kind, rates))
        counts = at.false_positives if kind == "fpr" else at.false_negatives
        for rate, count in zip(rates, counts.tolist(), strict=True):
            more = int(errors[errors > count].min(initial=n)) - count
            if more > 1 and count + 1 <= rate * n:
                tied[condition(f"global_{kind}", rate)] = more
    return tied


def at_threshold(test: Rankings, at: float) -> list[Result]:
    """Counted error rates of the decision ``score >= at``."""
    counted = {group: rates_at_threshold(ranking, at) for group, ranking in test.scores.items()}
    measured: list[Measured] = [(GLOBAL, "", "threshold", at)]
    measured += [
        (group, "", metric, float(getattr(counts, metric)))
        for group, counts in counted.items()
        for metric in ("fpr", "fnr", "tpr")
    ]
    rates = {
        "fpr": {group: float(counts.fpr) for group, counts in counted.items()},
        "fnr": {group: float(counts.fnr) for group, counts in counted.items()},
    }
    for metric, values in rates.items():
        measured += _deviations(metric, "", values)
    return _with_counts([*measured, *_unfairness("", rates)], test)
