"""One map a class: a calibrator of scores for each class against the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from faircal._base.errors import DataError
from faircal.calibrators.base import Calibrator
from faircal.calibrators.classes.base import ClassCalibrator, Float64, Int64, PulledMap, Strength
from faircal.calibrators.histogram import HistogramCalibrator
from faircal.calibrators.isotonic import IsotonicCalibrator
from faircal.calibrators.samples import WeightedScores


class _OneVsRest(ClassCalibrator):
    """Probabilities of each class are calibrated by themselves, then divided by their sum.

    With two classes one map is enough: that of the second.
    """

    @abstractmethod
    def _single(self) -> Calibrator:
        """Return an unfitted calibrator of one class."""

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return max(2, len(self.maps_))

    def _fit(
        self,
        probabilities: Float64,
        codes: Int64,
        units: Int64 | None = None,  # noqa: ARG002  (there is nothing to choose)
    ) -> None:
        n_classes = probabilities.shape[1]
        columns = range(n_classes) if n_classes > 2 else (1,)
        self.maps_ = [self._single().fit(probabilities[:, c], codes == c) for c in columns]

    def apply(self, probabilities: Float64) -> Float64:
        """Return what the classes' maps make of checked rows."""
        if len(self.maps_) == 1:
            second = self.maps_[0].predict(probabilities[:, 1])
            return np.column_stack([1.0 - second, second])
        columns = zip(self.maps_, probabilities.T, strict=True)
        calibrated = np.column_stack([each.predict(values) for each, values in columns])
        total = calibrated.sum(axis=1, keepdims=True)
        # Where every class is said to be impossible the row stays as it is.
        return np.where(total > 0, calibrated / np.where(total > 0, total, 1.0), probabilities)

    def towards(
        self, probabilities: Float64, codes: Int64, strengths: Sequence[Strength]
    ) -> list[PulledMap]:
        """Fit a set's map by itself, and mix it with this one: n rows against `strength.rows`."""
        of_set, n = clone(self), len(codes)
        of_set._fit(probabilities, codes)
        return [PulledMap(of_set, n / (n + strength.rows)) for strength in strengths]

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what ``fit`` learnt: the arrays of each class's map."""
        self._check_fitted()
        return {
            f"{i}.{name}": values
            for i, single in enumerate(self.maps_)
            for name, values in single.get_state().items()
        }

    def set_state(self, state: Mapping[str, npt.ArrayLike]) -> Self:
        """Take over what another calibrator of this class learnt."""
        self._check_parameters()
        parts: dict[int, dict[str, npt.ArrayLike]] = {}
        for key, values in state.items():
            number, _, name = key.partition(".")
            if not number.isdecimal():
                raise DataError(f"state of {type(self).__name__}: found {key!r}; fit it again")
            parts.setdefault(int(number), {})[name] = values
        if not parts or sorted(parts) != list(range(len(parts))):
            raise DataError(f"state of {type(self).__name__}: classes are missing; fit it again")
        self.maps_ = [self._single().set_state(parts[i]) for i in range(len(parts))]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "maps_")


class OneVsRestIsotonic(_OneVsRest):
    """Isotonic regression of each class against the rest (Zadrozny and Elkan, 2002).

    Attributes
    ----------
    maps_ : list of IsotonicCalibrator
        One for each class; of two classes that of the second only.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]
    >>> OneVsRestIsotonic().fit(p, [0, 1, 2, 1]).predict(p[:1]).round(2)
    array([[0.6, 0.4, 0. ]])
    """

    def _single(self) -> Calibrator:
        return IsotonicCalibrator(score_range=(0.0, 1.0))


class _MassBins(HistogramCalibrator):
    """Bins of equal mass, of which those that ties would leave empty are put together.

    Most probabilities of a class may be exactly 0: no reason to have one bin only.
    """

    def _fit(self, sample: WeightedScores) -> None:
        low, high = self.score_range
        cumulated = np.cumsum(sample.mass)
        place = np.searchsorted(cumulated, np.arange(1, self.n_bins) * cumulated[-1] / self.n_bins)
        last = np.unique(place[place < len(cumulated) - 1])  # the last score of each bin but one
        edges = (sample.scores[last] + sample.scores[last + 1]) / 2
        bounds = [0, *(last + 1), len(cumulated)]
        genuine, mass = (
            np.diff(np.concatenate([[0.0], np.cumsum(of)])[bounds])
            for of in (sample.genuine, sample.mass)
        )
        self.edges_, self.values_ = np.array([low, *edges, high]), genuine / mass


class OneVsRestHistogram(_OneVsRest):
    """Histogram binning of each class against the rest (Zadrozny and Elkan, 2001).

    Parameters
    ----------
    n_bins : int, default=10
        Bins of equal mass a class.

    Attributes
    ----------
    maps_ : list of HistogramCalibrator
        One for each class; of two classes that of the second only.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1]]
    >>> OneVsRestHistogram(n_bins=2).fit(p, [0, 1, 2, 1]).predict(p[:1]).round(2)
    array([[0.6, 0.4, 0. ]])
    """

    def __init__(self, *, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _single(self) -> Calibrator:
        return _MassBins(n_bins=self.n_bins, score_range=(0.0, 1.0))

    def _check_parameters(self) -> None:
        self._single()._check_parameters()
