"""What methods share that normalise scores: a cohort's scores of an image, one map that follows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError
from faircal.calibrators import Calibrator, make_calibrator
from faircal.compute import Engine
from faircal.compute.kmeans import sums_of
from faircal.compute.threads import each, one_blas_thread
from faircal.methods.base import Diagnostics, Method, Output, check_truth
from faircal.methods.inputs import Float64, ImageValues, Inputs, Space, declared

Codes = NDArray[np.integer]

#: Scores of images with a cohort that are there at a time.
_SCORES = 2**22
#: No standard deviation is smaller: where cohort scores are all the same there is none.
LEAST_STD = 1e-9
#: People that a cohort has at least: with both of a pair left out there are two to compare with.
LEAST_PEOPLE = 4


def images_at_a_time(people: int) -> int:
    """Return how many images' scores with so many people, or images, are there at a time."""
    return max(8, min(256, _SCORES // max(people, 1)))


class NormalizingMethod(Method):
    """A method that normalises scores and calibrates what comes out with one global map.

    Attributes
    ----------
    calibrator_ : Calibrator
        Of normalised scores; its range is that of the fit, and half as much again on both sides.
    """

    calibrator: str | Calibrator
    calibrator_: Calibrator
    space_: Space

    def _fit(self, inputs: Inputs) -> None:
        self.space_ = Space.of(declared(inputs.embeddings, "embeddings"))
        with one_blas_thread():
            score = self._fit_scores(inputs)
        self.calibrator_ = make_calibrator(self.calibrator, wide_range(score))
        self.calibrator_.fit(score, inputs.genuine)

    def _apply(self, inputs: Inputs) -> Output:
        score = self._scores(inputs)
        return Output(score, self.calibrator_.predict(score))

    @abstractmethod
    def _fit_scores(self, inputs: Inputs) -> Float64:
        """Learn how to normalise; return the normalised scores of the calibration pairs."""

    @abstractmethod
    def _scores(self, inputs: Inputs) -> Float64:
        """Return the normalised score of each pair."""

    def _get_state(self) -> dict[str, Any]:
        return {
            "normalize": self.space_.normalize,
            "range": list(self.calibrator_.score_range),
            **prefixed("calibrator", self.calibrator_.get_state()),
        }

    def _restore(self, state: dict[str, Any], dimension: int) -> None:
        """Restore what `_get_state` of this class gave."""
        self.space_ = Space(dimension, check_truth("normalize", state["normalize"]))
        low, high = map(float, state["range"])
        calibrator = make_calibrator(self.calibrator, (low, high))
        self.calibrator_ = calibrator.set_state(unprefixed("calibrator", state))


def wide_range(score: Float64) -> tuple[float, float]:
    """Return the range of scores that a method makes, half as much again on both sides."""
    low, high = float(score.min()), float(score.max())
    reach = max(high - low, 1e-6) / 2
    return low - reach, high + reach


class Moments(NamedTuple):
    """Mean and standard deviation of cohort scores: of an image, or of each side of pairs."""

    mean: Float64
    std: Float64

    @classmethod
    def of_sums(cls, count: Any, total: Float64, squares: Float64) -> Moments:
        """Return those of `count` scores with a sum and a sum of squares."""
        mean = total / count
        return cls(mean, np.sqrt(np.maximum(squares / count - mean**2, LEAST_STD**2)))

    def z(self, score: Float64) -> Float64:
        """Return (s − μ)/σ."""
        return np.asarray((score - self.mean) / self.std)


@dataclass(frozen=True, eq=False)
class PairSides:
    """The images of a fit, and the two of each pair: all left ones, then all right ones.

    Attributes
    ----------
    unit : ndarray of shape (n_images, d), float64
        Vectors at unit length.
    person : ndarray of shape (n_images,)
        A number for each person.
    image, partner : ndarray of shape (2 * n_pairs,)
        Place of the image among `unit`, and of the pair's other image.
    """

    unit: Float64
    person: Codes
    image: Codes
    partner: Codes

    @classmethod
    def of(cls, inputs: Inputs) -> PairSides:
        """Return those of all pairs."""
        left, right = inputs.positions()
        return cls(
            declared(inputs.embeddings, "embeddings").unit(inputs.images),
            declared(inputs.folds, "folds").people[inputs.images],
            np.concatenate([left, right]),
            np.concatenate([right, left]),
        )

    def by_image(self) -> tuple[Codes, Codes]:
        """Return an order of the sides, image by image, and where each image begins in it."""
        order = np.argsort(self.image, kind="stable")
        return order, np.searchsorted(self.image[order], np.arange(len(self.unit) + 1))


@dataclass(frozen=True, eq=False)
class CohortPeople:
    """One vector for each person of a cohort, so that nobody counts more for having more images.

    It is the mean of the unit vectors of the person's images, at unit length. A person with images
    in two groups is there twice.

    Attributes
    ----------
    vectors : ndarray of shape (n, d), float64
    person, group : ndarray of shape (n,)
        Sorted by both.
    """

    vectors: Float64
    person: Codes
    group: Codes

    @classmethod
    def of(
        cls,
        vectors: Float64,
        person: Codes,
        group: Codes | None = None,
        image: Codes | None = None,
    ) -> CohortPeople:
        """Take the unit vectors of images, (n, d), with a number of the person and of the group.

        Where `image` is given, `person` and `group` are of these rows of `vectors`.
        """
        group = np.zeros_like(person) if group is None else group
        width = int(group.max()) + 1
        keys, code = np.unique(person * width + group, return_inverse=True)
        sums = sums_of(vectors, code, len(keys), image)
        sums /= np.maximum(np.sqrt(np.einsum("ij,ij->i", sums, sums)), 1e-12)[:, None]
        return cls(sums, *np.divmod(keys, width))

    def __len__(self) -> int:
        return len(self.vectors)

    @classmethod
    def of_fit(cls, inputs: Inputs, sides: PairSides, diagnostics: Diagnostics) -> CohortPeople:
        """Return those of the cohort, or else those of the calibration images."""
        vectors, person, whose = sides.unit, sides.person, "calibration people"
        if inputs.cohort is not None:
            vectors = inputs.cohort.embeddings.unit(np.arange(len(inputs.cohort.person)))
            person, whose = person.max() + 1 + inputs.cohort.person, "people of the cohort"
        people = cls.of(vectors, person)
        if len(people) < LEAST_PEOPLE:
            raise DataError(
                f"cohort: expected {LEAST_PEOPLE} people or more, found {len(people)}; add people"
            )
        compared = f"scores are compared with those of {len(people)} {whose}"
        diagnostics.note(compared, choice=True)
        return people

    def place(self, person: Codes, group: Codes) -> NDArray[np.intp]:
        """Return the places of people in groups, (n,); the number of all where one is not there."""
        width = int(self.group.max(initial=0)) + 1
        keys, wanted = self.person * width + self.group, person * width + group
        at = np.searchsorted(keys, wanted)
        there = keys[np.minimum(at, len(keys) - 1)] == wanted
        return np.where(there, at, len(keys))

    def held_out(self, sides: PairSides, group: Codes | None = None) -> Moments:
        """Return the moments of each side's scores with the others of a group.

        Neither of the pair's two people is among the others.

        Parameters
        ----------
        sides : PairSides
        group : ndarray of shape (2 * n_pairs,), optional
            The group to compare each side with; all are of one unless given.
        """
        group = np.zeros(len(sides.image), np.int64) if group is None else group
        member = (self.group[:, None] == np.arange(self.group.max() + 1)).astype(np.float64)
        size = member.sum(axis=0)
        own, partner = sides.person[sides.image], sides.person[sides.partner]
        out = [self.place(own, group), self.place(partner, group)]
        # Of a genuine pair both are the same person, who is left out once.
        out[1] = np.where(own == partner, len(self), out[1])
        order, starts = sides.by_image()
        mean, std = np.empty(len(order)), np.empty(len(order))

        def work(block: slice) -> None:
            rows = order[starts[block.start] : starts[block.stop]]
            scores = sides.unit[block] @ self.vectors.T
            at = sides.image[rows] - block.start, group[rows]
            count, total = size[group[rows]], (scores @ member)[at]
            squares = ((scores * scores) @ member)[at]
            padded = np.hstack([scores, np.zeros((len(scores), 1))])
            for places in out:
                left_out = padded[at[0], places[rows]]
                count = count - (places[rows] < len(self))
                total, squares = total - left_out, squares - left_out**2
            mean[rows], std[rows] = Moments.of_sums(count, total, squares)

        each(work, len(sides.unit), images_at_a_time(len(self)))
        return Moments(mean, std)


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Gives the moments of any image's scores with each group of a cohort, without the cohort.

    The mean of cosines is the cosine with a mean, their variance a quadratic form: no person's own
    vector is needed.

    Attributes
    ----------
    mean : ndarray of shape (n_groups, d)
    covariance : ndarray of shape (n_groups, d, d)
    """

    mean: Float64
    covariance: Float64

    @classmethod
    def of(cls, people: CohortPeople) -> GroupMoments:
        """Take those of a cohort's people."""
        parts = [people.vectors[people.group == g] for g in range(int(people.group.max()) + 1)]
        means = [part.mean(axis=0) for part in parts]
        away = [part - mean for part, mean in zip(parts, means, strict=True)]
        return cls(np.stack(means), np.stack([a.T @ a / len(a) for a in away]))

    @classmethod
    def restore(cls, state: dict[str, Any]) -> GroupMoments:
        """Return what `get_state` gave."""
        mean, covariance = (np.asarray(state[k], np.float64) for k in ("mean", "covariance"))
        if mean.ndim != 2 or not mean.size or covariance.shape != (*mean.shape, mean.shape[1]):
            raise DataError(
                f"covariance: expected a matrix for each group, found shapes {mean.shape} and "
                f"{covariance.shape}"
            )
        return cls(mean, covariance)

    def get_state(self) -> dict[str, Any]:
        """Return all as arrays."""
        return {"mean": self.mean, "covariance": self.covariance}

    def __call__(self, unit: Float64, engine: Engine) -> Float64:  # noqa: ARG002
        """Return means, then standard deviations, (n, 2 * n_groups)."""
        values = np.empty((len(unit), 2 * len(self.mean)))

        def work(block: slice) -> None:
            x, squares = unit[block], values[block, len(self.mean) :]
            values[block, : len(self.mean)] = x @ self.mean.T
            for g, matrix in enumerate(self.covariance):
                squares[:, g] = np.einsum("ij,ij->i", x @ matrix, x)
            np.sqrt(np.maximum(squares, LEAST_STD**2, out=squares), out=squares)

        with one_blas_thread():
            each(work, len(unit), images_at_a_time(self.mean.shape[1]))
        return values


def normalized(values: ImageValues, inputs: Inputs) -> Float64:
    """Return the normalised score of each pair, given how each image's moments are worked out."""
    mean, std = values.at(declared(inputs.embeddings, "embeddings"), inputs.images).T
    sides = np.concatenate([inputs.left, inputs.right])
    return paired(Moments(mean[sides], std[sides]), inputs.score)


def paired(moments: Moments, score: Float64) -> Float64:
    """Return ½ ((s − μ_l)/σ_l + (s − μ_r)/σ_r), given the moments of all sides."""
    left, right = moments.z(np.concatenate([score, score])).reshape(2, -1)
    return np.asarray((left + right) / 2)
