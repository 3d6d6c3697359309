"""Loss, gradient and Hessian of many logistic regressions in one pass over their points.

Blocks of points go through the cache on all cores. How the points of a set are cut and added up
depends on that set alone: neither threads nor the other sets change a digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from faircal.compute.threads import each

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

#: From coefficients (n, m + 1), the intercept last, of the sets `which` (n,) to the sums over
#: their points: loss (n,), gradient (n, m + 1), Hessian (n, m + 1, m + 1).
Sums: TypeAlias = Callable[[Floats, Ints], tuple[Floats, Floats, Floats]]

# Points at a time, so that all that is worked out of them stays in the cache; and blocks that a
# thread takes at once, so that handing them out costs nothing.
_BLOCK, _AT_ONCE = 1 << 15, 16


def logistic_sums(features: Floats, target: Floats, mass: Floats, starts: Ints) -> Sums:
    """Return the function that sums loss, gradient and Hessian over the points of each set.

    Parameters
    ----------
    features : ndarray of shape (m, n_entries)
    target, mass : ndarray of shape (n_entries,)
        Wanted probabilities, and weights.
    starts : ndarray of shape (n_sets + 1,)
        Set k has the points ``starts[k]:starts[k + 1]``.

    Examples
    --------
    >>> x, y = np.array([[0.0, 1.0]]), np.array([0.0, 1.0])
    >>> sums = logistic_sums(x, y, np.ones(2), np.array([0, 2]))
    >>> loss, gradient, hessian = sums(np.zeros((1, 2)), np.array([0]))
    >>> loss.round(3), gradient, hessian.tolist()
    (array([1.386]), array([[-0.5,  0. ]]), [[[0.25, 0.25], [0.25, 0.5]]])
    """
    m = len(features)
    upper = np.triu_indices(m + 1)

    def hits_of(block: _PointBlock) -> Floats:
        hits = target[block.points] * mass[block.points]
        return np.stack([*(hits * x for x in features[:, block.points]), hits])

    # Σ y·x: what the targets add to the gradient does not depend on the coefficients.
    reached = _by_set(hits_of, starts, np.arange(len(starts) - 1), m + 1)

    def sums(theta: Floats, which: Ints) -> tuple[Floats, Floats, Floats]:
        total = _by_set(
            lambda block: _terms(features, mass, theta, block), starts, which, m + 2 + len(upper[0])
        )
        loss = total[:, 0] - np.einsum("kj,kj->k", theta, reached[which])
        gradient = total[:, 1 : m + 2] - reached[which]
        hessian = np.empty((len(which), m + 1, m + 1))
        hessian[:, upper[0], upper[1]] = hessian[:, upper[1], upper[0]] = total[:, m + 2 :]
        return loss, gradient, hessian

    return sums


def _terms(features: Floats, mass: Floats, theta: Floats, block: _PointBlock) -> Floats:
    """Return what is summed of a block's points: log(1 + e^η), p·x, p(1 − p)·x·x, times the mass.

    In rows, of shape (m + 2 + (m + 1)(m + 2)/2, n_points).
    """
    features, mass = features[:, block.points], mass[block.points]
    coefficients = list(theta[block.sets[0]])
    if len(block.sets) > 1:  # each coefficient for every point
        lengths = np.diff(np.append(block.firsts, block.points.stop))
        coefficients = [np.repeat(column, lengths) for column in theta[block.sets].T]
    m, n = features.shape
    rows = np.empty((m + 2 + (m + 1) * (m + 2) // 2, n))
    eta, small, loss = np.empty(n), np.empty(n), rows[0]
    np.multiply(features[0], coefficients[0], out=eta)
    for x, slope in zip(features[1:], coefficients[1:], strict=False):
        eta += np.multiply(x, slope, out=small)
    eta += coefficients[m]
    # e^−|η|, so that nothing overflows.
    np.negative(np.abs(eta, out=small), out=small)
    np.exp(small, out=small)
    scale = rows[-1]
    np.add(small, 1.0, out=scale)
    np.log(scale, out=loss)
    loss += np.maximum(eta, 0.0)
    loss *= mass
    np.copyto(small, 1.0, where=eta > 0)
    probability = np.divide(small, scale, out=small)
    rising = np.multiply(probability, mass, out=rows[m + 1])
    np.multiply(features, rising, out=rows[1 : m + 1])
    np.multiply(rising, probability, out=eta)
    curved = np.subtract(rising, eta, out=scale)
    at = m + 2
    for j in range(m):
        np.multiply(features[j], curved, out=eta)
        np.multiply(features[j:], eta, out=rows[at : at + m - j])
        rows[at + m - j] = eta
        at += m - j + 1
    return rows


class _PointBlock(NamedTuple):
    """Neighbouring sets, or a part of a large one, whose points fit into the cache."""

    sets: list[int]  # positions among the sets asked for
    firsts: list[int]  # where the points of each begin
    points: slice


def _by_set(
    rows_of: Callable[[_PointBlock], Floats], starts: Ints, which: Ints, width: int
) -> Floats:
    """Sum over the points of each set what `rows_of` gives for them, (width, n_points) a block.

    How a set is cut into blocks depends on it alone. They are worked on by all cores and added up
    in order: (len(which), width).
    """
    blocks: list[_PointBlock] = []
    end = -1
    bounds = zip(starts[which].tolist(), starts[which + 1].tolist(), strict=True)
    for k, (first, last) in enumerate(bounds):
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            # A block goes on as long as points follow each other, and fit in.
            if not (blocks and start == end and stop - blocks[-1].firsts[0] <= _BLOCK):
                blocks.append(_PointBlock([], [], slice(start, start)))
            sets, firsts, _ = blocks[-1]
            sets.append(k)
            firsts.append(start)
            blocks[-1] = _PointBlock(sets, firsts, slice(firsts[0], stop))
            end = stop
    total = np.zeros((len(which), width))

    def work(part: slice) -> list[Floats]:
        return [
            np.add.reduceat(rows_of(block), np.asarray(block.firsts) - block.points.start, axis=1).T
            for block in blocks[part]
        ]

    done = each(work, len(blocks), _AT_ONCE)
    for block, sums in zip(blocks, (one for part in done for one in part), strict=True):
        np.add.at(total, block.sets, sums)
    return total
