"""What a dataset is like, and what is wrong with it: the work of ``faircal check``.

Each fault has a count, an example and a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress, silent, step
from faircal.data.cohort import FEW, TOO_FEW, Cohort
from faircal.data.columns import UNKNOWN
from faircal.data.dataset import Dataset
from faircal.data.dataset_folder import load_cohort
from faircal.data.folds import crossing_identities
from faircal.data.pair_files import PairFiles
from faircal.data.summary import REMEDIES, WrongPairs
from faircal.data.tables import has_table
from faircal.data.types import Fault

#: Below these counts a group's figures are noise: by the rule of three, 300 imposters without a
#: false match still allow a rate of 1 %.
LEAST_PEOPLE, LEAST_GENUINE, LEAST_IMPOSTERS = 30, 30, 300
#: Groups of a cohort whose numbers of people differ by more than this factor are out of balance.
MOST_UNEQUAL = 2


@dataclass(frozen=True)
class CheckedData:
    """The facts about a dataset, by name, and its faults, the fatal ones first."""

    facts: dict[str, Any]
    faults: list[Fault]

    @property
    def errors(self) -> list[Fault]:
        """Faults with which the data can't be used."""
        return [fault for fault in self.faults if fault.severity == "error"]


def check_data(
    data: PairFiles | str | Path, attribute: str | None = None, *, progress: Progress = silent
) -> CheckedData:
    """Describe a dataset and find what is wrong with it; a folder without pairs is a cohort.

    Parameters
    ----------
    data : PairFiles or path
    attribute : str, optional
        The attribute that makes the groups.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.check_data("faces/").facts["pairs"]  # doctest: +SKIP
    """
    fatal: list[Fault] = []
    files = PairFiles.of(data)
    if (
        files.path.is_dir()
        and has_table(files.path, "images")
        and not has_table(files.path, "pairs")
    ):
        return check_cohort(files.path, attribute)
    loaded = files.load(on_fault=fatal.append, progress=progress)
    with step(progress, "checking"):
        return CheckedData(describe_data(loaded, attribute), fatal + find_faults(loaded, attribute))


def check_cohort(folder: Path, attribute: str | None = None) -> CheckedData:
    """Say how balanced a cohort is, and which of its groups are too few."""
    try:
        cohort = load_cohort(folder, attribute)
    except DataError as error:
        hint = "without pairs it is checked as a cohort; 'faircal pairs' makes pairs"
        raise DataError(f"{error} ({hint})") from error
    counts = cohort.counts()
    facts: dict[str, Any] = {
        "name": cohort.name,
        "kind": "cohort: there are no pairs",
        "simulated": bool(cohort.provenance.get("simulated", False)),
        "licence": cohort.record()["licence"],
        "images": len(cohort),
        "identities": len(cohort.identity.names),
        "features": {
            name: f"{each.dimension}-d embeddings" for name, each in cohort.embeddings.items()
        },
        "attribute": cohort.attribute,
        "groups": [
            {"group": name, "people": people, "images": images}
            for name, (people, images) in counts.items()
        ],
    }
    return CheckedData(facts, list(_cohort_faults(cohort)))


def _cohort_faults(cohort: Cohort) -> Iterator[Fault]:
    people = {name: count for name, (count, _) in cohort.counts().items()}
    least, most = (min(people, key=people.__getitem__), max(people, key=people.__getitem__))
    remedy = f"take {FEW} people a group, better 30: add people or merge groups"
    for what, low, high in (
        (f"groups of {TOO_FEW} people or fewer, which are too few", 0, TOO_FEW),
        (f"groups of fewer than {FEW} people, which are few", TOO_FEW + 1, FEW - 1),
    ):
        few = [name for name, count in people.items() if low <= count <= high]
        if few:
            yield Fault("warning", what, len(few), f"{few[0]!r} has {people[few[0]]}", remedy)
    if people[most] > MOST_UNEQUAL * people[least]:
        example = f"{people[most]} people in {most!r}, {people[least]} in {least!r}"
        remedy = "take about as many people of each, or rare ones find few of their kind"
        yield Fault("warning", "groups out of balance", len(people), example, remedy)
    pairs = np.stack([cohort.identity.codes, cohort.groups.codes], axis=1)
    who, groups = np.unique(np.unique(pairs[pairs[:, 1] >= 0], axis=0)[:, 0], return_counts=True)
    if (groups > 1).any():
        example = f"identity {cohort.identity.names[who[groups > 1][0]]}"
        remedy = "correct the attribute or the identity"
        yield Fault("warning", "people in two groups", int((groups > 1).sum()), example, remedy)
    unknown = int((cohort.groups.codes < 0).sum())
    if unknown:
        example, remedy = f"no {cohort.attribute}", "they are of no group: fill in the attribute"
        yield Fault("note", "images of unknown group", unknown, example, remedy)
    for note in cohort.notes:
        yield Fault("note", note, 1, "", "name them in the column 'identity'")


def describe_data(data: Dataset, attribute: str | None = None) -> dict[str, Any]:
    """Return the facts about a dataset, by name."""
    genuine = data.pairs.genuine
    fold = data.pairs.fold
    attribute = attribute or data.default_attribute
    about: dict[str, Any] = {
        "name": data.name,
        "simulated": bool(data.provenance.get("simulated", False)),
        "pairs": len(data),
        "genuine": None if genuine is None else int(genuine.sum()),
        "imposter": None if genuine is None else int((~genuine).sum()),
        "images": len(data.images) if data.has_images else None,
        "identities": None if data.images.identity is None else len(data.images.identity.names),
        "features": {
            name: f"{f.embeddings.dimension}-d embeddings" if f.embeddings else "scores"
            for name, f in data.features.items()
        },
        "attributes": {name: list(c.names) for name, c in data.images.attributes.items()},
        "folds": {str(name): int(np.sum(fold == name)) for name in data.fold_names},
        "attribute": attribute,
        "groups": [],
    }
    if attribute is not None:
        about["groups"] = [vars(size) for size in describe_groups(data, attribute)]
        about |= data.groups(attribute).shares()
    return about


def find_faults(data: Dataset, attribute: str | None = None) -> list[Fault]:
    """Return everything worth telling about `data`, errors first.

    `attribute` makes the groups whose sizes are looked at; all columns crossed by default.
    """
    checks: tuple[Callable[[Dataset], Iterator[Fault]], ...] = (
        _labels,
        _folds,
        _faulty_pairs,
        crossing_identities,
        _vectors,
        _spelling,
    )
    rank = {"error": 0, "warning": 1, "note": 2}
    faults = [fault for check in checks for fault in check(data)]
    faults += _groups(data, attribute or data.default_attribute)
    return sorted(faults, key=lambda fault: rank[fault.severity])


def _labels(data: Dataset) -> Iterator[Fault]:
    genuine = data.pairs.genuine
    if genuine is None:
        yield Fault(
            "warning",
            "pairs without labels",
            len(data),
            "no column 'genuine'",
            "they can be scored; to fit or measure, add the column 'genuine'",
        )
    elif genuine.all() or not genuine.any():
        fault = "pairs of one class only", len(data)
        remedy = "add imposter pairs, or fit a method that needs none (--method cohort)"
        if genuine.any():
            yield Fault("warning", *fault, "all genuine", remedy)
        else:
            yield Fault("error", *fault, "all imposter", "add genuine pairs")


def _folds(data: Dataset) -> Iterator[Fault]:
    for note in data.notes:
        yield Fault("note", note, 1, "", "a column 'fold' of your own decides otherwise")
    names = data.fold_names
    if len(names) == 1:
        yield Fault(
            "warning",
            "pairs in one fold only",
            len(data),
            f"fold {names[0]}",
            "benchmark needs two or more: drop the column 'fold' to have five drawn",
        )


def _faulty_pairs(data: Dataset) -> Iterator[Fault]:
    """Pairs that are wrong, and pairs that are there twice, with an example of each kind."""
    if data.pairs.genuine is not None:
        wrong = WrongPairs.of(data)
        for kind, (count, example) in wrong.kinds.items():
            level = "error" if wrong.refused else "warning"
            yield Fault(level, kind, count, example, REMEDIES[kind])  # type: ignore[arg-type]
    if not data.has_images:
        return
    left, right = data.pairs.left.astype(np.int64), data.pairs.right.astype(np.int64)
    code = np.minimum(left, right) * len(data.images) + np.maximum(left, right)
    # The first pair with the same two images, for each.
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    first = first[inverse]
    again = first != np.arange(len(data))
    mirrored = again & (left != left[first])
    twice = "mirrored pairs (left and right swapped)", "keep one of each: order has no meaning"
    for mask, what, remedy in (
        (again & ~mirrored, "duplicate pairs", "keep one of each"),
        (mirrored, *twice),
    ):
        if mask.any():
            row, ids = int(np.argmax(mask)), data.images.ids
            example = f"row {row + 1}: {ids[int(left[row])]} – {ids[int(right[row])]}"
            yield Fault("warning", what, int(mask.sum()), example, remedy)


def _vectors(data: Dataset) -> Iterator[Fault]:
    for name, feature in data.features.items():
        if feature.embeddings is None:
            continue
        bad = feature.embeddings.unusable
        used = np.zeros(len(bad), dtype=bool)
        used[data.used_images()] = True
        for mask, severity, remedy in (
            (bad & used, "error", "embed these images again or drop their pairs"),
            (bad & ~used, "note", "no pair uses them"),
        ):
            if mask.any():
                image = data.images.ids[int(np.flatnonzero(mask)[0])]
                what = f"NaN, infinite or zero vectors in embeddings '{name}'"
                yield Fault(severity, what, int(mask.sum()), f"image {image}", remedy)  # type: ignore[arg-type]
        yield from _equal_vectors(data, name, feature.embeddings.vectors, ~bad)


def _equal_vectors(
    data: Dataset, name: str, vectors: NDArray[np.floating], sound: NDArray[np.bool_]
) -> Iterator[Fault]:
    # Hashes, not rows, are sorted: eight bytes an image, however long the vectors.
    hashes = (blake2b(row.tobytes(), digest_size=8).digest() for row in vectors)
    numbers = np.fromiter(map(int.from_bytes, hashes), dtype=np.uint64, count=len(vectors))
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    again = (first[inverse] != np.arange(len(vectors))) & sound
    if again.any():
        row = int(np.flatnonzero(again)[0])
        ids = data.images.ids
        yield Fault(
            "warning",
            f"images with the same vector as another in embeddings '{name}'",
            int(again.sum()),
            f"images {ids[int(first[inverse][row])]} and {ids[row]}",
            "perhaps one picture under two ids: keep one",
        )


def _spelling(data: Dataset) -> Iterator[Fault]:
    for name, column in data.images.attributes.items():
        spelt: dict[str, str] = {}
        for value in column.names:
            other = spelt.setdefault(value.casefold(), value)
            if other != value:
                yield Fault(
                    "warning",
                    f"values of '{name}' that differ in capitals only",
                    1,
                    f"{other!r} and {value!r}",
                    "they count as two groups: spell them alike",
                )


def _groups(data: Dataset, attribute: str | None) -> Iterator[Fault]:
    if attribute is None:
        yield Fault("note", "no groups", 1, "nothing to compare", data.why_no_groups())
        return
    small = [row for row in describe_groups(data, attribute) if not row.sufficient]
    if small:
        row = min(small, key=lambda row: row.imposter)
        people = "" if row.people is None else f"{row.people} people, "
        yield Fault(
            "warning",
            "groups too small to say anything about",
            len(small),
            f"{row.group!r} has {people}{row.genuine} genuine and {row.imposter} imposter pairs",
            f"{LEAST_PEOPLE} people, {LEAST_GENUINE} genuine and {LEAST_IMPOSTERS} imposter pairs "
            "are needed: collect more or merge groups",
        )


@dataclass(frozen=True)
class GroupSize:
    """How much data there is of one group."""

    group: str
    people: int | None
    genuine: int
    imposter: int

    @property
    def sufficient(self) -> bool:
        """Whether there is enough to say anything."""
        return (
            (self.people is None or self.people >= LEAST_PEOPLE)
            and self.genuine >= LEAST_GENUINE
            and self.imposter >= LEAST_IMPOSTERS
        )


def describe_groups(data: Dataset, attribute: str) -> list[GroupSize]:
    """Count people and pairs of each group of `attribute`."""
    groups, people, genuine = data.groups(attribute), data.people, data.pairs.genuine
    sizes = []
    if genuine is None:
        genuine = np.zeros(len(data), dtype=bool)
    for code, name in enumerate(groups.names):
        inside = groups.pair == code
        count = None
        if people is not None:
            sides = people.left[groups.left == code], people.right[groups.right == code]
            who = np.concatenate(sides)
            count = len(np.unique(who[who != UNKNOWN]))
        sizes.append(
            GroupSize(name, count, int((inside & genuine).sum()), int((inside & ~genuine).sum()))
        )
    return sizes
