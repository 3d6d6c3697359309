"""Drawing folds that share no person, for data that comes without folds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal.data.cohort_overlap import MOST_SHARED
from faircal.data.columns import UNKNOWN
from faircal.data.types import Fault, Images, Pairs, connected, people_of

if TYPE_CHECKING:
    from faircal.data.dataset import Dataset

N_FOLDS = 5


def draw_folds(
    pairs: Pairs, images: Images, seed: int, n_folds: int = N_FOLDS
) -> tuple[NDArray[np.int64], str]:
    """Assign people, and with them pairs, to folds 1…`n_folds`; return these, and what was done.

    People whom pairs connect go into a fold together where their set is not too large, and no pair
    of theirs is lost. The people of larger sets are drawn at random, and a pair of two who fell
    into different folds belongs to none (fold −1). Without identities, images joined by genuine
    pairs count as one person.
    """
    people, source = people_of(pairs, images)
    fold = deal_pairs(people, pairs.left, pairs.right, seed, n_folds)
    lost = int((fold == UNKNOWN).sum())
    note = f"folds drawn: {n_folds} identity-disjoint folds, seed {seed}, people from {source}; "
    note += f"{lost} of {len(pairs)} pairs join people of two folds and belong to none"
    if images.by_side and images.identity is None:
        note = f"folds drawn: {n_folds} folds of pairs, seed {seed}; the table names no people, "
        note += "so a person may be in several folds"
    return fold, note


def deal_pairs(
    people: NDArray[np.int64],
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    seed: int,
    n_folds: int,
) -> NDArray[np.int64]:
    """Return the fold of each pair, 1…`n_folds`, or −1, as `draw_folds` does.

    `people` has a number for each image; `left` and `right` are images.
    """
    left, right = people[left], people[right]
    n_people = int(people.max()) + 1
    sets = connected(left, right, n_people)
    size = np.bincount(sets[left], minlength=int(sets.max()) + 1)  # in pairs
    # A fold may be at most a third larger than its share; what is larger goes person by person.
    kept_together = size <= 4 / 3 * len(left) / n_folds
    _, unit = np.unique(
        np.where(kept_together[sets], sets, len(size) + np.arange(n_people)), return_inverse=True
    )
    weight = np.bincount(unit[np.concatenate([left, right])], minlength=int(unit.max()) + 1)
    fold_of_person = _spread(weight, n_folds, seed)[unit]
    fold = np.where(fold_of_person[left] == fold_of_person[right], fold_of_person[left], UNKNOWN)
    return fold.astype(np.int64)


def _spread(weight: NDArray[np.integer], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Deal things of unequal weight to folds 1…n, heaviest first, to the lightest fold so far."""
    order = np.random.default_rng(seed).permutation(len(weight))
    order = order[np.argsort(-weight[order], kind="stable")]
    load = np.zeros(n_folds)
    fold = np.empty(len(weight), dtype=np.int64)
    for item in order:
        lightest = int(np.argmin(load))
        fold[item] = lightest + 1
        load[lightest] += weight[item]
    return fold


def crossing_identities(data: Dataset, test: Any = None) -> Iterator[Fault]:
    """Give those who occur in more than one fold as a fault: all, or those of the fold `test`.

    It is an error where they are too many of the people of `test`.
    """
    people, fold = data.people, data.pairs.fold
    if people is None or fold is None or data.pairs.drawn:
        return
    names, codes = data.memo("folds", partial(np.unique, fold, return_inverse=True))
    present = np.zeros((len(people.names) + 1, len(names)), bool)  # −1, nobody knows who, is last
    present[people.left, codes] = present[people.right, codes] = True
    present = present[:-1]
    of_fold = present.any(axis=1) if test is None else present[:, names == test][:, 0]
    crossing = np.flatnonzero(of_fold & (present.sum(axis=1) > 1))
    if len(crossing):
        many = test is not None and len(crossing) > MOST_SHARED * int(of_fold.sum())
        folds = ", ".join(map(str, names[present[crossing[0]]]))
        yield Fault(
            "error" if many else "warning",
            f"identities {'' if test is None else f'of fold {test} '}that cross folds",
            len(crossing),
            f"identity {people.names[crossing[0]]} is in folds {folds}",
            "results would look too good: drop the column 'fold' to have disjoint folds drawn"
            f" (above {100 * MOST_SHARED:g} % of a fold's people it is refused)",
        )


def deal_people(
    stratum: NDArray[np.integer],
    *weights: NDArray[np.integer],
    n_folds: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Deal people to folds 1…`n_folds`, evenly within each stratum.

    The people of a stratum are dealt in rounds, heaviest first; in a round every fold gets one of
    them, the lightest fold first. So folds differ by at most one person of a stratum.

    Parameters
    ----------
    stratum : ndarray of shape (n_people,)
    *weights : ndarray of shape (n_people,)
        What makes a person heavy, the most important first.

    Examples
    --------
    >>> one = np.ones(4, dtype=int)
    >>> deal_people(np.array([0, 0, 1, 1]), one, n_folds=2, rng=np.random.default_rng(0))
    array([1, 2, 1, 2])
    """
    order = rng.permutation(len(stratum))  # between equals, chance decides
    heaviest = [-weight[order] for weight in reversed(weights)]  # lexsort's last key comes first
    order = order[np.lexsort((*heaviest, stratum[order]))]
    fold = np.empty(len(stratum), dtype=np.int64)
    held = np.zeros((len(weights), n_folds), dtype=np.int64)
    for members in np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1):
        for begin in range(0, len(members), n_folds):
            hand = members[begin : begin + n_folds]
            to = np.lexsort(held[::-1])[: len(hand)]
            fold[hand] = to + 1
            held[:, to] += np.stack([weight[hand] for weight in weights])
    return fold
