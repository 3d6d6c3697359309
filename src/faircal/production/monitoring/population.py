"""A survey of the calibration population: what monitoring compares pairs in use with.

Scores are counted in bins of all pairs and of strata: pairs of regions whose imposters score alike.
How alike different people look differs from region to region, often by more than any change that
matters; compared with imposters of their own stratum, scores do not change with the mix of people.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from faircal._base.errors import NotFittedError
from faircal.data import PairParts
from faircal.methods import Method
from faircal.model import Population
from faircal.production.monitoring.calibration_pairs import CalibrationPairs, CalibrationPlaces
from faircal.production.monitoring.counts import (
    CALIBRATION_BUCKETS,
    QUANTITIES,
    Bool,
    Counts,
    Float64,
    Int64,
    Layout,
    code_pairs,
)

#: Quantiles of imposters between bins; the bins above the last are cut at quantiles of genuine
#: pairs.
_LEVELS: Float64 = np.concatenate([np.arange(1, 24) / 24, [0.97, 0.98, 0.99, 0.995]])
_ABOVE: Float64 = np.arange(1, 16) / 16
BINS = len(_LEVELS) + len(_ABOVE) + 1
#: Strata: the most, and imposter pairs that each must have.
_MOST, _PER_STRATUM = 12, 400
#: Bins of the similarity, for pictures.
_PICTURE_BINS = 80


def survey(model: Method, data: PairParts, *, random_state: int = 0) -> Population:
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
    >>> population.centers.shape, population.counted_by, population.people
    ((20, 128), 'people', 160)
    """
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    rng = np.random.default_rng(random_state)
    taken = CalibrationPairs.of(model, data, rng)
    bucket, image_bucket = _deal(taken.people, rng), _deal(taken.images, rng)
    people = len(np.unique(taken.people))
    placed = CalibrationPlaces.of(model, taken, people, random_state, rng)
    bare = _without_counts(taken, placed)
    codes = code_pairs(bare, taken.score, placed.cluster, placed.outside)
    layout, kind = Layout(BINS, len(bare.stratum), CALIBRATION_BUCKETS), taken.genuine.astype(int)
    counts, by_image = (layout.tables(codes, each, kind, 2) for each in (bucket, image_bucket))
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
    model.about_ = replace(model.about_, population=population)
    return population


def _without_counts(taken: CalibrationPairs, placed: CalibrationPlaces) -> Population:
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


def _deal(numbers: Int64, rng: np.random.Generator) -> Int64:
    """Deal numbers to buckets, evenly; return those of each side of each pair."""
    distinct, of = np.unique(numbers, return_inverse=True)
    dealt = rng.permutation(len(distinct))[of.reshape(numbers.shape)]
    return np.asarray(dealt % CALIBRATION_BUCKETS)


def _effect(people: Counts, images: Counts) -> float:
    """Return how many times larger variances are over people than over images, at least 1.

    The larger of the two classes counts.
    """
    worst = 1.0
    for kind in range(2):
        over, under = (counts.block(kind).shares() for counts in (people, images))
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
