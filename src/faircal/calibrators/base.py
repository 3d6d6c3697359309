"""The contract of every calibrator: score in, probability of a genuine pair out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import ClassifierTags
from sklearn.utils.metadata_routing import UNUSED

from faircal._base.errors import DataError, NotFittedError, ParameterError
from faircal.calibrators.samples import (
    Floats,
    Samples,
    WeightedScores,
    as_labels,
    as_vector,
    as_weights,
    tally,
)
from faircal.compute import CPU, Engine

#: No pair is surer than this in `Calibrator.log_odds`: a probability within 1e-12 of 0 or 1.
MOST_LOG_ODDS = 27.6


class CalibratorNotFittedError(NotFittedError, SklearnNotFittedError):  # type: ignore[misc]
    """A calibrator was asked to predict before ``fit``; scikit-learn knows this error too."""


class Calibrator(BaseEstimator, ABC):  # type: ignore[misc]
    """A map from a similarity score to the probability that the pair is genuine.

    This class checks and tallies the input; a subclass brings `_fit`, `_fit_constant` and
    `_predict`, and names its fitted attributes in `_scalars` and `_arrays`.

    Parameters
    ----------
    score_range : tuple of float, default=(-1.0, 1.0)
        Lowest and highest possible score; the default is that of a cosine. Scores outside, in
        ``fit`` as in ``predict``, are moved to the nearest end, so every map continues as a
        constant beyond its range.

    Notes
    -----
    The order of the pairs does not matter, a weight of 3 equals three copies of the pair, and a
    weight of 0 equals leaving it out. With one class only, or when all scores are equal, the map
    is constant at the weighted fraction of genuine pairs.
    """

    # Fitted attributes that make up the state, without their final underscore.
    _scalars: ClassVar[tuple[str, ...]] = ()
    _arrays: ClassVar[tuple[str, ...]] = ()

    # Scikit-learn would otherwise take our names for X and y as metadata to be routed.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"scores": UNUSED, "genuine": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, str]] = {"scores": UNUSED}

    def __init__(self, *, score_range: tuple[float, float] = (-1.0, 1.0)) -> None:
        self.score_range = score_range

    def fit(
        self,
        scores: npt.ArrayLike,
        genuine: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the map from labelled pairs.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores, higher for more alike.
        genuine : array-like of shape (n,)
            Whether each pair shows one person: booleans or 0/1.
        sample_weight : array-like of shape (n,), optional
            Weights of zero or more, not all zero; equal weights by default.
        """
        self._check_parameters()
        given = as_vector(scores, "scores")
        if given.size == 0:
            raise DataError(
                "scores: expected at least one pair; found 0 sample(s) (a minimum of 1 is required)"
            )
        labels = as_labels(genuine, given.size)
        weight = as_weights(sample_weight, given.size)
        return self._learn(tally(np.clip(given, *self.score_range), labels, weight))

    def fit_sets(
        self,
        samples: Samples,
        only: Sequence[int] | None = None,
        engine: Engine = CPU,  # noqa: ARG002  (for those that fit all sets at once)
    ) -> list[Self]:
        """Fit a new calibrator with the parameters of this one on each of many sets.

        Parameters
        ----------
        samples : Samples
        only : sequence of int, optional
            The sets to fit, in this order, each with at least one pair; all by default.
        engine : Engine
            Does heavy work.

        Examples
        --------
        >>> from faircal.calibrators import PlattCalibrator
        >>> samples = Samples.of([-0.5, 0.1, 0.5], [0, 0, 1], [0, 1, 0], n_sets=2)
        >>> [one.predict([0.5]).round(2).item() for one in PlattCalibrator().fit_sets(samples)]
        [0.67, 0.33, 0.58]
        """
        self._check_parameters()
        within = samples.clipped(*self.score_range)
        chosen = range(len(samples)) if only is None else only
        return [clone(self)._learn(within[k]) for k in chosen]

    def predict(self, scores: npt.ArrayLike) -> Floats:
        """Return the probability that each pair is genuine, shape (n,).

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, 1)
            Scores; there may be none.
        """
        self._check_fitted()
        # Every map is a constant beyond its range: no score outside extrapolates to certainty.
        probabilities = self._predict(np.clip(as_vector(scores, "scores"), *self.score_range))
        return np.clip(probabilities, 0.0, 1.0, out=probabilities)

    def log_odds(self, scores: npt.ArrayLike) -> Floats:
        """Return log(p / (1 − p)) of each pair, between ±`MOST_LOG_ODDS`.

        Examples
        --------
        >>> from faircal.calibrators import PlattCalibrator
        >>> PlattCalibrator().fit([-0.5, 0.5], [0, 1]).log_odds([0.5, 1.0]).round(2)
        array([0.69, 1.39])
        """
        self._check_fitted()
        log_odds = self._log_odds(np.clip(as_vector(scores, "scores"), *self.score_range))
        return np.clip(log_odds, -MOST_LOG_ODDS, MOST_LOG_ODDS, out=log_odds)

    def get_state(self) -> dict[str, Floats]:
        """Return what ``fit`` learnt, as one-dimensional arrays.

        The names are the same for every fit of a class; the lengths may differ. Together with
        ``get_params`` they restore the calibrator exactly.
        """
        self._check_fitted()
        state = {name: np.array([getattr(self, f"{name}_")]) for name in self._scalars}
        state |= {name: getattr(self, f"{name}_").copy() for name in self._arrays}
        return state

    def set_state(self, state: Mapping[str, npt.ArrayLike]) -> Self:
        """Take over what another calibrator of this class learnt: what its ``get_state`` gave."""
        self._check_parameters()
        expected = {*self._scalars, *self._arrays}
        if set(state) != expected:
            raise DataError(
                f"state of {type(self).__name__}: expected {sorted(expected)}; "
                f"found {sorted(state)}; was it saved by another kind of calibrator?"
            )
        arrays = {name: np.array(values, dtype=np.float64) for name, values in state.items()}
        for name, array in arrays.items():
            scalar = name in self._scalars
            if array.ndim != 1 or array.size == 0 or (scalar and array.size > 1):
                length = "1" if scalar else "1 or more"
                raise DataError(
                    f"state of {type(self).__name__}: expected {name} of one dimension and "
                    f"length {length}; found shape {array.shape}"
                )
            setattr(self, f"{name}_", float(array[0]) if scalar else array)
        if not self._is_sound():
            raise DataError(
                f"state of {type(self).__name__}: expected arrays that make a map; fit it again"
            )
        return self

    def _is_sound(self) -> bool:
        """Whether a state that comes from elsewhere makes a map: arrays of lengths that fit."""
        return True

    def _learn(self, sample: WeightedScores) -> Self:
        # One score, or one class: there is nothing to learn but the fraction.
        if sample.scores.size == 1 or sample.fraction in (0.0, 1.0):
            self._fit_constant(sample)
        else:
            self._fit(sample)
        return self

    @abstractmethod
    def _fit(self, sample: WeightedScores) -> None:
        """Learn from a sample with both classes and at least two distinct scores."""

    @abstractmethod
    def _fit_constant(self, sample: WeightedScores) -> None:
        """Learn the constant map, from a sample with one class or one distinct score."""

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats:
        """Return a new array of probabilities for scores within the range."""

    def _log_odds(self, scores: Floats) -> Floats:
        """Return a new array of log-odds, of any size, for scores within the range."""
        log_odds: Floats = logit(np.clip(self._predict(scores), 0.0, 1.0))
        return log_odds

    def _check_parameters(self) -> None:
        """Check the constructor's parameters; a subclass with its own checks those too."""
        try:
            low, high = (float(bound) for bound in self.score_range)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (np.isfinite(low) and np.isfinite(high) and np.isfinite(high - low) and low < high):
            raise ParameterError(
                "score_range: expected two finite numbers, the lower first; "
                f"found {self.score_range!r}"
            )

    def _check_fitted(self) -> None:
        if not all(hasattr(self, f"{name}_") for name in (*self._scalars, *self._arrays)):
            raise CalibratorNotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit or set_state first"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
