"""Pairs drawn anew: people dealt to other folds, imposters of calibration folds paired anew."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faircal.data import Dataset, Groups
from faircal.data.folds import deal_people
from faircal.data.pairing import PairPlan, build_pairs
from faircal.data.pairing.imposters import Pool, within
from faircal.data.types import Feature, Pairs

Int64 = NDArray[np.int64]

#: At most so many imposter pairs of the same two people, as `PairPlan` has it.
_CAP = 10
#: Folds that are dealt.
_FOLDS = 5


def with_pairs(data: Dataset, pairs: Pairs) -> Dataset:
    """Return the data with other pairs; ready-made scores don't go with them."""
    features = {name: Feature(of.embeddings) for name, of in data.features.items()}
    return Dataset.assemble(data.name, data.images, pairs, features, data.score_range)


def people_of(data: Dataset) -> Int64:
    """Return the person in each image; -1 where no pair uses it."""
    identity = data.images.identity
    if identity is None:
        raise ValueError(f"{data.name}: expected identities, found none; pairs need them")
    person = np.full(len(data.images), -1, dtype=np.int64)
    used = data.used_images()
    person[used] = identity.codes[used]
    return person


def dealt_anew(data: Dataset, seed: int) -> Dataset:
    """Deal people to other folds, evenly within groups; genuine pairs go with their person.

    Imposters are drawn anew within groups, as many in each group and fold as there were.
    """
    rng, pairs = np.random.default_rng([seed, 11]), data.pairs
    person, group = people_of(data), data.image_groups().codes
    known, first, where = np.unique(person, return_index=True, return_inverse=True)
    genuine = np.flatnonzero(data.genuine)
    each = np.bincount(where[pairs.left[genuine]], minlength=len(known))
    count = np.bincount(where, minlength=len(known))
    fold = deal_people(group[first], each, count, n_folds=_FOLDS, rng=rng)[where]
    fold[person < 0] = 0  # of no fold: no pair used these images

    left, right = [pairs.left[genuine]], [pairs.right[genuine]]
    for images, n in _wanted(data, data.groups(), fold, group):
        _, who = np.unique(person[images], return_inverse=True)
        one, two = within(Pool(who, np.zeros_like(who), _CAP), n, rng)
        left.append(images[one])
        right.append(images[two])
    lefts, rights = np.concatenate(left), np.concatenate(right)
    same = np.arange(len(lefts)) < len(genuine)
    return with_pairs(data, Pairs(lefts, rights, same, fold[lefts]))


def _wanted(
    data: Dataset, groups: Groups, fold: Int64, group: NDArray[np.integer]
) -> list[tuple[NDArray[np.intp], int]]:
    """Return the images of each group and new fold, and how many imposters they are to give."""
    found = []
    for number, name in enumerate(data.fold_names, start=1):
        for g in range(len(groups.names)):
            old = (data.pairs.fold == name) & ~data.genuine & (groups.pair == g)
            found.append((np.flatnonzero((fold == number) & (group == g)), int(old.sum())))
    return [(images, n) for images, n in found if n and len(images)]


def paired_anew(calibration: Dataset, kind: str, part: float, seed: int) -> Dataset:
    """Replace `part` of the imposters in each fold by others that `faircal.data.pairing` draws.

    Genuine pairs and the number of imposters in a fold stay; attributes are not looked at.

    Parameters
    ----------
    kind : str
        What `PairPlan` calls the imposters.
    part : float
        From 0 to 1; which ones stay is left to chance.
    """
    pairs, rng = calibration.pairs, np.random.default_rng([seed, 12])
    if pairs.fold is None or calibration.embeddings is None:
        raise ValueError(f"{calibration.name}: expected folds and embeddings, found none")
    person, fold, width = people_of(calibration), _image_folds(calibration), len(calibration.images)
    kept, drawn = [np.flatnonzero(calibration.genuine)], []
    fresh = _imposters(calibration, kind, person, fold, seed)
    for name in calibration.fold_names:
        old = np.flatnonzero((pairs.fold == name) & ~calibration.genuine)
        stay = rng.permutation(old)[: round((1 - part) * len(old))]
        codes = np.minimum(pairs.left[stay], pairs.right[stay]) * width
        codes += np.maximum(pairs.left[stay], pairs.right[stay])
        new = np.setdiff1d(fresh[name], codes)
        kept.append(stay)
        drawn.append(rng.permutation(new)[: len(old) - len(stay)])
    rows, code = np.concatenate(kept), np.concatenate(drawn)
    one, two = divmod(code, width)
    made = Pairs(
        np.concatenate([pairs.left[rows], one]),
        np.concatenate([pairs.right[rows], two]),
        np.concatenate([calibration.genuine[rows], np.zeros(len(code), dtype=bool)]),
        np.concatenate([pairs.fold[rows], fold[one]]),
    )
    return with_pairs(calibration, made)


def _image_folds(data: Dataset) -> Int64:
    fold = np.full(len(data.images), -1, dtype=np.int64)
    for side in (data.pairs.left, data.pairs.right):
        fold[side] = np.asarray(data.pairs.fold)
    return fold


def _imposters(data: Dataset, kind: str, person: Int64, fold: Int64, seed: int) -> dict[int, Int64]:
    """Draw at least as many imposters in each fold as there are, and a tenth more."""
    folds = data.fold_names
    old = [int(((data.pairs.fold == name) & ~data.genuine).sum()) for name in folds]
    # `build_pairs` counts by genuine pairs; with one a person they are those with two images.
    images = np.bincount(person[person >= 0])
    several = images[np.maximum(person, 0)] > 1
    givers = [len(np.unique(person[(fold == name) & several])) for name in folds]
    ratio = 1.1 * max(n / m for n, m in zip(old, givers, strict=True)) + 1
    plan = PairPlan(imposters=kind, genuine=1, ratio=ratio, seed=seed, cap=_CAP)
    vectors = data.embeddings.rows(np.arange(len(data.images))) if data.embeddings else None
    # An image that no pair uses is nobody's, so its fold does not matter; but it must have one.
    built = build_pairs(person, plan, folds=np.where(fold < 0, folds[0], fold), vectors=vectors)
    code = built.left * len(person) + built.right
    return {name: code[(built.fold == name) & ~built.genuine] for name in folds}
