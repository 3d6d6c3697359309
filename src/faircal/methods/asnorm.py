"""AS-norm: S-norm with those of the cohort who are most alike to each image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from faircal._base.errors import DataError
from faircal._base.registry import check_integer
from faircal.calibrators import Calibrator
from faircal.compute import Engine
from faircal.compute.threads import each, one_blas_thread
from faircal.methods.base import Claims, Needs
from faircal.methods.inputs import Float64, ImageValues, Inputs
from faircal.methods.normalizing import (
    CohortPeople,
    Moments,
    NormalizingMethod,
    PairSides,
    images_at_a_time,
    normalized,
    paired,
)


@dataclass(eq=False, repr=False)
class ASNorm(NormalizingMethod):
    """Adaptive symmetric score normalisation: `SNorm`, with the k people most alike to each image.

    μ_x and σ_x are of the `k` highest cosines of image x with people of the cohort (of all, where
    there are fewer). In the fit the people of a pair are in neither image's scores: the next ones
    take their places.

    Parameters
    ----------
    k : int
        Highest cohort scores of each image that count, 2 or more.
    calibrator : str or Calibrator

    Attributes
    ----------
    people_ : ndarray of shape (n_people, d)
        One vector a person of the cohort. The model file has them: without a cohort those are
        calibration people, some of whom may have one image only.

    References
    ----------
    S. Cumani et al.: Comparison of speaker recognition approaches for real applications.
    Interspeech 2011. P. Matějka et al.: Analysis of score normalization in multilingual speaker
    recognition. Interspeech 2017 (adaptive S-norm 1).

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> faircal.ASNorm(k=20).fit(cal).decision_scores(test).shape == (len(test),)
    True
    """

    name = "asnorm"
    title = "AS-norm"
    needs = Needs(embeddings=True, folds=True, cohort="optional")
    claims = Claims(improves_accuracy=True)

    k: int = 50
    calibrator: str | Calibrator = "beta"

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be."""
        super().check_parameters()
        check_integer("k", self.k, 2)

    def _fit_scores(self, inputs: Inputs) -> Float64:
        sides = PairSides.of(inputs)
        people = CohortPeople.of_fit(inputs, sides, self.diagnostics_)
        self._set_people(people.vectors)
        return paired(_held_out(people, sides, self.k), inputs.score)

    def _scores(self, inputs: Inputs) -> Float64:
        return normalized(self._values, inputs)

    def _set_people(self, people: Float64) -> None:
        self.people_ = people
        top = partial(_top_moments, people, self.k)
        self._values = ImageValues(self.space_, top, np.float64, 2, unit=True)

    def _get_state(self) -> dict[str, Any]:
        return {**super()._get_state(), "people": self.people_}

    def _set_state(self, state: dict[str, Any]) -> None:
        people = np.asarray(state["people"], np.float64)
        if people.ndim != 2 or len(people) < 2 or not people.shape[1]:
            raise DataError(f"people: expected a matrix of two rows or more, found {people.shape}")
        self._restore(state, people.shape[1])
        self._set_people(people)


def _highest(scores: Float64, k: int) -> Float64:
    """Return the `k` highest scores of each row, the highest first; all where there are fewer."""
    k = min(k, scores.shape[1])
    return -np.sort(np.partition(-scores, k - 1, axis=1)[:, :k], axis=1)


def _top_moments(people: Float64, k: int, unit: Float64, engine: Engine) -> Float64:  # noqa: ARG001
    values = np.empty((len(unit), 2))

    def work(block: slice) -> None:
        top = _highest(unit[block] @ people.T, k)
        count = top.shape[1]
        values[block] = np.transpose(Moments.of_sums(count, top.sum(axis=1), (top**2).sum(axis=1)))

    with one_blas_thread():
        each(work, len(unit), images_at_a_time(len(people)))
    return values


def _held_out(people: CohortPeople, sides: PairSides, k: int) -> Moments:
    """Return the moments of each side's highest scores, without the pair's two people."""
    places = people.place(sides.person, np.zeros_like(sides.person))
    order, starts = sides.by_image()
    mean, std = np.empty(len(order)), np.empty(len(order))

    def work(block: slice) -> None:
        rows = order[starts[block.start] : starts[block.stop]]
        image, partner = sides.image[rows] - block.start, places[sides.partner[rows]]
        # The last column is for those who are not in the cohort.
        scores = np.pad(sides.unit[block] @ people.vectors.T, ((0, 0), (0, 1)))
        scores[np.arange(len(scores)), places[block]] = scores[:, -1] = -np.inf
        top = _highest(scores, k + 1)
        # One of k + 1 goes: the partner where among the first k, else the last.
        out = scores[image, partner]
        if top.shape[1] > k:
            out = np.maximum(out, top[image, k])
        count = np.isfinite(top).sum(axis=1)[image] - np.isfinite(out)
        top, out = (np.where(np.isfinite(values), values, 0.0) for values in (top, out))
        total, squares = top.sum(axis=1)[image] - out, (top**2).sum(axis=1)[image] - out**2
        mean[rows], std[rows] = Moments.of_sums(count, total, squares)

    each(work, len(sides.unit), images_at_a_time(len(people)))
    return Moments(mean, std)
