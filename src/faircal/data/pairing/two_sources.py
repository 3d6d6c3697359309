"""Pairs of two sources: genuine pairs of one's own people, imposter pairs of a cohort's.

So there is a false-positive rate of every group of the cohort, though nobody in one's own data has
a group. It speaks for one's own people as far as both were photographed alike. What strangers tell
of that is in `TwoSources.strangers`: pairs of one's own people at random, and pairs of the cohort
drawn from its groups in the shares in which one's own images look like them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.compute.gaussians import mixture_shares
from faircal.compute.kmeans import sums_of
from faircal.data.cohort import Cohort
from faircal.data.cohort_overlap import join_cohort
from faircal.data.columns import UNKNOWN, Column
from faircal.data.dataset import Dataset
from faircal.data.pairing.imposters import Pool, supply, within
from faircal.data.types import Embeddings, Feature, Images, Pairs

Floats = NDArray[np.float64]

#: Imposter pairs of a group, and strangers of each source, at most.
_MOST = 30_000
#: Pairs of two people, between these, as many as people with the median of images have: the more of
#: one couple, the fewer people count where some have many images.
_CAPS = (3, 10)
#: Images of one's own that strangers are drawn from, at most.
_IMAGES = 20_000
#: The part of the spread that is added, and what is added at least.
_RIDGE, _LEAST = 1e-3, 1e-12


@dataclass(frozen=True, eq=False)
class TwoSources:
    """One's own genuine pairs and the imposter pairs of a cohort, as one dataset.

    Attributes
    ----------
    data : Dataset
        Its groups are those of the cohort; the images of the cohort come after one's own.
    cohort : Cohort
        As it goes with the data.
    n_own : int
        How many images are one's own.
    left_out : int
        Imposter pairs of one's own, which are not in `data`.
    seed : int
    """

    data: Dataset
    cohort: Cohort
    n_own: int
    left_out: int
    seed: int

    def strangers(self) -> tuple[Dataset, str]:
        """Return pairs of strangers of both sources, one's own first, or none and why."""
        identity, rng = self.data.images.identity, np.random.default_rng([self.seed, 1])
        embeddings, none = self.data.embeddings, self.data.subset(np.empty(0, np.intp))
        if identity is None or embeddings is None:  # pragma: no cover  (a cohort has both)
            return none, "there are no embeddings"
        person, n = identity.codes, self.n_own
        own = np.flatnonzero(person[:n] != UNKNOWN)
        if len(np.unique(person[own])) < 2:
            return none, "nobody in the data is identified (column 'identity')"
        if len(own) > _IMAGES:
            own = np.sort(rng.choice(own, _IMAGES, replace=False))
        theirs = np.flatnonzero(self.cohort.groups.codes != UNKNOWN)
        group, theirs = self.cohort.groups.codes[theirs], theirs + n
        _, who, images = np.unique(person[own], return_inverse=True, return_counts=True)
        weight = 1 / images[who]  # people count alike
        mine, others = embeddings.rows(own), embeddings.rows(theirs)
        shares = group_shares(mine, others, person[theirs], group, weight)
        _, of, images = np.unique(
            np.stack([person[theirs], group]), axis=1, return_inverse=True, return_counts=True
        )
        people = np.bincount(group, 1 / images[of])
        drawn = [
            _by_chance(weight, person[own], rng),
            _by_chance(shares[group] / people[group] / images[of], person[theirs], rng),
        ]
        left, right = (
            np.concatenate([own[one], theirs[other]]) for one, other in zip(*drawn, strict=True)
        )
        return self.data.with_pairs(Pairs(left, right, np.zeros(len(left), np.bool_))), ""


def two_sources(data: Dataset, cohort: Cohort, seed: int = 0) -> TwoSources:
    """Put the genuine pairs of `data` beside imposter pairs within the groups of `cohort`.

    Every two people of a group are in up to ten pairs, fewer where most people have but an image or
    two; a group has up to 30,000.

    Parameters
    ----------
    data : Dataset
        With embeddings. Its own imposter pairs are left out. Its images keep their groups where
        they have the attribute of the cohort.
    cohort : Cohort
        Of other people; those who are in the data, too, are left out (`join_cohort`).
    seed : int

    Examples
    --------
    >>> import faircal
    >>> from faircal import Cohort
    >>> people = faircal.simulate("small", seed=1, people=160)
    >>> cohort = Cohort(
    ...     embeddings=people.embeddings.vectors,
    ...     identity=[f"cohort {code}" for code in people.images.identity.codes],
    ...     groups=people.image_groups("ethnicity"),
    ... )
    >>> both = two_sources(faircal.simulate("small", seed=0), cohort)
    >>> both.data.groups().names, both.left_out
    (('African', 'Asian', 'Caucasian', 'Indian'), 5333)
    """
    if any(feature.embeddings is None for feature in data.features.values()):
        raise DataError(
            f"{data.where}: imposters of a cohort need the embeddings of the data, found scores"
            " only; give a dataset folder"
        )
    if any(feature.scores is not None for feature in data.features.values()):
        raise DataError(
            f"{data.where}: the pairs come with ready-made scores, and those of a cohort have none;"
            " remove the column 'score'"
        )
    genuine = np.flatnonzero(data.genuine)
    if not len(genuine):
        raise DataError(
            f"{data.where}: expected genuine pairs beside the imposters of a cohort, found none;"
            " add pairs of one person"
        )
    left_out = len(data) - len(genuine)
    own_pairs = data.subset(genuine)
    own = own_pairs.used_images()
    cohort = join_cohort(data, cohort).cohort or cohort
    n = len(own)
    features = {}
    for name, feature in data.features.items():
        mine, theirs = feature.embeddings, cohort.embeddings.get(name)
        if mine is None or theirs is None:
            continue  # a network that the cohort was not run through
        vectors = np.concatenate([mine.vectors[own], theirs.vectors])
        features[name] = Feature(Embeddings(vectors, mine.normalize, mine.device, mine.where))
    drawn = _within_groups(cohort, np.random.default_rng(seed))
    sides = (own_pairs.pairs.left, own_pairs.pairs.right)
    left, right = (
        np.concatenate([np.searchsorted(own, mine), theirs + n])
        for mine, theirs in zip(sides, drawn, strict=True)
    )
    made = Dataset.assemble(
        f"{data.name}, imposters of {cohort.name}",
        _images(data, own, cohort),
        Pairs(left, right, np.arange(len(left)) < len(genuine)),
        features,
        data.score_range,
        data.provenance,
        data.where,
        seed=None,
    )
    if data.feature in features:
        made = made.select(data.feature)
    return TwoSources(made, cohort, n, left_out, seed)


def _images(data: Dataset, own: NDArray[np.intp], cohort: Cohort) -> Images:
    """Return the images `own` of `data`, and those of the cohort, whose people are others."""
    attribute = cohort.attribute
    known = data.images.identity or Column(np.full(len(data.images), UNKNOWN, np.int32), ())
    names = tuple(f"{cohort.name}: {name}" for name in cohort.identity.names)
    if set(attribute.split("+")) <= set(data.images.attributes):
        group = data.image_groups(attribute)
    else:
        group = Column(np.full(len(data.images), UNKNOWN, np.int32), ())
    ids = [*(f"{each}" for each in data.images.ids.take(pa.array(own)).to_pylist())]
    ids += [f"{cohort.name}: {row}" for row in range(len(cohort))]
    people = _after(Column(known.take(own), known.names), Column(cohort.identity.codes, names))
    groups = _after(Column(group.take(own), group.names), cohort.groups)
    return Images(pa.array(ids), people, {attribute: groups}, (attribute,))


def _after(one: Column, two: Column) -> Column:
    """Return the rows of `one`, then those of `two`."""
    names = tuple(sorted({*one.names, *two.names}))
    code = {name: number for number, name in enumerate(names)}
    tables = [
        np.array([*(code[name] for name in of.names), UNKNOWN], np.int32) for of in (one, two)
    ]
    return Column(np.concatenate([tables[0][one.codes], tables[1][two.codes]]), names)


def _within_groups(
    cohort: Cohort, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw pairs of images of strangers within each group of a cohort."""
    person, lefts, rights = cohort.identity.codes.astype(np.int64), [], []
    for group in range(len(cohort.groups.names)):
        images = np.flatnonzero(cohort.groups.codes == group)
        each = np.median(np.unique(person[images], return_counts=True)[1])
        cap = int(np.clip(each**2, *_CAPS))
        pool = Pool(person[images], np.zeros(len(images), np.int64), cap)
        left, right = within(pool, min(_MOST, supply(pool)), rng)
        lefts.append(images[left])
        rights.append(images[right])
    return np.concatenate(lefts), np.concatenate(rights)


def group_shares(
    own: NDArray[np.float32],
    theirs: NDArray[np.float32],
    person: NDArray[np.integer],
    group: NDArray[np.integer],
    weight: Floats | None = None,
) -> Floats:
    """Return the shares of a cohort's groups that `own` images look like, (n_groups,).

    An image is where its mean cosines with the people of each group put it, relative to their mean:
    what all cosines with the cohort have in common, such as a camera, says nothing. Each group is a
    normal distribution there, all of one spread, and the shares are the most likely ones.

    Parameters
    ----------
    own, theirs : ndarray of shape (n, d), float32
        Vectors of one's own images, and of the cohort.
    person, group : ndarray of shape (n_theirs,)
        Who is in each image of the cohort, and of which group.
    weight : ndarray of shape (n,), optional
        How much each of one's own images counts.

    Examples
    --------
    >>> rng, centres = np.random.default_rng(0), np.eye(3, dtype=np.float32)
    >>> group = np.repeat([0, 1, 2], 30)
    >>> theirs = centres[group] + 0.2 * rng.normal(size=(90, 3)).astype(np.float32)
    >>> own = centres[[0] * 80 + [2] * 20] + 0.2 * rng.normal(size=(100, 3)).astype(np.float32)
    >>> group_shares(own, theirs, np.arange(90), group).round(2)
    array([0.8, 0. , 0.2])
    """
    n_groups, rows = int(group.max()) + 1, np.arange(len(theirs))
    _, who = np.unique(np.stack([person, group]), axis=1, return_inverse=True)
    each, sums = sums_of(theirs, who, int(who.max()) + 1), sums_of(theirs, group, n_groups)
    sizes = np.bincount(group).astype(np.float64)
    places, mine = theirs @ sums.T, own @ (sums / sizes[:, None]).T
    # Nobody is compared with himself.
    others = np.tile(sizes, (len(theirs), 1))
    places[rows, group] -= np.einsum("ij,ij->i", theirs, each[who])
    others[rows, group] -= np.bincount(who)[who]
    alone = others[rows, group] == 0
    places = places / np.maximum(others, 1)
    places, mine = (at - at.mean(axis=1, keepdims=True) for at in (places[~alone], mine))
    of = group[~alone]
    people = np.bincount(of, minlength=n_groups)
    centres = np.stack(
        [np.bincount(of, at, n_groups) / np.maximum(people, 1) for at in places.T], 1
    )
    off = places - centres[of]
    spread = off.T @ off / len(off)
    spread += (_RIDGE * np.trace(spread) / n_groups + _LEAST) * np.eye(n_groups)
    towards = np.linalg.solve(spread, centres.T)
    likelihood = mine @ towards - np.einsum("ij,ji->i", centres, towards) / 2
    likelihood[:, people == 0] = -np.inf
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    return mixture_shares(likelihood, np.ones(len(own)) if weight is None else weight)


def _by_chance(
    chance: Floats, person: NDArray[np.integer], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw pairs of images of two people, each by its chance; a pair may come up again."""
    one, two = rng.choice(len(chance), (2, _MOST), p=chance / chance.sum())
    different = person[one] != person[two]
    return one[different], two[different]
