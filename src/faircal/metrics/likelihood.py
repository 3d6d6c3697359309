"""What probabilities are worth as evidence: the log-likelihood-ratio cost, and the least it can be.

Forensic laboratories and speaker recognition measure in `cllr`. It weighs genuine and imposter
pairs alike however many there are of each, and it splits in two: what the scores can't tell
(`min_cllr`), and what is lost as they are badly calibrated (`calibration_loss`, 0 or more).
`EvidenceBounds` says how strong evidence can be that rests on so many people.

Each takes probabilities in [0, 1] and labels, arrays of shape (n_pairs,), or a `Ranking` that holds
both; where a class is absent it is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from faircal._base.errors import DataError, ParameterError
from faircal.metrics.calibration import NLL_EPS
from faircal.metrics.ranking import FloatArray, Ranking, as_probabilities, as_ranking, pooled_counts

#: Log-likelihood ratios this near to a bound are at it: rounding, as by way of a probability.
_AT_BOUND = 1e-6
#: What the people of bounds may be: where nobody is identified, connected images or pairs.
_UNITS = ("people", "images", "pairs")


class EvidenceBounds(NamedTuple):
    """How far likelihood ratios may go that rest on so many people.

    Empirical lower and upper bounds (ELUB; Vergeer, van Es, de Jongh, Alberink and Stoel, 2016),
    over people in place of pairs: pairs that share people are no evidence of their own. One more
    person is imagined of each class whose pairs all mislead. As long as the share of genuine pairs
    at and above a likelihood ratio is that many times the share of imposters, it is carried; the
    upper bound is where that first fails, going up from 1, and the lower one likewise downwards. So
    n people carry about n to one, at most.

    Attributes
    ----------
    low, high : float
        Log-likelihood ratios (nats), ``low <= 0 <= high``.
    genuine, imposter : float
        Effective number of people in the pairs of each class.
    unit : str
        What those numbers count: ``people``; where nobody is identified ``images``, of which those
        that genuine pairs connect are one person, or ``pairs``, taken as independent.

    Examples
    --------
    >>> ratio, genuine = np.repeat([-9.0, 9.0], 100), np.repeat([0, 1], 100)
    >>> bounds = EvidenceBounds.of(ratio, genuine, people=(50, 50))
    >>> round(bounds.low, 2), round(bounds.high, 2)
    (-3.91, 3.91)
    >>> bounds.reached([-9.0, 0.0, 2.0, 9.0])
    array([ True, False, False,  True])
    """

    low: float
    high: float
    genuine: float
    imposter: float
    unit: str = "people"

    @classmethod
    def of(
        cls,
        log_ratio: npt.ArrayLike,
        genuine: npt.ArrayLike,
        *,
        people: tuple[float, float],
        unit: str = "people",
    ) -> EvidenceBounds:
        """Measure bounds on the log-likelihood ratios of labelled pairs.

        Parameters
        ----------
        log_ratio : array-like of float, shape (n_pairs,)
        genuine : array-like of bool, shape (n_pairs,)
        people : (float, float)
            Effective number of people in genuine and in imposter pairs.
        unit : str, default "people"
            What those are.
        """
        values, labels = np.asarray(log_ratio, np.float64), np.asarray(genuine, np.bool_)
        same, different = values[labels], values[~labels]
        high = _carried(same, different, *people)
        low = -_carried(-different, -same, people[1], people[0])
        return cls(low, high, *people, unit)

    @classmethod
    def from_json(cls, value: Any) -> EvidenceBounds:
        """Undo ``_asdict()``; a file may say anything."""
        known = isinstance(value, Mapping) and set(value) == set(cls._fields)
        bounds = cls(**value) if known else cls(math.nan, math.nan, 0.0, 0.0)
        fine = all(type(n) in (int, float) and math.isfinite(n) for n in bounds[:4])
        if not fine or not bounds.low <= 0 <= bounds.high or bounds.unit not in _UNITS:
            raise DataError("evidence bounds: expected low <= 0 <= high; fit the model again")
        return bounds

    def reached(self, log_ratio: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Say which log-likelihood ratios are at a bound or beyond: they are at least that."""
        values = np.asarray(log_ratio, np.float64)
        beyond = (values >= self.high - _AT_BOUND) | (values <= self.low + _AT_BOUND)
        return np.asarray(beyond)

    def ends(self, calibrated_at: float) -> tuple[float, float]:
        """Return the probabilities at the bounds, where that share of pairs is genuine.

        >>> [round(end, 3) for end in EvidenceBounds(-2.0, 3.0, 10.0, 30.0).ends(0.5)]
        [0.119, 0.953]
        """
        odds = logit(_share(calibrated_at, "calibrated_at"))
        return float(expit(odds + self.low)), float(expit(odds + self.high))


def _carried(of_class: FloatArray, other: FloatArray, people: float, other_people: float) -> float:
    """Return the log-likelihood ratio up to which pairs of a class bear theirs out, at least 0."""
    levels = np.unique(np.concatenate([of_class, other]))
    levels = levels[levels > 0]
    if not len(levels) or not len(of_class) or not len(other):
        return 0.0
    reach, mislead = (
        1 - np.searchsorted(np.sort(values), levels) / len(values) for values in (of_class, other)
    )
    with np.errstate(divide="ignore"):
        shown = np.log(reach * people / (people + 1))
    shown -= np.log((mislead * other_people + 1) / (other_people + 1))
    short = np.flatnonzero(shown < levels)
    if not len(short):
        return float(levels[-1])
    at = int(short[0])  # up to the level below, all is well
    return max(float(shown[at]), float(levels[at - 1]) if at else 0.0, 0.0)


def log_likelihood_ratio(
    probability: npt.ArrayLike, *, calibrated_at: float, bounds: EvidenceBounds | None = None
) -> FloatArray:
    """Return how much likelier genuine pairs make what was seen than imposters do, in logs (nats).

    The log-odds, less those of the share of genuine pairs that the probability holds for; so it
    says the same whatever that share. Probabilities are clipped to [2.2e-16, 1 − 2.2e-16]
    (`NLL_EPS`, as in `nll`): a certain pair of a share of one half has ±36.04.

    Parameters
    ----------
    probability : array-like of float in [0, 1]
    calibrated_at : float
        The share of genuine pairs that `probability` holds for, in (0, 1).
    bounds : EvidenceBounds, optional
        How far they may go: those of the model (``model.about_.evidence``; None where neither
        ``faircal fit`` nor `survey` measured them, and then ratios go beyond what people show).

    Returns
    -------
    ndarray of float64, of the shape of `probability`
        Above 0 the scores speak for one person, below for two.

    Examples
    --------
    >>> bounds = EvidenceBounds(-4.1, 4.2, genuine=70.0, imposter=60.0)
    >>> log_likelihood_ratio([0.0, 0.1, 0.5, 1.0], calibrated_at=0.1, bounds=bounds).round(2)
    array([-4.1,  0. ,  2.2,  4.2])

    Without bounds a certain pair has more than any people can show:

    >>> log_likelihood_ratio([0.0, 1.0], calibrated_at=0.1).round(2)
    array([-33.85,  38.24])
    """
    share = _share(calibrated_at, "calibrated_at")
    p = np.asarray(probability, dtype=np.float64)
    fine = (p >= 0) & (p <= 1)  # not where NaN
    if not fine.all():
        row = int(np.argmin(fine))
        raise DataError(
            f"probability, row {row + 1}: expected 0 to 1, found {p.flat[row]:g}; correct it"
        )
    c: FloatArray = np.clip(p, NLL_EPS, 1 - NLL_EPS)
    ratio: FloatArray = np.log(c) - np.log1p(-c) - (math.log(share) - math.log1p(-share))
    return ratio if bounds is None else np.clip(ratio, bounds.low, bounds.high)


def cllr(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    prior: float | None = None,
    of: Literal["probability", "llr"] = "probability",
) -> float:
    """Return the log-likelihood-ratio cost, in bits (Brümmer and du Preez, 2006).

    ``Cllr = ½ mean over genuine pairs of log₂(1 + e^−λ) + ½ mean over imposters of log₂(1 + e^λ)``
    with the log-likelihood ratio λ. 0 is perfect, 1 is what no evidence at all (λ = 0) costs, and
    above 1 the probabilities mislead. A certain mistake costs some 50 bits, not everything: see
    `log_likelihood_ratio`.

    Parameters
    ----------
    prior : float, optional
        The share of genuine pairs that the probabilities were made for: that of the calibration
        data where it is known. The share among these pairs by default, which is right only for
        pairs drawn like the calibration data; one group of them is not, so pass it for groups.
    of : {"probability", "llr"}, default "probability"
        ``llr``: the numbers are log-likelihood ratios (nats) already, and no prior is needed.

    Examples
    --------
    >>> cllr([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1])
    1.0
    >>> round(cllr([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1]), 4)
    0.3889
    """
    if of not in ("probability", "llr"):
        raise ParameterError(f"expected of to be probability or llr; found {of!r}")
    if of == "llr" and prior is not None:
        raise ParameterError("expected no prior beside of='llr'; found one; leave it out")
    ranking = (as_probabilities if of == "probability" else as_ranking)(probability, genuine)
    if not (ranking.n_genuine and ranking.n_imposter):
        return float("nan")
    # Log-odds hold for a share of genuine pairs; without it they are the evidence alone.
    share = ranking.n_genuine / len(ranking) if prior is None else _share(prior, "prior")
    ratio = (
        ranking.thresholds
        if of == "llr"
        else log_likelihood_ratio(ranking.thresholds, calibrated_at=share)
    )
    hit, miss = np.diff(ranking.tp, prepend=0), np.diff(ranking.fp, prepend=0)
    # logaddexp(0, x) is log(1 + e^x), and never overflows.
    missed = float(np.dot(hit, np.logaddexp(0, -ratio))) / ranking.n_genuine
    taken = float(np.dot(miss, np.logaddexp(0, ratio))) / ranking.n_imposter
    return (missed + taken) / (2 * math.log(2))


def min_cllr(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None = None) -> float:
    """Return the least `cllr` that any increasing map of the scores could reach on these pairs.

    The map is isotonic regression (pool adjacent violators) of the labels on the scores. Equal
    scores stay together. Where a stretch at an end is all of one class, its ratio is infinite and
    costs those pairs nothing; no other pair is there, so the cost is always finite, from 0, where a
    threshold parts the classes, to 1. As the map knows the answers, few pairs make it too small.

    Parameters
    ----------
    scores : array-like of float, or Ranking
        Scores or probabilities: only their order counts.

    Examples
    --------
    >>> min_cllr([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1])
    0.0
    >>> min_cllr([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    0.5
    """
    ranking = as_ranking(scores, genuine)
    if not (ranking.n_genuine and ranking.n_imposter):
        return float("nan")
    # Weighing the classes alike would pool the same pairs.
    hit, miss = pooled_counts(ranking)
    # Shares of each class in a block; their ratio is the block's likelihood ratio.
    shares = hit / ranking.n_genuine, miss / ranking.n_imposter
    cost = 0.0
    for of_class, other in (shares, shares[::-1]):
        occupied = of_class > 0  # a block without a pair of the class costs it nothing
        cost += float(np.dot(of_class[occupied], np.log2(1 + other[occupied] / of_class[occupied])))
    return cost / 2


def calibration_loss(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    *,
    prior: float | None = None,
) -> float:
    """Return what bad calibration costs: `cllr` less `min_cllr`, in bits.

    Parameters
    ----------
    prior : float, optional
        As in `cllr`.

    Examples
    --------
    >>> round(calibration_loss([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1]), 4)
    0.3407
    """
    ranking = as_probabilities(probability, genuine)
    loss = cllr(ranking, prior=prior) - min_cllr(ranking)
    return loss if math.isnan(loss) else max(loss, 0.0)  # rounding may make it −1e-16


def _share(value: float, name: str) -> float:
    if not 0 < value < 1:
        raise ParameterError(
            f"{name}: expected a share of genuine pairs between 0 and 1, found {value!r}; "
            "write 1 in 1,000 as 0.001"
        )
    return value
