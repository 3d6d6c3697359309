"""Another share of genuine pairs: probabilities moved to it, and the share found without labels.

A probability holds for the share of genuine pairs that it was calibrated at, often one half; in
use one pair in thousands may be genuine. Both functions here assume that only the share has
changed: genuine pairs score as the genuine pairs of calibration did, imposters as its imposters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from faircal._base.errors import DataError, ParameterError

FloatArray = npt.NDArray[np.float64]

#: What an estimate rests on, said wherever one is shown.
ASSUMPTION = (
    "taken that genuine pairs, and imposters, score as those of calibration did: only their share "
    "differs, which unlabelled pairs cannot prove; the interval leaves out that the model itself "
    "is inexact where it was fitted on few pairs"
)

#: Where the diagnostics of a fitted method say at which share of genuine pairs it was fitted.
SHARE_FIGURE = "calibrated_at"

#: Steps of a search, where Newton needs about ten; a lower end under this part of the value is 0.
_STEPS, _SMALLEST_PART = 100, 1e-6


def shift_prior(
    probability: npt.ArrayLike, *, calibrated_at: float, prior: float, bounds: Any = None
) -> FloatArray:
    """Return probabilities for another share of genuine pairs.

    The odds are multiplied by the odds of `prior` over those of `calibrated_at`; the likelihood
    ratio of each pair stays what it is. Ranks do not change, nor do 0 and 1.

    Parameters
    ----------
    probability : array-like of float in [0, 1], shape (n_pairs,)
    calibrated_at : float
        The share of genuine pairs that `probability` holds for.
    prior : float
        The share it is wanted for.
    bounds : faircal.metrics.EvidenceBounds, optional
        How far likelihood ratios may go: those of the model (``model.about_.evidence``).

    Examples
    --------
    >>> shift_prior([0.0, 0.5, 0.9, 1.0], calibrated_at=0.5, prior=0.1).round(3)
    array([0. , 0.1, 0.5, 1. ])
    """
    p = _probabilities(probability)
    before, after = check_share(calibrated_at, "calibrated_at"), check_share(prior, "prior")
    p = p.copy() if bounds is None else np.clip(p, *bounds.ends(before))
    if before == after:
        return p
    # Bayes: the likelihood ratio stays, prior odds change; written without dividing by 1 − p.
    genuine = p * (after / before)
    return np.asarray(genuine / (genuine + (1 - p) * ((1 - after) / (1 - before))))


@dataclass(frozen=True)
class PriorEstimate:
    """A share of genuine pairs, estimated without labels.

    Attributes
    ----------
    value, low, high : float
        The share and its interval; `low` is 0 where nothing tells the share from none. Where all
        probabilities are `calibrated_at`, which fits every share, `value` is NaN.
    level : float
        Of the interval.
    pairs : int
    people : int, optional
        How many are in the pairs; None where pairs were taken as independent.
    design_effect : float
        How many times larger the variance is at `value` than that of independent pairs, at least 1.
    """

    value: float
    low: float
    high: float
    level: float
    pairs: int
    people: int | None
    design_effect: float

    @property
    def notes(self) -> list[str]:
        """What whoever reads the share should know."""
        if self.people is not None:
            return [ASSUMPTION]
        unknown = (
            "people are unknown: pairs are taken as independent, and the interval is too narrow "
            "where they share people"
        )
        return [ASSUMPTION, unknown]


def estimate_prior(
    probability: npt.ArrayLike,
    *,
    calibrated_at: float,
    left: npt.ArrayLike | None = None,
    right: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> PriorEstimate:
    """Estimate the share of genuine pairs from their probabilities, without labels.

    With likelihood ratio L of a pair, which its probability tells, the share π maximises the
    concave Σ log(1 − π + π L) (Saerens, Latinne and Decaestecker reach the same by EM). The
    interval holds every π whose score Σ (L − 1) / (1 − π + π L) is within chance of 0. With pairs
    told apart perfectly it is Wilson's interval.

    The share is that of the population the pairs come from, and the map from score to probability
    is taken as known: errors of its own are not in the interval. With a Platt map fitted on 2,000
    pairs 83–89 % of 95 % intervals held the share (simulated), fitted on 20,000 about 91 %.

    Parameters
    ----------
    probability : array-like of float in [0, 1], shape (n_pairs,)
    calibrated_at : float
        The share of genuine pairs that `probability` holds for.
    left, right : array-like of int, shape (n_pairs,), optional
        Numbers of the people in each pair, −1 where unknown; of the images where nobody knows the
        people. Pairs that share one are dependent. Left out, all pairs count as independent.
    level : float, default 0.95

    Examples
    --------
    >>> probability = np.repeat([0.02, 0.98], [900, 100])
    >>> estimate = estimate_prior(probability, calibrated_at=0.5)
    >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
    (0.083, 0.066, 0.104)
    """
    share = check_share(calibrated_at, "calibrated_at")
    if not 0 < level < 1:
        raise ParameterError(f"level: expected a number between 0 and 1, found {level:g}")
    if (left is None) != (right is None):
        given, absent = ("left", "right") if right is None else ("right", "left")
        raise ParameterError(
            f"{given}: expected both people of each pair, found no {absent}; give both or neither"
        )
    p = _probabilities(probability)
    if not len(p):
        raise DataError("expected pairs to estimate their share of genuine ones from; found none")
    mixed = ScoreMixture(p / share, (1 - p) / (1 - share))
    value = mixed.most_likely()
    sharing = None
    if left is not None and right is not None:
        sharing = SharedPeople(*(_codes(side, len(p)) for side in (left, right)))
    upper = (1 + level) / 2

    def effect(share: float) -> tuple[float, float]:
        return (1.0, np.inf) if sharing is None else sharing.effect(mixed.score(share))

    def reach(share: float) -> float:
        times, freedom = effect(share)
        # Few people tell their own variance badly: Student's quantile in place of the normal one.
        quantile = stdtrit(freedom, upper) if np.isfinite(freedom) else ndtri(upper)
        return float(times * quantile**2)

    people = None if sharing is None else sharing.people
    if (p == share).all():  # as likely genuine as before, every one: any share fits
        return PriorEstimate(np.nan, 0.0, 1.0, level, len(p), people, 1.0)
    low, high = mixed.ends(value, reach)
    # The effect is undefined at 0 and 1: as if one pair were of the other kind.
    grown, _ = effect(min(max(value, 1 / (len(p) + 1)), 1 - 1 / (len(p) + 1)))
    return PriorEstimate(value, low, high, level, len(p), people, grown)


def check_share(value: Any, name: str) -> float:
    """Return a share of genuine pairs, between 0 and 1."""
    if isinstance(value, int | float | np.number) and 0 < value < 1:
        return float(value)
    raise ParameterError(
        f"{name}: expected a share of genuine pairs between 0 and 1, found {value!r}; "
        "write 1 in 1,000 as 0.001"
    )


def _probabilities(values: npt.ArrayLike) -> FloatArray:
    p = np.asarray(values, dtype=np.float64)
    if p.ndim != 1:
        raise DataError(f"probability: expected one value per pair, found shape {p.shape}")
    fine = (p >= 0) & (p <= 1)  # not where NaN
    if not fine.all():
        row = int(np.argmin(fine))
        raise DataError(
            f"probability, row {row + 1}: expected 0 to 1, found {p[row]:g}; correct it"
        )
    return p


def _codes(people: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    codes = np.asarray(people)
    if codes.shape != (n,) or not np.issubdtype(codes.dtype, np.integer):
        raise DataError(
            f"people: expected {n} whole numbers, one per pair, found {codes.dtype} of shape "
            f"{codes.shape}; number them first"
        )
    return codes.astype(np.int64)


class ScoreMixture:
    """Pairs with densities `w` if genuine and `v` if imposter, up to a factor of each pair.

    By Bayes' rule p / π₀ and (1 − p) / (1 − π₀) are such densities, where π₀ is the share at which
    p was calibrated; the factor is the pair's own density, which no share changes.
    """

    def __init__(self, w: FloatArray, v: FloatArray) -> None:
        self.w, self.v, self.n = w, v, len(w)

    def density(self, share: float) -> FloatArray:
        """Return (1 − π) v + π w of each pair."""
        return (1 - share) * self.v + share * self.w

    def score(self, share: float) -> FloatArray:
        """Return the derivative of each pair's log-likelihood."""
        return np.asarray((self.w - self.v) / self.density(share))

    def most_likely(self) -> float:
        """Solve Σ (posterior − π) = 0, which has the sign of the score, by Newton in a bracket."""
        low, high, share = 0.0, 1.0, 0.5
        with np.errstate(divide="ignore"):
            if self.score(0.0).sum() <= 0:
                return 0.0
            if self.score(1.0).sum() >= 0:
                return 1.0
        for _ in range(_STEPS):
            # P(genuine | pair) at this share; at the maximum its mean is the share: the fixed point
            # of EM.
            posterior = share * self.w / self.density(share)
            excess = float((posterior - share).sum())
            low, high = (share, high) if excess > 0 else (low, share)
            slope = float((posterior * (1 - posterior)).sum()) / (share * (1 - share)) - self.n
            following = share - excess / slope if slope < 0 else -1.0
            if not low < following < high:
                # Shares are small: where nothing is known of the low end, try another magnitude.
                following = (low + high) / 2 if low else high / 10
            if abs(following - share) <= 1e-12 * share:
                return following
            share = following
        return share

    def variance(self, share: float, value: float) -> float:
        """Return the variance of the score's sum at `share`, pairs independent.

        That is n (1 − J) / (π (1 − π)), where J, the overlap of the two densities at π, is
        averaged over the imposters that the pairs hold by the share `value`. It needs no genuine
        pair among them, as the plain sum of squares does.
        """
        overlap = (self.v / self.density(value) * self.w / self.density(share)).mean()
        return float(self.n * max(1 - overlap, 0.0) / (share * (1 - share)))

    def ends(self, value: float, reach: Callable[[float], float]) -> tuple[float, float]:
        """Return the shares on both sides of `value` where score² first exceeds reach × variance.

        `reach` depends on the share: pairs that share people matter more at some than at others.
        They are looked for on the scale of odds, along which the search goes by growing factors.
        """

        def outside(odds: float) -> bool:
            share = odds / (1 + odds)
            total = float(self.score(share).sum())
            return total * total > reach(share) * self.variance(share, value)

        start = value / (1 - value) if value < 1 else np.inf
        low = 0.0 if value == 0 else _first(outside, min(start, self.n * 1e3), 1 / 1.5)
        high = np.inf if value == 1 else _first(outside, max(start, 1e-3 / self.n), 1.5)
        return low / (1 + low), 1.0 if np.isinf(high) else high / (1 + high)


def _first(outside: Callable[[float], bool], start: float, factor: float) -> float:
    """Return the first odds from `start` on, going by `factor`, that are outside.

    0 where they would be under a millionth of the start; infinite likewise.
    """
    inner, outer = start, start * factor
    while not outside(outer):
        inner, outer = outer, outer * factor
        if not start * _SMALLEST_PART < outer < max(start, 1.0) / _SMALLEST_PART:
            return 0.0 if factor < 1 else np.inf
    for _ in range(24):
        middle = float(np.sqrt(inner * outer))
        inner, outer = (inner, middle) if outside(middle) else (middle, outer)
    return outer


class SharedPeople:
    """Which pairs share people; each unknown side, below 0, counts as a distinct person.

    Attributes
    ----------
    people : int
    """

    def __init__(self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> None:
        ends = np.concatenate([left, right])
        unknown = ends < 0
        ends[unknown] = ends.max(initial=-1) + 1 + np.arange(unknown.sum())
        different, codes = np.unique(ends, return_inverse=True)
        self.people = len(different)
        self._a, self._b = np.sort(codes.reshape(2, -1), axis=0)
        self._two = self._a != self._b
        self._b = self._b[self._two]
        couple = self._a[self._two] * self.people + self._b
        self._couple = np.unique(couple, return_inverse=True)[1]

    def effect(self, score: FloatArray) -> tuple[float, float]:
        """Return how many times the variance of the sum grows, and its degrees of freedom.

        The variance is the sum of s_k s_l over all k and l that share a person. Squared totals of
        people count twice what two pairs of the same two people have in common. Pairs that are
        known to be of one person differ in the mean from those of two; that is by their labels,
        which are taken as drawn pair by pair, and is counted apart.
        """
        two = self._two
        centred = score - score.mean()
        by_label = np.bincount(two, centred, 2) / np.maximum(np.bincount(two, minlength=2), 1)
        s = centred - by_label[two.astype(np.intp)]
        totals = np.bincount(self._a, s, self.people) + np.bincount(self._b, s[two], self.people)
        twice = np.bincount(self._couple, s[two])
        square = float((totals**2).sum())
        more = square - float((twice**2).sum()) - float((s * s).sum())
        if more <= 0:
            return 1.0, np.inf
        # (Σ t²)² / Σ t⁴ people weigh in the variance, by their totals t; one is lost to the means.
        weighing = square**2 / float((totals**4).sum())
        left = max(weighing - 1, 1.0)
        effect = 1 + more * weighing / left / float((centred**2).sum())
        return effect, left * (effect / (effect - 1)) ** 2
