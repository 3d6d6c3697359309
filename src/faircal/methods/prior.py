"""Scoring for another share of genuine pairs than a model was fitted at."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.calibrators.prior import (
    PriorEstimate,
    check_share,
    estimate_prior,
    shift_prior,
)
from faircal.data import Dataset, PairParts
from faircal.data.columns import UNKNOWN
from faircal.methods import Method
from faircal.metrics import EvidenceBounds

Float64 = NDArray[np.float64]
Codes = NDArray[np.int64]

#: From more pairs than these a share is not estimated: so many are drawn at random.
MOST_PAIRS = 4_000_000
#: Probabilities of the same score may differ by this much.
_ROUNDING = 1e-9


class Shift(NamedTuple):
    """From which share of genuine pairs to which, within the bounds on evidence."""

    calibrated_at: float
    prior: float
    bounds: EvidenceBounds | None = None

    @classmethod
    def of(cls, model: Method, prior: float) -> Shift:
        """Return the shift of what `model` says to the share `prior`."""
        return cls(fitted_share(model), prior, model.about_.evidence)

    def __call__(self, probability: Float64) -> Float64:
        """Return the probabilities for the other share."""
        share, prior, bounds = self
        return shift_prior(probability, calibrated_at=share, prior=prior, bounds=bounds)


def fitted_share(model: Method, what: str = "--prior") -> float:
    """Return the share of genuine pairs that `model` was fitted at.

    `what` needs to know it, for an error where nobody does.
    """
    share = model.calibrated_at
    if share is None:
        raise ParameterError(
            f"{what}: the model does not say at which share of genuine pairs it was fitted, as "
            "older ones don't; fit it again"
        )
    return check_share(share, "the model's share of genuine pairs")


def probability_at(threshold: float, score: Float64, probability: Float64) -> float:
    """Return what probability a score of `threshold` stands for; NaN where the score can't tell.

    Some methods rank by the probability itself. Of others it is read off the two measured pairs
    whose scores are next to the threshold, as long as higher scores never mean lower probabilities.

    Parameters
    ----------
    threshold : float
    score, probability : ndarray of float64, shape (n_pairs,)
        What the model says of pairs.

    Examples
    --------
    >>> round(probability_at(0.3, np.array([0.2, 0.4]), np.array([0.1, 0.5])), 6)
    0.3
    >>> probability_at(0.3, np.array([0.2, 0.4]), np.array([0.5, 0.1]))
    nan
    """
    if score is probability or np.array_equal(score, probability):
        return min(max(float(threshold), 0.0), 1.0)
    order = np.lexsort((probability, score))
    at, ordered = score[order], probability[order]
    step, gain = np.diff(at), np.diff(ordered)
    falls = (gain < -_ROUNDING).any() or (gain[step == 0] > _ROUNDING).any()
    if falls or not len(at) or not at[0] <= threshold <= at[-1]:
        return float("nan")
    return float(np.interp(threshold, at, ordered))


def estimate_share(
    model: Method,
    stream: PairParts,
    *,
    calibrated_at: float,
    columns: Collection[str],
    progress: Progress = silent,
) -> tuple[PriorEstimate, list[str]]:
    """Estimate the share of genuine pairs in `stream` from what `model` says of them.

    Goes through the pairs once, and scores at most `MOST_PAIRS` of them. Labels are not looked at.

    Parameters
    ----------
    model : Method
    stream : PairParts
    calibrated_at : float
        The share that the model was fitted at.
    columns : collection of str
        What the model needs of a score table.
    progress : callable

    Returns
    -------
    PriorEstimate
    list of str
        What should be known of it.
    """
    drawn = np.random.default_rng(0)
    keep = MOST_PAIRS / max(len(stream), 1)
    people = _People()
    probabilities: list[Float64] = []
    done = 0
    with closing(stream.parts(0, {*columns, "identity"})) as parts:
        for part in parts:
            done += len(part)
            sample = part if keep >= 1 else part.subset(drawn.random(len(part)) < keep)
            if len(sample):
                probabilities.append(model.apply(sample).probability)
                people.add(sample)
            progress("estimating the share of genuine pairs", done, len(stream), "")
    progress("estimating the share of genuine pairs", 0, 0, "")
    if not probabilities:
        raise DataError("--prior estimate: there are no pairs to estimate from; give a number")
    probability = np.concatenate(probabilities)
    left, right = people.sides()
    estimate = estimate_prior(probability, calibrated_at=calibrated_at, left=left, right=right)
    notes = estimate.notes + people.notes()
    if keep < 1:
        notes.append(f"estimated from {len(probability)} of {len(stream)} pairs, drawn at random")
    return estimate, notes


class _People:
    """Who is in each pair, by one number for a person in all parts; by image where unknown."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sides: tuple[list[Codes], list[Codes]] = ([], [])
        self._by_image = False

    def add(self, part: Dataset) -> None:
        """Take the people of a part; in a score table each part has codes of its own."""
        identity = part.images.identity
        if identity is None and not part.has_images:
            return
        rows = (part.pairs.left, part.pairs.right)
        if identity is None:
            self._by_image, codes = True, [side.astype(np.int64) for side in rows]
        else:
            numbers = [self._numbers.setdefault(n, len(self._numbers)) for n in identity.names]
            table = np.array([*numbers, UNKNOWN], np.int64)
            codes = [table[identity.take(side)] for side in rows]
        for held, side in zip(self._sides, codes, strict=True):
            held.append(side)

    def sides(self) -> tuple[Codes | None, Codes | None]:
        """Return the numbers of the left and of the right people; None where nothing is known."""
        left, right = (np.concatenate(held) if held else None for held in self._sides)
        return left, right

    def notes(self) -> list[str]:
        """Say where images stand for people."""
        note = (
            "people are unknown: pairs that share an image are taken as dependent, and the "
            "interval is too narrow where others share people"
        )
        return [note] if self._by_image else []
