"""What may be promised of a false-positive rate: thresholds with P(FPR <= rate) >= 1 − risk.

The threshold at which the FPR *is* the wanted rate is not known. Whatever it is, at a lower one at
least as many pairs are errors. So a threshold is safe where so few errors were counted that a true
rate as high as the wanted one would show so few with a probability of at most `risk`: a test of
"the rate is as high as that", turned into a threshold. The test counts effective pairs, N over the
design effect that sharing people has at the wanted rate, not at the counted one.

How much the rate varies is carried to the wanted rate by a law (`Dependence`), and no law knows the
people who are not in the data. So people are added who are not there, each with one error more than
the person with most errors: five at a risk of 5 %, for a kind of which three in n are people may be
missing among n (the rule of three), and some more for what the law gets wrong. Where a few people
score far higher or lower than the law has it (`Dependence.heavy`) it is four times as many, and
errors must be counted. `docs/study-uncertainty.md` shows how often promises are broken, and where.

The other promise assumes no law: `threshold_of_people`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtrit
from scipy.stats import binom

from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64
from faircal.metrics.intervals.sufficient_data import DataNeeded

_STEPS = 60  # of bisection: to the last bit

#: People who may be missing, in units of -log(risk): that alone is the rule of three.
_MISSING, _TIMES_IF_HEAVY = 5 / 3, 4
#: Where people are heavy-tailed, so many errors must be counted.
_FEWEST_IF_HEAVY = 5


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
    (32, 1770)
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
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def _falling(self) -> Float64:
        return self.scores[self._order]

    @property
    def shared(self) -> bool:
        """Whether anybody is in two pairs."""
        return 2 * self.sharing.pairs > self.sharing.people

    @property
    def fewest(self) -> int:
        """The fewest errors that must be counted to show any rate."""
        return _FEWEST_IF_HEAVY if self.dependence.heavy else 0

    def missing(self, risk: float) -> float:
        """Return how many people are added who may be missing.

        Where nobody is in two pairs, each pair is a trial of its own and nobody is missing.
        """
        in_one_pair = self.sharing.people / max(2 * self.sharing.pairs, 1)
        return -_MISSING * math.log(risk) * max(1 - in_one_pair, 0.0)

    def unseen(self, errors: int, risk: float) -> float:
        """Return the errors of people who may be missing, where so many are counted."""
        times = _TIMES_IF_HEAVY if self.dependence.heavy else 1
        return times * self.missing(risk) * (1 + self._most_of_one(errors))

    def _most_of_one(self, errors: int) -> float:
        """Return the errors of the person with most of them, of the pairs that score highest."""
        dyads = self.sharing.dyad_of[self._order[:errors]]
        of_dyad = np.bincount(dyads, minlength=len(self.sharing.sizes)).astype(np.float64)
        return float(self.sharing.per_person(of_dyad).max(initial=0))

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

    def too_few(self, errors: float, rate: float, risk: float) -> bool:
        """Return whether errors are too few for a true rate of `rate`.

        So few have a probability of at most `risk` then. Two tests, and the more careful decides:
        Student's t, which knows how badly the design effect is known, and the binomial distribution
        of effective pairs, which few errors need.
        """
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
        # No more errors than the rate itself makes can show it.
        low, high = -1, min(len(self.scores), math.ceil(rate * len(self.scores)) + 1)
        while high - low > 1:
            middle = (low + high) // 2
            few = self.too_few(middle + self.unseen(middle, risk), rate, risk)
            low, high = (middle, high) if few else (low, middle)
        return low if low >= self.fewest else -1

    def threshold(self, rate: float, risk: float) -> float:
        """Return the lowest threshold with P(FPR <= rate) >= 1 − risk; NaN where none has it."""
        return self.threshold_with(self.allowed(rate, risk))

    def threshold_of_people(self, rate: float, risk: float) -> float:
        """Return a threshold at which few people have an FPR above `rate` against the references.

        With a probability of 1 − `risk` these are at most the share `risk` of people to come. NaN
        of too few people, or pairs. No law is assumed. One half of the people are references, drawn
        evenly. Each of the others is compared with them alone, so the threshold that a person needs
        is independent of what the rest need, and of n such numbers the r-th smallest is exceeded by
        at most a share q of people wherever P(Bin(n, 1 − q) < r) ≥ 1 − risk (Wilks, 1941). What is
        bounded is the rate against these references: how often a person is mistaken for others is
        known no better than one in as many pairs as they are in.
        """
        scores, first, of_each = self._against_references
        n = len(first)
        rank = int(binom.ppf(1 - risk, n, 1 - risk)) + 1 if n else 1
        if rank > n or rate < self.lowest_of_people:
            return math.nan
        # 0.07 · 100 is 7.000…001, other products are just below: rounding may cost no error.
        errors = np.floor(rate * of_each * (1 + 1e-12)).astype(np.int64)
        none = scores[first + errors]  # the first that must be none
        return float(np.nextafter(np.sort(none)[rank - 1], np.inf))

    @property
    def lowest_of_people(self) -> float:
        """The lowest rate that half of people could show against the references: one error."""
        of_each = self._against_references[2]
        return 1 / float(np.median(of_each)) if len(of_each) else math.nan

    @cached_property
    def _against_references(self) -> tuple[Float64, NDArray[np.intp], NDArray[np.intp]]:
        """Scores of each other person with the references, falling; where each begins; how many."""
        people, codes = np.unique(np.concatenate([self.left, self.right]), return_inverse=True)
        reference = np.random.default_rng(0).permutation(len(people)) % 2 == 1
        left, right = np.split(codes, 2)
        mixed = self._order[(reference[left] != reference[right])[self._order]]
        one = np.where(reference[left], right, left)[mixed]
        by_person = np.argsort(one, kind="stable")  # of each the highest score first
        first, of_each = np.unique(one[by_person], return_index=True, return_counts=True)[1:]
        return self.scores[mixed][by_person], first, of_each

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
        counted = errors + self.unseen(errors, risk)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.too_few(counted, middle, risk) else (middle, high)
        return high

    def resolved(self, risk: float) -> float:
        """Return the lowest rate that these pairs could show; NaN where they show none."""
        if not self.enough_people(0.5):
            return math.nan
        low, high = self.upper_bound(self.fewest, risk), 0.5
        if low >= high or self.enough_people(low):
            return low
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.enough_people(middle) else (middle, high)
        return high
