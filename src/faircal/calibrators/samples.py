"""Training pairs at the door: checked, then tallied; of one set, or of many side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from faircal._base.errors import DataError, ParameterError
from faircal.compute.counting import ScoreCounts, ascending
from faircal.compute.threads import each

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

# Groups of consecutive scores averaged in one piece of work.
_GROUPS = 1 << 11
# A label with less than this part of a group's mass is left out of it: rounding, not pairs.
_TRACE = 1e-12


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


@dataclass(frozen=True, eq=False)
class Samples:
    """Training pairs of many sets, as masses over scores; the last set is that of all pairs.

    Set k is ``starts[k]:starts[k + 1]`` of the three arrays. A pair may be in several sets, and
    equal scores may stand side by side; ``samples[k]`` gathers them into a `WeightedScores`.

    Attributes
    ----------
    scores : ndarray of shape (n_entries,)
        Ascending inside each set.
    genuine, mass : ndarray of shape (n_entries,)
        Weight of the genuine pairs, and of all, at each; the latter above zero.
    starts : ndarray of shape (n_sets + 1,)
    sizes : ndarray of shape (n_sets,)
        How many pairs each set has.

    Examples
    --------
    >>> samples = Samples.of([0.5, 0.1, 0.3], [1, 0, 0], [0, 0, 1], [0, 1, -1], n_sets=2)
    >>> samples.sizes, samples[1].scores
    (array([2, 2, 3]), array([0.1, 0.3]))
    """

    scores: Floats
    genuine: Floats
    mass: Floats
    starts: Ints
    sizes: Ints

    @classmethod
    def of(
        cls, score: npt.ArrayLike, genuine: npt.ArrayLike, *codes: npt.ArrayLike, n_sets: int
    ) -> Samples:
        """Lay out pairs by set.

        Parameters
        ----------
        score : array-like of shape (n,)
        genuine : array-like of shape (n,)
            Booleans or 0/1.
        *codes : array-like of int, shape (n,)
            The set or sets of each pair, −1 for none; with left and right cluster, a pair with
            both the same counts once.
        n_sets : int
            How many sets the codes number; the set of all pairs comes on top.
        """
        given = as_vector(score, "scores")
        hits = np.asarray(genuine)
        if hits.dtype != np.bool_ or hits.shape != given.shape:
            hits = as_labels(genuine, len(given))
        # One sort of all pairs; each set is then cut out of the sorted order by counting.
        order = ascending(given)
        ordered, hits = given[order], hits[order]
        set_codes = []
        for code in map(np.asarray, codes):
            if code.dtype.kind not in "iu" or code.shape != given.shape:
                raise DataError(
                    f"codes: expected the number of a set per pair, {len(given)} of them; "
                    f"found {code.dtype} of shape {code.shape}"
                )
            if code.size and not (code.min() >= -1 and code.max() < n_sets):
                raise ParameterError(
                    f"codes: expected sets from -1 to {n_sets - 1}; "
                    f"found {code.min()} to {code.max()}"
                )
            set_codes.append(code.astype(np.int32, copy=False)[order])
        rows, starts = _rows_by_set(set_codes, n_sets, len(given))
        # The set of all pairs is last.
        scores = np.concatenate((ordered[rows], ordered))
        genuine = np.concatenate((hits[rows], hits), dtype=np.float64)
        ends = np.append(starts, len(scores)).astype(np.int64)
        return cls(scores, genuine, np.broadcast_to(1.0, len(scores)), ends, np.diff(ends))

    @classmethod
    def from_counts(cls, counts: ScoreCounts) -> Samples:
        """Return counted scores as a sample of each set; the last set must hold all pairs.

        The genuine pairs of a bin stand at their mean score, and so do its imposters: what is
        summed over them is wrong by the square of a bin's width.

        Examples
        --------
        >>> counts = ScoreCounts.zeros(1, [0.0, 0.5, 1.0])
        >>> counts.add([0.1, 0.3, 0.4], [False, False, True])
        >>> Samples.from_counts(counts).scores.round(6), Samples.from_counts(counts).mass
        (array([0.2, 0.4]), array([2., 1.]))
        """

        def points(part: slice) -> tuple[Floats, Floats, Floats]:
            filled = counts.means(part.start)
            mean = np.column_stack((filled.imposter_mean, filled.genuine_mean))
            mass = np.column_stack((filled.imposter, filled.genuine)).astype(np.float64)
            return _flattened(mean, mass * [0.0, 1.0], mass)

        sets = each(points, len(counts), 1)
        scores, genuine, mass = (np.concatenate(column) for column in zip(*sets, strict=True))
        starts = np.concatenate(([0], np.cumsum([len(one[0]) for one in sets], dtype=np.int64)))
        sizes = (counts.genuine + counts.imposter).sum(axis=1)
        return cls(scores, genuine, mass, starts, sizes)

    def __len__(self) -> int:
        """How many sets there are, that of all pairs included."""
        return len(self.sizes)

    def __getitem__(self, k: int) -> WeightedScores:
        at = range(len(self))[k]
        part = slice(int(self.starts[at]), int(self.starts[at + 1]))
        if part.start == part.stop:
            raise DataError(f"set {k}: expected at least one pair, found none; leave the set out")
        return merge_ties(self.scores[part], self.genuine[part], self.mass[part])

    def totals(self) -> tuple[Floats, Floats]:
        """Return the weight of the genuine pairs of each set, and of all its pairs, (n_sets,)."""
        genuine, mass = np.zeros(len(self)), np.zeros(len(self))
        # An empty set must not count the first entry of the next one.
        filled = np.flatnonzero(np.diff(self.starts))
        if len(filled):
            genuine[filled] = np.add.reduceat(self.genuine, self.starts[filled])
            mass[filled] = np.add.reduceat(self.mass, self.starts[filled])
        return genuine, mass

    def clipped(self, low: float, high: float) -> Samples:
        """Return the same with scores beyond [low, high] moved to the nearest end."""
        if not len(self.scores) or (self.scores.min() >= low and self.scores.max() <= high):
            return self
        scores = np.clip(self.scores, low, high)
        return Samples(scores, self.genuine, self.mass, self.starts, self.sizes)

    def coarse(self, every: int, least: int = 256) -> Samples:
        """Return far fewer points, for groups of neighbours.

        Two points stand for the genuine ones of a group, two for its imposters, with the same
        mass and mean, and as much of the variance as there is room for.

        Parameters
        ----------
        every : int
            Neighbours in a group, at most.
        least : int
            Groups that a set is left with at least, or all of its points.
        """
        lengths = np.diff(self.starts)
        each_of = np.clip(lengths // least, 1, every)
        n_groups = -(-lengths // each_of)
        ends = np.cumsum(n_groups)
        local = np.arange(ends[-1]) - np.repeat(ends - n_groups, n_groups)
        first = np.repeat(self.starts[:-1], n_groups) + local * np.repeat(each_of, n_groups)
        bounds = np.append(first, self.starts[-1])

        groups = each(partial(self._averaged, bounds), len(first), _GROUPS)
        scores, genuine, mass, kept = (
            np.concatenate(column) for column in zip(*groups, strict=True)
        )
        starts = np.concatenate(([0], np.cumsum(kept)))[np.concatenate(([0], ends))]
        return Samples(scores, genuine, mass, starts, self.sizes)

    def _averaged(self, bounds: Ints, chosen: slice) -> tuple[Floats, Floats, Floats, Ints]:
        """Stand in for the points of some groups; the last value is how many each group left.

        Group i is between entries i and i + 1 of `bounds`.
        """
        begins = bounds[chosen]
        part, at = slice(begins[0], bounds[chosen.stop]), begins - begins[0]
        scores, genuine, mass = self.scores[part], self.genuine[part], self.mass[part]
        imposter = mass - genuine
        low, high = scores[at, None], scores[np.append(at[1:], len(scores)) - 1, None]
        least = _TRACE * np.add.reduceat(mass, at)[:, None]
        points = []
        for weight in (imposter, genuine):
            total = np.add.reduceat(weight, at)[:, None]
            total[total < least] = 0.0
            # Mean m and deviation σ of the group; two points at m ± σ have both of them, where
            # the group's ends leave room.
            part_of = 1.0 / np.where(total > 0, total, 1.0)
            moment = weight * scores
            mean = np.add.reduceat(moment, at)[:, None] * part_of
            square = np.add.reduceat(np.multiply(moment, scores, out=moment), at)[:, None] * part_of
            mean = np.clip(mean, low, high)
            away = np.sqrt(np.maximum(square - mean**2, 0.0))
            away = np.minimum(away, np.minimum(mean - low, high - mean))
            points.append((mean + away * [-1.0, 1.0], total * [0.5, 0.5]))
        mean, weight = (np.hstack(column) for column in zip(*points, strict=True))
        genuine_part = weight * [0.0, 0.0, 1.0, 1.0]
        return (*_flattened(mean, genuine_part, weight), (weight > 0).sum(axis=1))


def _rows_by_set(
    codes: list[npt.NDArray[np.int32]], n_sets: int, n: int
) -> tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]]:
    """Return the rows of each set, ascending, one set after the other, and where each starts.

    A pair that is in the same set twice, by its left and its right image, counts once.
    """
    small = n * len(codes) < 2**31
    table = np.empty((n, len(codes)), np.int32)
    ends: npt.NDArray[np.integer[Any]] = np.zeros(n + 1, np.int32 if small else np.int64)
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


def _flattened(mean: Floats, genuine: Floats, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """Turn the few points of each group, shape (n_groups, few), into one row of ascending ones.

    Points without mass are left out.
    """
    for end in range(mean.shape[1] - 1, 0, -1):
        for i in range(end):  # with so few columns, swapping is faster than sorting
            swap = mean[:, i] > mean[:, i + 1]
            for of in (mean, genuine, mass):
                of[swap, i : i + 2] = of[swap, i : i + 2][:, ::-1]
    weighted = mass > 0
    return mean[weighted], genuine[weighted], mass[weighted]
