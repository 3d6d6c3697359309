"""The difference of two values that were found of the same people, or of some of the same.

Each value has an interval of its own, which knows what is odd about it: that rates near 0 are
lopsided, that calibration errors and deviations are never below 0 and come out too large.
Replicates say how much of their noise two values have in common. Both together make the interval of
the difference, after Zou and Donner (2008): without anything in common, distances to the ends add
up as squares; as far as they move together, only what the one moves more than the other counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from faircal.metrics import DEVIATIONS, FAIRNESS
from faircal.metrics.intervals import Key
from faircal.metrics.intervals.over_groups import deviation_of
from faircal.metrics.proportions import combined_reach
from faircal.metrics.results import ALL, GLOBAL, Result

Noise = NDArray[np.float32]

_NONE = np.zeros(0, np.float32)
#: Fewest degrees of freedom that are determined from an interval's width.
_FEWEST = 4.0


@dataclass(eq=False)
class Estimate:
    """A value, its interval, and its noise with other people (replicates less the value).

    `inflated` says that noise makes the value too large on average, as it does a calibration error
    or a deviation over groups; `people` and `withheld` are those of the result.

    Attributes
    ----------
    has_interval : bool
        Whether there is a value with an interval.
    below, above : float
        How far the ends are away.
    noise_below : float
        How far noise alone puts the lower end away: no further than the upper one. As far as the
        end is further away, noise may have made the value too large.
    """

    value: float
    low: float
    high: float
    noise: Noise = field(default_factory=lambda: _NONE)
    level: float = 0.95
    inflated: bool = False
    people: float = math.nan
    withheld: str = ""

    def __post_init__(self) -> None:
        self.has_interval = all(map(math.isfinite, (self.value, self.low, self.high)))
        self.below, self.above = max(self.value - self.low, 0.0), max(self.high - self.value, 0.0)
        self.noise_below = min(self.below, self.above) if self.inflated else self.below

    @property
    def freedom(self) -> float:
        """Degrees of freedom: an interval wider than its noise is Student's, not normal."""
        spread = float(np.std(self.noise, dtype=np.float64)) if len(self.noise) else 0.0
        normal = float(ndtri((1 + self.level) / 2)) * spread
        half = self.above if self.inflated else (self.below + self.above) / 2
        if normal == 0 or half <= normal * 1.001:
            return math.inf
        # Student's quantile falls with the degrees of freedom: halve the range of their logarithm.
        low, high = math.log(_FEWEST), math.log(1e6)
        for _ in range(40):
            middle = (low + high) / 2
            wide = float(stdtrit(math.exp(middle), (1 + self.level) / 2)) * spread > half
            low, high = (middle, high) if wide else (low, middle)
        return math.exp(low)


@dataclass(frozen=True)
class Difference:
    """The difference ``b − a`` of two values.

    Attributes
    ----------
    value, low, high : float
    correlation : float
        What the two values' noise has in common; 0 without people in common.
    freedom : float
        Degrees of freedom.
    level : float
        Of the interval.
    """

    value: float
    low: float
    high: float
    correlation: float
    freedom: float
    level: float

    def p_value(self, tolerance: float = 0.0) -> float:
        """Return how likely chance alone makes a difference beyond `tolerance`, on either side."""
        beyond = abs(self.value) - tolerance
        if not beyond > 0:  # also where the difference is not known
            return 1.0
        half = self.value - self.low if self.value > 0 else self.high - self.value
        error = half / _quantile(self.freedom, (1 + self.level) / 2)
        if error == 0:
            return 0.0
        if math.isinf(self.freedom):
            return math.erfc(beyond / error / math.sqrt(2))
        return 2 * float(stdtr(self.freedom, -beyond / error))

    def detectable(self, worse: float, risk: float, power: float = 0.8) -> float:
        """Return the smallest difference, upwards where `worse` is 1, that would show.

        Parameters
        ----------
        worse : float
            1 or -1: the direction.
        risk : float
            Up to which p-value it shows.
        power : float
            How often it is to show.
        """
        errors = _quantile(self.freedom, 1 - risk / 2) + _quantile(self.freedom, power)
        half = self.value - self.low if worse > 0 else self.high - self.value
        return errors * (half / _quantile(self.freedom, (1 + self.level) / 2))


def _quantile(freedom: float, at: float) -> float:
    """Return Student's quantile; with infinite degrees of freedom, the normal one."""
    return float(ndtri(at) if math.isinf(freedom) else stdtrit(freedom, at))


def difference(
    a: Estimate, b: Estimate, *, level: float = 0.95, correlation: float | None = None
) -> Difference:
    """Return ``b − a`` with its interval.

    Parameters
    ----------
    a, b : Estimate
        Replicates of the same number are of the same other people.
    level : float
    correlation : float, optional
        Of the two values' noise; that of the replicates by default. 0 where it is known that they
        have nobody in common.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.004, 1000).astype(np.float32)
    >>> a = Estimate(0.020, 0.0122, 0.0278, noise)
    >>> b = Estimate(0.023, 0.0152, 0.0308, noise)
    >>> alone = difference(a, b, correlation=0)
    >>> [round(end, 4) for end in (alone.low, alone.high)]
    [-0.008, 0.014]
    >>> change = difference(a, b)
    >>> [round(end, 4) for end in (change.low, change.high)]  # the same noise in both
    [0.003, 0.003]
    """
    if not (a.has_interval and b.has_interval):
        nan = math.nan
        return Difference(nan, nan, nan, 0.0, math.inf, level)
    r = common_noise(a.noise, b.noise) if correlation is None else correlation
    # Degrees of freedom are put together as Welch and Satterthwaite do.
    squares, parts = 0.0, 0.0
    for each in (a, b):
        square, degrees = (each.below + each.above) ** 2, each.freedom
        squares += square
        parts += square**2 / degrees  # an infinite one adds nothing
    freedom = squares**2 / parts if parts > 0 else math.inf
    # Each interval has a level of its own; what they say is the same.
    at = _quantile(freedom, (1 + level) / 2)
    wide_a, wide_b = (at / _quantile(freedom, (1 + each.level) / 2) for each in (a, b))
    a_down, a_up = wide_a * a.noise_below, wide_a * a.above
    b_down, b_up = wide_b * b.noise_below, wide_b * b.above
    sides = (
        (b_down, a_up, max(b_down - a_down, a_up - b_up)),
        (b_up, a_down, max(b_up - a_up, a_down - b_down)),
    )
    # Of symmetric intervals: √(x² + y² − 2 r x y), whatever r.
    down, up = (
        combined_reach(one, other, -r)
        if r <= 0
        else math.sqrt((1 - r) * (one**2 + other**2) + r * max(moved, 0.0) ** 2)
        for one, other, moved in sides
    )
    # Both may be too large, the larger one no more than the smaller: only what the one may be too
    # large by more than the other counts.
    more = wide_b * (b.below - b.noise_below) - wide_a * (a.below - a.noise_below)
    value = b.value - a.value
    low, high = value - down - max(more, 0.0), value + up + max(-more, 0.0)
    return Difference(value, low, high, r, freedom, level)


def common_noise(a: Noise, b: Noise) -> float:
    """Return the correlation of two values' replicates; 0 where either has none or no noise."""
    if len(a) != len(b) or not len(a):
        return 0.0
    both = np.isfinite(a) & np.isfinite(b)
    x, y = a[both].astype(np.float64), b[both].astype(np.float64)
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are, after Holm (1979).

    Below a level, after correction, is with no more than that risk any comparison in which nothing
    differs, however the comparisons depend on each other.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    corrected = [1.0] * len(p_values)
    worst = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min((len(p_values) - place) * p_values[index], 1.0))
        corrected[index] = worst
    return corrected


#: Errors that noise makes too large, beside all deviations over groups.
_INFLATED = ("ks", "ece")
_LEVEL = 0.95


def of_results(results: Iterable[Result], noise: Mapping[Key, Noise]) -> dict[Key, Estimate]:
    """Return estimates by group, condition and metric.

    Parameters
    ----------
    results : iterable of Result
        A method's. A number over groups without an interval gets one from its replicates.
    noise : mapping of (group, condition, metric) to ndarray of float32, shape (n_replicates,)
        Replicates less the value. Those of numbers over groups come from the groups' here.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = {(g, "", "ks"): rng.normal(0, 0.01, 500).astype(np.float32) for g in "FM"}
    >>> values = [Result(group="F", metric="ks", value=0.1, low=0.08, high=0.12),
    ...           Result(group="M", metric="ks", value=0.3, low=0.28, high=0.32),
    ...           Result(group="all", metric="ks_gap", value=0.2)]
    >>> gap = of_results(values, noise)["all", "", "ks_gap"]
    >>> round(gap.low, 2), round(gap.high, 2)
    (0.17, 0.23)
    """
    by_key = {each.what: each for each in results}
    keys_of: dict[tuple[str, str], list[Key]] = {}
    for key, each in by_key.items():
        if each.group not in (GLOBAL, ALL) and not math.isnan(each.value):
            keys_of.setdefault((each.condition, each.metric), []).append(key)
    groups: dict[tuple[str, str], _Groups] = {}
    for of, keys in keys_of.items():
        if len(keys) > 1 and all(key in noise for key in keys):
            plain = np.array([by_key[key].value for key in keys])
            joint = np.stack([noise[key] for key in keys], axis=-1)
            groups[of] = plain, plain + joint.astype(np.float64)
    estimates = {}
    for key, each in by_key.items():
        over = each.group == ALL
        replicates = _over_groups(each.condition, each.metric, groups) if over else noise.get(key)
        if replicates is None:
            replicates = _NONE
        low, high, level = each.low, each.high, _LEVEL if math.isnan(each.level) else each.level
        if over and math.isnan(low) and len(replicates):
            half = float(ndtri((1 + level) / 2) * np.std(replicates, dtype=np.float64))
            low, high = each.value - half, each.value + half
        inflated = over or each.metric in _INFLATED
        estimates[key] = Estimate(
            each.value, low, high, replicates, level, inflated, each.people, each.withheld
        )
    return estimates


#: Values of groups, shape (n_groups,), and with noise, shape (n_replicates, n_groups).
_Groups = tuple[NDArray[np.float64], NDArray[np.float64]]


def _over_groups(
    condition: str, metric: str, groups: Mapping[tuple[str, str], _Groups]
) -> Noise | None:
    """Return the noise of a number over groups: with the groups' noise, less without."""
    of, _, name = metric.partition("_")
    deviation, measure = name in DEVIATIONS or name == "gap", name or metric
    if not deviation and measure not in FAIRNESS:
        return None
    kinds = ("fpr", "fnr") if metric in FAIRNESS else (of,)
    if any((condition, kind) not in groups for kind in kinds):
        return None
    pairs = [groups[condition, kind] for kind in kinds]
    if deviation:
        ((plain, noisy),) = pairs
        moved = deviation_of(name, noisy) - deviation_of(name, plain)
    else:
        function = FAIRNESS[measure].function
        with np.errstate(invalid="ignore"):
            moved = function(*(np.clip(noisy, 0, 1) for _, noisy in pairs))
            moved = moved - function(*(np.clip(plain, 0, 1) for plain, _ in pairs))
    return np.asarray(moved, np.float32) if np.isfinite(moved).all() else None
