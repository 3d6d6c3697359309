"""Labelled pairs that the calibration population is counted on, and where their images lie.

K-means moves centres to the images it sees: a person with many may have a cluster of their own,
which nobody else falls into. Images of people in use did not take part, so those of calibration are
held against centres from which their own person is taken out again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from faircal.compute import CPU, Engine
from faircal.compute.clustering import Clustering
from faircal.data import Dataset, Embeddings, PairStream
from faircal.data.folds import people_of
from faircal.data.types import Pairs
from faircal.methods import Method
from faircal.production.monitoring.pairs_in_use import number_of

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

#: Distances worked out at a time.
_BLOCK = 8192
#: An image whose person must be taken out of more clusters than this is held against those it
#: is nearest to; a "person" of that many clusters is a slip of labels.
_MOST_CLUSTERS = 64


class PlacedImages(NamedTuple):
    """Cluster and distance of each image."""

    cluster: Int64
    distance: Float32


def place_without_own(
    clustered: Float32,
    whose: Int64,
    centers: Float32,
    vectors: Float32,
    people: Int64,
    engine: Engine = CPU,
) -> PlacedImages:
    """Place images among the centres of everybody else's.

    Without the images of person p that cluster k holds, its centre is
    (n_k c_k − Σ x) / (n_k − n_pk).

    Parameters
    ----------
    clustered : ndarray of shape (n, d), float32
        All images that were clustered.
    whose : ndarray of shape (n,)
        Who is in them, by number.
    centers : ndarray of shape (K, d), float32
    vectors : ndarray of shape (m, d), float32
        Images to be placed, among those or not.
    people : ndarray of shape (m,)
        Who is in them.
    """
    k = len(centers)
    own = Clustering(centers, 0.0, 0).assign(clustered, engine).astype(np.int64)
    sizes = np.bincount(own, minlength=k)
    concerned = np.flatnonzero(np.isin(whose, people))
    cells, of = np.unique(whose[concerned] * k + own[concerned], return_inverse=True)
    held, person = cells % k, cells // k
    sums = _sums(clustered, concerned, of, len(cells))
    left = sizes[held] - np.bincount(of, minlength=len(cells))
    # The mean of nobody is nowhere: nobody can be near it.
    others = np.full(sums.shape, np.inf, np.float32)
    there = left > 0
    totals = sizes[held[there], None] * centers[held[there]]
    others[there] = (totals - sums[there]) / left[there, None]
    first = np.searchsorted(person, people, side="left")
    last = np.minimum(np.searchsorted(person, people, side="right"), first + _MOST_CLUSTERS)
    cluster = np.empty(len(vectors), np.int64)
    distance = np.empty(len(vectors), np.float32)
    squares = np.einsum("ij,ij->i", centers, centers)
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        part = vectors[block]
        apart = squares - 2 * (part @ centers.T) + np.einsum("ij,ij->i", part, part)[:, None]
        plain = apart.copy()
        _replace(apart, part, others, held, first[block], last[block])
        alone = ~np.isfinite(apart).any(axis=1)  # nobody else was there
        apart[alone] = plain[alone]
        cluster[block] = apart.argmin(axis=1)
        distance[block] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return PlacedImages(cluster, distance)


def _sums(vectors: Float32, rows: Int64, of: Int64, cells: int) -> Float32:
    """Sum rows of `vectors` by cell."""
    ones = np.ones(len(rows), np.float32)
    sums: Float32 = csr_array((ones, (of, rows)), shape=(cells, len(vectors))) @ vectors
    return sums


def _replace(
    apart: Float32, part: Float32, others: Float32, held: Int64, first: Int64, last: Int64
) -> None:
    """Put in the squared distances to the centres that are without the image's own person."""
    many = last - first
    rows = np.repeat(np.arange(len(part)), many)
    cells = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
    for start in range(0, len(rows), _BLOCK):
        row, cell = rows[start : start + _BLOCK], cells[start : start + _BLOCK]
        away = part[row] - others[cell]
        apart[row, held[cell]] = np.einsum("ij,ij->i", away, away)


Float64 = NDArray[np.float64]

#: Pairs that are taken of many: counts are then about as sure as people allow.
PAIRS = 40_000


class SampledPairs(Protocol):
    """Pairs somewhere else, such as on a cluster, of which some can be had here."""

    def __len__(self) -> int:
        """How many pairs there are."""

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return about `most` of them: all where there are no more."""


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
        cls, model: Method, data: Dataset | PairStream | SampledPairs, rng: np.random.Generator
    ) -> CalibrationPairs:
        """Take pairs of `data`, each as likely as any other."""
        if isinstance(data, PairStream):
            return _of_stream(model, data, rng)
        if not isinstance(data, Dataset):
            seed = int(rng.integers(1 << 31)) if len(data) > PAIRS else 0
            return cls.of(model, data.sample(PAIRS, seed), rng)
        sample = data
        if len(data) > PAIRS:
            sample = data.subset(np.sort(rng.choice(len(data), PAIRS, replace=False)))
        everybody, source = people_of(data.pairs, data.images)
        sides = np.stack([sample.pairs.left, sample.pairs.right]).astype(np.int64)
        people, lots_of = everybody[sides], "people"
        if data.images.by_side and source != "identities":
            people, lots_of = _own_numbers(len(sample)), "pairs"
        return cls(
            model.apply(sample).score,
            sample.scores,
            sample.genuine,
            people,
            sides,
            lots_of,
            data.embeddings,
            everybody,
            data.used_images().astype(np.int64),
        )


def _of_stream(model: Method, stream: PairStream, rng: np.random.Generator) -> CalibrationPairs:
    images = stream.images
    used = np.zeros(0 if images is None else len(images), bool)
    chance = PAIRS / max(len(stream), 1)
    kept: list[tuple[NDArray[np.generic], ...]] = []
    names: list[Int64 | None] = []
    with closing(stream.parts()) as parts:
        for part in parts:
            if images is not None:
                used[part.pairs.left] = used[part.pairs.right] = True
            sample = part.subset(rng.random(len(part)) < chance)
            if len(sample):
                ranked = model.apply(sample).score
                kept.append(
                    (ranked, sample.scores, sample.genuine, sample.pairs.left, sample.pairs.right)
                )
                names.append(_numbers_by_name(sample) if images is None else None)
    score, similarity, genuine, left, right = (
        np.concatenate(column) for column in zip(*kept, strict=True)
    )
    sides = np.stack([left, right]).astype(np.int64)
    if images is not None:
        everybody, _ = people_of(Pairs(left, right, genuine), images)
        people, lots_of = everybody[sides], "people"
    else:
        numbered = [each for each in names if each is not None]
        everybody = np.zeros(0, np.int64)
        people, lots_of = _own_numbers(len(score)), "pairs"
        if len(numbered) == len(names):
            people, lots_of = np.concatenate(numbered, axis=1), "people"
    place = np.flatnonzero(used).astype(np.int64)
    said_of = (score, similarity, genuine, people, sides, lots_of)
    return CalibrationPairs(*said_of, stream.embeddings, everybody, place)


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
