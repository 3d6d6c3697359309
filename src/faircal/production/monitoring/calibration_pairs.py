"""Labelled pairs of calibration, of many some, and where their images lie.

K-means moves centres to the images it sees: a person with many may have a cluster of their own,
which nobody else falls into. Images of people in use did not take part, so those of calibration are
placed among centres from which their own person is taken out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from faircal.compute import CPU, Engine
from faircal.compute.clustering import Clustering, kmeans
from faircal.data import Dataset, Embeddings, Groups, PairParts, PairStream
from faircal.data.folds import people_of
from faircal.data.types import Pairs
from faircal.methods import Method
from faircal.model.population import Float32
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


#: Clusters of models that have none; images each must have; images they are made of.
_CLUSTERS, _PER_CLUSTER, _CLUSTERED = 50, 20, 10_000
#: Images that tell how much of a model's own centres is whose; of more, some do.
_LOOKED_AT = 100_000
#: Regions: the most, the fewest, and people each must have.
_REGIONS, _FEWEST_REGIONS, _PER_REGION = 12, 4, 12
#: The share of images of people like those of calibration that is beyond reach.
OUTSIDE = 0.005
#: A cluster's own spread counts as much as that of all at so many images.
_OWN_SPREAD = 20
#: Distances worked out at a time.
_BLOCK = 8192
#: An image whose person must be taken out of more clusters than this is placed among those it
#: is nearest to; a "person" of that many clusters is a slip of labels.
_MOST_CLUSTERS = 64


class CalibrationPlaces(NamedTuple):
    """K clusters in R regions, and where the images of n pairs lie.

    `alike` has the scalar products of the regions' means, (R, R); `cluster` and `outside` (0 or 1)
    are of left and right images, (2, n). K is 0, and they are −1, where there are scores only.
    """

    centers: Float32
    reach: Float32
    region: Int64
    alike: Float64
    cluster: Int64
    outside: Int64

    @classmethod
    def of(
        cls,
        model: Method,
        taken: CalibrationPairs,
        people: int,
        random_state: int,
        rng: np.random.Generator,
    ) -> CalibrationPlaces:
        """Cluster, unless the model has, and place images of the pairs, which are of `people`."""
        embeddings, none = taken.embeddings, np.full(taken.images.shape, -1)
        if embeddings is None:
            empty, nobody = np.zeros((0, 1), np.float32), np.zeros(0, np.int64)
            return cls(empty, empty[:, 0], nobody, np.zeros((1, 1)), none, none)
        rows = taken.used
        centers: Float32 | None = getattr(model, "cluster_centers_", None)
        most = _CLUSTERED if centers is None else _LOOKED_AT
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        clustered = embeddings.rows(rows.astype(np.intp))
        if centers is None:
            count = int(np.clip(len(rows) // _PER_CLUSTER, 1, _CLUSTERS))
            centers = kmeans(
                clustered, count, random_state=random_state, max_iter=50, engine=embeddings.engine
            ).centers
        distinct, of = np.unique(taken.images, return_inverse=True)
        of = of.reshape(taken.images.shape)
        placed = place_without_own(
            clustered,
            taken.everybody[rows],
            centers,
            embeddings.rows(distinct.astype(np.intp)),
            taken.everybody[distinct],
            embeddings.engine,
        )
        reach = _reach(placed.cluster, placed.distance, len(centers))
        sizes = np.bincount(placed.cluster[of].ravel(), minlength=len(centers))
        few = int(np.clip(people // _PER_REGION, _FEWEST_REGIONS, _REGIONS))
        region = _regions(centers, sizes, few)
        means = np.zeros((int(region.max()) + 1, centers.shape[1]))
        np.add.at(means, region, centers * np.maximum(sizes, 1)[:, None])
        means /= np.bincount(region, np.maximum(sizes, 1))[:, None]
        outside = (placed.distance > reach[placed.cluster]).astype(np.int64)
        return cls(
            centers.astype(np.float32),
            reach,
            region,
            means @ means.T,
            placed.cluster[of],
            outside[of],
        )


def _reach(cluster: Int64, distance: Float32, k: int) -> Float32:
    """Return how far from each centre images of people like these lie, but for `OUTSIDE` of them.

    Limits are in proportion to the usual distance within a cluster; where it has few images, to
    that within all.
    """
    usual = float(np.median(distance))
    order = np.lexsort((distance, cluster))
    sizes = np.bincount(cluster, minlength=k)
    ends = np.cumsum(sizes)
    middle = np.minimum(ends - sizes + sizes // 2, len(distance) - 1)
    own = np.where(sizes > 0, distance[order][middle], usual)
    spread = (sizes * own + _OWN_SPREAD * usual) / (sizes + _OWN_SPREAD)
    relative = distance / np.maximum(spread[cluster], 1e-12)
    return np.asarray(spread * np.quantile(relative, 1 - OUTSIDE), np.float32)


def _regions(centers: Float32, sizes: Int64, most: int) -> Int64:
    """Join the smallest cluster with its nearest neighbour until there are few; (K,) from 0."""
    at, weight = centers.astype(np.float64), sizes.astype(np.float64)
    region, alive = np.arange(len(at)), np.ones(len(at), bool)
    while alive.sum() > most:
        small = int(np.argmin(np.where(alive, weight, np.inf)))
        apart = np.where(alive, ((at - at[small]) ** 2).sum(axis=1), np.inf)
        apart[small] = np.inf
        near = int(apart.argmin())
        both = max(weight[small] + weight[near], 1e-12)
        at[near] = (weight[small] * at[small] + weight[near] * at[near]) / both
        weight[near], alive[small] = weight[small] + weight[near], False
        region[region == small] = near
    return np.asarray(np.unique(region, return_inverse=True)[1], np.int64)


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
