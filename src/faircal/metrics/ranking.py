"""Scores sorted once: what every metric is computed from."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from faircal._base.errors import DataError, ParameterError
from faircal.compute.counting import ascending
from faircal.data.columns import as_numbers

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


class _PairRows(NamedTuple):
    """The pairs of a ranking, highest score first; equal scores in the order of the input."""

    scores: FloatArray
    genuine: BoolArray
    rows: npt.NDArray[np.intp]  # in what was sorted, of which these may be a part


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """How many pairs reach each score; build it with `Ranking.of` or `Ranking.counted`.

    Sorting is the one costly step of every metric. A ranking holds its result, so that any
    number of metrics, on all pairs and on every group, cost one sort together.

    Parameters
    ----------
    thresholds : ndarray of float64, shape (n_distinct,)
        Distinct scores or probabilities, descending.
    tp, fp : ndarray of int64, shape (n_distinct,)
        Genuine and imposter pairs with a score of at least each threshold.

    Attributes
    ----------
    n_genuine, n_imposter : int
        Numbers of pairs.

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

    thresholds: FloatArray
    tp: IntArray
    fp: IntArray
    _pairs: _PairRows | None = None
    _bins: tuple[FloatArray, FloatArray] | None = None
    n_genuine: int = field(init=False)
    n_imposter: int = field(init=False)

    def __post_init__(self) -> None:
        # Several metrics and groups share these arrays.
        arrays = self.thresholds, self.tp, self.fp
        for array in (*arrays, *(self._pairs or ()), *(self._bins or ())):
            array.setflags(write=False)
        n_genuine, n_imposter = (int(of[-1]) if len(of) else 0 for of in (self.tp, self.fp))
        vars(self).update(n_genuine=n_genuine, n_imposter=n_imposter)

    @classmethod
    def of(cls, scores: npt.ArrayLike, genuine: npt.ArrayLike) -> Ranking:
        """Check and sort scores with their labels.

        Parameters
        ----------
        scores : array-like of float, shape (n_pairs,)
            Finite; higher is more alike.
        genuine : array-like of bool or 0/1, shape (n_pairs,)
            One class only is accepted.
        """
        values, labels = _numbers(scores, "scores"), _numbers(genuine, "genuine")
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
        is_genuine = labels == 1
        other = ~(is_genuine | (labels == 0))
        if other.any():
            row = int(np.argmax(other))
            raise DataError(
                f"expected genuine to be True/False or 1/0; found {labels[row]:g} in row {row}; "
                "recode the labels"
            )
        order = ascending(-values)
        return cls._of_sorted(_PairRows(values[order], is_genuine[order], order))

    @classmethod
    def counted(
        cls,
        scores: npt.ArrayLike,
        genuine: npt.ArrayLike,
        imposter: npt.ArrayLike,
        bins: tuple[FloatArray, FloatArray] | None = None,
    ) -> Ranking:
        """Return the ranking of pairs that are counted by score; it knows no single pair.

        Parameters
        ----------
        scores : array-like of float, shape (n,)
            Finite and ascending.
        genuine, imposter : array-like of int, shape (n,)
            Pairs with that score.
        bins : pair of ndarray of float64, shape (n,), optional
            The lowest and the highest score that may have been counted as each.

        Examples
        --------
        >>> Ranking.counted([0.2, 0.4, 0.9], [0, 1, 1], [1, 0, 1]).tp
        array([1, 2, 2])
        """
        values, hit, miss = (np.asarray(of) for of in (scores, genuine, imposter))
        if not (values.shape == hit.shape == miss.shape and (np.diff(values) > 0).all()):
            raise DataError("expected ascending scores with two counts each; found others")
        tp, fp = (np.cumsum(count[::-1], dtype=np.int64) for count in (hit, miss))
        ends = None if bins is None else (bins[0][::-1], bins[1][::-1])
        return cls(values[::-1].astype(np.float64), tp, fp, None, ends)

    @classmethod
    def _of_sorted(cls, pairs: _PairRows) -> Ranking:
        scores = pairs.scores
        tp = np.cumsum(pairs.genuine, dtype=np.int64)
        # A threshold takes or leaves all equal scores: counts are kept at ends of blocks alone.
        last = np.ones(len(scores), dtype=np.bool_)  # of its block of equal scores
        np.not_equal(scores[1:], scores[:-1], out=last[:-1])
        if last.all():
            return cls(scores, tp, np.arange(1, len(scores) + 1) - tp, pairs)
        ends = np.flatnonzero(last)
        tp = tp[ends]
        return cls(scores[ends], tp, ends + 1 - tp, pairs)

    @property
    def pairs(self) -> _PairRows:
        """The single pairs, sorted."""
        if self._pairs is None:
            raise ParameterError(
                "expected a ranking of single pairs; found one made of counts, as of very many "
                "pairs; use Ranking.of, or thresholds, tp and fp alone"
            )
        return self._pairs

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest score that each threshold stands for, descending."""
        return self._bins or (self.thresholds, self.thresholds)

    @property
    def scores(self) -> FloatArray:
        """Scores or probabilities of the pairs, descending, shape (n_pairs,)."""
        return self.pairs.scores

    @property
    def genuine(self) -> BoolArray:
        """Labels in that same order, shape (n_pairs,)."""
        return self.pairs.genuine

    @cached_property
    def order(self) -> npt.NDArray[np.intp]:
        """Where each sorted pair stood in the input, shape (n_pairs,).

        Pairs with equal scores keep their input order.
        """
        rows = self.pairs.rows
        if rows.max(initial=-1) + 1 == len(rows):  # all that was sorted
            return rows
        order = np.empty(len(rows), dtype=np.intp)
        order[np.argsort(rows)] = np.arange(len(rows))
        return order

    def subset(self, mask: npt.ArrayLike) -> Ranking:
        """Return the ranking of some of the pairs, without sorting again.

        Parameters
        ----------
        mask : array-like of bool, shape (n_pairs,)
            Which pairs to keep, in the order of the input. None may be kept: every metric of an
            empty ranking is NaN.
        """
        keep = np.asarray(mask)
        if keep.dtype != np.bool_ or keep.shape != self.order.shape:
            raise DataError(
                f"expected a boolean mask of shape {self.order.shape}; found {keep.dtype} of shape "
                f"{keep.shape}; pass one True or False per pair"
            )
        kept = keep[self.order]
        return Ranking._of_sorted(_PairRows(*(column[kept] for column in self.pairs)))

    def split(self, codes: npt.ArrayLike, n: int) -> list[Ranking]:
        """Return the rankings of all groups in one pass: the same as a `subset` for each.

        Parameters
        ----------
        codes : array-like of int, shape (n_pairs,)
            The group of each pair, from 0 to n − 1, in the order of the input; −1 for none.
        n : int
            Number of groups.

        Examples
        --------
        >>> ranking = Ranking.of([0.2, 0.9, 0.7, 0.4], [0, 1, 0, 1])
        >>> [group.scores.tolist() for group in ranking.split([0, 1, 1, -1], 2)]
        [[0.2], [0.9, 0.7]]
        """
        given = np.asarray(codes)
        if given.shape != self.order.shape or given.dtype.kind not in "iu":
            raise DataError(
                f"expected a whole number per pair, of shape {self.order.shape}; "
                f"found {given.dtype} of shape {given.shape}"
            )
        if len(given) and not (given.min() >= -1 and given.max() < n):
            raise DataError(
                f"expected groups from -1 to {n - 1}; found {given.min()} to {given.max()}"
            )
        # Sixteen bits are sorted in linear time, and a sort that is stable keeps the ranking.
        small = np.int16 if n < np.iinfo(np.int16).max else np.int64
        sorted_codes = given.astype(small, copy=False)[self.order]
        by_group = np.argsort(sorted_codes, kind="stable")
        pairs = self.pairs
        scores, genuine = pairs.scores[by_group], pairs.genuine[by_group]
        rows = pairs.rows[by_group]
        starts = np.searchsorted(sorted_codes[by_group], np.arange(n + 1, dtype=small))
        return [
            Ranking._of_sorted(_PairRows(scores[start:end], genuine[start:end], rows[start:end]))
            for start, end in itertools.pairwise(starts.tolist())
        ]

    def __len__(self) -> int:
        return self.n_genuine + self.n_imposter

    def __repr__(self) -> str:
        return f"<Ranking of {self.n_genuine} genuine and {self.n_imposter} imposter pairs>"


def pooled_counts(ranking: Ranking) -> tuple[IntArray, IntArray]:
    """Return genuine and imposter pairs of the blocks that isotonic regression pools, ascending.

    Pooling goes by the fraction genuine; it is the best increasing map for every proper score.

    Examples
    --------
    >>> pooled_counts(Ranking.of([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1]))
    (array([0, 1, 1]), array([1, 1, 0]))
    """
    hit, miss = (np.diff(of, prepend=0)[::-1] for of in (ranking.tp, ranking.fp))
    filled = hit + miss > 0  # bins of a counted ranking may be empty
    hit, miss = hit[filled], miss[filled]
    # Pool adjacent violators: neighbours merge until shares rise with the score.
    blocks = isotonic_regression(hit / (hit + miss), weights=hit + miss).blocks[:-1]
    return np.add.reduceat(hit, blocks), np.add.reduceat(miss, blocks)


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
    faircal.DataError: expected probabilities in [0, 1]; found values from -0.2 to 0.6; \
calibrate the scores first
    """
    ranking = as_ranking(probability, genuine)
    # Sorted values: the two ends speak for all.
    low, high = (ranking.thresholds[-1], ranking.thresholds[0]) if len(ranking) else (0.0, 1.0)
    if not (low >= 0 and high <= 1):
        raise DataError(
            f"expected probabilities in [0, 1]; found values from {low:g} to {high:g}; "
            "calibrate the scores first"
        )
    return ranking


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return a non-empty 1-d float64 array or say what is wrong."""
    numbers = as_numbers(values)
    if numbers is None:
        raise DataError(f"expected {name} to be numbers; found other values; pass a numeric column")
    if numbers.ndim != 1 or not numbers.size:
        raise DataError(
            f"expected {name} to be one-dimensional and not empty; found shape {numbers.shape}; "
            "pass one value per pair"
        )
    return numbers
