"""Two populations: one to calibrate on, another to move to; what they must and must not share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from faircal._base.errors import DataError, ParameterError
from faircal.data import Dataset
from faircal.methods import Needs


@dataclass(frozen=True, eq=False)
class Moving:
    """Methods are fitted on all of one dataset and tested on another, fold by fold.

    `move` makes one, with the dataset to test on.

    Parameters
    ----------
    source : Dataset
        The population that methods are fitted on.
    labels : tuple of int
        How many pairs of the other population are labelled; unless told, steps up to all.
    notes : tuple of str
        What was done so that the two share no person.
    """

    source: Dataset
    labels: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def told(self, target: Dataset) -> tuple[str, ...]:
        """Say what was fitted on what, and what was dropped; for the notes of a run."""
        said = f"fitted on all {len(self.source)} pairs of {self.source.name}, tested on "
        return (f"{said}{target.name}, whose other folds give the labelled pairs", *self.notes)

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
        How many labelled pairs of `target` to try; unless told, steps up to all.
    people_apart : bool
        Take people of the same name for different people. Unless told, pairs of `target` with a
        person of `source` are dropped: a model must not be tested on people it has seen. Of two
        simulations with different seeds that is known.

    Examples
    --------
    >>> import faircal
    >>> here, there = faircal.simulate("small", seed=0), faircal.simulate("small", seed=1)
    >>> target, moving = move(here, there, labels=(100, 1000))
    >>> len(target) == len(there), moving.notes
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
    here, there = source.images.identity, target.images.identity
    if here is None or there is None:
        unnamed = source if here is None else target
        said = f"warning: {unnamed.where} does not name its people: whether some are in both "
        return target, (f"{said}populations can't be told; if so, the results are too good",)
    used = np.unique(here.codes[source.used_images()])
    seen = {here.names[code] for code in used if code >= 0}
    shared = np.array([*(name in seen for name in there.names), False])  # −1, unknown, is last
    left, right = (shared[there.take(rows)] for rows in (target.pairs.left, target.pairs.right))
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
    said = f"warning: {people} people of {target.where} are in {source.where} too, by name: "
    return kept, (f"{said}{int(drop.sum())} of {len(target)} pairs are dropped; {advice}",)


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
        here, there = source.select(name), target.select(name)
        if here.embeddings is not None and there.embeddings is not None:
            lengths = here.embeddings.dimension, there.embeddings.dimension
            if lengths[0] != lengths[1]:
                raise DataError(
                    f"{source.where} and {target.where}: embeddings '{name}' have {lengths[0]} and "
                    f"{lengths[1]} numbers; embed both with the same network"
                )
        if here.score_range != there.score_range:
            raise ParameterError(
                f"{source.where} and {target.where}: scores '{name}' are in {here.score_range} and "
                f"{there.score_range}; give one range for both (--score-range)"
            )
    return names


def unserved(needs: Needs, source: Dataset, target: Dataset, attribute: str | None) -> str | None:
    """Say what keeps a method with such `needs` from moving; None where nothing does."""
    columns = attribute.split("+") if attribute else []
    missing = [name for name in columns if name not in source.images.attributes]
    if needs.groups_to_fit and missing:
        return f"it needs groups to fit, and {source.where} has no column '{missing[0]}'"
    return needs.missing(target, attribute, fitting=False)
