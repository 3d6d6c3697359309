"""Intervals of numbers over groups: deviations, ratios, Gini, FDR, GARBE.

The lower end comes from turning a test around (`inversion`): a deviation of estimates is too large
on average, so it is asked how large it would come out were the groups alike. The upper end of a
deviation needs no such test: a deviation is the largest of some weighted sums of the groups'
values, and each of these sums has an upper end of its own, put together from the groups' intervals
(MOVER: Zou and Donner, 2008). Ratios and Gini are no such sums: for theirs the rates are drawn anew
between the ends of their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtri

from faircal.metrics import FAIRNESS
from faircal.metrics.intervals.dyadic import Float64
from faircal.metrics.intervals.inversion import lowest_scale

#: Steps towards the largest upper end, at most; the search ends where weights stay the same.
_ROUNDS = 20
#: No rate that was counted is exactly 0 or 1 in truth.
_SMALLEST_RATE = 1e-12


def deviation_of(name: str, values: Float64) -> Float64:
    """Return a deviation over groups, the last axis, of many replicates at once."""
    away = values - values.mean(axis=-1, keepdims=True)
    if name == "mean":
        return np.asarray(values.mean(axis=-1))
    if name == "aad":
        return np.asarray(np.abs(away).mean(axis=-1))
    if name == "mad":
        return np.asarray(np.abs(away).max(axis=-1))
    if name == "gap":
        return np.asarray(values.max(axis=-1) - values.min(axis=-1))
    return np.asarray(np.sqrt((away**2).mean(axis=-1)))


def lower_end(
    name: str, values: Float64, simulate: Callable[[Float64], Float64], level: float
) -> float:
    """Return the lower end of a deviation over groups.

    The truth is taken to lie on the line from equal groups (0) to the estimates (1).

    Parameters
    ----------
    name : str
        One of `faircal.metrics.DEVIATIONS`, or ``gap``, the largest value less the smallest.
    values : ndarray of float64, shape (n_groups,)
        The estimate of each group.
    simulate : callable
        From true values to replicates of the estimates, shape (n_replicates, n_groups), with
        the same noise every time.
    level : float
    """
    centre = 0.0 if name == "mean" else values.mean()
    away, estimate = values - centre, float(deviation_of(name, values))
    scale = lowest_scale(
        lambda scale: deviation_of(name, simulate(centre + scale * away)), estimate, level
    )
    return float(deviation_of(name, centre + scale * away))


def upper_end(name: str, values: Float64, low: Float64, high: Float64) -> float:
    """Return the upper end of a deviation over groups from the intervals of the groups.

    Parameters
    ----------
    name : str
        As for `lower_end`.
    values, low, high : ndarray of float64, shape (n_groups,)

    Examples
    --------
    >>> values = np.array([0.01, 0.03])
    >>> round(upper_end("gap", values, values - 0.003, values + 0.004), 3)
    0.025
    """
    up, down = high - values, values - low
    best = float(deviation_of(name, values))
    # From the estimates on, and from each group at either end of its interval.
    towards = values + np.vstack([np.zeros_like(values), np.diag(up), np.diag(-down)])
    for _ in range(_ROUNDS):
        weights = _weights(name, towards)
        reach = np.where(weights > 0, up, down)
        # `combined_reach` of all groups at once: what they share of their noise is not known.
        error = np.sqrt(((weights * reach) ** 2).sum(axis=1, keepdims=True))
        uncertain = error > 0  # where nothing is, weights may be those of rounding
        best = float(np.max(weights @ values + error[:, 0], where=uncertain[:, 0], initial=best))
        # Where this sum reaches its end; the deviation may be another sum there.
        away = np.divide(weights * reach**2, error, out=np.zeros_like(reach), where=uncertain)
        following = values + away
        if np.array_equal(following, towards):
            break
        towards = following
    return best


def _weights(name: str, values: Float64) -> Float64:
    """Return the weights of the sums that a deviation is at rows of `values`: its gradients."""
    rows, n = values.shape
    if name == "mean":
        return np.full((rows, n), 1 / n)
    away = values - values.mean(axis=1, keepdims=True)
    if name == "std":
        size = np.sqrt((away**2).mean(axis=1, keepdims=True))
        return np.asarray(np.divide(away, n * size, out=np.zeros_like(away), where=size > 0))
    weights, every = np.zeros((rows, n)), np.arange(rows)
    if name == "aad":
        weights = np.sign(away) / n
    elif name == "mad":
        g = np.abs(away).argmax(axis=1)
        weights[every, g] = np.sign(away[every, g])
    else:
        weights[every, values.argmax(axis=1)] = 1.0
        weights[every, values.argmin(axis=1)] -= 1.0
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def unfairness_interval(
    name: str,
    rates: list[Float64],
    ends: list[tuple[Float64, Float64]],
    simulate: Sequence[Callable[[Float64], Float64]],
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
    simulate : sequence of callable
        From true rates to replicates of what would be counted, shape (n_replicates, n_groups).
    """
    measure = FAIRNESS[name]
    towards = 1.0 if measure.better == "lower" else -1.0

    def unfair(values: list[Float64], undefined: float) -> Float64:
        """Return how far the measure is from fair, 0 or more."""
        inside = [np.clip(each, 0, 1) for each in values]
        away = np.asarray(towards * (measure.function(*inside) - measure.fair))
        return np.where(np.isnan(away), undefined, away)

    drawn = []
    for counted, (low, high) in zip(rates, ends, strict=True):
        # As far up and down as the groups' intervals reach.
        normal = rng.standard_normal((replicates, len(counted)))
        reach = np.where(normal > 0, high - counted, counted - low) / ndtri((1 + level) / 2)
        drawn.append(np.clip(counted + normal * reach, _SMALLEST_RATE, 1 - _SMALLEST_RATE))
    of_others, estimate = unfair(drawn, np.inf), float(unfair(rates, np.nan))
    if np.isfinite(estimate):
        # The truth lies on the way from equal groups (0) to the rates that were counted (1).
        ways = [
            (draw, each.mean(), each - each.mean())
            for draw, each in zip(simulate, rates, strict=True)
        ]
        part = lowest_scale(
            lambda part: unfair([draw(mean + part * off) for draw, mean, off in ways], 0.0),
            estimate,
            level,
        )
        truth = [mean + part * off for _, mean, off in ways]
        least = min(float(unfair(truth, np.nan)), estimate) if part > 0 else 0.0
    else:  # a group without an error: a ratio to it has no upper end
        least = float(np.quantile(of_others, (1 - level) / 2))
    # With no lower end to miss, all that the interval may miss is for the upper one.
    at = (1 + level) / 2 if least > 0 else level
    most = max(estimate, float(np.quantile(of_others, at)))
    close, far = measure.fair + towards * least, measure.fair + towards * most
    return (close, far) if towards > 0 else (far, close)
