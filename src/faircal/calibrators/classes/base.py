"""The contract of every calibrator of classes: class probabilities in, better ones out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED

from faircal._base.errors import DataError
from faircal.calibrators.base import CalibratorNotFittedError
from faircal.data.class_probabilities import (
    as_class_probabilities,
    as_probabilities_matrix,
    as_units,
)

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


class Strength(NamedTuple):
    """How strongly the map of a set of rows is pulled to the global one.

    `rows`: as many rows as the global map counts for; infinite: the global map itself.
    `off_diagonal`: by what factor more strongly the off-diagonal coefficients of a matrix are
    pulled.
    """

    rows: float
    off_diagonal: float = 10.0


class PulledMap(NamedTuple):
    """The map of a set: `weight` of `own` and the rest of the global map."""

    own: ClassCalibrator
    weight: float


class ClassCalibrator(BaseEstimator, ABC):  # type: ignore[misc]
    """A map from class probabilities to calibrated ones.

    This class checks the input; a subclass brings `_fit` and `apply`, and `towards` for the maps
    of sets of rows.

    Notes
    -----
    Classes are numbered in the order of the columns; a class without a single label is accepted.
    """

    # Fitted attributes that make up the state, without their final underscore.
    _arrays: ClassVar[tuple[str, ...]] = ()

    # Scikit-learn would otherwise take our names for X and y as metadata to be routed.
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "probabilities": UNUSED,
        "codes": UNUSED,
        "units": UNUSED,
    }
    __metadata_request__predict: ClassVar[dict[str, str]] = {"probabilities": UNUSED}

    def fit(
        self,
        probabilities: npt.ArrayLike,
        codes: npt.ArrayLike,
        *,
        units: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the map from labelled rows.

        Parameters
        ----------
        probabilities : array-like of shape (n, n_classes)
            Class probabilities of rows that the classifier was not trained on; rows sum to 1.
        codes : array-like of shape (n,)
            The column of the true class of each row.
        units : array-like of int, shape (n,), optional
            Whom each row comes from, numbered from 0: what is chosen by cross-validation is then
            chosen on units held out together.

        Returns
        -------
        self : ClassCalibrator
        """
        self._check_parameters()
        matrix, labels = as_class_probabilities(probabilities, codes)
        if not len(matrix):
            raise DataError("probabilities: expected one row at least, found none")
        if matrix.shape[1] < 2:
            raise DataError(
                "probabilities: expected two classes at least, found one column; "
                "give a column for every class"
            )
        whom = None if units is None else as_units(units, len(matrix))
        self._fit(matrix, labels, whom)
        return self

    def predict(self, probabilities: npt.ArrayLike) -> Float64:
        """Return calibrated probabilities, shape (n, n_classes); rows sum to 1."""
        self._check_fitted()
        matrix = as_probabilities_matrix(probabilities)
        if matrix.shape[1] != self.n_classes_:
            raise DataError(
                f"probabilities: expected {self.n_classes_} columns, one for each class of the "
                f"calibration rows, found {matrix.shape[1]}"
            )
        return self.apply(matrix)

    @property
    @abstractmethod
    def n_classes_(self) -> int:
        """Number of classes."""

    def strengths(self) -> Sequence[Strength]:
        """Return the strengths to choose among for this calibrator's sets, strongest first."""
        return [Strength(rows) for rows in (np.inf, 1250.0, 250.0, 50.0, 10.0, 2.0)]

    @abstractmethod
    def towards(
        self, probabilities: Float64, codes: Int64, strengths: Sequence[Strength]
    ) -> list[PulledMap]:
        """Fit the map of a set of rows, pulled to this one, which is that of all rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_classes)
            Checked rows of the set, one at least.
        codes : ndarray of shape (n,)
        strengths : sequence of Strength
            Finite, strongest first.

        Returns
        -------
        maps : list of Pulled
            One for each strength.
        """

    def settled(self) -> Self:
        """Return an unfitted copy in which what was chosen by cross-validation is fixed."""
        copy: Self = clone(self)
        return copy

    def get_state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what ``fit`` learnt; with ``get_params`` it restores the calibrator exactly."""
        self._check_fitted()
        return {name: getattr(self, f"{name}_").copy() for name in self._arrays}

    def set_state(self, state: Mapping[str, npt.ArrayLike]) -> Self:
        """Take over what another calibrator of this class learnt."""
        self._check_parameters()
        if set(state) != set(self._arrays):
            raise DataError(
                f"state of {type(self).__name__}: expected {sorted(self._arrays)}; "
                f"found {sorted(state)}; was it saved by another kind of calibrator?"
            )
        for name, values in state.items():
            setattr(self, f"{name}_", np.array(values))
        return self

    @abstractmethod
    def _fit(self, probabilities: Float64, codes: Int64, units: Int64 | None = None) -> None:
        """Learn from checked rows."""

    @abstractmethod
    def apply(self, probabilities: Float64) -> Float64:
        """Return what `predict` does, a new array, for rows that are checked already."""

    def _check_parameters(self) -> None:
        """Check the constructor's parameters."""

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise CalibratorNotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit or set_state first"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, f"{name}_") for name in self._arrays)
