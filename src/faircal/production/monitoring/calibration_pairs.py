"""Labelled pairs that the calibration population is counted on: of many some are taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from faircal.data import Dataset, Embeddings, Groups, PairParts, PairStream
from faircal.data.folds import people_of
from faircal.data.types import Pairs
from faircal.methods import Method
from faircal.production.monitoring.counts import Bool, Float64, Int64

if TYPE_CHECKING:
    from faircal.production.spark import SparkPairs

#: Pairs that are taken of many: counts are then about as sure as people allow.
PAIRS = 40_000


@dataclass(frozen=True, eq=False)
class CalibrationPairs:
    """Labelled pairs with what the model says of them.

    Attributes
    ----------
    score, similarity : ndarray of shape (n,)
        What the model ranks by, and the score it was given.
    genuine : ndarray of shape (n,), bool
    people, images : ndarray of shape (2, n), int64
        Numbers of left and right people, and rows of images.
    counted_by : str
        What numbers of people stand for: ``people``, or ``pairs`` where nobody knows.
    embeddings : Embeddings, optional
    everybody : ndarray of shape (n_images,), int64
        The person of each image.
    used : ndarray of int64
        All images that occur in pairs, taken or not.
    """

    score: Float64
    similarity: Float64
    genuine: Bool
    people: Int64
    images: Int64
    counted_by: str
    embeddings: Embeddings | None
    everybody: Int64
    used: Int64

    @classmethod
    def of(cls, model: Method, data: PairParts, rng: np.random.Generator) -> CalibrationPairs:
        """Take pairs of `data`, each as likely as any other."""
        if not isinstance(data, Dataset | PairStream):
            seed = int(rng.integers(1 << 31)) if len(data) > PAIRS else 0
            data = cast("SparkPairs", data).sample(PAIRS, seed)
        samples: list[Dataset] = []
        used, scores, sides, images = [], [], [], 0
        for part, sample in _sampled(data, rng):
            used.append(part.used_images())
            samples.append(sample)
            scores.append(model.apply(sample).score)
            sides.append(
                np.stack([sample.pairs.left, sample.pairs.right]).astype(np.int64) + images
            )
            images += len(part.images) if part.images.by_side else 0  # each part has its own
        left, right = both = np.concatenate(sides, axis=1)
        genuine = np.concatenate([sample.genuine for sample in samples])
        everybody, people, counted_by = np.zeros(0, np.int64), both, "people"
        named = [each for each in (sample.people for sample in samples) if each is not None]
        if samples[0].has_images:
            pairs = data.pairs if isinstance(data, Dataset) else Pairs(left, right, genuine)
            everybody, _ = people_of(pairs, samples[0].images)
            people = everybody[both]
        elif len(named) == len(samples):
            people = _numbers_by_name(named, both)
        else:  # each pair counts as somebody of its own
            people, counted_by = np.tile(np.arange(len(genuine)), (2, 1)), "pairs"
        return cls(
            np.concatenate(scores),
            np.concatenate([sample.scores for sample in samples]),
            genuine,
            people,
            both,
            counted_by,
            data.embeddings,
            everybody,
            np.unique(np.concatenate(used)).astype(np.int64),
        )


def _sampled(data: PairParts, rng: np.random.Generator) -> Iterator[tuple[Dataset, Dataset]]:
    """Yield parts of the pairs, and what is taken of each: the same pairs, however they are cut."""
    rows, start = np.arange(len(data)), 0
    if len(data) > PAIRS:
        rows = np.sort(rng.choice(len(data), PAIRS, replace=False))
    for part in data.parts():
        first, last = np.searchsorted(rows, (start, start + len(part)))
        if last > first:
            every = last - first == len(part)
            yield part, part if every else part.subset(rows[first:last] - start)
        start += len(part)


def _numbers_by_name(named: Sequence[Groups], sides: Int64) -> Int64:
    """Return the people of a score table's pairs as numbers that all parts agree on, (2, n).

    Each unknown identity counts as a distinct person.
    """
    names = sorted({name for people in named for name in people.names})
    number = {name: i for i, name in enumerate(names)}
    parts = []
    for people in named:
        table = np.array([*(number[name] for name in people.names), -1], np.int64)
        parts.append(np.stack([table[people.left], table[people.right]]))
    numbers = np.concatenate(parts, axis=1)
    return np.where(numbers < 0, len(names) + sides, numbers)
