"""Intervals of calibration errors: KS and ECE as norms of one curve that varies with the people.

Pairs are sorted by probability and cut into bins of equal mass. In each bin stands the sum of
(probability − genuine): its running total is the curve whose largest value is the KS error, and its
absolute values, ten bins put together, add up to the ECE.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from faircal.metrics.calibration import mass_cuts
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs, Int64, unbiased
from faircal.metrics.intervals.inversion import lowest_scale

#: Bins of the ECE, and how many more the curve is cut into where it is uncertain.
_ECE_BINS, _MORE_BINS = 10, 80
#: Steps towards the largest upper end of the ECE, at most.
_ROUNDS = 20


class BinnedCurve:
    """The bins of one set of pairs, and how they vary with the people.

    Parameters
    ----------
    bins : ndarray of float64, shape (n_bins,)
        Sums of (probability − genuine) over the number of pairs.
    noise : ndarray of float64, shape (n_replicates, n_bins)
        Replicates of estimate minus truth.
    bin_of : ndarray of int64, shape (n_pairs,)
        The bin of each pair.
    tens : ndarray of int64, shape (n_bins,)
        Which bin of the ECE each is in.
    mass : ndarray of float64, shape (n_bins,)
        Probabilities of imposters, over the number of pairs.

    Attributes
    ----------
    estimates : dict from ``"ks"`` and ``"ece"`` to float
        The errors of the bins: nearly those of the pairs.
    """

    def __init__(
        self, bins: Float64, noise: Float64, bin_of: Int64, tens: Int64, mass: Float64
    ) -> None:
        self.bins, self.noise = bins, noise
        self.bin_of, self.tens, self.mass = bin_of, tens, mass
        gather = (tens[:, None] == np.unique(tens)).astype(np.float64)
        #: What an error is the norm of, and the noise of that.
        self._views = {
            "ks": (np.cumsum(bins), np.cumsum(noise, axis=1)),
            "ece": (bins @ gather, noise @ gather),
        }
        curve, gaps = (np.abs(self._views[metric][0]) for metric in ("ks", "ece"))
        self.estimates = {"ks": float(curve.max()), "ece": float(gaps.sum())}

    @classmethod
    def of(
        cls,
        probability: Float64,
        identified: IdentifiedPairs,
        replicates: int,
        rng: np.random.Generator,
    ) -> BinnedCurve:
        """Cut the pairs of `identified` into bins."""
        n = len(probability)
        bin_of, tens = cut(probability)
        values = (probability - identified.genuine) / n
        bins = np.bincount(bin_of, values, len(tens)).astype(np.float64)
        covariance = _covariance(values, bin_of, bins, identified)
        squares, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        root = np.asarray(vectors * np.sqrt(np.maximum(squares, 0)))  # by chance some are below 0
        noise = rng.standard_normal((replicates, len(bins))) @ root.T
        # The degrees of freedom are those of the curve where it is largest.
        top = int(np.argmax(np.abs(np.cumsum(bins))))
        part = np.where(bin_of <= top, values, 0.0)
        freedom = identified.spread(part - part.mean()).freedom
        wide = student_over_normal(freedom) * _noise_factor(probability, identified)
        mass = np.bincount(bin_of, probability * ~identified.genuine, len(bins)) / n
        return cls(bins, wide * noise, bin_of, tens, mass)

    def size(self, metric: str, scale: float) -> Float64:
        """Return replicates of the error where the truth is `scale` times the estimate."""
        vector, noise = self._views[metric]
        size = scale * vector + noise
        np.abs(size, out=size)
        return np.asarray(size.max(axis=-1) if metric == "ks" else size.sum(axis=-1))

    def interval(self, metric: str, level: float) -> tuple[float, float]:
        """Return the interval of the error of the bins.

        The upper end is the largest that a sum of the bins reaches, up or down: each such sum has
        an upper end of its own, and the error is the largest of them. Upwards, imposters have
        higher probabilities than in this sample, and the more of them there are, the more their
        number varies, as that of errors does (Wilson).
        """
        (vector, noise), best = self._views[metric], self.estimates[metric]
        low = best * lowest_scale(lambda scale: self.size(metric, scale), best, level)
        z = float(ndtri((1 + level) / 2))
        covariance = np.cov(noise, rowvar=False).reshape(len(vector), -1)
        if metric == "ks":
            error = z * np.sqrt(np.diag(covariance))
            upwards = vector + _reach(error, np.cumsum(self.mass), z)
            return low, float(np.maximum(upwards, error - vector).max())
        towards, mass = vector, float(self.mass.sum())
        for _ in range(_ROUNDS):
            signs = np.where(towards >= 0, 1.0, -1.0)
            size = math.sqrt(max(float(signs @ covariance @ signs), 0.0))  # 0 may be rounded below
            if size == 0:
                break
            best = max(best, float(signs @ vector + _reach(np.array(z * size), np.array(mass), z)))
            towards = vector + z * (covariance @ signs) / size
        return low, best


def student_over_normal(freedom: float) -> float:
    """Return how much wider a 95 % interval is after Student than after the normal distribution."""
    return float(stdtrit(freedom, 0.975) / ndtri(0.975))


def _reach(error: Float64, mass: Float64, z: float) -> Float64:
    """Return how far up a sum reaches whose variance grows with the mass that it adds to.

    Only what imposters make of the error grows so. That is all of it, but for imposters of next to
    no mass: their sum has a standard error of its mass at most, the rest is of genuine pairs.
    """
    limited = np.minimum(error, z * mass)
    # The end x solves x² = error² + growth · x: the variance at x, as in Wilson's interval.
    growth = np.divide(limited**2, mass, out=np.zeros_like(error), where=mass > 0)
    return np.asarray(growth / 2 + np.sqrt(error**2 + growth**2 / 4))


def cut(probability: Float64) -> tuple[Int64, Int64]:
    """Return the bin of each pair, and for each bin which one of the ECE it is in.

    Bins end where those of the ECE do, and where outcomes are uncertain: of most pairs the outcome
    is clear, and the curve moves where probabilities are neither 0 nor 1.
    """
    # In which order equal ones stand makes no difference: they stay together.
    order, n = np.argsort(probability), len(probability)
    ascending = probability[order]
    tens = mass_cuts(n, _ECE_BINS)
    doubt = np.cumsum(ascending * (1 - ascending) + 1e-3 / n)
    fine = np.searchsorted(doubt, np.linspace(0, doubt[-1], _MORE_BINS + 1)[1:-1]) + 1
    ends = np.append(np.flatnonzero(np.diff(ascending) > 0) + 1, n)
    rounded = ends[np.searchsorted(ends, np.unique(np.concatenate([tens, fine]))[1:])]
    cuts = np.unique(np.append(0, rounded))
    tens = np.unique(np.append(0, ends[np.searchsorted(ends, tens[1:])]))
    bin_of = np.empty(n, np.int64)
    bin_of[order] = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    return bin_of, np.searchsorted(tens, cuts[:-1], side="right") - 1


def _covariance(
    values: Float64, bin_of: Int64, bins: Float64, identified: IdentifiedPairs
) -> Float64:
    """Return the covariance of the bins over people.

    As in `IdentifiedPairs.spread`, a dyad is counted with both of its people.
    """
    each, width = 1 / len(values), len(bins)
    left, right, dyads = identified.left, identified.right, identified.trials["fpr"]
    genuine, imposters = identified.trials["fnr"].rows, dyads.rows
    persons = np.concatenate([left[genuine], left[imposters], right[imposters]])
    units = [(np.concatenate([genuine, imposters, imposters]), persons)]
    if len(imposters):
        units.append((imposters, dyads.dyad_of))
    products = []
    for at, unit in units:
        # The products of what units have in two bins, less what a mean unit has.
        table = csr_array((values[at], (unit, bin_of[at])), shape=(int(unit.max()) + 1, width))
        share = np.bincount(unit) * each
        gram = (table.T @ table).toarray()
        cross = np.outer(table.T @ share, bins)
        product = gram - cross - cross.T + (share @ share) * np.outer(bins, bins)
        # What all have in common does not vary with who they are.
        common = table.sum(axis=0) - share.sum() * bins
        products.append(product - np.outer(common, common) / np.count_nonzero(share))
    persons_alone = len(products) == 1
    total = products[0] if persons_alone else products[0] - products[1]
    return np.asarray(total * unbiased(len(identified.people), alone=persons_alone))


def _noise_factor(probability: Float64, identified: IdentifiedPairs) -> float:
    """Return the factor by which the noise is better taken wider, or narrower.

    Most of it comes from the few imposters with high probabilities. How their number varies with
    the people is better known from the ladder of rates than from their few.
    """
    dyads = identified.trials["fpr"]
    imposters = probability[dyads.rows]
    doubt = imposters * (1 - imposters)
    if not doubt.sum() > 0:
        return 1.0
    ordered = np.sort(imposters)[::-1]
    half = int(np.searchsorted(np.cumsum(ordered * (1 - ordered)), doubt.sum() / 2))
    above = imposters >= ordered[half]
    p = float(above.mean())
    if not 0 < p < 0.5:
        return 1.0
    residuals = np.zeros(len(probability))
    residuals[dyads.rows] = (above - p) / len(imposters)
    counted = identified.spread(residuals).variance
    effect = float(Dependence.of(imposters, dyads).design_effect(p))
    expected = p * (1 - p) / len(imposters) * effect
    return float(np.sqrt(np.clip(expected / counted, 0.25, 4.0))) if counted > 0 else 1.0
