"""Training pairs at the door: checked once, then tallied into one order-free form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from faircal._base.errors import DataError
from faircal.compute.counting import ascending

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WeightedScores:
    """Training pairs as masses over distinct scores.

    Everything a calibrator may learn from is in these three arrays, so that the order of the
    pairs cannot matter, a weight of 3 is the same as three copies, and a weight of 0 is the same
    as no pair at all.

    Attributes
    ----------
    scores : ndarray of shape (n_distinct,)
        Distinct scores, ascending.
    genuine : ndarray of shape (n_distinct,)
        Total weight of the genuine pairs at each score.
    mass : ndarray of shape (n_distinct,)
        Total weight of all pairs at each score, above zero.
    """

    scores: Floats
    genuine: Floats
    mass: Floats

    @property
    def fraction(self) -> float:
        """Weighted fraction of genuine pairs."""
        return min(float(self.genuine.sum() / self.mass.sum()), 1.0)

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn but the fraction: one score, or one class."""
        return self.scores.size == 1 or self.fraction in (0.0, 1.0)


def tally(scores: Floats, genuine: Floats, weight: Floats | None) -> WeightedScores:
    """Gather pairs by score.

    Parameters
    ----------
    scores, genuine : ndarray of shape (n,)
        Scores, and 1.0 for a genuine pair or 0.0 for an imposter pair.
    weight : ndarray of shape (n,) or None
        Weights, not all zero.

    Examples
    --------
    >>> sample = tally(np.array([0.5, 0.1, 0.5]), np.array([1.0, 0.0, 0.0]), None)
    >>> sample.scores, sample.genuine, sample.mass
    (array([0.1, 0.5]), array([0., 1.]), array([1., 2.]))
    """
    if weight is None:
        weight = np.ones_like(scores)
    elif not weight.all():
        present = weight > 0
        scores, genuine, weight = scores[present], genuine[present], weight[present]
    order = ascending(scores)
    weight = weight[order]
    return merge_ties(scores[order], genuine[order] * weight, weight)


def merge_ties(scores: Floats, genuine: Floats, mass: Floats) -> WeightedScores:
    """Gather entries of equal score, given in ascending order."""
    starts = np.flatnonzero(np.concatenate(([True], scores[1:] != scores[:-1])))
    if starts.size == scores.size:
        return WeightedScores(scores, genuine, mass)
    return WeightedScores(
        scores[starts], np.add.reduceat(genuine, starts), np.add.reduceat(mass, starts)
    )


def as_labels(genuine: Any, n: int) -> Floats:
    """Return `genuine` as 0.0 and 1.0 of shape (n,)."""
    if genuine is None:
        # The middle of the sentence is the one scikit-learn's own tools look for.
        raise DataError(
            "genuine: this calibrator requires y to be passed, but the target y is None; "
            "give one boolean (or 0/1) per score"
        )
    labels = as_vector(genuine, "genuine")
    _check_length(labels, n, "genuine")
    other = labels[(labels != 0.0) & (labels != 1.0)]
    if other.size:
        raise DataError(
            f"genuine: expected booleans or 0/1; found {other[0]:g}; "
            "use 1 for a genuine pair and 0 for an imposter pair"
        )
    return labels


def as_weights(sample_weight: Any, n: int) -> Floats | None:
    """Return `sample_weight` as float64 of shape (n,), or None for equal weights."""
    if sample_weight is None:
        return None
    weight = as_vector(sample_weight, "sample_weight", column=False)
    _check_length(weight, n, "sample_weight")
    if (weight < 0).any():
        raise DataError(
            f"sample_weight: expected weights of 0 or more; found {weight.min():g}; "
            "drop these pairs or correct their weight"
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if total == 0:
        raise DataError("sample_weight: expected a weight above zero; found all zero")
    if not np.isfinite(total):
        raise DataError("sample_weight: the sum is too large for double precision; scale it down")
    return weight


def as_vector(values: Any, name: str, *, column: bool = True) -> Floats:
    """Return `values` as finite float64 of shape (n,); with `column` (n, 1) is flattened."""
    if issparse(values):
        raise DataError(f"{name}: expected a dense array; found a sparse one; use .toarray()")
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise DataError(f"{name}: Complex data not supported; give real numbers")
    if array.dtype.kind not in "biufO":
        raise DataError(f"{name}: expected numbers; found dtype {array.dtype}")
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected numbers; {error}") from error
    if column and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        shapes = "(n,) or (n, 1)" if column else "(n,)"
        raise DataError(f"{name}: expected shape {shapes}; found shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        where = int(np.argmin(finite))
        what = "NaN" if np.isnan(array[where]) else "infinity (inf)"
        raise DataError(
            f"{name}: expected finite numbers; found {what} at position {where}; "
            "drop or repair these pairs first"
        )
    return array


def _check_length(array: Floats, n: int, name: str) -> None:
    if array.size != n:
        raise DataError(f"{name}: expected one value per score, {n}; found {array.size}")
