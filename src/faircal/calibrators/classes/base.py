"""The contract of every calibrator of classes, and choosing by log-loss on rows held out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED

from faircal._base.errors import DataError
from faircal.calibrators.base import CalibratorNotFittedError
from faircal.calibrators.beta import EPS
from faircal.compute.threads import each
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


# ---------------------------------------------------- choosing by cross-validation

FOLDS = 5
#: Most rows that a choice is made on; a random part where there are more.
MOST_ROWS = 50_000


def drawn_folds(
    n: int, units: npt.NDArray[np.int64] | None, seed: int, most: int = MOST_ROWS
) -> Int64:
    """Return the fold of each row, shape (n,): 0 to `FOLDS` − 1, or −1 for rows left out.

    Rows of one unit are in one fold. Where there are more rows than `most`, only so many are drawn.

    Parameters
    ----------
    n : int
    units : ndarray of shape (n,), optional
        Numbers from 0; every row by itself by default.
    seed : int
    most : int
    """
    count = n if units is None else int(units.max(initial=-1)) + 1
    order = np.random.default_rng(seed).permutation(count)
    fold = np.empty(count, np.int64)
    fold[order] = np.arange(count) % FOLDS
    fold[order[int(np.ceil(count * min(1.0, most / max(n, 1)))) :]] = -1
    return fold if units is None else fold[units]


def choose(
    n_candidates: int,
    folds: Int64,
    losses: Callable[[Int64, Int64], Float64],
    *,
    cautious: bool = False,
    units: Int64 | None = None,
) -> int:
    """Return the candidate with the least mean loss on the rows held out.

    Candidates come with the safest first. It is chosen where there are too few rows to hold any
    out, and among equals.

    Parameters
    ----------
    n_candidates : int
    folds : ndarray of shape (n,)
        See `drawn_folds`.
    losses : callable
        From the rows to fit on and the rows held out to the loss of each candidate on each of the
        latter, shape (n_candidates, n_held_out).
    cautious : bool
        Whether to leave the safest only for one that is better by more than a standard error.
    units : ndarray of shape (n,), optional
        Numbers from 0: rows of one unit are better or worse together.
    """
    used = np.flatnonzero(folds >= 0)
    numbers = np.unique(folds[used])
    if len(numbers) < 2 or n_candidates < 2:
        return 0

    parts = [used[folds[used] == number] for number in numbers]

    def one(part: slice) -> Float64:
        held = parts[part.start]
        return losses(np.setdiff1d(used, held, assume_unique=True), held)

    of_rows = np.hstack(each(one, len(parts), 1))
    mean = of_rows.mean(axis=1)
    # Differences in the last digits are no reason to leave the safer one.
    best = int(np.argmax(mean <= mean.min() + 1e-9 * abs(mean.min()) + 1e-15))
    if not cautious:
        return best
    rows = np.concatenate(parts)
    gain = of_rows[0] - of_rows[best]
    sums = gain - gain.mean()
    if units is not None:
        sums = np.bincount(units[rows], sums)
    return best if gain.sum() > np.sqrt(np.square(sums).sum()) else 0


def log_losses(probabilities: Float64, codes: Int64) -> Float64:
    """Return the log-loss of each checked row; a certain mistake costs a finite 36."""
    of_label = probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(of_label, EPS)))
