"""What is measured of a method's probabilities, and how certain each value is.

What varies is which units came: people, patients, machines, or rows where nothing is known of such.
With fewer than four of them there is no interval. Intervals are made

- of means over rows (NLL, Brier) from sums over units, with Student's t, on a logarithmic scale;
- of the accuracy as Wilson's, with as many rows as the units' rows are worth;
- of calibration errors, which noise makes too large, by turning a test around
  (`faircal.metrics.intervals.calibration_error`); of class-wise ones as the mean over classes with
  noise in common (`faircal.metrics.intervals.unit_noise`);
- of numbers over groups from their groups' (`faircal.metrics.intervals.over_groups`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from faircal.evaluation.classes.rows import ClassRows
from faircal.evaluation.curves import ScoreHistogram, ScoreSource
from faircal.metrics import DEVIATIONS, Histogram, Ranking, deviations, ece, ks, probability_edges
from faircal.metrics.catalogue import METRICS
from faircal.metrics.classes import CLASS_METRICS, top_label
from faircal.metrics.decomposition import decompose_binary
from faircal.metrics.intervals import LEVEL, Key
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dyadic import FEWEST, Float64, PeopleVariance
from faircal.metrics.intervals.inversion import lowest_scale, rate_interval
from faircal.metrics.intervals.over_groups import deviation_of, lower_end, upper_end
from faircal.metrics.intervals.unit_noise import (
    ErrorReplicates,
    NoisyEstimate,
    UnitNoise,
    apart_from_0,
    standardised,
    wider_together,
)
from faircal.metrics.proportions import joint_level
from faircal.metrics.results import ALL, GLOBAL

Ends: TypeAlias = tuple[float, float]
UNDEFINED: Ends = (float("nan"), float("nan"))

#: What curves of classes are kept under in place of an attribute.
CLASS = "class"
#: Over groups: how far the worst and the best are apart at least; above 0 they differ.
LEAST_GAP = "least_gap"
#: By how much confidence is too high: its mean, less the share that is right.
OVERCONFIDENCE = "overconfidence"
#: Calibration errors: of the top label, and of each class and their mean.
TOP, EACH = {"ks": "top_ks", "ece": "top_ece"}, {"ks": "class_ks", "ece": "class_ece"}
#: What the Brier score comes from: miscalibration − discrimination + uncertainty.
PARTS = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")


def class_condition(name: str) -> str:
    """Return the condition of a value of one class, as in results: ``class=cat``."""
    return f"{CLASS}={name}"


def row_losses(rows: ClassRows, method: str) -> dict[str, Float64]:
    """Return what each row adds to each metric that is a mean over rows, each of shape (n_rows,).

    A metric of pairs' probabilities that is a mean, and that classes have no version of, is put to
    the top label: is it right? Its name is then ``top_NAME``.
    """
    matrix = rows.methods[method]
    losses = {
        name: metric.losses(matrix, rows.codes)
        for name, metric in CLASS_METRICS.items()
        if metric.losses is not None
    }
    question = top_label(matrix, rows.codes)
    for name, metric in METRICS.items():
        if metric.of == "probability" and metric.losses and name not in CLASS_METRICS:
            losses[f"top_{name}"] = metric.losses(*question)
    return losses


class MethodMeasures:
    """Everything that is measured of one method: values, intervals, and noise for differences.

    Parameters
    ----------
    rows : ClassRows
    method : str
    noise : UnitNoise
        The same for all methods that are to be compared.
    attribute : str

    Attributes
    ----------
    values : dict from (group, condition, metric) to float
    ends : dict from the same to (low, high)
        Nothing where there are too few units, or no interval.
    effective : dict from group to float
        How many independent rows would tell the accuracy as well.
    losses : dict from metric to ndarray of shape (n_rows,)
        What each row adds to those that are means over rows.
    curves : list of ScoreHistogram
    """

    def __init__(self, rows: ClassRows, method: str, noise: UnitNoise, attribute: str) -> None:
        self._rows, self._noise = rows, noise
        self.values: dict[Key, float] = {}
        self.ends: dict[Key, Ends] = {}
        self.effective: dict[str, float] = {}
        self.curves: list[ScoreHistogram] = []
        self.losses = row_losses(rows, method)
        self._metrics = list(dict.fromkeys([*CLASS_METRICS, *self.losses]))
        #: Noise of row means, and sizes of calibration errors, by group and metric.
        self._moves: dict[tuple[str, str], Float64] = {}
        self._sizes: dict[tuple[str, str], ErrorReplicates] = {}
        self._estimates: dict[Key, NoisyEstimate] = {}
        self._row_means()
        source = ScoreSource(method=method, attribute=attribute)
        for group, ranking in rows.top_rankings(method).items():
            self._count(source, group, ranking)
            _, sizes = self._calibration_errors(group, "", TOP, ranking)
            self._sizes |= {(group, TOP[kind]): of for kind, of in sizes.items()}
        self._classes(method, source._replace(attribute=CLASS))
        for metric in self._metrics if rows.group_names else ():
            self._over_groups(metric)
        confidence, right = top_label(rows.methods[method], rows.codes)
        self._overconfidence(confidence - right)

    def level(self, metric: str) -> float:
        """Return what the intervals of a metric are meant to cover; NaN where it has none."""
        if metric == OVERCONFIDENCE:
            return joint_level(len(self._rows.reportable), LEVEL)
        return math.nan if metric in PARTS or metric.endswith(LEAST_GAP) else LEVEL

    @property
    def keys(self) -> list[Key]:
        """Group, condition and metric of all values, deviations behind what they are of."""
        keys: list[Key] = []
        for metric in (*self._metrics, *PARTS, OVERCONFIDENCE):
            keys += [(group, "", metric) for group in self._rows.sets]
            keys += [(ALL, "", f"{metric}_{name}") for name in (*DEVIATIONS, LEAST_GAP)]
        return [
            *(key for key in keys if key in self.values),
            *(key for key in self.values if key[1]),
        ]

    def estimate(self, key: Key) -> NoisyEstimate | None:
        """Return a value with what its difference to another method's needs; None without."""
        group, condition, metric = key
        if key not in self._estimates and not condition and (group, metric) in self._sizes:
            sizes, value = self._sizes[group, metric], self.values[key]
            likely = value * lowest_scale(sizes.at, value, level=0.0)
            low, high = self.ends[key]
            apart = apart_from_0(value, low)
            self._estimates[key] = NoisyEstimate(value, likely, low, high, sizes.at(1.0), apart)
        return self._estimates.get(key)

    # ------------------------------------------------------------- of one group

    def _too_few(self, group: str) -> bool:
        return len(self._rows.identified[group].people) < FEWEST

    def _count(self, source: ScoreSource, group: str, ranking: Ranking) -> None:
        histogram = Histogram.of(ranking, probability_edges())
        self.curves.append(ScoreHistogram(source, group, "probability", histogram))

    def _row_means(self) -> None:
        for metric, loss in self.losses.items():
            for group, which in self._rows.sets.items():
                part = loss[which]
                value = float(part.mean()) if len(part) else float("nan")
                self.values[group, "", metric] = value
                if self._too_few(group):
                    continue
                residuals = (part - value) / len(part)
                spread = self._rows.identified[group].spread(residuals)
                ends = (
                    self._accuracy(group, value, spread)
                    if metric == "accuracy"
                    else spread.interval(value, LEVEL, loss=True)
                )
                self.ends[group, "", metric] = ends
                self._moves[group, metric] = self._noise.of_sum(residuals, which, spread)

    def _accuracy(self, group: str, value: float, spread: PeopleVariance) -> Ends:
        """Return Wilson's interval with as many rows as the units' rows are worth."""
        n, units = self._rows.count(group), len(self._rows.identified[group].people)
        effect, freedom = 1.0, np.inf
        if units < n and 0 < value < 1:
            effect, freedom = max(spread.variance * n / (value * (1 - value)), 1.0), spread.freedom
        elif units < n:
            # Without an error, or without a hit, rows of a unit may all be alike.
            effect = n / self._rows.effective_units(group)
        self.effective[group] = n / effect
        return rate_interval(value, n, lambda _: np.asarray(effect), level=LEVEL, freedom=freedom)

    def _calibration_errors(
        self, group: str, condition: str, names: dict[str, str], ranking: Ranking
    ) -> tuple[BinnedCurve | None, dict[str, ErrorReplicates]]:
        """Measure KS and ECE of a binary question; return its curve and replicates of their sizes.

        Of too few units there are none.
        """
        for kind, function in (("ks", ks), ("ece", ece)):
            self.values[group, condition, names[kind]] = function(ranking)
        if self._too_few(group):
            return None, {}
        curve = self._noise.curve(ranking, len(self._rows.identified[group].people))
        sizes = {}
        for kind, metric in names.items():
            key = group, condition, metric
            value, binned = self.values[key], curve.estimates[kind]
            ratio = value / binned if binned > 0 else 1.0
            low, high = curve.interval(kind, LEVEL)
            self.ends[key] = low * ratio, min(high * ratio, 1.0)
            sizes[kind] = ErrorReplicates.of(curve, kind, ratio)
        return curve, sizes

    def _classes(self, method: str, source: ScoreSource) -> None:
        """Measure each class, and the means over classes.

        The upper end of a mean: distances to the classes' upper ends are put together as far as the
        classes move together.
        """
        count = len(self._rows.classes)
        above: dict[Key, Float64] = {}
        for name, rankings in self._rows.class_rankings(method):
            condition = class_condition(name)
            self._count(source, name, rankings[GLOBAL])
            for group, ranking in rankings.items():
                self._decompose(group, ranking)
                curve, sizes = self._calibration_errors(group, condition, EACH, ranking)
                for kind, metric in EACH.items():
                    key, mean = (group, condition, metric), (group, "", metric)
                    value = self.values[key]
                    self.values[mean] = self.values.get(mean, 0.0) + value / count
                    if curve is None:
                        continue
                    table, before = sizes[kind].table / count, self._sizes.get((group, metric))
                    self._sizes[group, metric] = ErrorReplicates(
                        table if before is None else before.table + table
                    )
                    reach = max(self.ends[key][1] - value, 0.0) / count
                    above[mean] = above.get(mean, 0.0) + reach * standardised(curve.size(kind, 1.0))
        for key, moved in above.items():
            value = self.values[key]
            low = value * lowest_scale(self._sizes[key[0], key[2]].at, value, LEVEL)
            self.ends[key] = low, min(value + float(moved.std()), 1.0)

    def _decompose(self, group: str, ranking: Ranking) -> None:
        split = decompose_binary(ranking)
        terms = split.miscalibration, split.discrimination, split.uncertainty
        for part, value in zip(PARTS, terms, strict=True):
            key = group, "", part
            self.values[key] = self.values.get(key, 0.0) + value

    def _overconfidence(self, gap: Float64) -> None:
        """Measure by how much confidence is too high, with intervals that hold for all groups."""
        level = self.level(OVERCONFIDENCE)
        for group, which in self._rows.sets.items():
            part = gap[which]
            key, value = (group, "", OVERCONFIDENCE), float(part.mean()) if len(part) else math.nan
            self.values[key] = value
            if not self._too_few(group):
                identified = self._rows.identified[group]
                spread = identified.spread((part - value) / len(part))
                self.ends[key] = spread.interval(value, level)

    # ------------------------------------------------------------- over groups

    def _over_groups(self, metric: str) -> None:
        names = self._rows.group_names
        every = [self.values[group, "", metric] for group in names]
        for name, value in deviations(every).items():
            self.values[ALL, "", f"{metric}_{name}"] = value
        self.values[ALL, "", f"{metric}_{LEAST_GAP}"] = self._least_gap(metric)
        keys = [
            (group, "", metric) for group in names if not np.isnan(self.values[group, "", metric])
        ]
        if len(keys) < 2 or any(np.isnan(self.ends.get(key, UNDEFINED)[0]) for key in keys):
            return
        values = np.array([self.values[key] for key in keys])
        low, high = np.array([self.ends[key] for key in keys]).T
        simulate = self._simulate(keys, values)
        drawn = simulate(values)
        steady = 1.0
        if metric not in self.losses:
            steady = float(np.mean([apart_from_0(*of) for of in zip(values, low, strict=True)]))
        wider = wider_together(drawn) if self._rows.mixed else 1.0
        for name in DEVIATIONS:
            key = ALL, "", f"{metric}_{name}"
            value, upper = self.values[key], upper_end(name, values, low, high)
            if name == "mean":
                upper = value + wider * (upper - value)
            if name == "mean" and metric in self.losses:
                lower = value - wider * (value + upper_end(name, -values, -high, -low))
            else:
                lower = lower_end(name, values, simulate, LEVEL)
            self.ends[key] = lower, upper
            likely = lower_end(name, values, simulate, level=0.0)
            # A sum of norms turns around as far as they do, also where it is far from 0.
            apart = min(apart_from_0(value, lower), steady)
            noisy = deviation_of(name, drawn)
            self._estimates[key] = NoisyEstimate(value, likely, lower, upper, noisy, apart)

    def _least_gap(self, metric: str) -> float:
        """Return how far the highest and the lowest group are apart at least; NaN without two.

        Each side of their intervals is widened, as that of a normal distribution would be, to hold
        for all groups that may be shown at once, since the two are picked after looking.
        """
        groups = self._rows.reportable
        if len(groups) < 2:
            return math.nan
        values = {group: self.values[group, "", metric] for group in groups}
        highest, lowest = (end(values, key=values.__getitem__) for end in (max, min))
        normal = NormalDist()
        joint, alone = (
            normal.inv_cdf((1 + at) / 2) for at in (joint_level(len(groups), LEVEL), LEVEL)
        )
        below = values[highest] - self.ends[highest, "", metric][0]
        above = self.ends[lowest, "", metric][1] - values[lowest]
        return values[highest] - values[lowest] - joint / alone * (below + above)

    def _simulate(self, keys: Sequence[Key], values: Float64) -> Callable[[Float64], Float64]:
        """Return what gives the groups' values again, with the noise of other units."""
        metric = keys[0][2]
        if metric in self.losses:
            moves = np.stack([self._moves[group, metric] for group, _, _ in keys], axis=-1)
            return lambda truth: truth + moves
        sizes = [self._sizes[group, metric] for group, _, _ in keys]

        def again(truth: Float64) -> Float64:
            parts = np.divide(truth, values, out=np.zeros_like(truth), where=values > 1e-9)
            return np.stack([of.at(part) for of, part in zip(sizes, parts, strict=True)], axis=-1)

        return again
