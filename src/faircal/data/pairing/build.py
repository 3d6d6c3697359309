"""Building pairs: folds, genuine pairs, imposter pairs, and a last look at the result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress, silent
from faircal.data.pairing.hard import nearest
from faircal.data.pairing.imposters import NONE, Pairs, Pool, across, within
from faircal.data.pairing.inputs import Inputs, Vectors
from faircal.data.pairing.likeness import how_alike
from faircal.data.pairing.people import People
from faircal.data.pairing.plan import BY_EMBEDDING, BuiltPairs, PairPlan
from faircal.data.pairing.sampling import Ints
from faircal.data.pairing.steps import IMPOSTERS, cells_of, folds_of, genuine_of, stream

_DRAW: dict[str, Callable[[Pool, int, np.random.Generator], Pairs]] = {
    "random": within,
    "group": within,
    "cross": across,
    "cluster": within,
    "matched": within,
    "hard": nearest,
}


def build_pairs(
    people: ArrayLike,
    plan: PairPlan,
    *,
    strata: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    vectors: Vectors | None = None,
    folds: ArrayLike | None = None,
    progress: Progress = silent,
) -> BuiltPairs:
    """Build genuine and imposter pairs in folds that share no person.

    Parameters
    ----------
    people : array of shape (n_images,), int
        The person in each image; −1: unknown, the image is left out.
    plan : PairPlan
    strata : array of shape (n_images,), int, optional
        What folds are to have equal shares of; −1 is a stratum like any other.
    groups : array of shape (n_images,), int, optional
        For imposters of one group or of two; −1: unknown.
    vectors : ndarray of shape (n_images, d), float32, optional
        Embeddings of unit length, for cluster, matched and hard imposters; may be on disk.
    folds : array of shape (n_images,), int, optional
        Folds to keep to, instead of drawing some.
    progress : callable

    Examples
    --------
    >>> people = [0, 0, 1, 1, 2, 2, 3, 3]
    >>> pairs = build_pairs(people, PairPlan(n_folds=2, ratio=1.0))
    >>> pairs.genuine
    array([ True,  True, False, False,  True,  True, False, False])
    >>> pairs.fold
    array([1, 1, 1, 1, 2, 2, 2, 2])
    >>> pairs.notes[0]
    'folds: 2 drawn, which share none of the 4 people; seed 0'
    """
    inputs = Inputs.of(people, strata, groups, folds, vectors)
    vectors_needed = inputs.needed_vectors(plan) if plan.imposters == "hard" else None
    who = People.of(inputs.people)
    notes: list[str] = []
    names, fold = np.unique(folds_of(who, inputs, plan, notes), return_inverse=True)
    cell = cells_of(who, inputs, plan, notes)
    genuine, wanted = genuine_of(who, fold, names, plan, notes)

    pairs = [genuine]
    for i, name in enumerate(names):
        progress("drawing imposters", i, len(names), f"fold {name}")
        rows = np.flatnonzero((fold[who.person] == i) & (cell >= 0))
        points = None
        if vectors_needed is not None:
            points = np.asarray(vectors_needed[who.image[rows]], dtype=np.float32)
        _, person = np.unique(who.person[rows], return_inverse=True)
        pool = Pool(person, cell[rows], plan.cap, points, progress, f"fold {name}")
        left, right = _imposters(pool, int(wanted[i]), stream(plan, IMPOSTERS, i + 1), plan)
        pairs.append((rows[left], rows[right]))
    progress("drawing imposters", len(names), len(names), "")

    left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
    n_genuine = len(genuine[0])
    if plan.imposters in BY_EMBEDDING:
        strangers = left[n_genuine:], right[n_genuine:]
        notes.append(how_alike(inputs.needed_vectors(plan), who, fold, *strangers))
    notes.append(_summary(len(left) - n_genuine, n_genuine, int(wanted.sum()), plan))
    is_genuine = np.arange(len(left)) < n_genuine
    built = _in_order(
        who.image[left], who.image[right], is_genuine, names[fold[who.person[left]]], notes
    )
    _check(built, inputs.people)
    return built


def _imposters(pool: Pool, wanted: int, rng: np.random.Generator, plan: PairPlan) -> Pairs:
    """Draw the imposters of a fold; none is an error."""
    left, right = _DRAW[plan.imposters](pool, wanted, rng) if len(pool) else NONE
    if not len(left):
        raise DataError(
            f"{pool.label}: expected at least one imposter pair ({plan.imposters}), found none; "
            "ask for fewer folds (--folds), add people, or choose other imposters (--imposters)"
        )
    return left, right


def _summary(found: int, n_genuine: int, wanted: int, plan: PairPlan) -> str:
    said = (
        f"imposters: {found:,} pairs ({plan.imposters}), at most {plan.cap} of the same two people"
    )
    if found >= wanted:
        return f"{said}, {found / n_genuine:.3g} for each genuine pair"
    remedy = "raise --cap, ask for fewer --folds"
    remedy += " or --clusters" if plan.imposters in ("cluster", "matched") else ""
    return (
        f"{said}: {found / n_genuine:.2g} for each genuine pair, not {plan.ratio:g}; there are no "
        f"more; {remedy}, or lower --genuine or --ratio"
    )


def _in_order(
    one: Ints, two: Ints, genuine: NDArray[np.bool_], fold: Ints, notes: list[str]
) -> BuiltPairs:
    left, right = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((right, left, ~genuine, fold))
    return BuiltPairs(left[order], right[order], genuine[order], fold[order], tuple(notes))


def _check(pairs: BuiltPairs, people: Ints) -> None:
    """Look at the result itself: a leak here would spoil whatever is measured later."""
    names, codes = np.unique(people, return_inverse=True)
    left, right = codes[pairs.left], codes[pairs.right]
    fold = np.zeros(len(names), dtype=np.int64)
    fold[left] = pairs.fold
    fold[right] = pairs.fold
    code = np.sort(pairs.left * len(people) + pairs.right)
    faults = {
        "a person is in two folds": (fold[left] != pairs.fold) | (fold[right] != pairs.fold),
        "a label is wrong": (left == right) != pairs.genuine,
        "an image is of nobody known": names[np.minimum(left, right)] < 0,
        "a pair is there twice": code[1:] == code[:-1],
    }
    for fault, found in faults.items():
        if found.any():
            raise RuntimeError(f"pairs were built wrongly: {fault}; please report this")
