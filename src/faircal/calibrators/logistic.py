"""What beta, Platt and temperature scaling share: a logistic regression on terms of the score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from faircal.calibrators.base import Calibrator
from faircal.calibrators.newton import NewtonSearch, finite_logit, fit_nonnegative
from faircal.calibrators.samples import Floats, Ints, Samples, WeightedScores
from faircal.compute import CPU, Engine
from faircal.compute.logistic import Sums
from faircal.compute.threads import each

# Scores at a time, so that what is worked out of them stays in the cache.
_BLOCK = 1 << 14
# Points averaged for the start of the search.
_AVERAGED = 128
# A single sample of this many scores is fitted as one of many sets would be.
_MANY = 1 << 13


class LogisticCalibrator(Calibrator):
    """A map p = sigmoid(slopes · terms + intercept) with slopes of zero or more.

    A subclass brings `_terms`, and names its fitted numbers in `_scalars`: a slope for each term,
    in their order, then the intercept.
    """

    # Whether the intercept is fitted; otherwise it is 0 in all but constant maps.
    _intercept: ClassVar[bool] = True

    @abstractmethod
    def _terms(self, scores: Floats) -> tuple[Floats, ...]:
        """Return the terms of the model, each increasing in the score, each of shape (n,)."""

    def _targets(self, genuine: Floats, imposter: Floats) -> tuple[Floats, Floats]:
        """Return what an imposter and a genuine pair are fitted to, given their total weights."""
        return np.zeros_like(imposter), np.ones_like(genuine)

    @property
    def coefficients(self) -> Floats:
        """Slopes, and the intercept: shape (n_terms + 1,)."""
        self._check_fitted()
        return np.array([getattr(self, f"{name}_") for name in self._scalars])

    def probabilities(self, scores: Floats, *coefficients: Floats) -> list[Floats]:
        """Return what maps of other coefficients make of `scores`, worked out at once.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Finite; not so many that they leave the cache.
        *coefficients : ndarray of shape (n_terms + 1, n) or (n_terms + 1,)
            For each result the coefficients of each score, or of all.

        Returns
        -------
        probabilities : list of ndarray of shape (n,)
        """
        terms = self._terms(np.clip(scores, *self.score_range))
        return [sigmoid(_combined(terms, theta)) for theta in coefficients]

    def fit_sets(
        self,
        samples: Samples,
        only: Sequence[int] | None = None,
        engine: Engine = CPU,
    ) -> list[Self]:
        """Fit a new calibrator on each set, all of them at once; see `Calibrator.fit_sets`.

        `engine` does the passes over the points.
        """
        self._check_parameters()
        samples = samples.clipped(*self.score_range)
        chosen = np.arange(len(samples))
        if only is not None:
            chosen = chosen[np.asarray(only, np.int64)]
        theta, fitted = self._fit_at_once(samples, chosen, engine)
        # What this search can't fit is left to the one that takes its time.
        return [
            clone(self)._set(theta[k]) if fitted[k] else clone(self)._learn(samples[k])
            for k in chosen.tolist()
        ]

    def _fit_at_once(
        self, samples: Samples, chosen: Ints, engine: Engine
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return coefficients (n_sets, n_terms + 1), and of which sets they are the best."""
        genuine, mass = samples.totals()
        # Sets of one class, or of one score, have no slope to fit: they are left to `_learn`.
        part = np.divide(genuine, mass, out=np.zeros_like(mass), where=mass > 0)
        mixed = chosen[(part[chosen] > 0) & (part[chosen] < 1)]
        ends = samples.scores[samples.starts[mixed]], samples.scores[samples.starts[mixed + 1] - 1]
        reach = np.ones((len(samples), len(self._scalars)))
        reach[mixed, :-1] = np.abs([self._terms(end) for end in ends]).max(axis=0).T
        # Targets are 0 and 1, or Platt's, so that a mean target is linear in the genuine share.
        low, high = self._targets(genuine, mass - genuine)
        search = NewtonSearch(mass, low + (high - low) * part, reach, intercept=self._intercept)
        rough, exact = (
            self._sums(of, low, high, engine) for of in (samples.coarse(_AVERAGED), samples)
        )
        theta, done = search.run(rough, exact, mixed[ends[0] != ends[1]])
        fitted = np.zeros(len(samples), np.bool_)
        fitted[done] = True
        return theta, fitted

    def _sums(self, samples: Samples, low: Floats, high: Floats, engine: Engine) -> Sums:
        features = np.empty((len(self._scalars) - 1, len(samples.scores)))

        def work(part: slice) -> None:
            features[:, part] = self._terms(samples.scores[part])

        each(work, len(samples.scores), _BLOCK)
        target = samples.genuine / samples.mass
        if low.any() or (high != 1.0).any():
            lengths = np.diff(samples.starts)
            target = np.repeat(low, lengths) + np.repeat(high - low, lengths) * target
        return engine.logistic_sums(features, target, samples.mass, samples.starts)

    def _fit(self, sample: WeightedScores) -> None:
        n = len(sample.scores)
        if n >= _MANY:
            ends = np.array([0, n])
            one = Samples(sample.scores, sample.genuine, sample.mass, ends, ends[1:])
            theta, fitted = self._fit_at_once(one, np.array([0]), CPU)
            if fitted[0]:
                self._set(theta[0])
                return
        # The search that takes its time, and manages without a maximum as well.
        imposter = sample.mass - sample.genuine
        low, high = self._targets(sample.genuine.sum(), imposter.sum())
        target = (sample.genuine * high + imposter * low) / sample.mass
        terms = np.stack(self._terms(sample.scores))
        fit = fit_nonnegative(terms, target, sample.mass, intercept=self._intercept)
        self._set(np.append(fit.slopes, fit.intercept))

    def _fit_constant(self, sample: WeightedScores) -> None:
        low, high = self._targets(sample.genuine.sum(), (sample.mass - sample.genuine).sum())
        theta = np.zeros(len(self._scalars))
        theta[-1] = finite_logit(float(low + (high - low) * sample.fraction))
        self._set(theta)

    def _predict(self, scores: Floats) -> Floats:
        theta, out = self.coefficients, np.empty_like(scores)

        def work(part: slice) -> None:
            (out[part],) = self.probabilities(scores[part], theta)

        each(work, len(scores), _BLOCK)
        return out

    def _log_odds(self, scores: Floats) -> Floats:
        return _combined(self._terms(scores), self.coefficients)

    def _set(self, theta: Floats) -> Self:
        for name, value in zip(self._scalars, theta, strict=True):
            setattr(self, f"{name}_", float(value))
        return self


def _combined(terms: tuple[Floats, ...], theta: Floats) -> Floats:
    """Return slopes · terms + intercept."""
    eta: Floats = terms[0] * theta[0]
    for term, slope in zip(terms[1:], theta[1:-1], strict=True):
        eta += term * slope
    eta += theta[-1]
    return eta


def sigmoid(eta: Floats) -> Floats:
    """Return 1 / (1 + e^−η), worked out in the array that is given.

    Examples
    --------
    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    with np.errstate(over="ignore"):
        np.exp(np.negative(eta, out=eta), out=eta)
    eta += 1.0
    return np.reciprocal(eta, out=eta)
