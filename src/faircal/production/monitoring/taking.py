"""Pairs of calibration to count: all of them, or some of many."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from faircal.data import Dataset, Embeddings, PairStream
from faircal.data.folds import people_of
from faircal.data.types import Pairs
from faircal.methods import Method
from faircal.production.monitoring.seen import number_of

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Pairs that are taken of many: counts are then about as sure as people allow.
PAIRS = 40_000


class Sampled(Protocol):
    """Pairs somewhere else, such as on a cluster, of which some can be had here."""

    def __len__(self) -> int:
        """How many pairs there are."""

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return about `most` of them: all where there are no more."""


@dataclass(frozen=True, eq=False)
class Taken:
    """Labelled pairs with what the model says of them.

    Attributes
    ----------
    score, similarity : ndarray of shape (n,)
        What the model ranks by, and the score it was given.
    genuine : ndarray of shape (n,), bool
    people, images : ndarray of shape (2, n), int64
        Numbers of left and right people, and rows of images.
    lots_of : str
        What numbers of people stand for: ``people``, or ``pairs`` where nobody knows.
    embeddings : Embeddings, optional
    everybody : ndarray of shape (n_images,), int64
        The person of each image.
    used : ndarray of int64
        All images that occur in pairs, taken or not.
    """

    score: Float64
    similarity: Float64
    genuine: NDArray[np.bool_]
    people: Int64
    images: Int64
    lots_of: str
    embeddings: Embeddings | None
    everybody: Int64
    used: Int64

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return len(np.unique(self.people))

    @classmethod
    def of(
        cls, model: Method, data: Dataset | PairStream | Sampled, rng: np.random.Generator
    ) -> Taken:
        """Take pairs of `data`, each as likely as any other."""
        if isinstance(data, PairStream):
            return _of_stream(model, data, rng)
        if not isinstance(data, Dataset):
            seed = int(rng.integers(1 << 31)) if len(data) > PAIRS else 0
            return cls.of(model, data.sample(PAIRS, seed), rng)
        some = data
        if len(data) > PAIRS:
            some = data.subset(np.sort(rng.choice(len(data), PAIRS, replace=False)))
        everybody, source = people_of(data.pairs, data.images)
        sides = np.stack([some.pairs.left, some.pairs.right]).astype(np.int64)
        people, lots_of = everybody[sides], "people"
        if data.images.by_side and source != "identities":
            people, lots_of = _own_numbers(len(some)), "pairs"
        return cls(
            model.apply(some).score,
            some.scores,
            some.genuine,
            people,
            sides,
            lots_of,
            data.embeddings,
            everybody,
            data.used_images().astype(np.int64),
        )


def _of_stream(model: Method, stream: PairStream, rng: np.random.Generator) -> Taken:
    images = stream.images
    used = np.zeros(0 if images is None else len(images), bool)
    chance = PAIRS / max(len(stream), 1)
    kept: list[tuple[NDArray[np.generic], ...]] = []
    names: list[Int64 | None] = []
    with closing(stream.parts()) as parts:
        for part in parts:
            if images is not None:
                used[part.pairs.left] = used[part.pairs.right] = True
            some = part.subset(rng.random(len(part)) < chance)
            if len(some):
                said = model.apply(some).score
                kept.append((said, some.scores, some.genuine, some.pairs.left, some.pairs.right))
                names.append(_numbers_by_name(some) if images is None else None)
    score, similarity, genuine, left, right = (
        np.concatenate(column) for column in zip(*kept, strict=True)
    )
    sides = np.stack([left, right]).astype(np.int64)
    if images is not None:
        everybody, _ = people_of(Pairs(left, right, genuine), images)
        people, lots_of = everybody[sides], "people"
    else:
        known = [found for found in names if found is not None]
        everybody = np.zeros(0, np.int64)
        people, lots_of = _own_numbers(len(score)), "pairs"
        if len(known) == len(names):
            people, lots_of = np.concatenate(known, axis=1), "people"
    place = np.flatnonzero(used).astype(np.int64)
    said_of = (score, similarity, genuine, people, sides, lots_of)
    return Taken(*said_of, stream.embeddings, everybody, place)


def _own_numbers(n: int) -> Int64:
    """Take each pair as somebody of its own."""
    return np.tile(np.arange(n), (2, 1))


def _numbers_by_name(part: Dataset) -> Int64 | None:
    """Return the people of a score table's pairs as numbers that all parts agree on, (2, n)."""
    people = part.people
    if people is None or (people.left < 0).any() or (people.right < 0).any():
        return None
    numbers = np.array([number_of(name) for name in people.names], np.int64)
    return np.stack([numbers[people.left], numbers[people.right]])
