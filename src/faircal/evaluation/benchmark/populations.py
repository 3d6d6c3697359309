"""Two populations: one to calibrate on, another to move to.

What they must and must not share, and whose pairs of the new one somebody labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset
from faircal.data.types import people_of
from faircal.methods import Method


@dataclass(frozen=True, eq=False)
class Moving:
    """Methods are fitted on all of one dataset and tested on another, fold by fold.

    `move` makes one, with the dataset to test on.

    Parameters
    ----------
    source : Dataset
        The population that methods are fitted on.
    labels : tuple of int
        How many pairs of the other population are labelled; by default steps up to all.
    notes : tuple of str
        What was done so that the two share no person.
    """

    source: Dataset
    labels: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def notes_on(self, target: Dataset) -> tuple[str, ...]:
        """Say what was fitted on what, and what was dropped; for the notes of a run."""
        how = f"fitted on all {len(self.source)} pairs of {self.source.name}, tested on "
        return (f"{how}{target.name}, whose other folds give the labelled pairs", *self.notes)

    def record(self, labels: Sequence[int], source_hash: str) -> dict[str, Any]:
        """Return what ``run.json`` says of the population that methods were fitted on."""
        source = self.source
        return {
            "calibrated_on": source.name,
            "pairs": len(source),
            "images": len(source.images) if source.has_images else None,
            "simulated": bool(source.provenance.get("simulated", False)),
            "provenance": dict(source.provenance),
            "data_sha256": source_hash,
            "labels": list(labels),
        }


def move(
    source: Dataset, target: Dataset, labels: Sequence[int] = (), *, people_apart: bool = False
) -> tuple[Dataset, Moving]:
    """Return `target` without the people of `source`, and how to move there.

    Parameters
    ----------
    source, target : Dataset
        To fit on, and to test on.
    labels : sequence of int
        How many labelled pairs of `target` to try; by default steps up to all.
    people_apart : bool
        Take people of the same name for different people. By default pairs of `target` with a
        person of `source` are dropped: a model must not be tested on people it has seen. Of two
        simulations with different seeds that is known.

    Examples
    --------
    >>> import faircal
    >>> source, other = faircal.simulate("small", seed=0), faircal.simulate("small", seed=1)
    >>> target, moving = move(source, other, labels=(100, 1000))
    >>> len(target) == len(other), moving.notes
    (True, ())
    """
    if source.hash() == target.hash():
        raise DataError(
            f"{source.where} and {target.where}: expected two populations, found the same data "
            "twice; to hold out people of one dataset, give it as DATA"
        )
    notes: tuple[str, ...] = ()
    if not people_apart and not _drawn_apart(source, target):
        target, notes = _without_people(source, target)
    return target, Moving(source, tuple(labels), notes)


def _drawn_apart(source: Dataset, target: Dataset) -> bool:
    """Whether both are simulated, and not by the same draw: their people only share numbers."""
    drawn = [
        (data.provenance.get("preset"), data.provenance.get("seed"))
        for data in (source, target)
        if data.provenance.get("simulated")
    ]
    return len(drawn) == 2 and drawn[0] != drawn[1]


def _without_people(source: Dataset, target: Dataset) -> tuple[Dataset, tuple[str, ...]]:
    """Drop the pairs of `target` that show a person of `source`; say how many."""
    source_people, target_people = source.images.identity, target.images.identity
    if source_people is None or target_people is None:
        unnamed = source if source_people is None else target
        note = f"warning: {unnamed.where} does not name its people: whether some are in both "
        return target, (f"{note}populations can't be told; if so, the results are too good",)
    used = np.unique(source_people.codes[source.used_images()])
    source_names = {source_people.names[code] for code in used if code >= 0}
    # −1, the code of unknown people, is last.
    shared = np.array([*(name in source_names for name in target_people.names), False])
    left, right = (
        shared[target_people.take(rows)] for rows in (target.pairs.left, target.pairs.right)
    )
    drop = left | right
    if not drop.any():
        return target, ()
    kept, people = target.subset(~drop), int(shared.sum())
    advice = "where the same name is another person, say --people-apart"
    if not len(kept) or kept.genuine.all() or not kept.genuine.any():
        raise DataError(
            f"{target.where}: {people} people have names that {source.where} has too, and without "
            f"them {len(kept)} pairs are left, not of both classes; {advice}"
        )
    note = f"warning: {people} people of {target.where} are in {source.where} too, by name: "
    return kept, (f"{note}{int(drop.sum())} of {len(target)} pairs are dropped; {advice}",)


def shared_features(source: Dataset, target: Dataset, wanted: Sequence[str] = ()) -> list[str]:
    """Return the features to compare: those wanted, else all that both have.

    What both call by one name must be alike: vectors of one length, scores in one range.
    """
    both = [name for name in target.features if name in source.features]
    if not wanted and not both:
        raise DataError(
            f"{source.where} and {target.where}: expected features of the same name, found "
            f"{', '.join(source.features)} and {', '.join(target.features)}; rename them, or name "
            "score columns with --features"
        )
    names = list(wanted) or both
    for name in names:
        of_source, of_target = source.select(name), target.select(name)
        if of_source.embeddings is not None and of_target.embeddings is not None:
            lengths = of_source.embeddings.dimension, of_target.embeddings.dimension
            if lengths[0] != lengths[1]:
                raise DataError(
                    f"{source.where} and {target.where}: embeddings '{name}' have {lengths[0]} and "
                    f"{lengths[1]} numbers; embed both with the same network"
                )
        if of_source.score_range != of_target.score_range:
            raise ParameterError(
                f"{source.where} and {target.where}: scores '{name}' are in "
                f"{of_source.score_range} and {of_target.score_range}; give one range for both "
                "(--score-range)"
            )
    return names


def unserved(
    method: type[Method], source: Dataset, target: Dataset, attribute: str | None
) -> str | None:
    """Say what keeps a method from moving; None where nothing does."""
    columns = attribute.split("+") if attribute else []
    missing = [name for name in columns if name not in source.images.attributes]
    if method.needs.groups_to_fit and missing:
        return f"it needs groups to fit, and {source.where} has no column '{missing[0]}'"
    return method.unusable_reason(target, attribute, fitting=False)


#: Steps of the curve by default, up to the pairs that are there.
STEPS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
#: Fewer labelled pairs than this say nothing.
LEAST = 10

Rows = NDArray[np.intp]


def label_counts(pool: int, wanted: Sequence[int] = ()) -> tuple[int, ...]:
    """Return how many labelled pairs to try, ascending, without 0, which needs no label.

    Parameters
    ----------
    pool : int
        Pairs that can be labelled.
    wanted : sequence of int
        Numbers to try; by default round steps and then all of the pool.

    Examples
    --------
    >>> label_counts(2_000), label_counts(2_000, (0, 50))
    ((100, 300, 1000, 2000), (50,))
    """
    if not wanted:
        # A last step that differs little from the whole is left out.
        return (*(step for step in STEPS if step < 0.6 * pool), pool)
    for count in wanted:
        if count and not LEAST <= count <= pool:
            raise ParameterError(
                f"labels: expected 0, or {LEAST} to {pool} (the pairs of people who are not tested)"
                f", found {count}; choose other numbers (--labels)"
            )
    counts = sorted({int(count) for count in wanted} - {0})
    if not counts:
        raise ParameterError("labels: expected a number above 0; name one (--labels 100,1000)")
    return tuple(counts)


def draw_labelled(pool: Dataset, counts: Sequence[int], seed: int) -> list[Rows]:
    """Draw pairs of `pool` to be labelled, for each of `counts` (ascending).

    People come in a random order. For n pairs as many of the first people are taken as have, among
    themselves, pairs enough of both classes; n of those pairs are drawn, with the pool's share of
    genuine ones. (All pairs of few people would not do: with half of the people half of the
    genuine pairs are left, but a quarter of the imposters.) What is drawn for n is part of what is
    drawn for more.

    Parameters
    ----------
    pool : Dataset
        Labelled pairs, of both classes.
    counts : sequence of int
        From 2 to the pairs of the pool.
    seed : int

    Returns
    -------
    list of ndarray of shape (n,), intp
        Rows of `pool`, ascending.

    Examples
    --------
    >>> import faircal
    >>> pool, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> few, many = draw_labelled(pool, (30, 300), seed=0)
    >>> int(pool.genuine[few].sum()), set(few) <= set(many), float(pool.genuine.mean().round(2))
    (10, True, 0.33)
    """
    rng = np.random.default_rng(seed)
    people, _ = people_of(pool.pairs, pool.images)
    place = rng.permutation(int(people.max()) + 1)[people]
    # People join one by one; a pair can be labelled from the moment its second person is in.
    joined = np.maximum(place[pool.pairs.left], place[pool.pairs.right])  # when both are there
    chance = rng.permutation(len(pool))
    classes = [np.flatnonzero(pool.genuine == label) for label in (True, False)]
    drawn = np.zeros(len(pool), dtype=bool)
    labelled = []
    for count in counts:
        sizes = _sizes(count, *map(len, classes))
        last = max(
            np.partition(joined[rows], size - 1)[size - 1]
            for rows, size in zip(classes, sizes, strict=True)
        )
        for rows, size in zip(classes, sizes, strict=True):
            new = rows[(joined[rows] <= last) & ~drawn[rows]]
            more = size - int(drawn[rows].sum())
            drawn[new[np.argsort(chance[new])[:more]]] = True
        labelled.append(np.flatnonzero(drawn))
    return labelled


def _sizes(count: int, genuine: int, imposter: int) -> tuple[int, int]:
    """Share `count` between the classes as the pool has them, one of each at least."""
    # The pool's share of genuine pairs: another would be another prior, and miscalibrate.
    size = round(count * genuine / (genuine + imposter))
    size = min(max(size, 1, count - imposter), genuine, count - 1)
    return size, count - size


def count_people(pool: Dataset, rows: Rows) -> int | None:
    """Return how many people are in the pairs `rows`; None where nobody knows who is who."""
    if pool.images.identity is None:
        return None
    people, _ = people_of(pool.pairs, pool.images)
    return len(np.unique(people[np.concatenate([pool.pairs.left[rows], pool.pairs.right[rows]])]))
