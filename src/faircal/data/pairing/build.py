"""Pairs built from who is in which image, step by step; each step adds to the notes what was done.

people → folds that share no person → genuine pairs → imposter pairs of the wanted kind
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_integer, did_you_mean
from faircal.compute import CPU
from faircal.data.folds import deal_people
from faircal.data.pairing.imposters import NONE, Pairs, Pool, across, nearest, within
from faircal.data.pairing.matched import alike
from faircal.data.pairing.people import Ints, PersonImages, Vectors, how_alike, share

#: How imposter pairs of each kind are drawn.
DRAW = {
    "random": within,
    "group": within,
    "cross": across,
    "cluster": within,
    "matched": within,
    "hard": nearest,
}
#: The kinds of imposter pairs.
IMPOSTERS = tuple(DRAW)
#: Those that are drawn by groups, and by what the embeddings say.
_BY_GROUP = ("group", "cross")
BY_EMBEDDING = ("cluster", "matched", "hard")
#: Clusters, or cells of people who are alike, and people of one in a fold, where the plan does not
#: say.
_CLUSTERS, _CELLS, _PEOPLE = 30, 10, 10
_MOST, _LARGEST = 1e6, 10**12

# Each purpose has random numbers of its own: another kind of imposters leaves folds as they are.
_FOLDS, _GENUINE, _SIZE, _IMPOSTERS = range(1, 5)  # not 0: trailing zeros change no stream


@dataclass(frozen=True)
class PairPlan:
    """Which pairs are to be built.

    Parameters
    ----------
    imposters : str
        The two images of an imposter pair are: ``random``, any of two people; ``group``, of one
        group; ``cross``, of two groups; ``cluster``, of one K-means cluster, found without
        attributes; ``matched``, of two people who are alike, likewise; ``hard``, the most similar
        ones.
    genuine : int, optional
        At most so many genuine pairs a person, drawn at random. None: all.
    ratio : float
        Imposter pairs for each genuine pair.
    size : int, optional
        At most so many pairs in all, in the given ratio. None: no limit.
    cap : int
        At most so many imposter pairs of the same two people.
    n_folds : int
        Folds to draw; not used where folds are given.
    n_clusters : int, optional
        Number of clusters, for ``cluster``, or of cells of people, for ``matched``. None: 30, or
        10, and fewer where people are few, so that ten of each are in a fold.
    seed : int

    Examples
    --------
    >>> PairPlan(imposters="hrad")
    Traceback (most recent call last):
    ...
    faircal.ParameterError: imposters: unknown kind 'hrad'; did you mean hard? (known: ...)
    """

    imposters: str = "random"
    genuine: int | None = 300
    ratio: float = 3.0
    size: int | None = None
    cap: int = 10
    n_folds: int = 5
    n_clusters: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.imposters not in IMPOSTERS:
            hint = did_you_mean(str(self.imposters), IMPOSTERS)
            raise ParameterError(f"imposters: unknown kind {self.imposters!r}; {hint}")
        ratio: object = self.ratio
        number = isinstance(ratio, Real) and not isinstance(ratio, bool)
        if not number or not 0 < float(self.ratio) <= _MOST:
            raise ParameterError(f"ratio: expected a number above 0, found {ratio!r}")
        if self.genuine is not None:
            check_integer("genuine", self.genuine, 1)
        if self.size is not None:
            check_integer("size", self.size, 2)
        check_integer("cap", self.cap, 1)
        for name in ("genuine", "size", "cap"):
            value = getattr(self, name)
            if value is not None and value > _LARGEST:
                raise ParameterError(f"{name}: expected {_LARGEST:,} at most, found {value}")
        check_integer("n_folds", self.n_folds, 2)
        if self.n_clusters is not None:
            check_integer("n_clusters", self.n_clusters, 1)
        check_integer("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class BuiltPairs:
    """Pairs of images, each once, sorted by fold, genuine first, left, right.

    Attributes
    ----------
    left, right : ndarray of shape (n_pairs,), intp
        Rows of images; left < right.
    genuine : ndarray of shape (n_pairs,), bool
    fold : ndarray of shape (n_pairs,), int64
        1…`n_folds`, or the folds that were given.
    notes : tuple of str
        What was done and what fell short, a line each.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    fold: NDArray[np.int64]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.left)


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
    people = _codes("people", people)
    n = len(people)
    strata, groups, folds = (
        None if values is None else _codes(name, values, n)
        for name, values in (("strata", strata), ("groups", groups), ("folds", folds))
    )
    _check_needs(plan, n, groups, vectors)
    who = PersonImages.of(people)
    notes: list[str] = []
    names, fold = np.unique(_folds(who, n, folds, strata, plan, notes), return_inverse=True)
    cell = cells(who, groups, vectors, plan, notes)
    genuine, needed = _genuine(who, fold, names, plan, notes)

    pairs = [genuine]
    for i, name in enumerate(names):
        progress("drawing imposters", i, len(names), f"fold {name}")
        rows = np.flatnonzero((fold[who.person] == i) & (cell >= 0))
        points = None
        if plan.imposters == "hard" and vectors is not None:
            points = np.asarray(vectors[who.image[rows]], dtype=np.float32)
        _, person = np.unique(who.person[rows], return_inverse=True)
        pool = Pool(person, cell[rows], plan.cap, points, progress, f"fold {name}")
        left, right = _imposters(pool, int(needed[i]), _stream(plan, _IMPOSTERS, i + 1), plan)
        pairs.append((rows[left], rows[right]))
    progress("drawing imposters", len(names), len(names), "")

    left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
    n_genuine = len(genuine[0])
    if plan.imposters in BY_EMBEDDING and vectors is not None:
        notes.append(how_alike(vectors, who, fold, left[n_genuine:], right[n_genuine:]))
    notes.append(_summary(len(left) - n_genuine, n_genuine, int(needed.sum()), plan))
    is_genuine, fold_of_pair = np.arange(len(left)) < n_genuine, names[fold[who.person[left]]]
    one, two = who.image[left], who.image[right]
    one, two = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((two, one, ~is_genuine, fold_of_pair))
    built = BuiltPairs(one[order], two[order], is_genuine[order], fold_of_pair[order], tuple(notes))
    _check(built, people)
    return built


def _codes(name: str, values: ArrayLike, n: int | None = None) -> Ints:
    """Return a column over all images as int64; `n` values, where that is given."""
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise ParameterError(
            f"{name}: expected a whole number for each image, found {column.dtype} of shape "
            f"{column.shape}; give codes, −1 for unknown"
        )
    if n is not None and len(column) != n:
        raise ParameterError(
            f"{name}: expected {n:,} values, one for each image, found {len(column):,}"
        )
    return column.astype(np.int64)


def _check_needs(plan: PairPlan, n: int, groups: Ints | None, vectors: Vectors | None) -> None:
    """Raise where groups or embeddings are missing that the plan can't do without."""
    if vectors is not None and (vectors.ndim != 2 or len(vectors) != n):
        raise ParameterError(
            f"vectors: expected {n:,} rows, one for each image, found shape {vectors.shape}"
        )
    missing = ""
    if plan.imposters in _BY_GROUP and groups is None:
        missing = "the group of each image, found none; name an attribute (--attribute)"
    elif plan.imposters in BY_EMBEDDING and vectors is None:
        missing = "embeddings, found none; run faircal embed first"
    if missing:
        raise ParameterError(f"imposters {plan.imposters!r}: expected {missing}")


def _stream(plan: PairPlan, *purpose: int) -> np.random.Generator:
    """Return random numbers for one purpose."""
    return np.random.default_rng([plan.seed, *purpose])


def _folds(
    who: PersonImages,
    n_images: int,
    given: Ints | None,
    strata: Ints | None,
    plan: PairPlan,
    notes: list[str],
) -> Ints:
    """Return the fold of each person, given or drawn."""
    unknown = n_images - len(who.image)
    if unknown:
        notes.append(f"people: {unknown:,} images are in no pair: nobody known is in them")
    if given is not None:
        fold = who.given_folds(given[who.image])
        notes.append(f"folds: {len(np.unique(fold))} as given, which share no person")
        return fold
    note = f"folds: {plan.n_folds} drawn, which share none of the {len(who):,} people"
    stratum = np.zeros(len(who), dtype=np.int64)
    if strata is not None:
        stratum, several = who.strata(strata[who.image])
        note += f", stratified over {len(np.unique(stratum))} strata"
        if several:
            notes.append(
                f"strata: {several:,} people have images of several strata; each counts in their "
                "most frequent one"
            )
    notes.append(f"{note}; seed {plan.seed}")
    # A person weighs what genuine pairs they will give, then their images.
    pairs = who.possible() if plan.genuine is None else np.minimum(who.possible(), plan.genuine)
    givers = int((pairs > 0).sum())
    if givers < plan.n_folds:
        raise DataError(
            f"folds: expected at least {plan.n_folds} people with two or more images, one for each "
            f"fold, found {givers}; ask for fewer folds (--folds) or add people"
        )
    rng = _stream(plan, _FOLDS)
    return deal_people(stratum, pairs, who.count, n_folds=plan.n_folds, rng=rng)


def _genuine(
    who: PersonImages, fold: Ints, names: Ints, plan: PairPlan, notes: list[str]
) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the genuine pairs, and how many imposter pairs each fold is to have.

    `fold` numbers the fold of each person from 0, and `names` says what folds are called.
    """
    left, right = who.genuine_pairs(plan.genuine, _stream(plan, _GENUINE))
    at = fold[who.person[left]]
    available = np.bincount(at, minlength=len(names))
    if not available.all():
        raise DataError(
            f"fold {names[available.argmin()]}: expected at least one genuine pair, found none; "
            "ask for fewer folds (--folds) or add people with two or more images"
        )
    kept = _within_size(available, plan)
    if kept.sum() < len(left):
        order = _stream(plan, _SIZE).permutation(len(left))
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


def cells(
    who: PersonImages,
    groups: Ints | None,
    vectors: Vectors | None,
    plan: PairPlan,
    notes: list[str],
) -> Ints:
    """Return what an imposter pair is to share, or not: the group or the cluster of each image.

    Images with a negative cell take no part in imposter pairs.
    """
    if plan.imposters in _BY_GROUP and groups is not None:
        cell = groups[who.image]
        unknown = int((cell < 0).sum())
        if unknown:
            notes.append(f"groups: {unknown:,} images of unknown group are in no imposter pair")
        return cell
    if plan.imposters in ("random", "hard") or vectors is None:
        return np.zeros(len(who.image), dtype=np.int64)
    points = np.asarray(vectors[who.image], dtype=np.float32)
    few = len(who) // (_PEOPLE * plan.n_folds)
    if plan.imposters == "cluster":
        n_clusters = plan.n_clusters or max(1, min(_CLUSTERS, few))
        clustering = CPU.kmeans(points, n_clusters, random_state=plan.seed)
        notes.append(f"clusters: {len(clustering.centers)}, found without attributes")
        return CPU.assign(points, clustering.centers).astype(np.int64)
    n_cells = plan.n_clusters or max(1, min(_CELLS, few))
    return _cells_alike(points, who, n_cells, plan, notes)[who.person]


def _cells_alike(
    points: Vectors, who: PersonImages, n_cells: int, plan: PairPlan, notes: list[str]
) -> Ints:
    """Return the cell of each person; people of a cell are alike."""
    if n_cells > len(who):
        raise ParameterError(
            f"n_clusters: expected 1 to {len(who)} (the number of people), found {n_cells}; "
            "choose fewer clusters (--clusters)"
        )
    least = min(_PEOPLE * plan.n_folds, len(who) // (2 * n_cells))
    cell = alike(points, who, n_cells, least=least, seed=plan.seed)
    people = np.unique(cell, return_counts=True)[1]
    if len(people) > 1:
        notes.append(
            f"matched: {len(people)} cells of {people.min():,} to {people.max():,} people who are "
            "alike, found without attributes"
        )
        return cell
    why = "no populations stand out"
    if n_cells == 1:
        why = f"cells are of {_PEOPLE * plan.n_folds} people on average (--clusters)"
    notes.append(
        f"matched: all {len(who):,} people are one cell, so that imposters are random; {why}"
    )
    return cell


def _imposters(pool: Pool, needed: int, rng: np.random.Generator, plan: PairPlan) -> Pairs:
    """Draw the imposters of a fold; none is an error."""
    left, right = DRAW[plan.imposters](pool, needed, rng) if len(pool) else NONE
    if not len(left):
        raise DataError(
            f"{pool.label}: expected at least one imposter pair ({plan.imposters}), found none; "
            "ask for fewer folds (--folds), add people, or choose other imposters (--imposters)"
        )
    return left, right


def _summary(drawn: int, n_genuine: int, needed: int, plan: PairPlan) -> str:
    """Say how many imposter pairs there are, and what to do where they are too few."""
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
