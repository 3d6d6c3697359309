"""The most likely share of one of two known densities in a mixture, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_STEPS = 100  # of a search; Newton needs about ten
_REACH = 1e-6  # a lower end under this part of the value is 0


class Mixture:
    """Pairs with densities `w` if genuine and `v` if imposter, up to a factor of each pair."""

    def __init__(self, w: FloatArray, v: FloatArray) -> None:
        self.w, self.v, self.n = w, v, len(w)

    def density(self, share: float) -> FloatArray:
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
            posterior = share * self.w / self.density(share)
            excess = float((posterior - share).sum())
            low, high = (share, high) if excess > 0 else (low, share)
            slope = float((posterior * (1 - posterior)).sum()) / (share * (1 - share)) - self.n
            wanted = share - excess / slope if slope < 0 else -1.0
            if not low < wanted < high:
                # Shares are small: where nothing is known of the low end, try another magnitude.
                wanted = (low + high) / 2 if low else high / 10
            if abs(wanted - share) <= 1e-12 * share:
                return wanted
            share = wanted
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
        if not start * _REACH < outer < max(start, 1.0) / _REACH:
            return 0.0 if factor < 1 else np.inf
    for _ in range(24):
        middle = float(np.sqrt(inner * outer))
        inner, outer = (inner, middle) if outside(middle) else (middle, outer)
    return outer


class ScoreSharing:
    """Which pairs share people; each unknown side, below 0, is somebody else.

    Attributes
    ----------
    people : int
    """

    def __init__(self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> None:
        ends = np.concatenate([left, right])
        unknown = ends < 0
        ends[unknown] = ends.max(initial=-1) + 1 + np.arange(unknown.sum())
        seen, codes = np.unique(ends, return_inverse=True)
        self.people = len(seen)
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
        # Told by as many people as weigh in it, one of them lost to the means.
        weighing = square**2 / float((totals**4).sum())
        left = max(weighing - 1, 1.0)
        effect = 1 + more * weighing / left / float((centred**2).sum())
        return effect, left * (effect / (effect - 1)) ** 2
