"""The pairs that are audited: arrays of the caller, or of a dataset and a model, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset, Groups
from faircal.data.columns import Column, parse_genuine
from faircal.metrics.intervals import Uncertainty
from faircal.metrics.results import Result

if TYPE_CHECKING:
    from faircal.methods.base import Output

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Labelled pairs with what is to be measured of them.

    Parameters
    ----------
    genuine : ndarray of bool, shape (n_pairs,)
    score, probability : ndarray of float64, shape (n_pairs,), at least one of them
    groups : Groups, optional
    people : Groups, optional
        Who is in each pair: the people as groups of their images.
    """

    genuine: NDArray[np.bool_]
    score: Float64 | None = None
    probability: Float64 | None = None
    groups: Groups | None = None
    people: Groups | None = None

    @property
    def ranked(self) -> Float64 | None:
        """What decisions rank by: the probability where there is no score.

        The same array for both, where there is only one, is sorted or counted only once.
        """
        return self.probability if self.score is None else self.score

    def take(self, rows: NDArray[np.intp]) -> ScoredPairs:
        """Return some of the pairs, in that order."""

        def cut(values: Any) -> Any:
            if isinstance(values, Groups):
                return Groups(values.names, values.left[rows], values.right[rows])
            return None if values is None else values[rows]

        probability = cut(self.probability)
        score = probability if self.score is self.probability else cut(self.score)
        return ScoredPairs(
            self.genuine[rows], score, probability, cut(self.groups), cut(self.people)
        )

    def uncertainty(
        self, measures: Sequence[Result], calibrated_at: float | None = None
    ) -> Uncertainty:
        """Return how sure values are that were measured of these pairs."""
        return Uncertainty(
            measures,
            genuine=self.genuine,
            people=self.people,
            score=self.ranked,
            probability=self.probability,
            groups=self.groups,
            calibrated_at=calibrated_at,
        )

    @classmethod
    def of(
        cls,
        genuine: Any,
        score: Any = None,
        probability: Any = None,
        groups: Any = None,
        left_identity: Any = None,
        right_identity: Any = None,
    ) -> ScoredPairs:
        """Check arrays; see `faircal.audit` for what they are."""
        if np.ndim(genuine) != 1:
            raise DataError(
                f"genuine: expected one value per pair, found shape {np.shape(genuine)}"
            )
        labelled = parse_genuine(genuine, "genuine")
        if score is None and probability is None:
            raise ParameterError(
                "audit: expected score or probability, found neither; give one of them"
            )
        n = len(labelled)
        probabilities = None if probability is None else _numbers(probability, "probability", n)
        ranked: Float64 | None = None
        if score is not None:
            ranked = probabilities if score is probability else _numbers(score, "score", n)
        people = None
        if left_identity is not None and right_identity is not None:
            people = _people(left_identity, right_identity, n)
        checked = None if groups is None else _groups(groups, n)
        return cls(labelled, ranked, probabilities, checked, people)

    @classmethod
    def of_data(cls, data: Dataset, output: Output | None, attribute: str | None) -> ScoredPairs:
        """Take the pairs of a dataset with their own scores, or with what a model says of them."""
        score = data.scores if output is None else output.score
        probability = data.pairs.probability if output is None else output.probability
        checked = cls.of(data.genuine, score, probability)
        groups = None if attribute is None else data.groups(attribute)
        return cls(checked.genuine, checked.score, checked.probability, groups, data.people)


def check_points(
    threshold: Any, rates: Sequence[float] = ()
) -> tuple[float | None, tuple[float, ...]]:
    """Return a decision threshold as a number, and error rates, each between 0 and 1."""
    for rate in rates:
        if not 0 < rate < 1:
            raise ParameterError(
                f"rates: expected rates between 0 and 1, found {rate:g}; write 1 % as 0.01"
            )
    try:
        at = None if threshold is None else float(threshold)
    except (TypeError, ValueError):
        at = float("nan")
    if at is not None and not np.isfinite(at):
        raise ParameterError(f"threshold: expected a finite number, found {threshold!r}")
    return at, tuple(rates)


def _numbers(values: Any, name: str, n: int) -> Float64:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}: expected numbers; convert the column first") from None
    if array.shape != (n,):
        raise DataError(f"{name}: expected {n} values, one per pair, found shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(
            f"{name}, row {row + 1}: expected a finite number, found {array[row]}; correct it"
        )
    outside = (array < 0) | (array > 1)
    if name == "probability" and outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise DataError(
            f"probability, row {row + 1}: expected 0 to 1, found {array[row]:g}; correct it"
        )
    return array


def _groups(groups: Any, n: int) -> Groups:
    if isinstance(groups, Groups):
        if len(groups) != n:
            raise DataError(f"groups: expected {n}, one per pair, found {len(groups)}")
        return groups
    array = np.asarray(groups, dtype=object)
    if array.shape not in ((n,), (n, 2)):
        raise DataError(
            f"groups: expected shape ({n},) or ({n}, 2), found {array.shape}; one per pair"
        )
    column = Column.of(array.ravel(order="F"))
    left, right = (column.codes, column.codes) if array.ndim == 1 else np.split(column.codes, 2)
    return Groups(column.names, left, right)


def _people(left: Any, right: Any, n: int) -> Groups:
    """Return who is in each pair."""
    sides = [np.asarray(side) for side in (left, right)]
    for side in sides:
        if side.shape != (n,):
            raise DataError(
                f"identities: expected {n} values, one per pair, found shape {side.shape}"
            )
    column = Column.of(np.concatenate(sides))
    codes = np.split(column.codes, 2)
    return Groups(column.names, codes[0], codes[1])
