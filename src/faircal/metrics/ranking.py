"""Scores sorted once: what every metric is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from faircal.errors import DataError, ParameterError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """Pairs in descending order of score; build it with `Ranking.of`.

    Sorting is the one costly step of every metric. A ranking holds its result, so that any
    number of metrics, on all pairs and on every group, cost one sort together.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_pairs,)
        Scores or probabilities, descending.
    genuine : ndarray of bool, shape (n_pairs,)
        Labels in that same order.
    order : ndarray of int, shape (n_pairs,)
        Where each sorted pair stood in the input; pairs with equal scores keep their input order.

    Examples
    --------
    >>> ranking = Ranking.of([0.2, 0.9, 0.9, 0.4], [0, 1, 0, 1])
    >>> ranking.thresholds
    array([0.9, 0.4, 0.2])
    >>> ranking.tp, ranking.fp
    (array([1, 2, 2]), array([1, 1, 2]))
    >>> ranking.subset([True, True, False, False]).scores
    array([0.9, 0.2])
    """

    scores: FloatArray
    genuine: BoolArray
    order: npt.NDArray[np.intp]

    def __post_init__(self) -> None:
        # Cached counts are only right for as long as nobody writes into the arrays.
        for array in (self.scores, self.genuine, self.order):
            array.setflags(write=False)

    @classmethod
    def of(cls, scores: npt.ArrayLike, genuine: npt.ArrayLike) -> Ranking:
        """Check and sort scores with their labels.

        Parameters
        ----------
        scores : array-like of float, shape (n_pairs,)
            Finite; higher is more alike.
        genuine : array-like of bool or 0/1, shape (n_pairs,)
            One class only is accepted.

        Returns
        -------
        Ranking

        Raises
        ------
        DataError
            If there are no pairs, the lengths differ, a score is not finite or a label not binary.
        """
        values, labels = _numbers(scores, "scores"), _labels(genuine)
        if len(values) != len(labels):
            raise DataError(
                f"expected one label per score; found {len(values)} scores and "
                f"{len(labels)} labels; pass two columns of the same table"
            )
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise DataError(
                f"expected finite scores; found {values[row]} in row {row}; "
                "drop or repair such pairs"
            )
        order = np.argsort(-values, kind="stable")
        return cls(values[order], labels[order], order)

    def subset(self, mask: npt.ArrayLike) -> Ranking:
        """Return the ranking of some of the pairs, without sorting again.

        Parameters
        ----------
        mask : array-like of bool, shape (n_pairs,)
            Which pairs to keep, in the order of the input. None may be kept: every metric of an
            empty ranking is NaN.

        Returns
        -------
        Ranking
        """
        keep = np.asarray(mask)
        if keep.dtype != np.bool_ or keep.shape != self.order.shape:
            raise DataError(
                f"expected a boolean mask of shape {self.order.shape}; found {keep.dtype} of shape "
                f"{keep.shape}; pass one True or False per pair"
            )
        kept = keep[self.order]
        row_in_subset = np.cumsum(keep) - 1
        return Ranking(self.scores[kept], self.genuine[kept], row_in_subset[self.order[kept]])

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"<Ranking of {self.n_genuine} genuine and {self.n_imposter} imposter pairs>"

    @cached_property
    def n_genuine(self) -> int:
        """Number of genuine pairs."""
        return int(np.count_nonzero(self.genuine))

    @property
    def n_imposter(self) -> int:
        """Number of imposter pairs."""
        return len(self) - self.n_genuine

    @cached_property
    def _ends(self) -> npt.NDArray[np.intp]:
        """Position of the last pair of each block of equal scores, shape (n_distinct,)."""
        if not len(self):
            return np.empty(0, dtype=np.intp)
        return np.append(np.flatnonzero(self.scores[1:] != self.scores[:-1]), len(self) - 1)

    @cached_property
    def thresholds(self) -> FloatArray:
        """Distinct scores, descending, shape (n_distinct,)."""
        return self.scores[self._ends]

    @cached_property
    def tp(self) -> IntArray:
        """Genuine pairs with a score of at least each threshold, shape (n_distinct,)."""
        return np.cumsum(self.genuine, dtype=np.int64)[self._ends]

    @cached_property
    def fp(self) -> IntArray:
        """Imposter pairs with a score of at least each threshold, shape (n_distinct,)."""
        return self._ends + 1 - self.tp


def as_ranking(scores: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None) -> Ranking:
    """Return `scores` if it is a ranking, else the ranking of the two arrays.

    This is the door of every metric that takes arrays or a ranking.

    Examples
    --------
    >>> as_ranking([0.3, 0.6], [0, 1])
    <Ranking of 1 genuine and 1 imposter pairs>
    >>> as_ranking(_, None)
    <Ranking of 1 genuine and 1 imposter pairs>
    """
    if isinstance(scores, Ranking):
        if genuine is not None:
            raise ParameterError(
                "expected a ranking alone; found a ranking and labels; a ranking holds its labels"
            )
        return scores
    if genuine is None:
        raise ParameterError(
            "expected labels beside the scores; found none; pass genuine, or a Ranking"
        )
    return Ranking.of(scores, genuine)


def as_probabilities(
    probability: npt.ArrayLike | Ranking, genuine: npt.ArrayLike | None
) -> Ranking:
    """Return the ranking of probabilities, refusing any value outside [0, 1].

    Examples
    --------
    >>> as_probabilities([-0.2, 0.6], [0, 1])
    Traceback (most recent call last):
    ...
    faircal.errors.DataError: expected probabilities in [0, 1]; found values from -0.2 to 0.6; \
calibrate the scores first
    """
    ranking = as_ranking(probability, genuine)
    # Sorted values: the two ends speak for all.
    if len(ranking) and not (ranking.scores[-1] >= 0 and ranking.scores[0] <= 1):
        low, high = ranking.scores[-1], ranking.scores[0]
        raise DataError(
            f"expected probabilities in [0, 1]; found values from {low:g} to {high:g}; "
            "calibrate the scores first"
        )
    return ranking


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return a non-empty 1-d float64 array or say what is wrong."""
    try:
        array = np.asarray(values)
        # Text is refused although "0.5" could be read: it is a column of the wrong kind.
        numbers = None if array.dtype.kind not in "biufO" else array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise DataError(f"expected {name} to be numbers; found other values; pass a numeric column")
    if numbers.ndim != 1 or not numbers.size:
        raise DataError(
            f"expected {name} to be one-dimensional and not empty; found shape {numbers.shape}; "
            "pass one value per pair"
        )
    return numbers


def _labels(genuine: npt.ArrayLike) -> BoolArray:
    """Return labels as bool or say which value is neither 0 nor 1."""
    numbers = _numbers(genuine, "genuine")
    labels: BoolArray = numbers == 1
    other = ~(labels | (numbers == 0))
    if other.any():
        row = int(np.argmax(other))
        raise DataError(
            f"expected genuine to be True/False or 1/0; found {numbers[row]:g} in row {row}; "
            "recode the labels"
        )
    return labels
