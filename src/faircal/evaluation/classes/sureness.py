"""How sure each value of a classifier is: which units came is what varies.

Units are people, patients, machines, or rows where nothing is known of such. With fewer than four
of them nothing is said. Intervals are made

- of means over rows (NLL, Brier) from sums over units, with Student's t, on a logarithmic scale;
- of the accuracy as Wilson's, with as many rows as the units' rows are worth;
- of calibration errors, which noise makes too large, by turning a test around
  (`faircal.metrics.intervals.curve`); of class-wise ones as the mean over classes with noise in
  common;
- of numbers over groups from their groups' (`faircal.metrics.intervals.deviations`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from faircal.evaluation.classes.differences import ClassEstimate, apart_from_0
from faircal.evaluation.classes.measuring import (
    EACH,
    TOP,
    Rankings,
    class_condition,
    class_rankings,
    top_rankings,
)
from faircal.evaluation.classes.noise import ErrorSizes, Noise
from faircal.evaluation.classes.rows import ROW_MEANS, ClassRows
from faircal.metrics import DEVIATIONS
from faircal.metrics.classes import CLASS_METRICS
from faircal.metrics.intervals import Key
from faircal.metrics.intervals.crowd import Spread
from faircal.metrics.intervals.curve import BinnedCurve
from faircal.metrics.intervals.deviations import deviation_of, lower_end, upper_end
from faircal.metrics.intervals.inversion import lowest
from faircal.metrics.intervals.rates import rate_interval
from faircal.metrics.intervals.sharing import FEWEST, Float64
from faircal.metrics.results import ALL

Ends: TypeAlias = tuple[float, float]

_UNDEFINED = (float("nan"), float("nan"))

#: How intervals are made, said wherever they are shown.
BY_UNITS = "by unit (what other units would have given; rows of one unit are not independent)"
BY_ROWS = (
    "by row (which rows belong together is not known, so they are taken as independent: too narrow "
    "where several come from one person, patient or machine)"
)


def has_interval(metric: str) -> bool:
    """Whether values of a metric have intervals at all; the parts of the Brier score do not."""
    return metric in CLASS_METRICS or metric.rpartition("_")[2] in DEVIATIONS


class Sureness:
    """Intervals of everything that was measured of one method, and replicates for differences.

    Parameters
    ----------
    rows : ClassRows
    method : str
    values : dict from (group, condition, metric) to float
        What `measure_method` found.
    noise : Noise
        The same for all methods that are to be compared.
    level : float
    """

    def __init__(
        self, rows: ClassRows, method: str, values: dict[Key, float], noise: Noise, level: float
    ) -> None:
        self._rows, self._values, self._noise, self._level = rows, values, noise, level
        self._ends: dict[Key, Ends] = {}
        #: Noise of row means, and sizes of calibration errors, by group and metric.
        self._moves: dict[tuple[str, str], Float64] = {}
        self._sizes: dict[tuple[str, str], ErrorSizes] = {}
        #: How many independent rows would tell the accuracy as well, by group.
        self.effective: dict[str, float] = {}
        self._row_means(method)
        self._top_label(top_rankings(rows, method))
        self._classes(method)
        self._estimates: dict[Key, ClassEstimate] = {}
        if len(rows.group_names) > 1:
            self._over_groups()

    def interval(self, key: Key) -> Ends:
        """Return (low, high) of a value; NaN where there are too few units or no interval."""
        return self._ends.get(key, _UNDEFINED)

    def estimate(self, key: Key) -> ClassEstimate | None:
        """Return a value with what its difference to another method's needs.

        None for values that have no interval, or no need for this.
        """
        group, condition, metric = key
        if key not in self._estimates and not condition and (group, metric) in self._sizes:
            sizes, found = self._sizes[group, metric], self._values[key]
            likely = found * lowest(sizes.at, found, level=0.0)
            low, high = self._ends[key]
            apart = apart_from_0(found, low)
            self._estimates[key] = ClassEstimate(found, likely, low, high, sizes.at(1.0), apart)
        return self._estimates.get(key)

    # ------------------------------------------------------------- of one group

    def _too_few(self, group: str) -> bool:
        return self._rows.crowds[group].people < FEWEST

    def _row_means(self, method: str) -> None:
        for metric, loss in self._rows.losses(method).items():
            for group, which in self._rows.rows.items():
                if self._too_few(group):
                    continue
                value, part = self._values[group, "", metric], loss[which]
                residuals = (part - value) / len(part)
                spread = self._rows.crowds[group].spread(residuals)
                if metric == "accuracy":
                    ends = self._accuracy(group, value, spread)
                else:
                    ends = spread.scaled(value, self._level)
                self._ends[group, "", metric] = ends
                self._moves[group, metric] = self._noise.of_sum(residuals, which, spread)

    def _accuracy(self, group: str, value: float, spread: Spread) -> Ends:
        """Return Wilson's interval with as many rows as the units' rows are worth."""
        crowd = self._rows.crowds[group]
        n, alone = len(crowd.genuine), crowd.people == len(crowd.genuine)
        effect, freedom = 1.0, np.inf
        if not alone and 0 < value < 1:
            effect, freedom = max(spread.variance * n / (value * (1 - value)), 1.0), spread.freedom
        elif not alone:
            # Without an error, or without a hit, rows of a unit may all be alike.
            effect = n / crowd.hit_sharing.effective_people
        self.effective[group] = n / effect
        return rate_interval(
            value, n, lambda _: np.asarray(effect), level=self._level, freedom=freedom
        )

    def _top_label(self, rankings: Rankings) -> None:
        for group, ranking in rankings.items():
            if self._too_few(group):
                continue
            curve = self._noise.curve(ranking, self._rows.crowds[group].people)
            for kind, metric in TOP.items():
                self._sizes[group, metric] = self._of_curve(curve, kind, (group, "", metric))

    def _of_curve(self, curve: BinnedCurve, kind: str, key: Key) -> ErrorSizes:
        """Keep the interval of a calibration error; return replicates of its size."""
        value, found = self._values[key], curve.found(kind)
        ratio = value / found if found > 0 else 1.0
        low, high = curve.interval(kind, self._level)
        self._ends[key] = low * ratio, min(high * ratio, 1.0)
        return ErrorSizes.of(curve, kind, ratio)

    def _classes(self, method: str) -> None:
        """Return intervals of each class, and of the mean over classes.

        The upper end of a mean: distances to the classes' upper ends are put together as far as the
        classes move together.
        """
        count = len(self._rows.classes)
        above: dict[tuple[str, str], Float64] = {}
        for name, rankings in class_rankings(self._rows, method):
            for group, ranking in rankings.items():
                if self._too_few(group):
                    continue
                curve = self._noise.curve(ranking, self._rows.crowds[group].people)
                for kind, metric in EACH.items():
                    key = group, class_condition(name), metric
                    sizes = self._of_curve(curve, kind, key).table / count
                    here = group, metric
                    before = self._sizes.get(here)
                    self._sizes[here] = ErrorSizes(
                        sizes if before is None else before.table + sizes
                    )
                    reach = max(self._ends[key][1] - self._values[key], 0.0) / count
                    above[here] = above.get(here, 0.0) + reach * _standardised(
                        curve.size(kind, 1.0)
                    )
        for (group, metric), moved in above.items():
            key = group, "", metric
            value = self._values[key]
            low = value * lowest(self._sizes[group, metric].at, value, self._level)
            self._ends[key] = low, min(value + float(moved.std()), 1.0)

    # ------------------------------------------------------------- over groups

    def _over_groups(self) -> None:
        for metric in CLASS_METRICS:
            keys = [
                (group, "", metric)
                for group in self._rows.group_names
                if not np.isnan(self._values[group, "", metric])
            ]
            if len(keys) < 2 or any(np.isnan(self.interval(key)[0]) for key in keys):
                continue
            values = np.array([self._values[key] for key in keys])
            low, high = np.array([self.interval(key) for key in keys]).T
            simulate = self._simulate(keys, values)
            drawn = simulate(values)
            steady = 1.0
            if metric not in ROW_MEANS:
                steady = float(np.mean([apart_from_0(*of) for of in zip(values, low, strict=True)]))
            wider = _together(drawn) if self._rows.mixed else 1.0
            for name in DEVIATIONS:
                over = ALL, "", f"{metric}_{name}"
                found = self._values[over]
                upper = upper_end(name, values, low, high)
                if name == "mean":
                    upper = found + wider * (upper - found)
                if name == "mean" and metric in ROW_MEANS:
                    lower = found - wider * (found + upper_end(name, -values, -high, -low))
                else:
                    lower = lower_end(name, values, simulate, self._level)
                self._ends[over] = lower, upper
                likely = lower_end(name, values, simulate, level=0.0)
                noisy = deviation_of(name, drawn)
                # A sum of norms turns around as far as they do, also where it is far from 0.
                apart = min(apart_from_0(found, lower), steady)
                self._estimates[over] = ClassEstimate(found, likely, lower, upper, noisy, apart)

    def _simulate(self, keys: Sequence[Key], values: Float64) -> Callable[[Float64], Float64]:
        """Return what finds the groups' values again, with the noise of other units."""
        metric = keys[0][2]
        if metric in ROW_MEANS:
            moves = np.stack([self._moves[group, metric] for group, _, _ in keys], axis=-1)
            return lambda truth: truth + moves
        sizes = [self._sizes[group, metric] for group, _, _ in keys]

        def again(truth: Float64) -> Float64:
            parts = np.divide(truth, values, out=np.zeros_like(truth), where=values > 1e-9)
            return np.stack([of.at(part) for of, part in zip(sizes, parts, strict=True)], axis=-1)

        return again


def _together(drawn: Float64) -> float:
    """Return how much wider the mean over groups varies than if groups shared no unit."""
    alone = np.sqrt((drawn.std(axis=0) ** 2).sum()) / drawn.shape[1]
    return max(float(drawn.mean(axis=1).std() / alone), 1.0) if alone > 0 else 1.0


def _standardised(values: Float64) -> Float64:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
