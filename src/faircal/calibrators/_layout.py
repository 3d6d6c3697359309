"""Pairs in the order of their scores, and the rows of each set: one sort, then counting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from faircal._base.errors import DataError, ParameterError
from faircal.calibrators._sample import Floats, as_labels, as_scores, as_weights
from faircal.compute.counting import ascending

Rows: TypeAlias = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class SortedPairs:
    """Pairs of weight above zero, ascending by score.

    Attributes
    ----------
    scores, genuine : ndarray of shape (n,)
        Scores, and the weight of the pair where it is genuine, 0 where it is not.
    weight : ndarray of shape (n,), optional
        None where all are 1.
    order : ndarray of shape (n,)
        Where each was among those given.
    n_given : int
    """

    scores: Floats
    genuine: npt.NDArray[Any]
    weight: Floats | None
    order: npt.NDArray[np.intp]
    n_given: int

    @classmethod
    def of(
        cls, score: npt.ArrayLike, genuine: npt.ArrayLike, weight: npt.ArrayLike | None
    ) -> SortedPairs:
        """Check and sort pairs."""
        scores = as_scores(score)
        labels = np.asarray(genuine)
        if labels.dtype != np.bool_ or labels.shape != scores.shape:
            labels = as_labels(genuine, len(scores))
        masses = as_weights(weight, len(scores))
        order = ascending(scores)
        if masses is not None:
            order = order[masses[order] > 0]
            masses = masses[order]
        labels = labels[order] if masses is None else labels[order] * masses
        return cls(scores[order], labels, masses, order, len(scores))

    def by_code(self, codes: Sequence[npt.ArrayLike], n_sets: int) -> tuple[Rows, Rows]:
        """Return the rows of each set, one set after the other, and where each starts.

        `codes` give the set or sets of each pair, −1 for none; once is enough.
        """
        found = [_checked(code, self.n_given, n_sets)[self.order] for code in codes]
        return _members(found, n_sets, len(self.order))


def _checked(code: npt.ArrayLike, n: int, n_sets: int) -> npt.NDArray[np.int32]:
    array = np.asarray(code)
    if array.dtype.kind not in "iu" or array.shape != (n,):
        raise DataError(
            f"codes: expected the number of a set per pair, {n} of them; "
            f"found {array.dtype} of shape {array.shape}"
        )
    if n and not (array.min() >= -1 and array.max() < n_sets):
        raise ParameterError(
            f"codes: expected sets from -1 to {n_sets - 1}; found {array.min()} to {array.max()}"
        )
    return array.astype(np.int32, copy=False)


def _members(codes: list[npt.NDArray[np.int32]], n_sets: int, n: int) -> tuple[Rows, Rows]:
    """Return the rows of each set, ascending, one set after the other, and where each starts."""
    small = n * len(codes) < 2**31
    table = np.empty((n, len(codes)), np.int32)
    ends: Rows = np.zeros(n + 1, np.int32 if small else np.int64)
    for i, code in enumerate(codes):
        table[:, i] = code
        for other in codes[:i]:
            table[code == other, i] = -1
        ends[1:] += table[:, i] >= 0
    np.cumsum(ends, out=ends)
    columns = table[table >= 0]
    # Pairs by sets turned into sets by pairs is a transposition, done by counting.
    by_pair = csr_array((np.empty(len(columns), np.int8), columns, ends), shape=(n, n_sets))
    by_set = by_pair.tocsc()
    return by_set.indices, by_set.indptr
