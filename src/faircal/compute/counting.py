"""Very many scores: sorted, or counted in fine bins, which add up for any number of pairs.

Everything that is added to the counts is an integer, so neither the order of the batches nor the
number of threads can change a digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from faircal._base.errors import DataError, ParameterError
from faircal.compute.threads import each

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

#: Fewer scores than this are sorted as they are.
_FEW = 1 << 15
#: Where a score lies inside its bin is kept in this many steps of the bin's width.
STEPS = 1 << 20
#: Farther than this many spans outside the edges a score counts as so far: sums stay in int64.
_FAR = 7 * STEPS
#: Uniform bins of `fine_edges`, and the relative width of the others.
_UNIFORM, _RELATIVE = 16384, 1 / 64
#: Pairs handled at a time: what is worked out of them stays in the cache.
_BLOCK = 1 << 16


def ascending(values: FloatArray) -> npt.NDArray[np.intp]:
    """Return the order that sorts `values`, a few times faster than argsort for very many.

    Examples
    --------
    >>> ascending(np.array([0.3, 0.1, 0.2]))
    array([1, 2, 0])
    """
    if len(values) < _FEW:
        return np.argsort(values, kind="stable")
    low = values.min()
    with np.errstate(all="ignore"):  # one score only, or a range that no number can hold
        place = (values - low) * ((2.0**32 - 1) / (values.max() - low))
    if not np.isfinite(place).all():
        return np.argsort(values, kind="stable")
    # Sixteen bits at a time are sorted by counting. Values closer than 2⁻³² of the range are left
    # as they came; the last sort finds all but these in order, and takes next to no time then.
    key = place.astype(np.uint32)
    order = np.argsort(key.astype(np.uint16), kind="stable")
    order = order[np.argsort((key >> 16).astype(np.uint16)[order], kind="stable")]
    return order[np.argsort(values[order], kind="stable")]


class FilledBins(NamedTuple):
    """The bins of one set that hold something, ascending; every array has shape (n_filled,).

    The means lie in their bins, and within 5e-7 of its width of the true ones. A label without
    pairs has the mean of the other one. `low` and `high` are the ends of the bins.
    """

    genuine: IntArray
    imposter: IntArray
    genuine_mean: FloatArray
    imposter_mean: FloatArray
    mean: FloatArray  # of both labels together
    low: FloatArray
    high: FloatArray


class ScoreCounts:
    """Genuine and imposter scores of several sets counted between edges; can be added up.

    Bin i holds the scores s with ``edges[i] <= s < edges[i + 1]``; the first one those below, too,
    and the last one all from its edge on. For each bin and label the number of pairs is kept, and
    the sum of the scores in whole steps of a 2²⁰th of the bin's width. That is enough for 10¹²
    pairs in a bin.

    Parameters
    ----------
    edges : ndarray of float64, shape (n_bins,)
        Lower ends of the bins, ascending; at least two.
    count, total : ndarray of int64, shape (n_sets, n_bins, 2)
        Pairs, and the sum of their steps above the edge; imposters first.
    least, greatest : float
        The lowest and the highest score seen; infinite (∞, −∞) where there was none.

    Examples
    --------
    >>> counts = ScoreCounts.zeros(2, [0.0, 0.5, 1.0])
    >>> counts.add([0.1, 0.3, 0.7, 0.75], [False, False, True, True], [0, 0, 0, 1], [0, 1, 1, 1])
    >>> counts.imposter
    array([[2, 0, 0],
           [1, 0, 0]])
    >>> counts.means(1).genuine, counts.means(1).genuine_mean.round(4)
    (array([0, 2]), array([0.3  , 0.725]))
    >>> (counts + counts).genuine.sum()
    np.int64(6)
    """

    def __init__(
        self,
        edges: FloatArray,
        count: IntArray,
        total: IntArray,
        least: float = np.inf,
        greatest: float = -np.inf,
    ) -> None:
        self.edges, self.least, self.greatest = edges, least, greatest
        self._count, self._total = count, total
        self._places = _Places(edges)

    @classmethod
    def zeros(cls, n_sets: int, edges: npt.ArrayLike) -> ScoreCounts:
        """Return the counts of nothing yet."""
        at = np.array(edges, dtype=np.float64)
        if at.ndim != 1 or len(at) < 2 or not (np.isfinite(at).all() and (np.diff(at) > 0).all()):
            raise ParameterError("edges: expected two or more finite numbers, ascending")
        at.setflags(write=False)
        shape = (n_sets, len(at), 2)
        return cls(at, np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    def __len__(self) -> int:
        return len(self._count)

    def __repr__(self) -> str:
        return f"<Counts of {len(self)} sets in {len(self.edges)} bins>"

    @property
    def genuine(self) -> IntArray:
        """Genuine pairs, shape (n_sets, n_bins)."""
        return self._count[:, :, 1]

    @property
    def imposter(self) -> IntArray:
        """Imposter pairs, shape (n_sets, n_bins)."""
        return self._count[:, :, 0]

    def add(self, score: npt.ArrayLike, genuine: npt.ArrayLike, *codes: npt.ArrayLike) -> None:
        """Count more pairs.

        Parameters
        ----------
        score : array-like of float, shape (n,)
            Finite.
        genuine : array-like of bool, shape (n,)
        *codes : array-like of int, shape (n,) or ()
            The set or sets of each pair, −1 for none; one number stands for all pairs. A pair
            counts once in each different set. Without any, all pairs are of set 0.
        """
        values, labels = np.asarray(score, np.float64), np.asarray(genuine, np.bool_)
        sets = [self._checked(code, values.shape) for code in codes or (0,)]
        if values.ndim != 1 or labels.shape != values.shape:
            raise DataError(
                f"expected a score and a label per pair; found shapes {values.shape} and "
                f"{labels.shape}"
            )
        if not len(values):
            return
        least, greatest = float(values.min()), float(values.max())
        if not np.isfinite([least, greatest]).all():
            raise DataError("expected finite scores; found others; drop or repair such pairs")
        self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)
        cell, steps = np.empty((2, len(values)), np.int64)

        def place(part: slice) -> None:
            with np.errstate(over="ignore"):  # what is too far away is cut to size
                bins = self._places.find(values[part])
                steps[part] = self._places.steps(values[part], bins)
            np.add(bins << 1, labels[part], out=cell[part])

        each(place, len(values), _BLOCK)
        for start in range(0, len(values), _BLOCK):
            part = slice(start, start + _BLOCK)
            of_part = [code[part] if code.ndim else code for code in sets]
            self._tally(cell[part], steps[part], of_part)

    def _checked(self, code: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        array = np.asarray(code)
        if array.dtype.kind not in "iu" or array.shape not in (shape, ()):
            raise DataError(
                f"expected the number of a set per pair; found {array.dtype} of shape {array.shape}"
            )
        if array.size and not (array.min() >= -1 and array.max() < len(self)):
            raise DataError(
                f"expected sets from -1 to {len(self) - 1}; found {array.min()} to {array.max()}"
            )
        return array

    def _tally(self, cell: IntArray, steps: IntArray, sets: list[npt.NDArray[Any]]) -> None:
        """Count pairs in each of their sets, once in each."""
        for i, code in enumerate(sets):
            keep = code >= 0
            for other in sets[:i]:
                keep = keep & (code != other)
            if keep.ndim == 0:  # one set for all: its bins alone, which stay in the cache
                if keep:
                    np.add.at(self._count[int(code)].reshape(-1), cell, 1)
                    np.add.at(self._total[int(code)].reshape(-1), cell, steps)
                continue
            # Adding nothing is cheaper than picking out those that add something.
            where = np.where(keep, code, 0).astype(np.int64)
            where *= 2 * len(self.edges)
            where += cell
            np.add.at(self._count.reshape(-1), where, keep.astype(np.int64))
            np.add.at(self._total.reshape(-1), where, steps * keep)

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        if not np.array_equal(self.edges, other.edges) or len(self) != len(other):
            raise DataError(
                "counts of different edges or numbers of sets cannot be added; use the same"
            )
        return ScoreCounts(
            self.edges,
            self._count + other._count,
            self._total + other._total,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )

    def means(self, k: int) -> FilledBins:
        """Return the bins of set `k` that hold something, with the mean scores by label."""
        filled = np.flatnonzero(self._count[k].any(axis=1))
        count, total = self._count[k, filled], self._total[k, filled]
        low, high = (of[filled] for of in self._places.ends(self.least, self.greatest))
        edge, unit = self.edges[filled], self._places.unit[filled]

        def mean(sums: IntArray, counted: IntArray) -> FloatArray:
            offset: FloatArray = sums / (np.maximum(counted, 1) * float(STEPS))
            return np.clip(edge + unit * offset, low, high)

        both = mean(total.sum(axis=1), count.sum(axis=1))
        means = [np.where(count[:, i] > 0, mean(total[:, i], count[:, i]), both) for i in (0, 1)]
        return FilledBins(count[:, 1], count[:, 0], means[1], means[0], both, low, high)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all as arrays, for a checkpoint; only what is not zero."""
        cells = np.flatnonzero(self._count)
        return {
            "edges": self.edges,
            "shape": np.array(self._count.shape, np.int64),
            "cells": cells.astype(np.int64),
            "count": self._count.reshape(-1)[cells],
            "total": self._total.reshape(-1)[cells],
            "extremes": np.array([self.least, self.greatest]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ScoreCounts:
        """Return the counts that `state` was made of."""
        made = cls.zeros(int(state["shape"][0]), state["edges"])
        made._count.reshape(-1)[state["cells"]] = state["count"]
        made._total.reshape(-1)[state["cells"]] = state["total"]
        made.least, made.greatest = map(float, state["extremes"])
        return made


class _Places:
    """Finds the bin of a score by looking it up, many times faster than a search.

    Scores fall into cells by the leading bits of their distance to the nearer end of the edges.
    Rounding never changes an order, so neither do cells: edges of lower cells are lower than the
    score, those of higher cells are higher, and only those of its own cell, hardly ever more than
    three, are to be compared with it.
    """

    _BITS = 13  # of which each factor of two has 2¹³ cells
    _COMPARED = 3

    def __init__(self, edges: FloatArray) -> None:
        self.edges = edges
        span = edges[-1] - edges[0]
        unit = np.append(np.diff(edges), span)
        unit[0] = span  # the end bins have no end
        self.unit = unit
        # A bin of one number alone may be too narrow to divide by; its steps are all 0.
        with np.errstate(over="ignore"):
            factor = STEPS / unit
        self._factor = np.where(np.isfinite(factor), factor, 0.0)
        nearest = np.minimum(edges - edges[0], edges[-1] - edges)
        low, high = nearest[nearest > 0].min(initial=span / 2), span / 2
        # Far below the rest of the edges a search will do: its cells would be for next to nothing.
        self._base, top = self._bits(np.maximum([low, high], span * 2.0**-53)).tolist()
        self._n_cells = top - self._base + 2
        cells = np.bincount(self._cells(edges), minlength=2 * self._n_cells)
        # What is below the first edge is in the first bin, so that edge needs no comparing.
        self._first = np.maximum(np.cumsum(cells) - cells - 1, 0)
        self._compared = min(int(cells.max()), self._COMPARED)
        self._crowded = cells > self._COMPARED
        self._next = np.append(edges[1:], np.inf)

    def _bits(self, distance: FloatArray) -> IntArray:
        return distance.view(np.int64) >> (52 - self._BITS)

    def _cells(self, scores: FloatArray) -> IntArray:
        above, below = scores - self.edges[0], self.edges[-1] - scores
        cell = self._bits(np.minimum(above, below))
        cell -= self._base - 1
        np.clip(cell, 0, self._n_cells - 1, out=cell)
        return np.asarray(np.where(above > below, 2 * self._n_cells - 1 - cell, cell))

    def find(self, scores: FloatArray) -> IntArray:
        """Return the bin of each score."""
        cell = self._cells(scores)
        bins: IntArray = self._first[cell]
        for _ in range(self._compared):
            bins += scores >= self._next[bins]
        crowded = np.flatnonzero(self._crowded[cell])
        if crowded.size:
            # Among all edges but the first: what is below that one is in the first bin, too.
            bins[crowded] = np.searchsorted(self.edges[1:], scores[crowded], side="right")
        return bins

    def steps(self, scores: FloatArray, bins: IntArray) -> IntArray:
        """Return how far each score is above the edge of its bin."""
        # Whole steps add up without rounding: in any order, and in any number of parts.
        steps = np.rint((scores - self.edges[bins]) * self._factor[bins])
        return np.clip(steps, -_FAR, _FAR, out=steps).astype(np.int64)

    def ends(self, least: float, greatest: float) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest score that may be in each bin."""
        low, high = self.edges.copy(), np.nextafter(self._next, -np.inf)
        low[0], high[-1] = min(low[0], least), max(self.edges[-1], greatest)
        return low, high


def fine_edges(low: float, high: float, also: npt.ArrayLike = ()) -> FloatArray:
    """Return some 20,000 edges over [low, high], ever finer towards both ends, and `also`.

    In the middle bins are uniform, a 16384th of the range wide; near the ends they are a 64th of
    the distance to the end, so that logarithms of that distance are known as well. Each end
    itself has a bin of its own, since many scores may be exactly there.

    Parameters
    ----------
    low, high : float
    also : array-like of float
        More edges, such as those of curves and thresholds: what is counted there is exact. They
        may lie beyond the range.

    Examples
    --------
    >>> edges = fine_edges(0.0, 1.0, also=[0.3, 1.5])
    >>> len(edges), float(edges[0]), float(edges[-1]), 0.3 in edges
    (20162, 0.0, 1.5, True)
    """
    width = high - low
    uniform = np.arange(_UNIFORM + 1) / _UNIFORM
    start = 1 / (_RELATIVE * _UNIFORM)
    octaves = np.log2(start * 2.0**52)
    tail = start * np.exp2(-np.arange(0, octaves, np.log2(1 + _RELATIVE)))
    ends = [low, np.nextafter(low, np.inf), high, np.nextafter(high, np.inf)]
    # Mirrored below: both ends are as fine, for scores near 1 and for those near 0.
    half = np.concatenate([uniform[uniform <= 0.5], tail]) * width
    return np.unique(np.concatenate([low + half, high - half, ends, np.ravel(also)]))
