"""What FairCal is compared with: ways to calibrate a classifier, under one contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import NotFittedError, ParameterError
from faircal._base.registry import Registry
from faircal.calibrators.classes import ClassCalibrator
from faircal.methods.classifier import FairCalClassifier, SetMaps
from faircal.methods.classifier.maps import Shrinkage

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Features = NDArray[np.float32]
Groups = NDArray[np.integer[Any]]

#: The probabilities as they come: what others are made of.
UNCALIBRATED = "uncalibrated"


class MethodRows(NamedTuple):
    """What a method sees of rows; features and groups are empty unless it needs them."""

    probabilities: Float64
    features: Features
    groups: Groups
    units: Int64 | None


@dataclass(eq=False)
class ClassMethod(ABC):
    """A way to calibrate: fitted on labelled rows, applied to others.

    A subclass brings `_fit` and `_apply`, and says what it needs.

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
    _fitted: bool = field(default=False, init=False)

    title: ClassVar[str]
    needs_features: ClassVar[bool] = False
    needs_groups: ClassVar[bool] = False
    #: Shown apart and never best: it knows what others are not told.
    yardstick: ClassVar[bool] = False

    def fit(
        self,
        probabilities: Float64,
        codes: Int64,
        *,
        features: Features | None = None,
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
        self._fit(self._rows(probabilities, features, groups, units), codes)
        self._fitted = True
        return self

    def apply(
        self,
        probabilities: Float64,
        *,
        features: Features | None = None,
        groups: Groups | None = None,
    ) -> Float64:
        """Return the calibrated probabilities of rows, shape (n, n_classes)."""
        if not self._fitted:
            raise NotFittedError(f"{self.title} is not fitted yet; call fit first")
        return self._apply(self._rows(probabilities, features, groups, None))

    def _rows(
        self,
        probabilities: Float64,
        features: Features | None,
        groups: Groups | None,
        units: Int64 | None,
    ) -> MethodRows:
        for name, needed, given in (
            ("features", self.needs_features, features),
            ("groups", self.needs_groups, groups),
        ):
            if needed and given is None:
                raise ParameterError(f"{self.title}: expected the {name} of the rows, found none")
        nothing = np.empty((len(probabilities), 0), np.float32)
        no_group = np.full(len(probabilities), -1)
        return MethodRows(
            probabilities,
            features if features is not None and self.needs_features else nothing,
            groups if groups is not None and self.needs_groups else no_group,
            units,
        )

    @abstractmethod
    def _fit(self, rows: MethodRows, codes: Int64) -> None:
        """Learn."""

    @abstractmethod
    def _apply(self, rows: MethodRows) -> Float64:
        """Return calibrated probabilities."""


class Uncalibrated(ClassMethod):
    """Probabilities as they come."""

    title = "Uncalibrated"

    def _fit(self, rows: MethodRows, codes: Int64) -> None:
        pass

    def _apply(self, rows: MethodRows) -> Float64:
        return rows.probabilities


class ClassOracle(ClassMethod):
    """One map for each group, pulled to that of all rows: FairCal with the attribute known."""

    title = "Oracle"
    needs_groups = True
    yardstick = True

    def _fit(self, rows: MethodRows, codes: Int64) -> None:
        self._maps = SetMaps.fit(
            rows.probabilities,
            codes,
            rows.groups,
            int(rows.groups.max(initial=-1)) + 1,
            calibrator=self.calibrator,
            shrinkage=self.shrinkage,
            units=rows.units,
            random_state=self.random_state,
        )

    def _apply(self, rows: MethodRows) -> Float64:
        # A group that the calibration rows had none of gets the map of all.
        known = np.where(rows.groups < len(self._maps.sets), rows.groups, -1)
        return self._maps.apply(rows.probabilities, known)


class Global(ClassOracle):
    """One map for all rows, who are of no group."""

    title = "Global"
    needs_groups = False
    yardstick = False


@dataclass(eq=False)
class Groupwise(ClassOracle):
    """One map for each group, fitted by itself."""

    shrinkage: Shrinkage = 0.0

    title = "Group-wise"


class FairCalMethod(ClassMethod):
    """`FairCalClassifier`: one map for each cluster of features."""

    title = "FairCal"
    needs_features = True

    def _fit(self, rows: MethodRows, codes: Int64) -> None:
        self._model = FairCalClassifier(
            n_clusters=self.n_clusters,
            calibrator=self.calibrator,
            shrinkage=self.shrinkage,
            random_state=self.random_state,
        ).fit_calibration(
            rows.probabilities,
            codes,
            features=rows.features,
            classes=np.arange(rows.probabilities.shape[1]),
            units=rows.units,
        )

    def _apply(self, rows: MethodRows) -> Float64:
        return self._model.calibrate(rows.probabilities, features=rows.features)


CLASS_METHODS: Registry[type[ClassMethod]] = Registry("method of classes")
CLASS_METHODS.register(UNCALIBRATED, Uncalibrated)
CLASS_METHODS.register("global", Global)
CLASS_METHODS.register("faircal", FairCalMethod)
CLASS_METHODS.register("groupwise", Groupwise)
CLASS_METHODS.register("oracle", ClassOracle)


def make_class_method(name: str, **parameters: Any) -> ClassMethod:
    """Return a new method by name, with the parameters of `ClassMethod`.

    Examples
    --------
    >>> make_class_method("oracle", calibrator="temperature").title
    'Oracle'
    """
    kind = CLASS_METHODS[name]
    if kind is Groupwise:  # what fits groups by themselves has nothing to pull them to
        parameters.pop("shrinkage", None)
    return kind(**parameters)
