"""People who are alike, found without attributes: the cells of matched imposters.

Images of one person show what does not tell people apart: light, pose, age. In the directions in
which people differ most in comparison, populations lie side by side that overlap in embedding space
as a whole. A mixture of Gaussians finds them there. It has more components than there are to be
cells, so that a small population gets one too; then those are joined that overlap most, at least as
far as pieces of one single Gaussian population would. So no large population is cut into slices,
whose strangers would be harder to tell apart than those of the population are. See
docs/decisions/0022-matched-imposters.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.linalg import eigh
from scipy.special import logsumexp

from faircal.compute import CPU
from faircal.compute.gaussians import Gaussians, climb, whitening
from faircal.compute.threads import each, one_blas_thread
from faircal.data.pairing.people import Ints, PersonImages

Float64 = NDArray[np.float64]

#: Components of the mixture for each cell.
_FINER = 2
#: Directions, at most, and people for each direction of a component, at least.
_DIRECTIONS, _PEOPLE = 32, 2
#: People that the mixture is fitted to, at most.
_FITTED = 20_000
#: Likelihood a person that the last round of the search gained at most, and rounds in all.
_GAIN, _ROUNDS = 1e-3, 60
#: Variance of a component in any direction, at least; that of one person's images is 1.
_LEAST = 1e-3
#: Images, or people, of a block.
_BLOCK = 2048


def alike(
    vectors: NDArray[np.float32], who: PersonImages, n_cells: int, *, least: int = 1, seed: int
) -> Ints:
    """Return the cell of each person, shape (n_people,); people of a cell are alike.

    Parameters
    ----------
    vectors : ndarray of shape (n, d)
        In the order of ``who.image``.
    n_cells : int
        At most so many; no more than people.
    least : int
        People of a cell, at least.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> who = PersonImages.of(np.repeat(np.arange(200), 3))
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
        finer = min(_FINER * n_cells, len(who))
        points = likenesses(vectors, who, len(who) // (_PEOPLE * finer))
        sample = points
        if len(points) > _FITTED:
            rng = np.random.default_rng(seed)
            sample = points[np.sort(rng.choice(len(points), _FITTED, replace=False))]
        mixture = _fit(sample, finer, seed)
        part = mixture.most_likely(points)
        size = np.bincount(part, minlength=len(mixture.means))
        near = _apart_by_chance(sample, finer, seed)
        return joined(mixture.overlaps(), size, n_cells, near=near, least=least)[part]


def _apart_by_chance(points: Float64, n_components: int, seed: int) -> float:
    """Return how far apart the pieces of one Gaussian population of this spread are, at most."""
    spread = np.cov(points.T).reshape(2 * points.shape[1:])
    spread += _LEAST * np.eye(len(spread))
    drawn = np.random.default_rng([seed, 1]).standard_normal(points.shape)
    distance = _fit(drawn @ np.linalg.cholesky(spread).T, n_components, seed).overlaps()
    if len(distance) == 1:
        return 0.0
    return float(linkage(distance[np.triu_indices(len(distance), 1)], "average")[-1, 2])


def joined(distance: Float64, size: Ints, n: int, *, near: float, least: int) -> Ints:
    """Join the nearest parts until `n` are left, none is as `near` and all have size `least`.

    The distance of two that were joined already is that of their parts on average. Returns the
    number of what each part is joined to.

    Examples
    --------
    >>> place = np.array([0.0, 10.0, 1.0, 12.0, 30.0])
    >>> distance = abs(place[:, None] - place)
    >>> joined(distance, np.array([5, 5, 5, 5, 5]), 3, near=0, least=5)
    array([0, 1, 0, 1, 2])
    >>> joined(distance, np.array([5, 5, 5, 5, 5]), 3, near=15, least=5)
    array([0, 0, 0, 0, 1])
    >>> joined(distance, np.array([5, 5, 5, 5, 1]), 3, near=0, least=5)
    array([0, 1, 0, 2, 2])
    """
    number = np.arange(len(size))
    while True:
        member = (number == np.unique(number)[:, None]).astype(np.float64)
        sizes, parts = member @ size, member.sum(axis=1)
        apart = (member @ distance @ member.T) / np.outer(parts, parts)
        np.fill_diagonal(apart, np.inf)
        small = len(sizes) > 1 and sizes.min() < least
        done = len(sizes) <= n and not small and apart.min() > near
        if done or len(sizes) == 1:
            return np.unique(number, return_inverse=True)[1].astype(np.int64)
        row = sizes.argmin() if small else apart.min(axis=1).argmin()
        one, two = np.unique(number)[[row, apart[row].argmin()]]
        number[number == max(one, two)] = min(one, two)


def likenesses(vectors: NDArray[np.float32], who: PersonImages, n_directions: int) -> Float64:
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


class _MixtureSums(NamedTuple):
    """What a round of the search adds up over people."""

    log_likelihood: float
    people: Float64  # (J,)
    first: Float64  # (J, r)
    second: Float64  # (J, r, r)


@dataclass(frozen=True, eq=False)
class _PeopleMixture(Gaussians):
    """Gaussians of people, with their covariances (J, r, r) beside."""

    covariances: Float64

    @classmethod
    def of(cls, people: Float64, first: Float64, second: Float64) -> _PeopleMixture:
        """Return the mixture that makes people most likely, given whose they are.

        Covariances are drawn towards their average, as if each component had r more people of
        that spread. A component of less than one person is left out.
        """
        # Shares of people add up to 1 but for rounding; the largest component stays in any case.
        r, populated = first.shape[1], people >= min(1.0, people.max()) * (1 - 1e-9)
        size, first, second = people[populated], first[populated], second[populated]
        means = first / size[:, None]
        spreads = second - first[:, :, None] * means[:, None, :]
        pooled = spreads.sum(axis=0) / size.sum()
        covariances = (spreads + r * pooled) / (size + r)[:, None, None] + _LEAST * np.eye(r)
        factors, constants = whitening(covariances)
        return cls(means, factors, constants + np.log(size / size.sum()), covariances)

    def overlaps(self) -> Float64:
        """Return how little any two components overlap: Bhattacharyya's distances, (J, J)."""
        n = len(self.means)
        distances = np.zeros((n, n))
        volume = np.linalg.slogdet(self.covariances)[1]
        for j in range(1, n):
            middle = (self.covariances[:j] + self.covariances[j]) / 2
            apart = self.means[:j] - self.means[j]
            far = np.einsum("ia,ia->i", apart, np.linalg.solve(middle, apart[..., None])[..., 0])
            shape = np.linalg.slogdet(middle)[1] - (volume[:j] + volume[j]) / 2
            distances[j, :j] = distances[:j, j] = far / 8 + shape / 2
        return distances

    def most_likely(self, points: Float64) -> Ints:
        """Return the component that each point most likely comes from."""
        parts = each(
            lambda block: self.log_densities(points[block]).argmax(axis=1), len(points), _BLOCK
        )
        return np.concatenate(parts).astype(np.int64)

    def sums(self, points: Float64) -> _MixtureSums:
        """Return the sums over `points`, each divided among components as is likely."""
        parts = each(lambda block: self._sums(points[block]), len(points), _BLOCK)
        return _MixtureSums(*(reduce(np.add, parts) for parts in zip(*parts, strict=True)))

    def _sums(self, points: Float64) -> _MixtureSums:
        logs = self.log_densities(points)
        total = logsumexp(logs, axis=1)
        return _MixtureSums(float(total.sum()), *_moments(points, np.exp(logs - total[:, None])))


def _moments(points: Float64, share: Float64) -> tuple[Float64, Float64, Float64]:
    second = np.stack([(points * part[:, None]).T @ points for part in share.T])
    return share.sum(axis=0), share.T @ points, second


def _fit(points: Float64, n_components: int, seed: int) -> _PeopleMixture:
    """Fit a mixture by expectation-maximisation, from K-means."""
    single = points.astype(np.float32)
    label = CPU.assign(single, CPU.kmeans(single, n_components, random_state=seed).centers)
    start = _PeopleMixture.of(*_moments(points, np.eye(n_components)[label]))

    def step(mixture: _PeopleMixture) -> tuple[float, _PeopleMixture]:
        sums = mixture.sums(points)
        return sums.log_likelihood, _PeopleMixture.of(*sums[1:])

    return climb(step, start, _GAIN * len(points), _ROUNDS)[0]
