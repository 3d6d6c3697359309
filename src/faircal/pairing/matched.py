"""People who are alike, found without attributes: the cells of matched imposters.

Images of one person show what does not tell people apart: light, pose, age. In the directions in
which people differ most in comparison, populations lie side by side that overlap in embedding space
as a whole. A mixture of Gaussians finds them there; two people are alike where they most likely
come from the same one. K-means instead would cut a large population into slices, whose strangers
are harder to tell apart than those of the population (docs/decisions/0022-matched-imposters.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.special import logsumexp

from faircal.clustering import kmeans
from faircal.compute.threads import each, one_blas_thread
from faircal.pairing.people import People
from faircal.pairing.sampling import Ints

Float64 = NDArray[np.float64]

#: Directions, at most, and people for each direction of a cell, at least.
_DIRECTIONS, _PEOPLE = 32, 4
#: People that the mixture is fitted to, at most.
_FITTED = 20_000
#: Likelihood a person that the last round of the search gained at most, and rounds in all.
_GAIN, _ROUNDS = 1e-3, 60
#: Variance of a component in any direction, at least; that of one person's images is 1.
_LEAST = 1e-3
#: Images, or people, of a block.
_BLOCK = 2048


def alike(vectors: NDArray[np.float32], who: People, n_cells: int, seed: int) -> Ints:
    """Return the cell of each person, shape (n_people,); people of a cell are alike.

    Parameters
    ----------
    vectors : ndarray of shape (n, d)
        In the order of ``who.image``.
    n_cells : int
        At most so many; no more than people.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> who = People.of(np.repeat(np.arange(200), 3))
    >>> people = rng.normal(size=(200, 5))
    >>> people[:100, 0] += 20
    >>> vectors = np.repeat(people, 3, axis=0) + 0.1 * rng.normal(size=(600, 5))
    >>> cell = alike(vectors.astype(np.float32), who, 2, seed=0)
    >>> bool((cell[:100] == cell[0]).all() and (cell[100:] == 1 - cell[0]).all())
    True
    """
    if n_cells == 1:
        return np.zeros(len(who), dtype=np.int64)
    with one_blas_thread():
        points = likenesses(vectors, who, len(who) // (_PEOPLE * n_cells))
        rng = np.random.default_rng(seed)
        some = points
        if len(points) > _FITTED:
            some = points[np.sort(rng.choice(len(points), _FITTED, replace=False))]
        return _fit(some, n_cells, seed).most_likely(points)


def likenesses(vectors: NDArray[np.float32], who: People, n_directions: int) -> Float64:
    """Return people's places in the directions in which they differ most, shape (n_people, r).

    In comparison, that is, with the images of one person, whose variance is 1 in all directions.
    """
    d = vectors.shape[1]
    mean = np.add.reduceat(vectors, who.start, axis=0, dtype=np.float64) / who.count[:, None]
    centred = mean - mean.mean(axis=0)

    def scatter(block: slice) -> Float64:
        away = vectors[block] - mean[who.person[block]]
        return away.T @ away

    freedom = len(vectors) - len(who)
    within = reduce(np.add, each(scatter, len(vectors), _BLOCK))
    between = reduce(
        np.add, each(lambda block: centred[block].T @ centred[block], len(who), _BLOCK)
    )
    # As if there were d more images of average spread: few images don't span all directions.
    spread = max(np.trace(within) / max(freedom, 1), 1e-6 * np.trace(between) / len(who)) / d
    if not spread:  # all images are the same
        return np.zeros((len(who), 1))
    within = (within + d * spread * np.eye(d)) / (freedom + d)
    r = max(1, min(_DIRECTIONS, n_directions, d))
    _, directions = eigh(between, within, subset_by_index=[d - r, d - 1])
    return np.concatenate(each(lambda block: centred[block] @ directions, len(who), _BLOCK))


class _Sums(NamedTuple):
    """What a round of the search adds up over people."""

    log_likelihood: float
    people: Float64  # (J,)
    first: Float64  # (J, r)
    second: Float64  # (J, r, r)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Gaussians, each with a covariance of its own.

    Attributes
    ----------
    means : ndarray of shape (J, r)
    factors : ndarray of shape (J, r, r)
        ``factors[j] @ (z − means[j])`` is standard normal.
    constants : ndarray of shape (J,)
        Log of the weight and of the determinant of `factors`.
    """

    means: Float64
    factors: Float64
    constants: Float64

    @classmethod
    def of(cls, people: Float64, first: Float64, second: Float64) -> _Mixture:
        """Return the mixture that makes people most likely, given whose they are.

        Covariances are drawn towards their average, as if each component had r more people of
        that spread.
        """
        r = first.shape[1]
        size = np.maximum(people, 1e-9)
        means = first / size[:, None]
        spreads = second - first[:, :, None] * means[:, None, :]
        pooled = spreads.sum(axis=0) / size.sum()
        covariances = (spreads + r * pooled) / (size + r)[:, None, None] + _LEAST * np.eye(r)
        factors = np.stack(
            [solve_triangular(np.linalg.cholesky(one), np.eye(r), lower=True)
             for one in covariances]
        )  # fmt: skip
        constants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        return cls(means, factors, constants + np.log(size / size.sum()))

    def most_likely(self, points: Float64) -> Ints:
        """Return the component that each point most likely comes from."""
        found = each(lambda block: self._logs(points[block]).argmax(axis=1), len(points), _BLOCK)
        return np.concatenate(found).astype(np.int64)

    def sums(self, points: Float64) -> _Sums:
        """Return the sums over `points`, each divided among components as is likely."""
        found = each(lambda block: self._sums(points[block]), len(points), _BLOCK)
        return _Sums(*(reduce(np.add, parts) for parts in zip(*found, strict=True)))

    def _sums(self, points: Float64) -> _Sums:
        logs = self._logs(points)
        total = logsumexp(logs, axis=1)
        return _Sums(float(total.sum()), *_moments(points, np.exp(logs - total[:, None])))

    def _logs(self, points: Float64) -> Float64:
        logs = np.empty((len(points), len(self.means)))
        for j, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            away = (points - mean) @ factor.T
            logs[:, j] = self.constants[j] - 0.5 * np.einsum("ij,ij->i", away, away)
        return logs


def _moments(points: Float64, share: Float64) -> tuple[Float64, Float64, Float64]:
    second = np.stack([(points * part[:, None]).T @ points for part in share.T])
    return share.sum(axis=0), share.T @ points, second


def _fit(points: Float64, n_components: int, seed: int) -> _Mixture:
    """Fit a mixture by expectation-maximisation, from K-means."""
    single = points.astype(np.float32)
    label = kmeans(single, n_components, random_state=seed).assign(single)
    mixture = _Mixture.of(*_moments(points, np.eye(n_components)[label]))
    before = -np.inf
    for _ in range(_ROUNDS):
        found = mixture.sums(points)
        if found.log_likelihood - before < _GAIN * len(points):
            break
        before = found.log_likelihood
        mixture = _Mixture.of(*found[1:])
    return mixture
