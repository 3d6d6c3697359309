"""What FairCal is compared with: ways to calibrate a classifier, under one contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators.classes import ClassCalibrator
from faircal.classifier import FairCalClassifier, SetMaps
from faircal.classifier.maps import Shrinkage
from faircal.errors import NotFittedError, ParameterError
from faircal.registry import Registry

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


Groups = NDArray[np.integer[Any]]


@dataclass(eq=False)
class ClassMethod(ABC):
    """A way to calibrate: fitted on labelled rows, applied to others.

    Parameters
    ----------
    calibrator : str or ClassCalibrator
    n_clusters : int
    shrinkage : float or "cv"
        As in `FairCalClassifier`; for those that have clusters or groups.
    random_state : int
    """

    calibrator: str | ClassCalibrator = "dirichlet"
    n_clusters: int = 20
    shrinkage: Shrinkage = "cv"
    random_state: int = 0

    title: ClassVar[str]
    needs_features: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = False
    #: Shown apart and never best: it knows what others are not told.
    yardstick: ClassVar[bool] = False

    @abstractmethod
    def fit(
        self,
        probabilities: Float64,
        codes: Int64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
        units: Int64 | None = None,
    ) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_classes)
        codes : ndarray of shape (n,)
        features : ndarray of shape (n, d), optional
            For those that need them.
        groups : ndarray of int, shape (n,), optional
            The group of each row, −1 where it is not known; for those that need it.
        units : ndarray of int, shape (n,), optional
            Whom each row comes from, numbered from 0.
        """

    @abstractmethod
    def apply(
        self,
        probabilities: Float64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
    ) -> Float64:
        """Return the calibrated probabilities of rows, shape (n, n_classes)."""


class Uncalibrated(ClassMethod):
    """Probabilities as they come."""

    title = "Uncalibrated"

    def fit(  # noqa: D102
        self,
        probabilities: Float64,
        codes: Int64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
        units: Int64 | None = None,
    ) -> Self:
        return self

    def apply(
        self,
        probabilities: Float64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
    ) -> Float64:
        """Return them as they are."""
        return probabilities


@dataclass(eq=False)
class _Sets(ClassMethod):
    """One map for each set of rows."""

    _maps: SetMaps | None = None

    def _sets(self, n: int, groups: Groups | None) -> Groups:
        """Return the set of each of n rows; −1 for none."""
        return np.full(n, -1)

    def fit(
        self,
        probabilities: Float64,
        codes: Int64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
        units: Int64 | None = None,
    ) -> Self:
        """Fit the sets' maps."""
        sets = self._sets(len(codes), groups)
        self._maps = SetMaps.fit(
            probabilities,
            codes,
            sets,
            int(sets.max(initial=-1)) + 1,
            calibrator=self.calibrator,
            shrinkage=self.shrinkage,
            units=units,
            random_state=self.random_state,
        )
        return self

    def apply(
        self,
        probabilities: Float64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
    ) -> Float64:
        """Return what the map of each row's set makes of it."""
        if self._maps is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        sets = self._sets(len(probabilities), groups)
        # A group that the calibration rows had none of gets the map of all.
        return self._maps.apply(probabilities, np.where(sets < len(self._maps.sets), sets, -1))


class Global(_Sets):
    """One map for all rows."""

    title = "Global"


class Oracle(_Sets):
    """One map for each group, pulled to that of all rows: FairCal with the attribute known."""

    title = "Oracle"
    needs_groups = True
    yardstick = True

    def _sets(self, n: int, groups: Groups | None) -> Groups:
        if groups is None:
            raise ParameterError(f"{self.title}: expected the groups of the rows, found none")
        return groups


@dataclass(eq=False)
class Groupwise(Oracle):
    """One map for each group, fitted by itself."""

    shrinkage: Shrinkage = 0.0

    title = "Group-wise"


@dataclass(eq=False)
class FairCalMethod(ClassMethod):
    """`FairCalClassifier`: one map for each cluster of features."""

    title = "FairCal"
    needs_features = True

    _model: FairCalClassifier | None = None

    def fit(
        self,
        probabilities: Float64,
        codes: Int64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
        units: Int64 | None = None,
    ) -> Self:
        """Cluster the features and fit the clusters' maps."""
        self._model = FairCalClassifier(
            n_clusters=self.n_clusters,
            calibrator=self.calibrator,
            shrinkage=self.shrinkage,
            random_state=self.random_state,
        ).fit_calibration(
            probabilities,
            codes,
            features=_given(features),
            classes=np.arange(probabilities.shape[1]),
            units=units,
        )
        return self

    def apply(
        self,
        probabilities: Float64,
        *,
        features: NDArray[np.float32] | None = None,
        groups: Groups | None = None,
    ) -> Float64:
        """Return what the map of each row's cluster makes of it."""
        if self._model is None:
            raise NotFittedError("FairCalMethod is not fitted yet; call fit first")
        return self._model.calibrate(probabilities, features=_given(features))


def _given(features: NDArray[np.float32] | None) -> NDArray[np.float32]:
    if features is None:
        raise ParameterError("FairCal: expected the features of the rows, found none")
    return features


#: The probabilities as they come: what others are made of.
UNCALIBRATED = "uncalibrated"

CLASS_METHODS: Registry[type[ClassMethod]] = Registry("method of classes")
CLASS_METHODS.register(UNCALIBRATED, Uncalibrated)
CLASS_METHODS.register("global", Global)
CLASS_METHODS.register("faircal", FairCalMethod)
CLASS_METHODS.register("groupwise", Groupwise)
CLASS_METHODS.register("oracle", Oracle)


def make_class_method(name: str, **parameters: Any) -> ClassMethod:
    """Return a new method by name, with the parameters of `ClassMethod`.

    Examples
    --------
    >>> make_class_method("oracle", calibrator="temperature").title
    'Oracle'
    """
    kind = CLASS_METHODS[name]
    if kind is Groupwise:
        parameters.pop("shrinkage", None)
    return kind(**parameters)
