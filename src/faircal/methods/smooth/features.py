"""What SmoothFairCal makes of an embedding: coordinates, regions, components of a pair mixture.

The mixture is one of Gaussians, for pairs of imposters: who tends to be paired with whom. Where
imposter pairs are drawn among people who are alike (in a demographic group, say), the list of pairs
tells, through the embeddings, what being alike means; no attribute is needed. First the directions
of embedding space are found in which two imposters of a pair resemble each other, then a mixture
there whose components come in couples, by expectation-maximisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from faircal._base.errors import DataError
from faircal.compute import CPU
from faircal.compute.gaussians import Gaussians, climb, whitening
from faircal.compute.threads import each

Float64 = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Variance that is left within components, at least, of a direction's variance of one.
_LEFT = 0.02
#: So many imagined images of average spread are added to those of each component.
_IMAGINED = 200.0
#: Likelihood a pair that the last round of the search gained at most, and rounds in all.
_GAIN, _ROUNDS = 3e-4, 60
#: Pairs imagined, spread over all couples of components: none is impossible.
_COUPLED = 1.0


def shared_directions(points: Float64, left: Rows, right: Rows) -> tuple[Float64, Float64]:
    """Return the directions in which the two strangers of a pair resemble each other.

    They are eigenvectors of the pairs' symmetrised cross-covariance. Chance makes eigenvalues of
    either sign, and dissimilar strangers negative ones, so those count that exceed the most
    negative one in size.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        White: mean 0, variance 1 in every direction.
    left, right : ndarray of shape (n_pairs,)
        Rows of `points`.

    Returns
    -------
    directions : ndarray of shape (d, k)
        Scaled so that what the pairs do not share has variance 1. k may be 0.
    shares : ndarray of shape (k,)
        How much of the variance along each direction the two images of a pair share.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat([-1.0, 1.0], 500)
    >>> points = rng.standard_normal((1000, 3))
    >>> points[:, 0] = 0.8 * group + 0.6 * points[:, 0]
    >>> left, right = np.arange(0, 1000, 2), np.arange(1, 1000, 2)
    >>> directions, shares = shared_directions(points, left, right)
    >>> directions.shape, bool(abs(directions[0, 0]) > 1.5)
    ((3, 1), True)
    """
    n = len(points)
    paired = coo_array((np.ones(len(left)), (left, right)), shape=(n, n)).tocsr()
    # C = mean of z zʹᵀ over pairs: white points that share nothing would have C = 0.
    cross = points.T @ (paired @ points) / max(len(left), 1)
    values, vectors = np.linalg.eigh((cross + cross.T) / 2)
    # Chance makes eigenvalues of either sign alike: one larger than the most negative is no chance.
    real = np.flatnonzero(values > -values.min(initial=0.0))[::-1]
    shares = np.minimum(values[real], 1 - _LEFT)
    return np.ascontiguousarray(vectors[:, real] / np.sqrt(1 - shares)), shares


@dataclass(frozen=True, eq=False)
class PairMixture(Gaussians):
    """Gaussians whose components come in couples.

    A pair has components (j, k) with probability ``coupling[j, k]``, and its images lie where
    these two Gaussians put them.

    Attributes
    ----------
    means, factors, constants : ndarray
        Of `Gaussians`.
    coupling : ndarray of shape (J, J)
        Symmetric, sums to 1.
    """

    coupling: Float64

    def likelihoods(self, points: Float64) -> Float64:
        """Return how likely each component makes each point, the likeliest scaled to 1: (n, J)."""
        logs = self.log_densities(points)
        logs -= logs.max(axis=1, keepdims=True)
        return np.exp(logs, out=logs)

    def association(self, points: Float64, left: Rows, right: Rows) -> Float64:
        """Return how much likelier pairs are than pairs of the same images at random, in logs.

        On average this is what components tell of who is paired with whom, in nats: 0 where pairs
        are random, or where the mixture does not hold for them.
        """
        joint = _Joint.of(self, points, left, right)
        alone = self.coupling.sum(axis=0).astype(np.float32)
        # log P(x₁, x₂) − log P(x₁) P(x₂): the scale of the likelihoods is the same in both.
        gain: Float64 = np.log(joint.mass) - np.log((joint.one @ alone) * (joint.two @ alone))
        return gain


def fit_pair_mixture(
    points: Float64, left: Rows, right: Rows, n_components: int, random_state: int
) -> PairMixture:
    """Fit a mixture to pairs by expectation-maximisation, from K-means of the points.

    Covariances of components are drawn towards their average, as if each had some two hundred
    images of that spread besides its own.

    Parameters
    ----------
    points : ndarray of shape (n, k)
    left, right : ndarray of shape (n_pairs,)
        Rows of `points`.
    n_components : int
    random_state : int
        Seed of K-means.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.standard_normal((400, 1)) + np.repeat([[-9.0], [9.0]], 200, axis=0)
    >>> left = np.arange(0, 400, 2)
    >>> mixture = fit_pair_mixture(points, left, left + 1, 2, random_state=0)
    >>> (mixture.coupling * 100).round()
    array([[50.,  0.],
           [ 0., 50.]])
    """
    pairs, start = _CountedPairs.begin(points, left, right, n_components, random_state)
    return climb(pairs.step, start, _GAIN, _ROUNDS)[1]


@dataclass(frozen=True, eq=False)
class _Joint:
    """How likely components make the two images of pairs, (n_pairs, J) each, and the pairs."""

    one: NDArray[np.float32]
    two: NDArray[np.float32]
    mass: NDArray[np.float32]
    log_likelihood: Float64

    @classmethod
    def of(cls, mixture: PairMixture, points: Float64, left: Rows, right: Rows) -> _Joint:
        # Images, not pairs: each is in many pairs, and its densities are the same in all.
        logs = mixture.log_densities(points)
        top = logs.max(axis=1)
        # Single precision halves the time; no mass is below the least likely couple's.
        likely = np.exp(logs - top[:, None]).astype(np.float32)
        one, two = likely[left], likely[right]
        mass = np.einsum("ij,ij->i", one @ mixture.coupling.astype(np.float32), two)
        return cls(one, two, mass, np.log(mass) + top[left] + top[right])


@dataclass(frozen=True, eq=False)
class _CountedPairs:
    """The images of pairs, each once; `by_image` sums up the sides of pairs that an image is on."""

    points: Float64
    left: Rows
    right: Rows
    by_image: csr_array

    @classmethod
    def begin(
        cls, points: Float64, left: Rows, right: Rows, n_components: int, seed: int
    ) -> tuple[Self, PairMixture]:
        """Return them, and the mixture that K-means of the images makes."""
        used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        used_points = points[used]
        left, right = places.reshape(2, -1)
        sides = np.arange(len(places))
        by_image = csr_array((np.ones(len(sides), np.float32), (places, sides)))
        single = used_points.astype(np.float32)
        label = CPU.assign(single, CPU.kmeans(single, n_components, random_state=seed).centers)
        share = np.zeros((len(used), n_components))
        share[np.arange(len(used)), label] = np.bincount(places)
        coupled = np.zeros((n_components, n_components))
        np.add.at(coupled, (label[left], label[right]), 1.0)
        return cls(used_points, left, right, by_image), _maximise(used_points, share, coupled)

    def step(self, mixture: PairMixture) -> tuple[float, PairMixture]:
        """Return the log-likelihood a pair, and the next mixture: one round of EM."""
        coupling = mixture.coupling.astype(np.float32)
        joint = _Joint.of(mixture, self.points, self.left, self.right)
        # E: P(j, k | pair) = e_j c_jk e'_k / mass, summed over pairs for the coupling, and over the
        # partner's component for what each image is worth to each component.
        one, two = joint.one / joint.mass[:, None], joint.two
        coupled = mixture.coupling * (one.T @ two)
        sides = np.concatenate([one * (two @ coupling), two * (one @ coupling)])
        following = _maximise(self.points, (self.by_image @ sides).astype(float), coupled)
        return float(joint.log_likelihood.mean()), following


def _maximise(points: Float64, share: Float64, coupled: Float64) -> PairMixture:
    """Return the mixture that makes points and couples most likely, given whose they are."""
    size = share.sum(axis=0) + np.finfo(float).tiny  # a component may have lost all its images
    # M: means and spreads weighted by what each image is worth to each component.
    means = (share.T @ points) / size[:, None]
    roots = np.sqrt(share.T)[:, :, None]
    weighted = ((points - mean) * root for mean, root in zip(means, roots, strict=True))
    spreads = np.stack([away.T @ away for away in weighted])
    # Covariances are drawn towards their average: small components have too few images for theirs.
    pooled = spreads.sum(axis=0) / size.sum()
    pooled[np.diag_indices_from(pooled)] += 1e-9 * np.trace(pooled) + np.finfo(float).tiny
    covariances = (spreads + _IMAGINED * pooled) / (size + _IMAGINED)[:, None, None]
    factors, constants = whitening(covariances)
    # Symmetric, as which image is on the left says nothing.
    coupling = coupled + coupled.T + _COUPLED * 2 / len(coupled) ** 2
    return PairMixture(means, factors, constants, coupling / coupling.sum())


#: Directions with less than this part of the largest variance are rounding error.
_FLAT = 1e-6
#: Imposter pairs for each component, and images for each region, at least.
_EACH, _IMAGES = 50, 10
#: Images whose traits are worked out at a time.
_AT_A_TIME = 2048
#: How soft borders of regions are: a part of how much further away the second nearest centre is
#: than the nearest, on average.
_SOFT = 0.5
#: Part of the images of the fit that lie outside of what it reaches.
_FAR = 0.01
#: Softer than this no border is, and no couple of components rarer.
_SOFTEST, _RAREST = np.finfo(np.float32).tiny.item(), 1e-100
#: The matrices and vectors that make a feature map, and their numbers of dimensions.
_STATE = {"mean": 1, "axes": 2, "centers": 2, "directions": 2, "shares": 1}
_MIXTURE = {"means": 2, "factors": 3, "constants": 1, "coupling": 2}


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Coordinates and regions of embeddings, and a mixture where imposters of a pair are alike.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    axes : ndarray of shape (d, r)
        ``(x − mean) @ axes`` are the coordinates of x: principal components of variance 1.
    centers : ndarray of shape (K, d)
        Of regions, which have no sharp borders: an image belongs to each by
        ``softmax(−distance² / softness)``.
    softness : float
    reach : float
        Squared distance from its nearest centre that one image in a hundred exceeds.
    directions : ndarray of shape (r, k)
        From coordinates to what the strangers of a pair share.
    shares : ndarray of shape (k,)
        How much of each direction they share.
    mixture : PairMixture
        With no component where strangers share nothing.
    """

    mean: Float64
    axes: Float64
    centers: Float64
    softness: float
    reach: float
    directions: Float64
    shares: Float64
    mixture: PairMixture

    @classmethod
    def fit(
        cls, vectors: NDArray[np.float32], n_dimensions: int, n_regions: int, random_state: int
    ) -> FeatureMap:
        """Return coordinates and regions, without a mixture yet.

        Parameters
        ----------
        vectors : ndarray of shape (n, d)
        n_dimensions, n_regions : int
            Coordinates and regions, at most; a region is to have ten images.
        random_state : int
        """
        mean, axes = _whiten(vectors, n_dimensions)
        most = max(min(n_regions, len(vectors) // _IMAGES), 1)
        centers = CPU.kmeans(vectors, most, random_state=random_state).centers.astype(np.float64)
        near = _distances(vectors, centers)
        softness, reach = _softness(near), float(np.quantile(_nearest(vectors, near), 1 - _FAR))
        none = np.empty((axes.shape[1], 0))
        return cls(mean, axes, centers, softness, reach, none, np.empty(0), _NOTHING)

    def with_mixture(
        self, traits: Float64, left: Rows, right: Rows, n_components: int, random_state: int
    ) -> FeatureMap:
        """Return the same with what strangers share, and a mixture there.

        `left` and `right` are rows of `traits`, of imposter pairs only. There are no more
        components than the pairs have data for.
        """
        used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        left, right = places.reshape(2, -1)
        coordinates = traits[used, : self.axes.shape[1]]
        directions, shares = shared_directions(coordinates, left, right)
        shared = replace(self, directions=directions, shares=shares, mixture=_NOTHING)
        most = min(n_components, len(left) // _EACH, len(used))
        if most < 2 or not len(shares):
            return shared
        points = coordinates @ directions
        return replace(shared, mixture=fit_pair_mixture(points, left, right, most, random_state))

    def without_mixture(self) -> FeatureMap:
        """Return the same without components."""
        return replace(self, mixture=_NOTHING)

    def mixture_points(self, traits: Float64) -> Float64:
        """Return where the mixture sees images of such coordinates, or traits, shape (n, k)."""
        points: Float64 = traits[:, : self.axes.shape[1]] @ self.directions
        return points

    def coordinates(self, vectors: NDArray[Any]) -> Float64:
        """Return coordinates of images, shape (n, r)."""
        coordinates: Float64 = (vectors - self.mean) @ self.axes
        return coordinates

    def traits(self, vectors: NDArray[Any]) -> Float64:
        """Return coordinates and regions of images, shape (n, r + K)."""

        def work(block: slice) -> Float64:
            some = vectors[block]
            return np.hstack([self.coordinates(some), self.regions(some)])

        return np.concatenate(each(work, len(vectors), _AT_A_TIME))

    def regions(self, vectors: NDArray[Any]) -> Float64:
        """Return how far images belong to regions, shape (n, K).

        They are scaled so that, at the same price, all regions together can do as much as all
        coordinates together.
        """
        near = _distances(vectors, self.centers)
        near *= -1 / self.softness
        near -= near.max(axis=1, keepdims=True)
        np.exp(near, out=near)
        # r coordinates of variance 1 differ by 2 r between two images; a sharp region by 2.
        near *= np.sqrt(self.axes.shape[1] / 2) / near.sum(axis=1, keepdims=True)
        return near

    def outside(self, vectors: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which images are further from all regions than hardly any of the fit."""
        far: NDArray[np.bool_] = _nearest(vectors, _distances(vectors, self.centers)) > self.reach
        return far

    def memberships(self, places: Float64) -> Float64:
        """Return how likely components make images at `places`, and their partners': (n, 2J).

        The first half is e, the second g = e · coupling: a pair has component j on one side with
        a probability proportional to e_j g'_j + g_j e'_j.
        """
        if not len(self.mixture):
            return np.empty((len(places), 0))
        likely = self.mixture.likelihoods(places)
        return np.hstack([likely, likely @ self.mixture.coupling])

    def get_state(self) -> dict[str, Any]:
        """Return all arrays."""
        mixture = {f"mixture_{key}": getattr(self.mixture, key) for key in _MIXTURE}
        arrays = {key: getattr(self, key) for key in _STATE}
        return {**arrays, "softness": self.softness, "reach": self.reach, **mixture}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeatureMap:
        """Restore what `get_state` gave."""
        arrays = {key: _array(state, key, n) for key, n in _STATE.items()}
        parts = {key: _array(state, f"mixture_{key}", n) for key, n in _MIXTURE.items()}
        softness = float(state["softness"])
        # Models of earlier versions do not know how far they reach: nothing is outside.
        reach = float(state.get("reach", np.inf))
        mixture = PairMixture(**parts)
        restored = cls(softness=softness, reach=reach, mixture=mixture, **arrays)
        d, r = restored.axes.shape
        n, k = parts["means"].shape
        shapes = {
            "mean": (arrays["mean"], (d,)),
            "centers": (arrays["centers"], (len(arrays["centers"]), d)),
            "directions": (arrays["directions"], (r, len(arrays["shares"]))),
            "mixture_means": (parts["means"], (n, k if not n else len(arrays["shares"]))),
            "mixture_factors": (parts["factors"], (n, k, k)),
            "mixture_constants": (parts["constants"], (n,)),
            "mixture_coupling": (parts["coupling"], (n, n)),
        }
        if not _SOFTEST <= restored.softness < np.inf:
            raise DataError(f"softness: expected a number above 0, found {restored.softness}")
        if not (parts["coupling"] >= _RAREST).all():
            raise DataError("mixture_coupling: expected probabilities above 0; fit it again")
        for name, (array, expected) in shapes.items():
            if array.shape != expected:
                raise DataError(f"{name}: expected shape {expected}, found {array.shape}")
        return restored


def pair_memberships(one: Float64, two: Float64) -> Float64:
    """Return the components of pairs, given the `memberships` of their images: (n, J), sums 1."""
    n = one.shape[1] // 2
    mass = one[:, :n] * two[:, n:] + one[:, n:] * two[:, :n]  # e_j g'_j + g_j e'_j
    if n:
        mass /= mass.sum(axis=1, keepdims=True)
    return mass


_NOTHING = PairMixture(np.empty((0, 0)), np.empty((0, 0, 0)), np.empty(0), np.empty((0, 0)))


def _whiten(vectors: NDArray[Any], n_dimensions: int) -> tuple[Float64, Float64]:
    """Return the mean and the principal axes, scaled so that coordinates have variance 1."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    away = vectors - mean
    # Of the covariance, d × d: cheaper than an SVD of the images where there are more than d.
    values, axes = np.linalg.eigh(away.T @ away / len(away))
    real = np.flatnonzero(values > _FLAT * values[-1])[::-1][:n_dimensions]
    return mean, np.ascontiguousarray(axes[:, real] / np.sqrt(values[real]))


def _distances(vectors: NDArray[Any], centers: Float64) -> Float64:
    """Return squared distances, but for what is the same for all centres: (n, K)."""
    distances: Float64 = vectors.astype(np.float64, copy=False) @ (-2 * centers.T)
    distances += np.einsum("ij,ij->i", centers, centers)  # ‖c‖² − 2 x·c; ‖x‖² is left out
    return distances


def _softness(near: Float64) -> float:
    """Return the scale of squared distances over which one region passes into the next."""
    if near.shape[1] == 1:
        return 1.0
    # In units of the gap the softness is the same for any network, whatever its scale.
    nearest = np.partition(near, 1, axis=1)[:, :2]
    gap = float((nearest[:, 1] - nearest[:, 0]).mean())
    return max(_SOFT * gap, _SOFTEST)


def _nearest(vectors: NDArray[Any], near: Float64) -> Float64:
    """Return squared distances from the nearest centre, (n,), given `_distances`."""
    nearest: Float64 = near.min(axis=1)
    nearest += np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return nearest


def _array(state: dict[str, Any], key: str, dimensions: int) -> Float64:
    array = np.asarray(state[key], np.float64)
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise DataError(
            f"{key}: expected finite numbers in {dimensions} dimensions, found {array.ndim}"
        )
    return array
