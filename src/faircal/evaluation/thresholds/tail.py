"""False-positive rates beyond what was counted: the imposters' tail, extrapolated or refused.

Ten thousand imposter pairs show what happens at a rate of 1e-3 and nothing at 1e-5. What is above a
high threshold follows nearly the same law whatever the scores are (peaks over threshold, as in
ISO/IEC 5152), so it can be fitted there and followed further out. Three things make that honest:
people, not pairs, are what was drawn (`_tail_fit`); two laws are fitted above two thresholds, and
an interval holds what all four say, since none is true; and where the data speak against it, or
say too little, there is a reason instead of a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from faircal._base.errors import DataError, ParameterError
from faircal.evaluation.thresholds.tail_fit import (
    Codes,
    Float64,
    TailFit,
    TailPeople,
    effective,
    fit_above,
)

#: Fractions of the imposter pairs that may be above a threshold; two neighbours are used.
LADDER = (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
#: Above the higher of the two there must be so many pairs, above the lower one at most so many.
LEAST_EXCEEDANCES, MOST_EXCEEDANCES = 100, 200_000
#: Pairs must come from so many people, and those above the threshold from so many (both effective).
LEAST_PEOPLE, LEAST_PEOPLE_ABOVE = 80.0, 10.0
#: A law is refused where data as far from it would be rarer than this.
LEAST_P_VALUE = 0.05
#: Shapes between which the theory behind the intervals holds.
SHAPES = (-0.5, 0.5)
#: So many errors make a rate one that the data resolve; so many times lower we go.
RESOLVED, REACH = 10, 200
#: Where the rate could be so many times higher than the value, too little is known.
WIDEST = 1000.0


#: Times a rate: where else to look for how low its threshold can be.
_HIGHER = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Extrapolated(NamedTuple):
    """A threshold or a rate, and the interval it lies in. NaN where it is refused."""

    value: float
    low: float
    high: float


_REFUSED = Extrapolated(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Tail:
    """The imposters' tail; see `fit_tail`.

    Attributes
    ----------
    reason : str
        Why nothing is extrapolated; empty where something is.
    confidence : float
        Of intervals, in total; bounds are given their own.
    rungs : tuple of TailFit
        Both thresholds with the laws fitted above them.
    """

    n_pairs: int
    upper: float
    confidence: float
    rungs: tuple[TailFit, ...]
    reason: str

    @property
    def fits(self) -> bool:
        """Whether anything is extrapolated."""
        return not self.reason

    @property
    def resolved(self) -> float:
        """The rate that ten of these pairs make: down to there, count."""
        return RESOLVED / max(self.n_pairs, 1)

    @property
    def lowest(self) -> float:
        """The lowest rate that is extrapolated to."""
        return self.resolved / REACH

    @property
    def highest(self) -> float:
        """The highest rate that is extrapolated to: half of what is above both thresholds."""
        return min(rung.share for rung in self.rungs) / 2 if self.rungs else 0.0

    @property
    def largest(self) -> float:
        """The part of the pairs above the higher threshold that one person is in."""
        return self.rungs[-1].largest if self.rungs else 0.0

    def why_not(self, rate: float) -> str:
        """Return why there is no interval for this rate; empty where there is one."""
        reason = self.reason or self._too_far(rate)
        if reason:
            return reason
        high = self._highest_rate(self._value(rate), self._side)
        if high > WIDEST * rate:
            return (
                f"where the rate should be {100 * rate:g} % it could be {100 * high:.1g} %: "
                "too few people"
            )
        return ""

    def threshold(self, rate: float) -> Extrapolated:
        """Return the threshold at which the FPR is `rate`, with its interval."""
        if self.why_not(rate):
            return _REFUSED
        high = self._upper_threshold(rate, self._side)
        return Extrapolated(self._value(rate), self._lower_threshold(rate, self._side), high)

    def threshold_for(self, rate: float, confidence: float = 0.95) -> float:
        """Return a threshold whose FPR is at most `rate`, with this confidence; NaN if refused.

        There is one wherever the tail `fits` and the rate is not too low, be it `upper`: what is
        not known makes it higher.
        """
        if self.reason or self._too_far(rate):
            return math.nan
        return self._upper_threshold(rate, confidence)

    def fpr(self, threshold: float) -> Extrapolated:
        """Return the FPR at a threshold, with its interval; a low end of 0 is out of reach.

        Where the rate is too low to be extrapolated, value and low end are NaN and 0, and the high
        end is not below `lowest`: it still holds.
        """
        if self.reason:
            return _REFUSED
        value = self._rate(self._value, threshold)
        high = self._highest_rate(threshold, self._side)
        if value < self.lowest:
            return Extrapolated(math.nan, 0.0, max(high, self.lowest))
        if high > WIDEST * value:
            return _REFUSED
        low = self._rate(lambda rate: self._lower_threshold(rate, self._side), threshold)
        return Extrapolated(value, low, high)

    def upper_bound(self, threshold: float, confidence: float = 0.95) -> float:
        """Return what the FPR at a threshold does not exceed, with this confidence."""
        if self.reason:
            return math.nan
        return max(self._highest_rate(threshold, confidence), self.lowest)

    @property
    def _side(self) -> float:
        return 0.5 + self.confidence / 2

    def _value(self, rate: float) -> float:
        values = [value for rung in self.rungs for value in rung.values(rate)]
        return min(float(np.mean(values)), self.upper)

    def _upper_threshold(self, rate: float, confidence: float) -> float:
        return min(max(r.bound(rate, confidence, above=True) for r in self.rungs), self.upper)

    def _lower_threshold(self, rate: float, confidence: float) -> float:
        # A lower rate needs no lower threshold: what is known of higher rates holds for it too.
        rates = [r for f in _HIGHER if (r := f * rate) <= self.highest] or [rate]
        return max(min(r.bound(at, confidence, above=False) for r in self.rungs) for at in rates)

    def _highest_rate(self, threshold: float, confidence: float) -> float:
        return self._rate(lambda rate: self._upper_threshold(rate, confidence), threshold)

    def _rate(self, threshold_of: Callable[[float], float], threshold: float) -> float:
        """Return the rate for which `threshold_of` gives this threshold; 0 where none does."""
        if not threshold >= self._value(self.highest):
            raise ParameterError(
                f"threshold: expected at least {self._value(self.highest):.4g}, where the tail"
                f" begins; found {threshold:g}; count the errors there instead"
            )
        # Up to e times more than is above the thresholds: bounds may lie inside the data.
        ends = math.log(self.lowest / 1000), math.log(2 * self.highest) + 1
        off = [threshold_of(math.exp(end)) - threshold for end in ends]
        if off[0] <= 0:
            return 0.0
        if off[1] >= 0:
            return math.exp(ends[1])
        log = brentq(lambda log: threshold_of(math.exp(log)) - threshold, *ends, xtol=1e-6)
        return math.exp(log)

    def _too_far(self, rate: float) -> str:
        """Return that the rate is too low, empty if not; a rate that is too high is an error."""
        if not 0 < rate <= self.highest:
            raise ParameterError(
                f"rate: expected one from {self.lowest:.2g} to {self.highest:.2g} to extrapolate"
                f" to, found {rate:g}; count the errors for a higher one"
            )
        if rate >= self.lowest * (1 - 1e-9):
            return ""
        return (
            f"a rate of {100 * rate:g} % is more than {REACH} times below "
            f"{100 * self.resolved:.2g} %, the rate"
            f" at which {self.n_pairs} imposter pairs make {RESOLVED} errors"
        )


def fit_tail(
    scores: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    *,
    upper: float = 1.0,
    confidence: float = 0.95,
) -> Tail:
    """Fit the tail of imposter scores, to extrapolate false-positive rates.

    Above the highest 3 % and the highest 1 % (or 1 % and 0.3 %, …, where neither law fits the lower
    one) two laws are fitted each.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Of imposter pairs; a pair is accepted where its score reaches the threshold.
    left, right : arrays of int of shape (n_pairs,), optional
        Codes from 0 of the two people of each pair. Without, pairs are taken as independent.
    upper : float
        No score is higher: 1 for cosines and probabilities, infinity for scores without an end.
    confidence : float
        Of two-sided intervals.

    Returns
    -------
    Tail
        With a `reason` where nothing can be extrapolated.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = np.triu_indices(300, 1)
    >>> vectors = rng.standard_normal((300, 64))  # one image of each of 300 people
    >>> vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    >>> tail = fit_tail((vectors[first] * vectors[second]).sum(1), first, second)
    >>> tail.fits
    True
    >>> value, low, high = tail.threshold(1e-5)
    >>> bool(low < 0.502 < high)  # the cosine that one in 100,000 pairs of directions exceeds
    True
    >>> tail.threshold_for(1e-5, confidence=0.9) > value
    True
    >>> print(tail.why_not(1e-9)[:54])
    a rate of 1e-07 % is more than 200 times below 0.022 %
    """
    checked = _scores(scores, upper)
    people = _people(left, right, len(checked))
    if not 0.5 <= confidence < 1:
        raise ParameterError(f"confidence: expected from 0.5 to below 1, found {confidence:g}")

    of_people = effective(people.pairs)
    if people.left is not None and of_people < LEAST_PEOPLE:
        few = (
            f"too few people: expected {LEAST_PEOPLE:.0f}, found {of_people:.0f} people (effective)"
        )
        return Tail(len(checked), upper, confidence, (), few)
    fractions = [f for f in LADDER if f * len(checked) <= MOST_EXCEEDANCES]
    rungs: list[TailFit] = []
    needed = LEAST_EXCEEDANCES / LADDER[1]
    reason = f"too few imposter pairs: expected {needed:.0f}, found {len(checked)}"
    for fraction in fractions:
        if fraction * len(checked) < LEAST_EXCEEDANCES * (1 - 1e-9):
            break
        rungs = [*rungs[-1:], fit_above(checked, people, fraction)]
        if len(rungs) == 2 and not (reason := _against(rungs[0], rungs[1])):
            break
    return Tail(len(checked), upper, confidence, () if reason else tuple(rungs), reason)


def _against(lower: TailFit, higher: TailFit) -> str:
    """Return what speaks against extrapolating from two thresholds; empty if nothing does."""
    for rung in (lower, higher):
        if 2 * rung.distinct < rung.exceedances or rung.distinct < LEAST_EXCEEDANCES / 2:
            return (
                f"scores are tied: {rung.exceedances} pairs above {rung.threshold:.4g} have"
                f" {rung.distinct} different scores; store scores with more digits"
            )
    if not higher.independent and higher.people < LEAST_PEOPLE_ABOVE:
        return (
            f"too few people: the pairs above {higher.threshold:.4g} are as uneven as those of"
            f" {higher.people:.0f} people, expected {LEAST_PEOPLE_ABOVE:.0f}"
        )
    shapes = [float(rung.fits[0].at[1]) for rung in (lower, higher)]
    if min(shapes) < SHAPES[0] or max(shapes) > SHAPES[1]:
        return f"the tail's shape, {shapes[0]:.2f} and {shapes[1]:.2f}, is outside {SHAPES}"
    if lower.p_value < LEAST_P_VALUE:
        return f"no law fits the scores above {lower.threshold:.4g} (p = {lower.p_value:.2g})"
    # Two thresholds may tell different tails, a factor of 100 further out.
    rate, side = higher.share / 100, 0.975
    ends = [
        (rung.bound(rate, side, above=False), rung.bound(rate, side, above=True))
        for rung in (lower, higher)
    ]
    if max(low for low, _ in ends) <= min(high for _, high in ends):
        return ""
    return (
        f"the tail changes: from {lower.threshold:.4g} on it says something else than from"
        f" {higher.threshold:.4g} on"
    )


def _scores(scores: ArrayLike, upper: float) -> Float64:
    checked = np.asarray(scores, dtype=np.float64)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        raise DataError(f"scores: expected finite numbers (n_pairs,), found shape {checked.shape}")
    if len(checked) and checked.max() > upper:
        raise ParameterError(
            f"upper: expected no score above it, found {checked.max():g} > {upper:g};"
            " give the largest score that is possible, or infinity"
        )
    return checked


def _people(left: ArrayLike | None, right: ArrayLike | None, n_pairs: int) -> TailPeople:
    if left is None and right is None:
        return TailPeople.of(None, None)
    codes: list[Codes] = []
    for name, side in (("left", left), ("right", right)):
        code = np.asarray(side)
        if code.shape != (n_pairs,) or code.dtype.kind not in "iu" or code.min(initial=0) < 0:
            raise DataError(
                f"{name}: expected codes of people, integers from 0 for {n_pairs} pairs, found"
                f" {code.dtype} of shape {code.shape}; give both sides or neither"
            )
        codes.append(code.astype(np.int64))
    return TailPeople.of(codes[0], codes[1])
