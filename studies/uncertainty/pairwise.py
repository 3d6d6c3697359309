"""Textbook intervals that take pairs as independent: what ours are to be compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from faircal.metrics import wilson
from faircal.metrics.calibration import NLL_EPS, mass_cuts
from faircal.metrics.intervals.over_groups import deviation_of
from studies.uncertainty.laws import Float64

Ends = tuple[float, float]
_Z = 1.959964
#: Replicates of a bootstrap.
_AGAIN = 300


def of_rate(rate: float, trials: int) -> Ends:
    """Return Wilson's interval of a counted rate."""
    low, high = wilson(rate * trials, trials)
    return float(low), float(high)


def of_deviation(name: str, rates: Float64, trials: Float64, rng: np.random.Generator) -> Ends:
    """Return the middle 95 % of what drawing every group's pairs anew makes of a deviation."""
    again = rng.binomial(trials.astype(np.int64), rates, size=(_AGAIN, len(rates))) / trials
    low, high = np.quantile(deviation_of(name, again), (0.025, 0.975))
    return float(low), float(high)


def of_auroc(imposter: Float64, genuine: Float64) -> Ends:
    """Return DeLong's interval, made on the log-odds as ours is."""
    above = np.searchsorted(np.sort(imposter), genuine) / len(imposter)
    below = 1 - np.searchsorted(np.sort(genuine), imposter) / len(genuine)
    value = float(above.mean())
    error = np.sqrt(above.var() / len(above) + below.var() / len(below))
    if not 0 < value < 1:
        return value, value
    half = _Z * error / (value * (1 - value))
    return float(expit(logit(value) - half)), float(expit(logit(value) + half))


def of_loss(name: str, probability: Float64, genuine: NDArray[np.bool_]) -> Ends:
    """Return mean ± 1.96 standard errors of the Brier score or the NLL."""
    right = np.where(genuine, probability, 1 - probability)
    losses = (1 - right) ** 2 if name == "brier" else -np.log(np.maximum(right, NLL_EPS))
    half = _Z * losses.std() / len(losses) ** 0.5
    return float(losses.mean() - half), float(losses.mean() + half)


def of_calibration(
    probability: Float64, genuine: NDArray[np.bool_], rng: np.random.Generator
) -> dict[str, Ends]:
    """Return the middle 95 % of KS and ECE with pairs drawn anew."""
    n = len(probability)
    order = np.argsort(probability, kind="stable")
    off = (probability - genuine)[order] / n
    cuts = mass_cuts(n, 10)[:-1]
    found = np.empty((_AGAIN, 2))
    for again in found:
        moved = off * np.bincount(rng.integers(n, size=n), minlength=n)
        again[:] = np.abs(np.cumsum(moved)).max(), np.abs(np.add.reduceat(moved, cuts)).sum()
    ends = np.quantile(found, (0.025, 0.975), axis=0).T
    return {name: (float(a), float(b)) for name, (a, b) in zip(("ks", "ece"), ends, strict=True)}
