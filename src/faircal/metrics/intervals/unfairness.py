"""Intervals of the measures that laboratories use over groups: ratios, Gini, FDR, GARBE.

The lower end is found as for deviations: how unfair would groups of equal rates come out? The upper
end has no such formula as theirs: the rates are drawn anew between the ends of their intervals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from faircal.metrics import FAIRNESS
from faircal.metrics.intervals.inversion import lowest

Float64 = NDArray[np.float64]

#: No rate that was counted is exactly 0 or 1 in truth.
_LEAST = 1e-12


def unfairness_interval(
    name: str,
    rates: list[Float64],
    ends: list[tuple[Float64, Float64]],
    simulate: list[Callable[[Float64], Float64]],
    *,
    level: float,
    replicates: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the interval of a measure of `FAIRNESS`.

    Parameters
    ----------
    name : str
    rates : list of ndarray of float64, shape (n_groups,)
        The groups' rates: one kind of them, or false positive and false negative ones.
    ends : list of (low, high), of the same shapes
        Their intervals, at `level`.
    simulate : list of callable
        From true rates to replicates of what would be counted, shape (n_replicates, n_groups).
    """
    measure = FAIRNESS[name]
    towards = 1.0 if measure.better == "lower" else -1.0

    def unfair(values: list[Float64]) -> Float64:
        """Return how far the measure is from fair, 0 or more."""
        inside = [np.clip(each, 0, 1) for each in values]
        return np.asarray(towards * (measure.function(*inside) - measure.fair))

    def again(part: float) -> Float64:
        truth = [each.mean() + part * (each - each.mean()) for each in rates]
        found = unfair([draw(each) for draw, each in zip(simulate, truth, strict=True)])
        return np.where(np.isnan(found), 0.0, found)

    drawn = unfair(
        [_between(*each, level, replicates, rng) for each in zip(rates, ends, strict=True)]
    )
    drawn = np.where(np.isnan(drawn), np.inf, drawn)
    found = float(unfair(rates))
    if np.isfinite(found):
        part = lowest(again, found, level)
        truth = [each.mean() + part * (each - each.mean()) for each in rates]
        low = min(float(unfair(truth)), found) if part > 0 else 0.0
    else:  # a group without an error: a ratio to it has no upper end
        low = float(np.quantile(drawn, (1 - level) / 2))
    high = max(found, float(np.quantile(drawn, (1 + level) / 2 if low > 0 else level)))
    close, far = measure.fair + towards * low, measure.fair + towards * high
    return (close, far) if towards > 0 else (far, close)


def _between(
    rates: Float64,
    ends: tuple[Float64, Float64],
    level: float,
    replicates: int,
    rng: np.random.Generator,
) -> Float64:
    """Draw rates about those that were counted, as far up and down as their intervals reach."""
    low, high = ends
    normal = rng.standard_normal((replicates, len(rates)))
    reach = np.where(normal > 0, high - rates, rates - low) / ndtri((1 + level) / 2)
    return np.asarray(np.clip(rates + normal * reach, _LEAST, 1 - _LEAST))
