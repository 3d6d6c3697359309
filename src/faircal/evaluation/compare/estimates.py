"""Values, intervals and noise put together: of groups as they are kept, over groups from theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from faircal.evaluation.compare.paired import Estimate, Noise
from faircal.metrics import DEVIATIONS, FAIRNESS
from faircal.metrics.intervals import Key
from faircal.metrics.intervals.deviations import deviation_of
from faircal.metrics.results import ALL, GLOBAL

#: Errors that noise makes too large, beside all deviations over groups.
_INFLATED = ("ks", "ece")
_LEVEL = 0.95


def of_values(
    values: Mapping[Key, tuple[float, float, float]],
    noise: Mapping[Key, Noise],
    level: float = _LEVEL,
    trials: Mapping[Key, float] | None = None,
) -> dict[Key, Estimate]:
    """Return estimates of values by group, condition and metric.

    Parameters
    ----------
    values : mapping of (group, condition, metric) to (value, low, high)
        NaN where there is no interval; a number over groups gets one from its replicates then.
    noise : mapping of (group, condition, metric) to ndarray of float32, shape (n_replicates,)
        Replicates less the value. Those of numbers over groups come from the groups' here.
    level : float
        Of the intervals.
    trials : mapping of (group, condition, metric) to float, optional
        The pairs that rates count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = {(g, "", "ks"): rng.normal(0, 0.01, 500).astype(np.float32) for g in "FM"}
    >>> values = {("F", "", "ks"): (0.1, 0.08, 0.12), ("M", "", "ks"): (0.3, 0.28, 0.32)}
    >>> over = {("all", "", "ks_gap"): (0.2, float("nan"), float("nan"))}
    >>> found = of_values(values | over, noise)
    >>> [round(end, 2) for end in (found["all", "", "ks_gap"].low, found["all", "", "ks_gap"].high)]
    [0.17, 0.23]
    """
    kept: dict[tuple[str, str], _Groups] = {}
    found = {}
    for key, (value, low, high) in values.items():
        group, condition, metric = key
        own = noise.get(key)
        if group == ALL:
            own = _over_groups(condition, metric, values, noise, kept)
        if own is None:
            own = np.zeros(0, np.float32)
        if group == ALL and math.isnan(low) and len(own):
            half = float(ndtri((1 + level) / 2) * np.std(own, dtype=np.float64))
            low, high = value - half, value + half
        inflated = group == ALL or metric in _INFLATED
        pairs = math.nan if trials is None else trials.get(key, math.nan)
        found[key] = Estimate(value, low, high, own, level, inflated, pairs)
    return found


#: Values of groups, shape (n_groups,), and with noise, shape (n_replicates, n_groups).
_Groups = tuple[NDArray[np.float64], NDArray[np.float64]]


def _over_groups(
    condition: str,
    metric: str,
    values: Mapping[Key, tuple[float, float, float]],
    noise: Mapping[Key, Noise],
    kept: dict[tuple[str, str], _Groups],
) -> Noise | None:
    """Return the noise of a number over groups: with the groups' noise, less without."""

    def groups(of: str) -> _Groups:
        if (condition, of) not in kept:
            kept[condition, of] = _gather(condition, of, values, noise)
        return kept[condition, of]

    of, _, name = metric.partition("_")
    if name in DEVIATIONS or name == "gap":
        pairs = [groups(of)]
    elif metric in FAIRNESS and FAIRNESS[metric].of == "both":
        pairs = [groups("fpr"), groups("fnr")]
    elif name in FAIRNESS:
        pairs = [groups(of)]
    else:
        return None
    if any(found.shape[-1] < 2 or not len(noisy) for found, noisy in pairs):
        return None
    if name in DEVIATIONS or name == "gap":
        ((found, noisy),) = pairs
        moved = deviation_of(name, noisy) - deviation_of(name, found)
    else:
        function = FAIRNESS[metric if metric in FAIRNESS else name].function
        with np.errstate(invalid="ignore"):
            moved = function(*(np.clip(noisy, 0, 1) for _, noisy in pairs))
            moved = moved - function(*(np.clip(found, 0, 1) for found, _ in pairs))
    return np.asarray(moved, np.float32) if np.isfinite(moved).all() else None


def _gather(
    condition: str,
    metric: str,
    values: Mapping[Key, tuple[float, float, float]],
    noise: Mapping[Key, Noise],
) -> _Groups:
    keys = [
        key
        for key, (value, *_) in values.items()
        if key[0] not in (GLOBAL, ALL) and key[1:] == (condition, metric) and not math.isnan(value)
    ]
    found = np.array([values[key][0] for key in keys])
    if not keys or any(key not in noise for key in keys):
        return found, np.zeros((0, 0))
    return found, found + np.stack([noise[key] for key in keys], axis=-1).astype(np.float64)
