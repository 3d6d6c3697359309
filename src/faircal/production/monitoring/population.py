"""A survey of the calibration population: what monitoring compares pairs in use with.

Scores are counted in bins of all pairs and of strata: pairs of regions whose imposters score alike.
How alike different people look differs from region to region, often by more than any change that
matters; compared with imposters of their own stratum, scores do not change with the mix of people.

K-means moves centres to the images it sees: a person with many may have a cluster of their own,
which nobody else falls into. Images of people in use did not take part, so those of calibration are
placed among centres from which their own person is taken out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from faircal._base.errors import NotFittedError
from faircal.compute import CPU, Engine
from faircal.data import Dataset, Embeddings, Groups, PairParts, PairStream
from faircal.data.types import Pairs, people_of
from faircal.methods import Method
from faircal.metrics import EvidenceBounds, log_likelihood_ratio
from faircal.model import Population
from faircal.model.population import Float32
from faircal.production.monitoring.counts import (
    CALIBRATION_BUCKETS,
    QUANTITIES,
    Bool,
    Counts,
    Float64,
    Int64,
    Layout,
    Shares,
    code_pairs,
)

if TYPE_CHECKING:
    from faircal.production.spark import SparkPairs

#: Pairs that are taken of many: counts are then about as sure as people allow.
PAIRS = 40_000
#: Quantiles of imposters between bins; the bins above the last are cut at quantiles of genuine
#: pairs.
_LEVELS: Float64 = np.concatenate([np.arange(1, 24) / 24, [0.97, 0.98, 0.99, 0.995]])
_ABOVE: Float64 = np.arange(1, 16) / 16
BINS = len(_LEVELS) + len(_ABOVE) + 1
#: Strata: the most, and imposter pairs that each must have.
_MOST, _PER_STRATUM = 12, 400
#: Bins of the similarity, for pictures.
_PICTURE_BINS = 80
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


def survey(model: Method, data: PairParts, *, random_state: int = 0) -> Population:
    """Count the calibration population, which monitoring compares pairs in use with.

    The model keeps it (``model.about_.population``), and how strong evidence its people can carry
    (``model.about_.evidence``); `save` writes both to the model file.

    Parameters
    ----------
    model : Method
        Fitted on `data`.
    data : Dataset, PairStream or SparkPairs
        Labelled. Of many pairs some are taken. Where none is of imposters (`Needs`), as many are
        drawn at random from its images.
    random_state : int
        Seed of what is drawn; the same seed gives the same counts.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> population = survey(faircal.FairCal(n_clusters=20).fit(cal), cal)
    >>> population.centers.shape, population.counted_by, population.people
    ((20, 128), 'people', 160)
    """
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    rng = np.random.default_rng(random_state)
    taken, buckets = CalibrationPairs.of(model, _with_imposters(data, random_state), rng), []
    for numbers in (taken.people, taken.images):  # both are dealt to buckets, evenly
        distinct, of = np.unique(numbers, return_inverse=True)
        dealt = rng.permutation(len(distinct))[of.reshape(numbers.shape)]
        buckets.append(dealt % CALIBRATION_BUCKETS)
    people = len(np.unique(taken.people))
    placed = CalibrationPlaces.of(model, taken, people, random_state, rng)
    bare = _bins_and_strata(taken, placed)
    codes = code_pairs(bare, taken.score, placed.cluster, placed.outside)
    layout, kind = Layout(BINS, len(bare.stratum), CALIBRATION_BUCKETS), taken.genuine.astype(int)
    counts, by_image = (layout.tables(codes, bucket, kind, 2) for bucket in buckets)
    quantities = QUANTITIES if len(placed.centers) else QUANTITIES[:1]
    effects = {name: _effect(counts[name], by_image[name]) for name in quantities}
    effects.setdefault("scores", effects["all_scores"])
    ways = (counts["all_scores"], counts["scores"])
    population = replace(
        bare,
        ranked_counts=np.stack([way.pairs for way in ways]),
        ranked_buckets=np.stack([way.buckets for way in ways]),
        place_buckets=counts["clusters"].buckets,
        place_pairs=counts["clusters"].pairs,
        outside_buckets=counts["outside"].buckets,
        outside_pairs=counts["outside"].pairs,
        counted_by=taken.counted_by,
        people=people,
        effects={key: round(value, 4) for key, value in effects.items()},
    )
    model.about_ = replace(model.about_, population=population, evidence=_evidence(model, taken))
    return population


def _with_imposters(data: PairParts, seed: int) -> PairParts:
    """Return pairs, with random imposters where there are none and embeddings score them."""
    if not (isinstance(data, Dataset) and data.has_images and data.genuine.all()):
        return data
    if any(feature.scores is not None for feature in data.features.values()):
        return data
    from faircal.data.pairing import redraw_imposters

    return redraw_imposters(data, seed=seed, number=len(data))


def _evidence(model: Method, taken: CalibrationPairs) -> EvidenceBounds | None:
    """Return how far likelihood ratios may go; None where no share of genuine pairs is known."""
    share = model.calibrated_at
    if share is None or taken.genuine.all():
        return None
    genuine, people = taken.genuine, taken.people
    # Who has many pairs counts for one nevertheless; a genuine pair is of one person.
    of = _effective(people[0, genuine]), _effective(people[:, ~genuine])
    ratio = log_likelihood_ratio(taken.probability, calibrated_at=share)
    return EvidenceBounds.of(ratio, genuine, people=of, unit=taken.unit)


def _effective(people: Int64) -> float:
    """Return the effective number of people, (Σ m)² / Σ m² with m pairs of each (Kish)."""
    pairs = np.unique(people, return_counts=True)[1].astype(float)
    return float(pairs.sum() ** 2 / max((pairs**2).sum(), 1.0))


def _bins_and_strata(taken: CalibrationPairs, placed: CalibrationPlaces) -> Population:
    """Return bins, regions and strata, by which pairs are counted."""
    picture = np.histogram_bin_edges(taken.similarity, _PICTURE_BINS)
    genuine_counts, imposter_counts = (
        np.histogram(taken.similarity[taken.genuine == kind], picture)[0].astype(np.int64)
        for kind in (True, False)
    )
    edges, stratum = [edges_of(taken.score, taken.genuine)], np.zeros((1, 1), np.int64)
    if len(placed.centers):
        imposter, sides = ~taken.genuine, placed.region[placed.cluster]
        stratum = stratify(placed.alike, *sides[:, imposter])
        of = stratum[sides[0], sides[1]]
        for h in range(1, int(stratum.max()) + 1):
            rows = of == h
            # A stratum with hardly any imposter pairs has nothing to make edges of its own from.
            few = (rows & imposter).sum() < 2
            edges.append(edges[0] if few else edges_of(taken.score[rows], taken.genuine[rows]))
    return Population(
        placed.centers,
        placed.reach,
        picture,
        genuine_counts,
        imposter_counts,
        region=placed.region,
        stratum=stratum,
        ranked_edges=np.stack(edges),
    )


def _effect(people: Counts, images: Counts) -> float:
    """Return how many times larger variances are over people than over images, at least 1.

    The larger of the two classes counts.
    """
    worst = 1.0
    for kind in range(2):
        over, under = (
            Shares.of(Counts(counts.buckets[kind], counts.pairs[kind]))
            for counts in (people, images)
        )
        by = np.tri(len(over.share))
        least = float(np.trace(under.covariance(by)))
        if least > 0:
            worst = max(worst, float(np.trace(over.covariance(by))) / least)
    return worst


# ---------------------------------------------------------------------- bins and strata


def edges_of(score: Float64, genuine: Bool) -> Float64:
    """Return edges between bins, half-way between scores, of shape (BINS − 1,).

    Rounding, as in a table of text, then moves few pairs to another bin.
    """
    if genuine.all():  # of many pairs those that were taken can lack a rare class
        return np.full(BINS - 1, score.min())
    edges: list[Float64] = []
    least, values = -np.inf, score[~genuine]
    for levels in (_LEVELS, _ABOVE):
        middle, n = np.full(len(levels), least), len(values)
        if n:
            values = np.sort(values)
            at = np.minimum(np.clip((levels * n).astype(np.int64), 1, max(n - 1, 1)), n - 1)
            middle = (values[at] + values[np.maximum(at - 1, 0)]) / 2
        edges.append(np.maximum(middle, least))
        least = float(edges[-1][-1])
        values = score[genuine & (score > least)]
    return np.concatenate(edges)


def stratify(alike: Float64, left: Int64, right: Int64) -> Int64:
    """Say which stratum each pair of regions belongs to.

    Strata are cut from how alike two regions are, so that each has as many imposter pairs. What
    pairs score has no part in it: strata fit pairs in use as well as those of calibration.

    Parameters
    ----------
    alike : ndarray of shape (R, R)
        Scalar products of the regions' means: the mean cosine of two strangers' images.
    left, right : ndarray of int, shape (n,)
        Regions of imposter pairs.

    Returns
    -------
    ndarray of shape (R, R), int64
        From 1.
    """
    regions, n = len(alike), len(left)
    count = int(np.clip(n // _PER_STRATUM, 1, _MOST))
    rows, columns = np.triu_indices(regions)
    cell = np.zeros((regions, regions), np.int64)
    cell[rows, columns] = cell[columns, rows] = np.arange(len(rows))
    pairs = np.bincount(cell[left, right], minlength=len(rows))
    order = np.argsort(alike[rows, columns], kind="stable")
    middle = np.cumsum(pairs[order]) - pairs[order] / 2
    stratum = np.empty(len(rows), np.int64)
    stratum[order] = np.minimum(middle * count // max(n, 1), count - 1).astype(np.int64) + 1
    return stratum[cell]


# ---------------------------------------------------------------------- pairs and places


@dataclass(frozen=True, eq=False)
class CalibrationPairs:
    """Labelled pairs with what the model says of them.

    Attributes
    ----------
    score, probability, similarity : ndarray of shape (n,)
        What the model ranks by, P(genuine), and the score it was given.
    genuine : ndarray of shape (n,), bool
    people, images : ndarray of shape (2, n), int64
        Numbers of left and right people, and rows of images.
    counted_by : str
        What numbers of people stand for: ``people``, or ``pairs`` where nobody knows.
    unit : str
        The same, but ``images`` where who is in them is only known from genuine pairs.
    embeddings : Embeddings, optional
    person : ndarray of shape (n_images,), int64
        The person of each image.
    used : ndarray of int64
        All images that occur in pairs, taken or not.
    """

    score: Float64
    probability: Float64
    similarity: Float64
    genuine: Bool
    people: Int64
    images: Int64
    counted_by: str
    unit: str
    embeddings: Embeddings | None
    person: Int64
    used: Int64

    @classmethod
    def of(cls, model: Method, data: PairParts, rng: np.random.Generator) -> CalibrationPairs:
        """Take pairs of `data`, each as likely as any other."""
        if not isinstance(data, Dataset | PairStream):
            seed = int(rng.integers(1 << 31)) if len(data) > PAIRS else 0
            data = cast("SparkPairs", data).sample(PAIRS, seed)
        rows, start = np.arange(len(data)), 0
        if len(data) > PAIRS:
            rows = np.sort(rng.choice(len(data), PAIRS, replace=False))
        samples: list[Dataset] = []
        used, outputs, sides, images = [], [], [], 0
        for part in data.parts():  # the same pairs are taken, however they are cut
            first, last = np.searchsorted(rows, (start, start + len(part)))
            taken = rows[first:last] - start
            start += len(part)
            if not len(taken):
                continue
            used.append(part.used_images())
            sample = part if len(taken) == len(part) else part.subset(taken)
            samples.append(sample)
            outputs.append(model.apply(sample))
            of_sample = np.stack([sample.pairs.left, sample.pairs.right]).astype(np.int64)
            sides.append(of_sample + images)
            images += len(part.images) if part.images.by_side else 0  # each part has its own
        left, right = both = np.concatenate(sides, axis=1)
        genuine = np.concatenate([sample.genuine for sample in samples])
        person, people, counted_by = np.zeros(0, np.int64), both, "people"
        unit = counted_by
        named = [each for each in (sample.people for sample in samples) if each is not None]
        if samples[0].has_images:
            pairs = data.pairs if isinstance(data, Dataset) else Pairs(left, right, genuine)
            person, source = people_of(pairs, samples[0].images)
            people, unit = person[both], "people" if source == "identities" else "images"
        elif len(named) == len(samples):
            people = _numbers_by_name(named, both)
        else:  # each pair counts as somebody of its own
            people, counted_by = np.tile(np.arange(len(genuine)), (2, 1)), "pairs"
            unit = counted_by
        return cls(
            np.concatenate([output.score for output in outputs]),
            np.concatenate([output.probability for output in outputs]),
            np.concatenate([sample.scores for sample in samples]),
            genuine,
            people,
            both,
            counted_by,
            unit,
            data.embeddings,
            person,
            np.unique(np.concatenate(used)).astype(np.int64),
        )


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
            empty, no_images = np.zeros((0, 1), np.float32), np.zeros(0, np.int64)
            return cls(empty, empty[:, 0], no_images, np.zeros((1, 1)), none, none)
        rows = taken.used
        centers: Float32 | None = getattr(model, "cluster_centers_", None)
        most = _CLUSTERED if centers is None else _LOOKED_AT
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        clustered = embeddings.rows(rows.astype(np.intp))
        if centers is None:
            count = int(np.clip(len(rows) // _PER_CLUSTER, 1, _CLUSTERS))
            centers = embeddings.engine.kmeans(
                clustered, count, random_state=random_state, max_iter=50
            ).centers
        distinct, of = np.unique(taken.images, return_inverse=True)
        of = of.reshape(taken.images.shape)
        placed = place_without_own(
            clustered,
            taken.person[rows],
            centers,
            embeddings.rows(distinct.astype(np.intp)),
            taken.person[distinct],
            embeddings.engine,
        )
        # How far from each centre images of people like these lie, but for `OUTSIDE` of them: in
        # proportion to the usual distance within a cluster; where it has few images, within all.
        usual = float(np.median(placed.distance))
        order = np.lexsort((placed.distance, placed.cluster))
        held = np.bincount(placed.cluster, minlength=len(centers))
        middle = np.minimum(np.cumsum(held) - held + held // 2, len(order) - 1)
        typical = np.where(held > 0, placed.distance[order][middle], usual)
        spread = (held * typical + _OWN_SPREAD * usual) / (held + _OWN_SPREAD)
        relative = placed.distance / np.maximum(spread[placed.cluster], 1e-12)
        reach = np.asarray(spread * np.quantile(relative, 1 - OUTSIDE), np.float32)
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
    nearest = engine.assign(clustered, centers).astype(np.int64)
    sizes = np.bincount(nearest, minlength=k)
    concerned = np.flatnonzero(np.isin(whose, people))
    cells, of = np.unique(whose[concerned] * k + nearest[concerned], return_inverse=True)
    held, person = cells % k, cells // k
    ones = np.ones(len(concerned), np.float32)
    one_hot = csr_array((ones, (of, concerned)), shape=(len(cells), len(clustered)))
    sums: Float32 = one_hot @ clustered
    left = sizes[held] - np.bincount(of, minlength=len(cells))
    # The mean of nobody is nowhere: nobody can be near it.
    others = np.full(sums.shape, np.inf, np.float32)
    nonempty = left > 0
    totals = sizes[held[nonempty], None] * centers[held[nonempty]]
    others[nonempty] = (totals - sums[nonempty]) / left[nonempty, None]
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
        # Where an image's own person takes part, the centre is the one without that person.
        many = last[block] - first[block]
        rows = np.repeat(np.arange(len(part)), many)
        cell = np.arange(len(rows)) + np.repeat(first[block] - np.cumsum(many) + many, many)
        for at in range(0, len(rows), _BLOCK):
            image, own_cell = rows[at : at + _BLOCK], cell[at : at + _BLOCK]
            away = part[image] - others[own_cell]
            apart[image, held[own_cell]] = np.einsum("ij,ij->i", away, away)
        alone = ~np.isfinite(apart).any(axis=1)  # nobody else was there
        apart[alone] = plain[alone]
        cluster[block] = apart.argmin(axis=1)
        distance[block] = np.sqrt(np.maximum(apart.min(axis=1), 0.0))
    return PlacedImages(cluster, distance)
