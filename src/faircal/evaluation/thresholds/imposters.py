"""What may be promised of a false-positive rate: thresholds with P(FPR <= rate) >= 1 − risk.

The threshold at which the FPR *is* the wanted rate is not known. Whatever it is, at a lower one at
least as many pairs are errors. So a threshold is safe where so few errors were counted that a true
rate as high as the wanted one would show so few with a probability of at most `risk`: a test of
"the rate is as high as that", turned into a threshold. The test counts effective pairs, N over the
design effect that sharing people has at the wanted rate, not at the counted one.

It can't speak for a kind of people that nobody in the data is of. One in twenty may be of a kind
that is taken for others far more often: among 30 people there is none of them with a probability of
21 %, among 100 of 0.6 %. Simulated with such a kind, promises at 30 people failed that often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtrit

from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64
from faircal.metrics.intervals.sufficient_data import DataNeeded

_STEPS = 60  # of bisection: to the last bit

#: The part of the risk that the test may take. The rest is for the design effect, which is itself
#: estimated: with all of it for the test, promises were broken up to twice as often as they may be.
_FOR_THE_TEST = 0.5


@dataclass(frozen=True, eq=False)
class ImposterSet:
    """The imposter pairs of one set, and what may be promised of their FPR.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_pairs,)
    left, right : ndarray of int64, shape (n_pairs,)
        The two people of each pair, by number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> left, right = np.triu_indices(60, 1)
    >>> person = rng.normal(size=60)  # some people are more like everybody else
    >>> scores = 0.3 * (person[left] + person[right]) + rng.normal(size=len(left))
    >>> imposters = ImposterSet(scores, left, right)
    >>> imposters.allowed(0.05, risk=0.05), len(left)  # errors that show a rate below 5 %
    (61, 1770)
    >>> imposters.allowed(0.001, risk=0.05)  # not even no error shows a rate below 0.1 %
    -1
    """

    scores: Float64
    left: NDArray[np.integer]
    right: NDArray[np.integer]

    @cached_property
    def sharing(self) -> Dyads:
        """The pairs, by the people in them."""
        return Dyads(self.left, self.right)

    @cached_property
    def dependence(self) -> Dependence:
        """How alike pairs that share people decide."""
        return Dependence.of(self.scores, self.sharing)

    @cached_property
    def _falling(self) -> Float64:
        return -np.sort(-self.scores)

    def part(self, rows: NDArray[np.bool_]) -> ImposterSet:
        """Return the pairs of `rows`; people keep their numbers."""
        return ImposterSet(self.scores[rows], self.left[rows], self.right[rows])

    def enough_people(self, rate: float) -> bool:
        """Return whether there are people enough to tell such a rate; else nothing is promised.

        Where that is left out a promise still fails seldom enough over all sets of so few people.
        But it is then rarely made, and mostly to those whose pairs happen to look less alike than
        they are: of what is promised, too much is wrong.
        """
        return self.sharing.effective_people >= DataNeeded.of("fpr", rate).people

    def too_few(self, errors: int, rate: float, risk: float) -> bool:
        """Return whether errors are too few for a true rate of `rate`.

        So few have a probability of at most `risk` then. Two tests, and the more careful decides:
        Student's t, which knows how badly the design effect is known, and the binomial distribution
        of effective pairs, which few errors need.
        """
        risk *= _FOR_THE_TEST
        n, t = len(self.scores), float(stdtrit(self.dependence.degrees_of_freedom(rate), 1 - risk))
        trials = n / float(self.dependence.design_effect(rate))
        if errors / n > rate - t * math.sqrt(rate * (1 - rate) / trials):
            return False
        trials *= (float(ndtri(1 - risk)) / t) ** 2
        effective_errors = errors / n * trials
        # 1 − I_p(k + 1, n − k) is the chance of k errors or fewer in n trials at the rate p.
        left = max(trials - effective_errors, 1e-9)
        return bool(1 - betainc(effective_errors + 1, left, rate) <= risk)

    def allowed(self, rate: float, risk: float) -> int:
        """Return the most errors that still show a rate of at most `rate`; −1 where none do."""
        if not self.enough_people(rate):
            return -1
        low, high = -1, len(self.scores)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.too_few(middle, rate, risk) else (low, middle)
        return low

    def threshold(self, rate: float, risk: float) -> float:
        """Return the lowest threshold with P(FPR <= rate) >= 1 − risk; NaN where none has it."""
        return self.threshold_with(self.allowed(rate, risk))

    def threshold_with(self, most: int) -> float:
        """Return the lowest threshold with at most so many errors; NaN of fewer than none.

        It is a score, or just above the highest one where no error is allowed; a pair is an error
        where its score reaches the threshold.
        """
        if most < 0:
            return math.nan
        below = self._falling[min(most, len(self.scores) - 1)]  # the first that must be none
        higher = int(np.searchsorted(-self._falling, -below))  # of equal scores all or none
        return float(self._falling[higher - 1] if higher else np.nextafter(below, np.inf))

    def errors(self, threshold: float) -> int:
        """Return the pairs whose score reaches a threshold."""
        return int((self.scores >= threshold).sum())

    def upper_bound(self, errors: int, risk: float) -> float:
        """Return what the rate does not exceed with a probability of 1 − risk."""
        low, high = errors / max(len(self.scores), 1), 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.too_few(errors, middle, risk) else (middle, high)
        return high

    def resolved(self, risk: float) -> float:
        """Return the lowest rate that these pairs could show; NaN where they show none."""
        if not self.enough_people(0.5):
            return math.nan
        low, high = self.upper_bound(0, risk), 0.5
        if self.enough_people(low):
            return low
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.enough_people(middle) else (middle, high)
        return high
