"""What the calibration population is like, counted for monitoring.

Scores are counted in bins of all pairs and of strata: pairs of regions whose imposters score alike.
How alike different people look differs from region to region, often by more than any change that
matters; held against imposters of their own stratum, scores do not change with the mix of people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import NotFittedError
from faircal.compute.clustering import kmeans
from faircal.data import Dataset, Embeddings, PairStream
from faircal.methods import Method
from faircal.model import Population
from faircal.production.monitoring.calibration_pairs import (
    CalibrationPairs,
    SampledPairs,
    place_without_own,
)
from faircal.production.monitoring.shares import Shares, count_images, rank_in

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

#: Quantiles of imposters between bins; the bins above the last are cut at quantiles of genuine
#: pairs.
_LEVELS: Float64 = np.concatenate([np.arange(1, 24) / 24, [0.97, 0.98, 0.99, 0.995]])
_ABOVE: Float64 = np.arange(1, 16) / 16
BINS = len(_LEVELS) + len(_ABOVE) + 1
#: Strata: the most, and imposter pairs that each must have.
_MOST, _PER_STRATUM = 12, 400


def edges_of(score: Float64, genuine: NDArray[np.bool_]) -> Float64:
    """Return edges between bins, half-way between scores, of shape (BINS − 1,).

    Rounding, as in a table of text, then moves few pairs to another bin.
    """
    if genuine.all():  # of many pairs those that were taken can lack a rare class
        return np.full(BINS - 1, score.min())
    imposters = _at(np.sort(score[~genuine]), _LEVELS)
    higher = np.sort(score[genuine & (score > imposters[-1])])
    above = _at(higher, _ABOVE) if len(higher) else np.full(len(_ABOVE), imposters[-1])
    return np.concatenate([imposters, np.maximum(above, imposters[-1])])


def _at(values: Float64, levels: Float64) -> Float64:
    at = np.clip((levels * len(values)).astype(np.int64), 1, max(len(values) - 1, 1))
    at = np.minimum(at, len(values) - 1)
    return np.asarray((values[at] + values[np.maximum(at - 1, 0)]) / 2)


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


Float32 = NDArray[np.float32]

#: Lots that people are dealt to.
LOTS = 64
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


def survey(
    model: Method, data: Dataset | PairStream | SampledPairs, *, random_state: int = 0
) -> Population:
    """Count the calibration population, which monitoring compares pairs in use with.

    The model keeps it (``model.about_.population``), and `save` writes it to the model file.

    Parameters
    ----------
    model : Method
        Fitted on `data`.
    data : Dataset, PairStream or SparkPairs
        Labelled. Of many pairs some are taken.
    random_state : int
        Seed of what is drawn; the same seed gives the same counts.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> population = survey(faircal.FairCal(n_clusters=20).fit(cal), cal)
    >>> population.centers.shape, population.lots_of, population.people
    ((20, 128), 'people', 160)
    """
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    rng = np.random.default_rng(random_state)
    taken = CalibrationPairs.of(model, data, rng)
    lots, image_lots = _deal(taken.people, rng), _deal(taken.images, rng)
    placed = None
    if taken.embeddings is not None:
        placed = _place(model, taken, taken.embeddings, random_state, rng)
    edges, strata, stratum = _edges(taken, placed)
    ranked = [rank_in(edges, of, taken.score) for of in strata]
    tables = [_rank(of, taken.genuine, lots) for of in ranked]
    by_image = [_rank(of, taken.genuine, image_lots)[1] for of in ranked]
    effects = {
        key: _effect(Shares.of, (table[1], table[0]), (image, table[0]))
        for key, table, image in zip(("all_scores", "scores"), tables, by_image, strict=False)
    }
    effects.setdefault("scores", effects["all_scores"])
    if placed is None:
        placed = _NOWHERE
        places, outside = (
            (np.zeros((2, LOTS, b), np.int64), np.zeros((2, 2, b, b), np.int64)) for b in (1, 2)
        )
    else:
        places, outside = _count(placed, taken.genuine, lots)
        images = _count(placed, taken.genuine, image_lots)
        effects["clusters"] = _effect(Shares.of_images, places, images[0])
        effects["outside"] = _effect(Shares.of_images, outside, images[1])
    if len(tables) == 1:
        tables.append((np.zeros_like(tables[0][0]), np.zeros_like(tables[0][1])))
    picture = np.linspace(*_limits(taken.similarity), _PICTURE_BINS + 1)
    alike = [
        np.histogram(taken.similarity[taken.genuine == kind], picture)[0].astype(np.int64)
        for kind in (True, False)
    ]
    population = Population(
        centers=placed.centers,
        reach=placed.reach,
        score_edges=picture,
        genuine_counts=alike[0],
        imposter_counts=alike[1],
        region=placed.region,
        stratum=stratum,
        ranked_edges=edges,
        ranked_counts=np.stack([counts for counts, _ in tables]),
        ranked_lots=np.stack([by_lot for _, by_lot in tables]),
        place_lots=places[0],
        place_pairs=places[1],
        outside_lots=outside[0],
        outside_pairs=outside[1],
        lots_of=taken.lots_of,
        people=taken.n_people,
        effects={key: round(value, 4) for key, value in effects.items()},
    )
    model.about_ = replace(model.about_, population=population)
    return population


class _PlacedPairs(NamedTuple):
    """Clusters, and where left and right images of pairs lie, (2, n) each."""

    centers: Float32
    reach: Float32
    region: Int64
    alike: Float64
    side: Int64
    outside: NDArray[np.bool_]


_NOWHERE = _PlacedPairs(
    np.zeros((0, 1), np.float32),
    np.zeros(0, np.float32),
    np.zeros(0, np.int64),
    np.zeros((0, 0)),
    np.zeros((2, 0), np.int64),
    np.zeros((2, 0), bool),
)


def _deal(numbers: Int64, rng: np.random.Generator) -> Int64:
    """Deal numbers to lots, evenly; return those of each side of each pair."""
    distinct, of = np.unique(numbers, return_inverse=True)
    return np.asarray(rng.permutation(len(distinct))[of.reshape(numbers.shape)] % LOTS)


def _limits(values: Float64) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


# ---------------------------------------------------------------------------- scores


def _edges(
    taken: CalibrationPairs, placed: _PlacedPairs | None
) -> tuple[Float64, list[Int64], Int64]:
    """Return edges of all pairs and of each stratum; the strata of pairs; those of regions."""
    everything = edges_of(taken.score, taken.genuine)
    of_all = np.zeros(len(taken.score), np.int64)
    if placed is None:
        return everything[None], [of_all], np.zeros((1, 1), np.int64)
    imposter = ~taken.genuine
    stratum = stratify(placed.alike, *placed.side[:, imposter])
    of = stratum[placed.side[0], placed.side[1]]
    edges = [everything]
    for h in range(1, int(stratum.max()) + 1):
        rows = of == h
        few = (rows & imposter).sum() < 2
        edges.append(everything if few else edges_of(taken.score[rows], taken.genuine[rows]))
    return np.stack(edges), [of_all, of], stratum


def _rank(ranked: Int64, genuine: NDArray[np.bool_], lots: Int64) -> tuple[Int64, Int64]:
    """Count pairs by class and bin, and by class, lot and bin."""
    kind = genuine.astype(np.int64)
    counts = np.bincount(kind * BINS + ranked, minlength=2 * BINS).reshape(2, BINS)
    both = lots[0] != lots[1]
    cells = [(kind * LOTS + lot) * BINS + ranked for lot in lots]
    touched = np.concatenate([cells[0], cells[1][both]])
    return counts, np.bincount(touched, minlength=2 * LOTS * BINS).reshape(2, LOTS, BINS)


def _effect(
    shares: Callable[[Int64, Int64], Shares],
    people: tuple[Int64, Int64],
    images: tuple[Int64, Int64],
) -> float:
    """Return how many times larger variances are over people than over images, at least 1.

    The larger of the two classes counts.
    """
    worst = 1.0
    by = np.tri(people[0].shape[2])
    for kind in range(2):
        over, under = (
            float(np.trace(shares(lots[kind], counts[kind]).covariance(by)))
            for lots, counts in (people, images)
        )
        if under > 0:
            worst = max(worst, over / under)
    return worst


# ---------------------------------------------------------------------------- places


def _place(
    model: Method,
    taken: CalibrationPairs,
    embeddings: Embeddings,
    random_state: int,
    rng: np.random.Generator,
) -> _PlacedPairs:
    """Cluster, unless the model has, and say where images of pairs lie."""
    rows = taken.used
    centers: Float32 | None = getattr(model, "cluster_centers_", None)
    most = _CLUSTERED if centers is None else _LOOKED_AT
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    clustered = embeddings.rows(rows.astype(np.intp))
    if centers is None:
        count = int(np.clip(len(rows) // _PER_CLUSTER, 1, _CLUSTERS))
        clustering = kmeans(
            clustered, count, random_state=random_state, max_iter=50, engine=embeddings.engine
        )
        centers = clustering.centers
    images, of = np.unique(taken.images, return_inverse=True)
    of = of.reshape(taken.images.shape)
    placed = place_without_own(
        clustered,
        taken.everybody[rows],
        centers,
        embeddings.rows(images.astype(np.intp)),
        taken.everybody[images],
        embeddings.engine,
    )
    reach = _reach(placed.cluster, placed.distance, len(centers))
    sizes = np.bincount(placed.cluster[of].ravel(), minlength=len(centers))
    few = int(np.clip(taken.n_people // _PER_REGION, _FEWEST_REGIONS, _REGIONS))
    region = _regions(centers, sizes, few)
    outside = placed.distance > reach[placed.cluster]
    means = np.zeros((int(region.max()) + 1, centers.shape[1]))
    np.add.at(means, region, centers * np.maximum(sizes, 1)[:, None])
    means /= np.bincount(region, np.maximum(sizes, 1))[:, None]
    return _PlacedPairs(
        centers.astype(np.float32),
        reach,
        region,
        means @ means.T,
        region[placed.cluster][of],
        outside[of],
    )


_ImageCounts = tuple[Int64, Int64]


def _count(
    placed: _PlacedPairs, genuine: NDArray[np.bool_], lots: Int64
) -> tuple[_ImageCounts, _ImageCounts]:
    """Count images of pairs, by class: regions, and whether they are outside."""
    kind = genuine.astype(np.int64)
    regions = int(placed.region.max()) + 1
    return (
        count_images(kind, lots, placed.side, 2, LOTS, regions),
        count_images(kind, lots, placed.outside.astype(np.int64), 2, LOTS, 2),
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
