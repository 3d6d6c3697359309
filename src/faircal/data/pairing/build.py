"""The steps before imposters are drawn; each adds to the notes what was done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.compute.clustering import kmeans
from faircal.data.pairing.imposters import NONE, Pairs, Pool, across, nearest, within
from faircal.data.pairing.matched import alike
from faircal.data.pairing.people import PersonImages, how_alike
from faircal.data.pairing.plan import BY_EMBEDDING, BuiltPairs, PairingInputs, PairPlan, Vectors
from faircal.data.pairing.sampling import Ints, share

# Each purpose has random numbers of its own: another kind of imposters leaves folds as they are.
FOLDS, GENUINE, SIZE, IMPOSTERS = range(1, 5)  # not 0: trailing zeros change no stream


#: Clusters, or cells of people who are alike, and people of one in a fold, where the plan does not
#: say.
_CLUSTERS, _CELLS, _PEOPLE = 30, 10, 10


def folds_of(who: PersonImages, inputs: PairingInputs, plan: PairPlan, notes: list[str]) -> Ints:
    """Return the fold of each person, given or drawn."""
    unknown = len(inputs.people) - len(who.image)
    if unknown:
        notes.append(f"people: {unknown:,} images are in no pair: nobody known is in them")
    if inputs.folds is not None:
        fold = who.given_folds(inputs.folds[who.image])
        notes.append(f"folds: {len(np.unique(fold))} as given, which share no person")
        return fold
    note = f"folds: {plan.n_folds} drawn, which share none of the {len(who):,} people"
    stratum = np.zeros(len(who), dtype=np.int64)
    if inputs.strata is not None:
        stratum, several = who.strata(inputs.strata[who.image])
        note += f", stratified over {len(np.unique(stratum))} strata"
        if several:
            notes.append(
                f"strata: {several:,} people have images of several strata; each counts in their "
                "most frequent one"
            )
    notes.append(f"{note}; seed {plan.seed}")
    pairs = who.possible() if plan.genuine is None else np.minimum(who.possible(), plan.genuine)
    return who.deal(stratum, pairs, plan.n_folds, stream(plan, FOLDS))


def genuine_of(
    who: PersonImages, fold: Ints, names: Ints, plan: PairPlan, notes: list[str]
) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the genuine pairs, and how many imposter pairs each fold is to have.

    Parameters
    ----------
    fold : ndarray of shape (n_people,)
        Numbers of folds, from 0.
    names : ndarray of shape (n_folds,)
        What the folds are called.
    """
    left, right = who.genuine_pairs(plan.genuine, stream(plan, GENUINE))
    at = fold[who.person[left]]
    available = np.bincount(at, minlength=len(names))
    if not available.all():
        raise DataError(
            f"fold {names[available.argmin()]}: expected at least one genuine pair, found none; "
            "ask for fewer folds (--folds) or add people with two or more images"
        )
    kept = _within_size(available, plan)
    if kept.sum() < len(left):
        order = stream(plan, SIZE).permutation(len(left))
        order = order[np.argsort(at[order], kind="stable")]  # fold by fold, in random order inside
        rank = np.arange(len(left)) - (np.cumsum(available) - available)[at[order]]
        chosen = np.sort(order[rank < kept[at[order]]])
        notes.append(
            f"size: {len(chosen):,} of {len(left):,} genuine pairs kept, at random, for at most "
            f"{plan.size:,} pairs in all"
        )
        left, right = left[chosen], right[chosen]
    people = len(np.unique(who.person[left]))
    notes.append(f"genuine: {len(left):,} pairs of {people:,} people")
    return (left, right), _imposters_for(kept, plan)


def _imposters_for(genuine: Ints, plan: PairPlan) -> Ints:
    number: Ints = np.floor(plan.ratio * genuine + 0.5).astype(np.int64)
    return np.maximum(number, 1)


def _within_size(available: Ints, plan: PairPlan) -> Ints:
    """Return how many genuine pairs of each fold are kept, so that all pairs are `size` or less."""
    if plan.size is None or available.sum() + _imposters_for(available, plan).sum() <= plan.size:
        return available
    # Rounding may add a few pairs: then one genuine pair less, until it fits.
    for total in range(int(plan.size / (1 + plan.ratio)), -1, -1):
        kept = np.maximum(share(total, available, available), 1)
        needed = int(kept.sum() + _imposters_for(kept, plan).sum())
        if needed <= plan.size:
            return kept
    raise ParameterError(
        f"size: expected at least {needed:,} for {len(available)} folds with a genuine pair each "
        f"and its imposter pairs, found {plan.size:,}; raise --size "
        "or ask for fewer folds (--folds)"
    )


def cells_of(who: PersonImages, inputs: PairingInputs, plan: PairPlan, notes: list[str]) -> Ints:
    """Return what an imposter pair is to share, or not: the group or the cluster of each image.

    Images with a negative cell take no part in imposter pairs.
    """
    if plan.imposters in ("group", "cross"):
        cell = inputs.needed_groups(plan)[who.image]
        unknown = int((cell < 0).sum())
        if unknown:
            notes.append(f"groups: {unknown:,} images of unknown group are in no imposter pair")
        return cell
    if plan.imposters == "cluster":
        points = np.asarray(inputs.needed_vectors(plan)[who.image], dtype=np.float32)
        few = max(1, min(_CLUSTERS, len(who) // (_PEOPLE * plan.n_folds)))
        clustering = kmeans(points, plan.n_clusters or few, random_state=plan.seed)
        notes.append(f"clusters: {len(clustering.centers)}, found without attributes")
        return clustering.assign(points).astype(np.int64)
    if plan.imposters == "matched":
        return _alike(who, inputs, plan, notes)[who.person]
    return np.zeros(len(who.image), dtype=np.int64)


def _alike(who: PersonImages, inputs: PairingInputs, plan: PairPlan, notes: list[str]) -> Ints:
    """Return the cell of each person; people of a cell are alike."""
    vectors = inputs.needed_vectors(plan)
    cells = plan.n_clusters or max(1, min(_CELLS, len(who) // (_PEOPLE * plan.n_folds)))
    if cells > len(who):
        raise ParameterError(
            f"n_clusters: expected 1 to {len(who)} (the number of people), found {cells}; "
            "choose fewer clusters (--clusters)"
        )
    points = np.asarray(vectors[who.image], dtype=np.float32)
    least = min(_PEOPLE * plan.n_folds, len(who) // (2 * cells))
    cell = alike(points, who, cells, least=least, seed=plan.seed)
    people = np.unique(cell, return_counts=True)[1]
    if len(people) > 1:
        notes.append(
            f"matched: {len(people)} cells of {people.min():,} to {people.max():,} people who are "
            "alike, found without attributes"
        )
        return cell
    why = "no populations stand out"
    if cells == 1:
        why = f"cells are of {_PEOPLE * plan.n_folds} people on average (--clusters)"
    notes.append(
        f"matched: all {len(who):,} people are one cell, so that imposters are random; {why}"
    )
    return cell


def stream(plan: PairPlan, *purpose: int) -> np.random.Generator:
    """Return random numbers for one purpose."""
    return np.random.default_rng([plan.seed, *purpose])


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
    inputs = PairingInputs.of(people, strata, groups, folds, vectors)
    vectors_needed = inputs.needed_vectors(plan) if plan.imposters == "hard" else None
    who = PersonImages.of(inputs.people)
    notes: list[str] = []
    names, fold = np.unique(folds_of(who, inputs, plan, notes), return_inverse=True)
    cell = cells_of(who, inputs, plan, notes)
    genuine, needed = genuine_of(who, fold, names, plan, notes)

    pairs = [genuine]
    for i, name in enumerate(names):
        progress("drawing imposters", i, len(names), f"fold {name}")
        rows = np.flatnonzero((fold[who.person] == i) & (cell >= 0))
        points = None
        if vectors_needed is not None:
            points = np.asarray(vectors_needed[who.image[rows]], dtype=np.float32)
        _, person = np.unique(who.person[rows], return_inverse=True)
        pool = Pool(person, cell[rows], plan.cap, points, progress, f"fold {name}")
        left, right = _imposters(pool, int(needed[i]), stream(plan, IMPOSTERS, i + 1), plan)
        pairs.append((rows[left], rows[right]))
    progress("drawing imposters", len(names), len(names), "")

    left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
    n_genuine = len(genuine[0])
    if plan.imposters in BY_EMBEDDING:
        imposters = left[n_genuine:], right[n_genuine:]
        notes.append(how_alike(inputs.needed_vectors(plan), who, fold, *imposters))
    notes.append(_summary(len(left) - n_genuine, n_genuine, int(needed.sum()), plan))
    is_genuine = np.arange(len(left)) < n_genuine
    built = _in_order(
        who.image[left], who.image[right], is_genuine, names[fold[who.person[left]]], notes
    )
    _check(built, inputs.people)
    return built


def _imposters(pool: Pool, needed: int, rng: np.random.Generator, plan: PairPlan) -> Pairs:
    """Draw the imposters of a fold; none is an error."""
    left, right = _DRAW[plan.imposters](pool, needed, rng) if len(pool) else NONE
    if not len(left):
        raise DataError(
            f"{pool.label}: expected at least one imposter pair ({plan.imposters}), found none; "
            "ask for fewer folds (--folds), add people, or choose other imposters (--imposters)"
        )
    return left, right


def _summary(drawn: int, n_genuine: int, needed: int, plan: PairPlan) -> str:
    summary = (
        f"imposters: {drawn:,} pairs ({plan.imposters}), at most {plan.cap} of the same two people"
    )
    if drawn >= needed:
        return f"{summary}, {drawn / n_genuine:.3g} for each genuine pair"
    remedy = "raise --cap, ask for fewer --folds"
    remedy += " or --clusters" if plan.imposters in ("cluster", "matched") else ""
    return (
        f"{summary}: {drawn / n_genuine:.2g} for each genuine pair, not {plan.ratio:g}; there are "
        f"no more; {remedy}, or lower --genuine or --ratio"
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
    for fault, wrong in faults.items():
        if wrong.any():
            raise RuntimeError(f"pairs were built wrongly: {fault}; please report this")
