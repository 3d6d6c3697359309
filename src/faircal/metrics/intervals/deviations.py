"""Intervals of deviations over groups: how sure is it that groups differ, and by how much at most.

The lower end comes from turning a test around (`inversion`): a deviation of estimates is too large
on average, so it is asked how large it would come out were the groups alike. The upper end needs no
such test: a deviation is the largest of some weighted sums of the groups' values, and each of these
sums has an upper end of its own, put together from the groups' intervals (Zou and Donner's MOVER).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from faircal.metrics.intervals.inversion import lowest

Float64 = NDArray[np.float64]

_ROUNDS = 20


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

    The truth is taken to lie on the line from equal groups (0) to what was found (1).

    Parameters
    ----------
    name : str
        One of `faircal.metrics.DEVIATIONS`, or ``gap``, the largest value less the smallest.
    values : ndarray of float64, shape (n_groups,)
        What was found of each group.
    simulate : callable
        From true values to replicates of what would be found, shape (n_replicates, n_groups), with
        the same noise every time.
    level : float
    """
    centre = 0.0 if name == "mean" else values.mean()

    def truth(scale: float) -> Float64:
        return np.asarray(centre + scale * (values - centre))

    found = float(deviation_of(name, values))
    scale = lowest(lambda scale: deviation_of(name, simulate(truth(scale))), found, level)
    return float(deviation_of(name, truth(scale)))


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
    towards = _starts(values, up, down)
    for _ in range(_ROUNDS):
        weights = _weights(name, towards)
        reach = np.where(weights > 0, up, down)
        # `combined_reach` of all groups at once: what they share of their noise is not known.
        error = np.sqrt(((weights * reach) ** 2).sum(axis=1, keepdims=True))
        told = error > 0  # where nothing is uncertain, weights may be those of rounding
        best = float(np.max(weights @ values + error[:, 0], where=told[:, 0], initial=best))
        away = np.divide(weights * reach**2, error, out=np.zeros_like(reach), where=told)
        following = values + away
        if np.array_equal(following, towards):
            break
        towards = following
    return best


def _starts(values: Float64, up: Float64, down: Float64) -> Float64:
    """Return places to begin from: what was found, and each group at either end of its interval."""
    return values + np.vstack([np.zeros_like(values), np.diag(up), np.diag(-down)])


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


def rate_noise(
    trials: Sequence[Callable[[float], float]], replicates: int, rng: np.random.Generator
) -> Callable[[Float64], Float64]:
    """Return what counts rates again: effective trials for each group, the same noise every time.

    Rates vary as normal numbers of the variance at the true rate: of one group alone this makes the
    interval of `rate_interval`.
    """
    normal = rng.standard_normal((replicates, len(trials)))

    def simulate(rates: Float64) -> Float64:
        n = np.array([effective(rate) for effective, rate in zip(trials, rates, strict=True)])
        return np.asarray(rates + normal * np.sqrt(rates * (1 - rates) / n))

    return simulate
