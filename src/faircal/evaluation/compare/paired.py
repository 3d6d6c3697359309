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
#: Fewest degrees of freedom that are told from an interval's width.
_FEWEST = 4.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value, its interval, and its noise with other people (replicates less the value).

    `inflated` says that noise makes the value too large on average, as it does a calibration error
    or a deviation over groups; `people` and `withheld` are those of the result.
    """

    value: float
    low: float
    high: float
    noise: Noise = field(default_factory=lambda: _NONE)
    level: float = 0.95
    inflated: bool = False
    people: float = math.nan
    withheld: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value with an interval."""
        return all(map(math.isfinite, (self.value, self.low, self.high)))

    @property
    def below(self) -> float:
        """How far the lower end is away."""
        return max(self.value - self.low, 0.0)

    @property
    def above(self) -> float:
        """How far the upper end is away."""
        return max(self.high - self.value, 0.0)

    @property
    def noise_below(self) -> float:
        """How far noise alone puts the lower end away: no further than the upper one."""
        return min(self.below, self.above) if self.inflated else self.below

    @property
    def too_large(self) -> float:
        """By how much noise may have made the value too large."""
        return self.below - self.noise_below

    @property
    def spread(self) -> float:
        """The standard deviation of the replicates."""
        return float(np.std(self.noise, dtype=np.float64)) if len(self.noise) else 0.0

    @property
    def freedom(self) -> float:
        """Degrees of freedom: an interval wider than its noise is Student's, not normal."""
        normal = float(ndtri((1 + self.level) / 2)) * self.spread
        half = self.above if self.inflated else (self.below + self.above) / 2
        if normal == 0 or half <= normal * 1.001:
            return math.inf
        # Student's quantile falls with the degrees of freedom: halve the range of their logarithm.
        low, high = math.log(_FEWEST), math.log(1e6)
        for _ in range(40):
            middle = (low + high) / 2
            wide = float(stdtrit(math.exp(middle), (1 + self.level) / 2)) * self.spread > half
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

    @property
    def known(self) -> bool:
        """Whether both values are known."""
        return math.isfinite(self.value)

    def error(self, towards: float) -> float:
        """Return the standard error on the side that is below (-1) or above (1)."""
        half = self.value - self.low if towards < 0 else self.high - self.value
        return half / self._quantile((1 + self.level) / 2)

    def p_value(self, tolerance: float = 0.0) -> float:
        """Return how likely chance alone makes a difference beyond `tolerance`, on either side."""
        beyond = abs(self.value) - tolerance
        if not self.known or beyond <= 0:
            return 1.0
        error = self.error(-math.copysign(1, self.value))
        return 0.0 if error == 0 else 2 * self._tail(beyond / error)

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
        return (self._quantile(1 - risk / 2) + self._quantile(power)) * self.error(-worse)

    def _quantile(self, at: float) -> float:
        return float(ndtri(at) if math.isinf(self.freedom) else stdtrit(self.freedom, at))

    def _tail(self, at: float) -> float:
        if math.isinf(self.freedom):
            return math.erfc(at / math.sqrt(2)) / 2
        return float(stdtr(self.freedom, -at))


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
        Of the two values' noise; that of the replicates unless told. 0 where it is known that they
        have nobody in common.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0, 0.004, 1000).astype(np.float32)
    >>> a = Estimate(0.020, 0.0122, 0.0278, noise)
    >>> b = Estimate(0.023, 0.0152, 0.0308, noise)
    >>> alone = difference(a, b, correlation=0)
    >>> [round(end, 4) for end in (alone.low, alone.high)]
    [-0.008, 0.014]
    >>> together = difference(a, b)
    >>> [round(end, 4) for end in (together.low, together.high)]  # the same noise in both
    [0.003, 0.003]
    """
    if not (a.known and b.known):
        nan = math.nan
        return Difference(nan, nan, nan, 0.0, math.inf, level)
    r = common_noise(a.noise, b.noise) if correlation is None else correlation
    freedom = _freedom(a, b)
    unscaled = Difference(b.value - a.value, 0.0, 0.0, r, freedom, level)
    # Each interval has a level of its own; what they say is the same.
    at = unscaled._quantile((1 + level) / 2)
    wide_a, wide_b = (at / unscaled._quantile((1 + e.level) / 2) for e in (a, b))
    a_down, a_up = wide_a * a.noise_below, wide_a * a.above
    b_down, b_up = wide_b * b.noise_below, wide_b * b.above
    down = _apart(b_down, a_up, max(b_down - a_down, a_up - b_up), r)
    up = _apart(b_up, a_down, max(b_up - a_up, a_down - b_down), r)
    # Both may be too large, the larger one no more than the smaller: only what the one may be too
    # large by more than the other counts.
    more = wide_b * b.too_large - wide_a * a.too_large
    low, high = unscaled.value - down - max(more, 0.0), unscaled.value + up + max(-more, 0.0)
    return Difference(unscaled.value, low, high, r, freedom, level)


def _apart(one: float, other: float, moved: float, r: float) -> float:
    """Return how far the end of a difference is away.

    Of symmetric intervals: √(x² + y² − 2 r x y), whatever r.
    """
    if r <= 0:
        return combined_reach(one, other, -r)
    return math.sqrt((1 - r) * (one**2 + other**2) + r * max(moved, 0.0) ** 2)


def common_noise(a: Noise, b: Noise) -> float:
    """Return the correlation of two values' replicates; 0 where either has none or no noise."""
    if len(a) != len(b) or not len(a):
        return 0.0
    both = np.isfinite(a) & np.isfinite(b)
    x, y = a[both].astype(np.float64), b[both].astype(np.float64)
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def _freedom(a: Estimate, b: Estimate) -> float:
    """Put degrees of freedom together as Welch and Satterthwaite do."""
    squares = [(each.below + each.above) ** 2 for each in (a, b)]
    parts = [
        square**2 / each.freedom
        for square, each in zip(squares, (a, b), strict=True)
        if math.isfinite(each.freedom) and square
    ]
    return sum(squares) ** 2 / sum(parts) if parts and sum(parts) > 0 else math.inf


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
    values = {key: each.value for key, each in by_key.items()}
    kept: dict[tuple[str, str], _Groups] = {}
    estimates = {}
    for key, each in by_key.items():
        own = noise.get(key)
        if each.group == ALL:
            own = _over_groups(each.condition, each.metric, values, noise, kept)
        if own is None:
            own = _NONE
        low, high, level = each.low, each.high, _LEVEL if math.isnan(each.level) else each.level
        if each.group == ALL and math.isnan(low) and len(own):
            half = float(ndtri((1 + level) / 2) * np.std(own, dtype=np.float64))
            low, high = each.value - half, each.value + half
        inflated = each.group == ALL or each.metric in _INFLATED
        estimates[key] = Estimate(
            each.value, low, high, own, level, inflated, each.people, each.withheld
        )
    return estimates


#: Values of groups, shape (n_groups,), and with noise, shape (n_replicates, n_groups).
_Groups = tuple[NDArray[np.float64], NDArray[np.float64]]


def _over_groups(
    condition: str,
    metric: str,
    values: Mapping[Key, float],
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
    if any(plain.shape[-1] < 2 or not len(noisy) for plain, noisy in pairs):
        return None
    if name in DEVIATIONS or name == "gap":
        ((plain, noisy),) = pairs
        moved = deviation_of(name, noisy) - deviation_of(name, plain)
    else:
        function = FAIRNESS[metric if metric in FAIRNESS else name].function
        with np.errstate(invalid="ignore"):
            moved = function(*(np.clip(noisy, 0, 1) for _, noisy in pairs))
            moved = moved - function(*(np.clip(plain, 0, 1) for plain, _ in pairs))
    return np.asarray(moved, np.float32) if np.isfinite(moved).all() else None


def _gather(
    condition: str,
    metric: str,
    values: Mapping[Key, float],
    noise: Mapping[Key, Noise],
) -> _Groups:
    keys = [
        key
        for key, value in values.items()
        if key[0] not in (GLOBAL, ALL) and key[1:] == (condition, metric) and not math.isnan(value)
    ]
    plain = np.array([values[key] for key in keys])
    if not keys or any(key not in noise for key in keys):
        return plain, np.zeros((0, 0))
    return plain, plain + np.stack([noise[key] for key in keys], axis=-1).astype(np.float64)
