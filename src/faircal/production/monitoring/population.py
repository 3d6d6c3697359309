"""A survey of the calibration population: what monitoring compares pairs in use with.

Scores are counted in bins of all pairs and of strata: pairs of regions whose imposters score alike.
How alike different people look differs from region to region, often by more than any change that
matters; compared with imposters of their own stratum, scores do not change with the mix of people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from faircal._base.errors import NotFittedError
from faircal.data import Dataset, Embeddings, Groups, PairParts, PairStream
from faircal.data.folds import people_of
from faircal.data.types import Pairs
from faircal.methods import Method
from faircal.model import Population
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
from faircal.production.monitoring.placing import CalibrationPlaces, place_pairs

if TYPE_CHECKING:
    from faircal.production.spark import SparkPairs

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
    people, placed = len(np.unique(taken.people)), None
    if taken.embeddings is not None:
        placed = place_pairs(
            model, taken.embeddings, taken.images, taken.everybody, taken.used, people,
            random_state, rng,
        )  # fmt: skip
    bare = _without_counts(taken, placed)
    nowhere = np.full((2, len(taken.score)), -1)
    codes = code_pairs(
        bare,
        taken.score,
        nowhere if placed is None else placed.cluster,
        nowhere if placed is None else placed.outside.astype(np.int64),
    )
    layout, kind = Layout(BINS, len(bare.stratum), CALIBRATION_BUCKETS), taken.genuine.astype(int)
    counts, by_image = (layout.tables(codes, each, kind, 2) for each in (bucket, image_bucket))
    quantities = QUANTITIES if placed is not None else QUANTITIES[:1]
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


def _without_counts(taken: CalibrationPairs, placed: CalibrationPlaces | None) -> Population:
    """Return bins, regions and strata, by which pairs are counted."""
    picture = np.linspace(*_limits(taken.similarity), _PICTURE_BINS + 1)
    genuine_counts, imposter_counts = (
        np.histogram(taken.similarity[taken.genuine == kind], picture)[0].astype(np.int64)
        for kind in (True, False)
    )
    edges = [edges_of(taken.score, taken.genuine)]
    if placed is None:
        none = np.zeros(0, np.float32)
        return Population(
            np.zeros((0, 1), np.float32), none, picture, genuine_counts, imposter_counts,
            ranked_edges=np.stack(edges),
        )  # fmt: skip
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


def _limits(values: Float64) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


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


# ------------------------------------------------------------------------ pairs taken

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
