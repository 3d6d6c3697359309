"""Calibration pairs, cohort and test pairs of each condition of the study."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import faircal
from faircal.data import Cohort, Dataset
from faircal.data.pairing import draw_cohort, redraw_imposters
from studies.repairing import people_of

REAL = ("lfw-mobilefacenet", "lfw-dlib")
#: Simulated sets and their sizes: another seed, another population.
SIMULATED: dict[str, dict[str, int]] = {
    "small": {"people": 640},
    "rfw-like": {},
    "bfw-like": {"pairs": 60_000},
}
ATTRIBUTES = {"rfw-like": "ethnicity"}
#: Unlike cohorts: how long a common shift and each image's noise are, in units of the spread.
SHIFTS = {"moved": (0.35, 0.3), "moved far": (0.7, 0.6)}
Codes = NDArray[np.integer]


class Cell(NamedTuple):
    """A method in a condition, all folds.

    `cohort` is how many people a group are drawn, and what is done to them; `people` how many of
    one's own calibrate, 0 all.
    """

    data: str
    protocol: str
    cohort: str
    people: int
    seed: int
    method: str


def attribute(name: str) -> str:
    """Return what makes the groups of a set."""
    return ATTRIBUTES.get(name, "ethnicity+gender")


def load(name: str, seed: int, folder: Path | None) -> Dataset:
    """Load a real set, or simulate one."""
    if name in SIMULATED:
        return faircal.simulate(name, seed, **SIMULATED[name])
    if folder is None:
        raise ValueError("expected --data FOLDER, where the real sets are")
    return faircal.load(folder / name)


def prepare(cell: Cell, data: Dataset, fold: int) -> tuple[Dataset, Dataset]:
    """Return calibration pairs, with a cohort, and test pairs of a fold.

    A condition of the cohort changes the cohort alone: Baseline's pairs stay the same. With
    ``low norm`` and ``high norm`` all pairs are of images of high norm.
    """
    given, test = data.split(test_fold=fold)
    odds = float((~given.genuine).sum() / given.genuine.sum())
    size, _, condition = cell.cohort.partition(" ")
    left = (
        given if size == "none" else draw_cohort(given, int(size), attribute(cell.data), cell.seed)
    )
    if cell.people:
        left = _few(left, cell.people, cell.seed)
    if condition.endswith("norm"):
        high = _norms(data) > np.median(_norms(data))
        left, test = (
            part.subset(high[part.pairs.left] & high[part.pairs.right]) for part in (left, test)
        )
    number = round(odds * int(left.genuine.sum()))
    calibration = redraw_imposters(left, cell.protocol, cell.seed, number=number)
    if left.cohort is not None and condition:
        calibration = calibration.with_cohort(_changed(left.cohort, condition, cell.seed, data))
    return calibration, test


def _few(data: Dataset, n: int, seed: int) -> Dataset:
    """Return the pairs among some people who are in a genuine pair."""
    person, genuine = people_of(data), data.pairs.left[data.genuine]
    who = np.random.default_rng([seed, 3]).permutation(np.unique(person[genuine]))[:n]
    inside = np.isin(person, who)
    return data.subset(inside[data.pairs.left] & inside[data.pairs.right])


def _norms(data: Dataset) -> NDArray[np.float64]:
    if data.embeddings is None:
        raise ValueError(f"{data.name}: expected embeddings")
    return np.asarray(np.linalg.norm(data.embeddings.vectors, axis=1), np.float64)


def _changed(cohort: Cohort, condition: str, seed: int, data: Dataset) -> Cohort:
    """Return the cohort out of balance, without a group, with wrong labels, or from elsewhere."""
    rng, group = np.random.default_rng([seed, 4]), cohort.groups.codes
    person, names = cohort.identity.codes, np.array(cohort.groups.names)
    if condition.startswith("without "):
        return cohort.subset(np.flatnonzero(names[group] != condition.removeprefix("without ")))
    if condition == "out of balance":
        return cohort.subset(np.flatnonzero(_tenth(person, group, seed, rng)))
    if condition == "10 % wrong":
        wrong = rng.random(person.max() + 1) < 0.1
        other = (group + rng.integers(1, len(names), person.max() + 1)[person]) % len(names)
        return _made(cohort, labels=names[np.where(wrong[person], other, group)])
    norms = np.linalg.norm(next(iter(cohort.embeddings.values())).vectors, axis=1)
    if condition in ("low norm", "high norm"):
        low = norms <= np.median(_norms(data))
        return cohort.subset(np.flatnonzero(low == (condition == "low norm")))
    shift, noise = SHIFTS[condition]
    unit = next(iter(cohort.embeddings.values())).vectors / norms[:, None]
    spread = np.sqrt(((unit - unit.mean(axis=0)) ** 2).sum(axis=1).mean())
    common = rng.standard_normal(unit.shape[1])
    each = rng.standard_normal(unit.shape) / np.sqrt(unit.shape[1])
    moved = unit + spread * (shift * common / np.linalg.norm(common) + noise * each)
    return _made(cohort, vectors=moved * norms[:, None])


def _tenth(person: Codes, group: Codes, seed: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Keep a tenth of the people of every second group."""
    kept = np.zeros(person.max() + 1, dtype=bool)
    for code in range(group.max() + 1):
        of_group = rng.permutation(np.unique(person[group == code]))
        rare = (code + seed) % 2 == 1
        kept[of_group[: max(round(len(of_group) / 10), 2)] if rare else of_group] = True
    return kept[person]


def _made(
    cohort: Cohort,
    labels: NDArray[np.str_] | None = None,
    vectors: NDArray[np.float64] | None = None,
) -> Cohort:
    """Return the cohort with other labels or vectors."""
    name, of = next(iter(cohort.embeddings.items()))
    given = of.vectors if vectors is None else vectors
    return Cohort(
        embeddings={name: np.asarray(given, np.float32)},
        identity=cohort.identity,
        groups=cohort.groups if labels is None else labels,
        name=cohort.name,
        attribute=cohort.attribute,
    )
