"""How alike strangers of its own kind look to a network, for any image: what a cohort tells."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax

from faircal._base.errors import DataError
from faircal.compute.kmeans import sums_of
from faircal.compute.threads import each, one_blas_thread

Float64 = NDArray[np.float64]
Codes = NDArray[np.integer]

#: People who look most alike: the closest few, and as many as a small group has.
CLOSEST = (3, 30)
#: Numbers an image has: the means of its highest cosines, the one with its own kind, its trust.
WIDTH = len(CLOSEST) + 2
#: Shares of a cohort's own images that are nearer to a group's centre than where trust begins to
#: fall, and where none is left.
_NEAR = (0.97, 0.995)
#: Of the variance within groups, what is added in every direction: few people say little.
_ADDED = 0.05
#: How sharply kinds may be told apart, in units of one over a squared distance.
_SHARPNESS = np.geomspace(0.1, 1e4, 60)
#: Below every cosine.
_LOWEST = -2.0
#: Of a group's share, what is added to regress closeness on kinds: few people say little.
_HELD_BACK = 0.01
#: A variance of unit vectors that is none, but for rounding.
_NONE = 1e-12
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class Likeness:
    """What the people of a cohort tell of an image, given its unit vector.

    Each person is one vector, the mean of their images' unit vectors, so that a product with it is
    a mean cosine. An image has four numbers: the means of its 3 and of its 30 highest cosines with
    people; its mean cosine with its own kind, where kinds are taken by softmax of the distance to
    groups' centres; and its *trust*, 1 where the cohort represents it and 0 where it does not:
    where it is further from every group's centre than the cohort's own images are.

    Where the first two are lower than is usual for its kinds, that counts as far as its kinds are
    sure. An image of a group that the cohort lacks lies between kinds and close to nobody; it must
    not pass for one that few people resemble.

    Attributes
    ----------
    people : ndarray of shape (n_people, d)
    centers : ndarray of shape (n_groups, d)
        Mean of each group's people.
    sharpness : float
        Of kinds.
    levels : ndarray of shape (n_groups, 2)
        The usual means of the highest cosines, by kind.
    axes : ndarray of shape (d, k)
        Of the space that the centres span, scaled by how images vary within groups.
    far : ndarray of shape (2,)
        Squared distances from the nearest centre, along the axes, where trust begins to fall and
        where it ends.
    """

    people: Float64
    centers: Float64
    sharpness: float
    levels: Float64
    axes: Float64
    far: Float64

    def __call__(self, unit: Float64) -> Float64:
        """Return the four numbers of images, shape (n, 4)."""
        values = np.empty((len(unit), WIDTH))

        def work(block: slice) -> None:
            cosines = unit[block] @ self.people.T
            to_centers = unit[block] @ self.centers.T
            kinds = self.kinds(to_centers)
            usual, sure = kinds @ self.levels, certainty(kinds)
            values[block, :-2] = doubted(_highest(cosines), usual, sure)
            values[block, -2] = (to_centers * kinds).sum(axis=1)
            near, end = self.far
            values[block, -1] = (end - self._distances(unit[block])) / (end - near)

        with one_blas_thread():
            each(work, len(unit), _BLOCK)
        np.clip(values[:, -1], 0.0, 1.0, out=values[:, -1])
        return values

    def among(self, unit: Float64) -> Likeness:
        """Return what the cohort tells of images that lie further from it, or closer, as these do.

        As those of other cameras. What is usual is moved by as much as they are off on average;
        those of sure kinds say so, for others may be of a group that is missing.
        """
        kinds = self.kinds(unit @ self.centers.T)
        off = _highest(unit @ self.people.T) - kinds @ self.levels
        moved = np.average(off, axis=0, weights=certainty(kinds)[:, 0])
        return replace(self, levels=self.levels + moved)

    def kinds(self, to_centers: Float64) -> Float64:
        """Return how far images belong to each group, given products with the centres."""
        return np.asarray(softmax(self.sharpness * _nearness(to_centers, self.centers), axis=1))

    def _distances(self, unit: Float64) -> Float64:
        places, centers = unit @ self.axes, self.centers @ self.axes
        squares = np.einsum("ij,ij->i", centers, centers) - 2 * places @ centers.T
        return np.asarray(squares.min(axis=1) + np.einsum("ij,ij->i", places, places))

    def get_state(self) -> dict[str, Any]:
        """Return all as arrays and numbers."""
        state = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**state, "people": self.people.astype(np.float32)}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return what `get_state` gave."""
        arrays = {one.name: np.asarray(state[one.name], np.float64) for one in fields(cls)}
        people, centers, axes = (arrays[name] for name in ("people", "centers", "axes"))
        d = people.shape[1] if people.ndim == 2 else -1
        shapes = centers.ndim == axes.ndim == 2 and centers.shape[1] == axes.shape[0] == d
        sizes = arrays["far"].shape == (2,) and not arrays["sharpness"].ndim
        sizes = sizes and arrays["levels"].shape == (len(centers), len(CLOSEST))
        if not (shapes and sizes and len(people) and len(centers)):
            found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise DataError(
                f"cohort: expected people, centres, levels and axes of one space, found {found}"
            )
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise DataError("cohort: expected finite numbers")
        if not arrays["far"][0] < arrays["far"][1]:
            raise DataError(f"far: expected two ascending distances, found {arrays['far']}")
        sharpness = float(arrays["sharpness"])
        return cls(people, centers, sharpness, arrays["levels"], axes, arrays["far"])


@dataclass(frozen=True, eq=False)
class CohortImages:
    """The images of a cohort, and what they tell of one another with nobody told of themselves.

    Attributes
    ----------
    unit : ndarray of shape (n, d)
    person : ndarray of shape (n,)
        Row of `Likeness.people`.
    group : ndarray of shape (n_people,)
        Of each person.
    sizes : ndarray of shape (n_groups,)
        People of each.
    kinds : ndarray of shape (n, n_groups)
        Of each image, with its person left out of the own group's centre.
    likeness : Likeness
    """

    unit: Float64
    person: Codes
    group: Codes
    sizes: Codes
    kinds: Float64
    likeness: Likeness

    @classmethod
    def of(cls, unit: Float64, person: Codes, group: Codes) -> CohortImages:
        """Take the unit vectors of images, (n, d), with the codes of people and groups.

        A person is of the group that most of their images are of.
        """
        known = np.flatnonzero(group >= 0)
        known = known[np.argsort(person[known], kind="stable")]
        unit, group = unit[known], group[known]
        place = np.unique(person[known], return_inverse=True)[1]
        images = np.bincount(place)
        # In single precision, as they are kept.
        means = sums_of(unit, place, len(images)) / images[:, None]
        people = means.astype(np.float32).astype(np.float64)
        votes = csr_array((np.ones(len(place)), (place, group))).toarray()
        of_person = np.unique(votes.argmax(axis=1), return_inverse=True)[1]
        sizes = np.bincount(of_person)
        if len(sizes) < 2 or sizes.max() < 2:
            raise DataError(
                "cohort: expected two or more groups and two or more people in one of them, each "
                f"person in one group, found people: {len(people)}, groups: {len(sizes)}; "
                "add people"
            )
        centers = sums_of(people, of_person, len(sizes)) / sizes[:, None]
        middle = unit.mean(axis=0)
        spread = float(np.einsum("ij,ij->", unit, unit)) / len(unit) - float(middle @ middle)
        others = _without(centers[of_person], people, sizes[of_person])
        sharpness = _sharpness(people, of_person, centers, others, spread)
        near = _nearness(unit @ centers.T, centers)
        near[np.arange(len(unit)), of_person[place]] = _nearness_of(unit, others[place])
        kinds = np.asarray(softmax(sharpness * near, axis=1))
        axes, far = _surroundings(unit, place, of_person, centers, others)
        # No levels yet: they are what is usual without them.
        levels = np.full((len(centers), len(CLOSEST)), _LOWEST)
        likeness = Likeness(people, centers, sharpness, levels, axes, far)
        drawn = cls(unit, place, of_person, sizes, kinds, likeness)
        return replace(drawn, likeness=replace(likeness, levels=drawn._usual_closeness()))

    def _usual_closeness(self) -> Float64:
        """Return `Likeness.levels`: regressed on kinds, since these are told from noisy centres."""
        every = np.arange(len(self.unit))
        closeness = self.values(every, every)[:, : len(CLOSEST)]
        # Every group weighs the same, and everybody in it.
        weight = 1.0 / (np.bincount(self.person) * self.sizes[self.group])[self.person]
        mean, weighted = np.average(closeness, axis=0, weights=weight), self.kinds * weight[:, None]
        square = weighted.T @ self.kinds
        square[np.diag_indices_from(square)] += _HELD_BACK * np.trace(square) / len(square)
        return np.asarray(mean + np.linalg.solve(square, weighted.T @ (closeness - mean)))

    def values(self, images: Codes, partners: Codes) -> Float64:
        """Return the first three numbers of `images`, told by neither of a pair's two people."""
        likeness, group = self.likeness, self.group[self.person]
        values = np.empty((len(images), WIDTH - 1))
        own, other = self.person[images], self.person[partners]
        to_centers = self.unit @ likeness.centers.T
        at = group[images]
        alike = self.group[other] == at
        itself, partner = np.empty(len(images)), np.empty(len(images))
        # Image by image: cosines of all of them with all people are never there at a time.
        order = np.argsort(images, kind="stable")
        starts = np.searchsorted(images[order], np.arange(len(self.unit) + 1))

        def work(block: slice) -> None:
            cosines = self.unit[block] @ likeness.people.T
            of_block = order[starts[block.start] : starts[block.stop]]
            for start in range(0, len(of_block), _BLOCK):
                rows = of_block[start : start + _BLOCK]
                taken, every = cosines[images[rows] - block.start], np.arange(len(rows))
                itself[rows] = taken[every, own[rows]]
                partner[rows] = taken[every, other[rows]]
                taken[every, own[rows]] = taken[every, other[rows]] = -np.inf
                values[rows, :-1] = _highest(taken, without=2)

        each(work, len(self.unit), _BLOCK)
        # The own group's mean, without the two.
        total = to_centers[images, at] * self.sizes[at] - itself - np.where(alike, partner, 0.0)
        left = np.maximum(self.sizes[at] - 1 - alike, 1)
        values[:, -1] = (to_centers * self.kinds).sum(axis=1)[images]
        values[:, -1] += self.kinds[images, at] * (total / left - to_centers[images, at])
        usual, sure = self.kinds @ likeness.levels, certainty(self.kinds)
        values[:, :-1] = doubted(values[:, :-1], usual[images], sure[images])
        return values

    def sides(self, one: Codes, two: Codes) -> tuple[Float64, Float64]:
        """Return the first three numbers of both images of pairs, (n, 3) each."""
        both = self.values(np.concatenate([one, two]), np.concatenate([two, one]))
        return both[: len(one)], both[len(one) :]

    def cosine(self, one: Codes, two: Codes) -> Float64:
        """Return the scores of pairs of images."""
        return cosines_of(self.unit, one, two)

    def parts(self, n_parts: int, rng: np.random.Generator) -> Codes:
        """Deal people to parts at random, (n_people,), those of each group evenly."""
        order = rng.permutation(len(self.group))
        order = order[np.argsort(self.group[order], kind="stable")]
        parts = np.empty(len(order), np.int64)
        parts[order] = np.arange(len(order)) % n_parts
        return parts

    def strangers(self, most: int, rng: np.random.Generator) -> tuple[Codes, Codes, Float64]:
        """Return pairs of images of two people of one group, and weights that add up to 1.

        Every group weighs the same.

        Parameters
        ----------
        most : int
            Pairs in all, about.
        rng : Generator
        """
        lefts, rights, weights = [], [], []
        groups = np.flatnonzero(self.sizes > 1)
        for group in groups:
            rows = np.flatnonzero(self.group[self.person] == group)
            if len(rows) ** 2 / 2 <= most:
                left, right = (rows[part] for part in np.triu_indices(len(rows), 1))
            else:
                left, right = rows[rng.integers(0, len(rows), (2, 2 * most // len(groups)))]
            two = np.flatnonzero(self.person[left] != self.person[right])
            two = rng.permutation(two)[: max(most // len(groups), 1)]
            lefts.append(left[two])
            rights.append(right[two])
            weights.append(np.full(len(two), 1.0) / (max(len(two), 1) * len(groups)))
        return np.concatenate(lefts), np.concatenate(rights), np.concatenate(weights)


def doubted(values: Float64, floor: Float64 | float, counting: Float64 | float) -> Float64:
    """Return values, of which `counting` is left of what they fall below a floor.

    That few people resemble an image may be so, or the cohort has nobody like it.

    Examples
    --------
    >>> doubted(np.array([2.0, 1.0, -3.0]), 1.0, 0.25)
    array([2., 1., 0.])
    """
    return np.asarray(np.maximum(values, floor + counting * (values - floor)))


def certainty(kinds: Float64) -> Float64:
    """Return how sure the kinds of images are, (n, 1): the chance that two guesses agree."""
    return np.asarray(np.einsum("ij,ij->i", kinds, kinds)[:, None])


def cosines_of(unit: Float64, one: Codes, two: Codes) -> Float64:
    """Return the products of pairs of rows; those of a block alone are copied."""
    parts = each(
        lambda block: np.einsum("ij,ij->i", unit[one[block]], unit[two[block]]), len(one), _BLOCK
    )
    return np.concatenate([np.empty(0), *parts])


def _highest(cosines: Float64, without: int = 0) -> Float64:
    """Return the means of the highest cosines, (n, 2); `without` as many of each are none."""
    n = cosines.shape[1]
    most = min(max(CLOSEST), n - without)
    top = np.partition(cosines, n - most, axis=1)[:, n - most :]
    top.sort(axis=1)
    return np.stack([top[:, -min(k, most) :].mean(axis=1) for k in CLOSEST], axis=1)


def _nearness(to_centers: Float64, centers: Float64) -> Float64:
    """Return how near rows are to centres, given products with them: −‖x − c‖² + ‖x‖²."""
    return np.asarray(2 * to_centers - np.einsum("ij,ij->i", centers, centers))


def _nearness_of(rows: Float64, centers: Float64) -> Float64:
    """Return how near each row is to a centre of its own."""
    return np.asarray(
        2 * np.einsum("ij,ij->i", rows, centers) - np.einsum("ij,ij->i", centers, centers)
    )


def _sharpness(
    people: Float64, group: Codes, centers: Float64, others: Float64, spread: float
) -> float:
    """Return how sharply people's kinds are best told by centres, of their own group without them.

    `others` are those centres, and `spread` is the total variance of images.
    """
    sizes, itself = np.bincount(group), (np.arange(len(people)), group)
    near = _nearness(people @ centers.T, centers)
    near[itself] = _nearness_of(people, others)
    sharpness = _SHARPNESS / max(spread, _NONE)
    # Every group weighs the same.
    likely = [
        np.mean(np.bincount(group, log_softmax(near * s, axis=1)[itself]) / sizes)
        for s in sharpness
    ]
    return float(sharpness[np.argmax(likely)])


def _surroundings(
    unit: Float64, person: Codes, group: Codes, centers: Float64, others: Float64
) -> tuple[Float64, Float64]:
    """Return `Likeness.axes` and `Likeness.far`: where a cohort's own images lie.

    Each image's own group is there without its person: `others`.
    """
    of_image = group[person]
    _, size, axes = np.linalg.svd(centers - centers.mean(axis=0), full_matrices=False)
    axes = axes[size > 1e-6 * max(size[0], _NONE)][: len(centers) - 1].T
    away = unit @ axes - (others @ axes)[person]
    share = 1.0 / np.bincount(person)[person]
    within = (away * share[:, None]).T @ away / len(group)
    within[np.diag_indices_from(within)] += _ADDED * np.trace(within) / max(len(within), 1)
    values, turned = np.linalg.eigh(within)
    turned = turned / np.sqrt(np.maximum(values, _NONE))
    axes, distance = axes @ turned, ((away @ turned) ** 2).sum(axis=1)
    places = unit @ axes
    for code, center in enumerate(centers @ axes):
        to = ((places - center) ** 2).sum(axis=1)
        distance = np.where(of_image == code, distance, np.minimum(distance, to))
    near, end = np.quantile(distance, _NEAR)
    return axes, np.array([near, max(end, near * (1 + 1e-6) + _NONE)])


def _without(centers: Float64, rows: Float64, sizes: Codes) -> Float64:
    """Return means of groups without one of them; with nobody else, the mean itself."""
    others = np.maximum(sizes - 1, 1)[:, None]
    left = (centers * sizes[:, None] - rows) / others
    return np.where((sizes > 1)[:, None], left, centers)
