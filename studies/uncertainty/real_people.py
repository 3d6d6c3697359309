"""Do promises hold of real people? Some of a real set are drawn; all others are the truth."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from studies.uncertainty.judged import Many, count, judged
from studies.uncertainty.part import Kept, Part, Spec

RATES = (0.01, 0.001, 0.0001)
SETS = ("lfw-mobilefacenet", "lfw-dlib")
#: Whose pairs: of everybody, of two of one group, of one group alone; and the most images.
PAIRS = ("everybody", "everybody, 3 images", "in groups", "in groups, 3 images", "White M")
DRAWS, SEEDS, _SIZES, _FEW = 50, 4, (60, 120, 200), 3
#: Intervals looked worst here: twice as often, to be sure.
_TWICE = "in groups"
#: A rate is told where so many pairs of the set would be errors.
_TOLD = 1000
_ABOUT = """\

Some people of *Labeled Faces in the Wild* are drawn, with all pairs of their images. All people who
were not drawn are the truth, by all of their own pairs. *Everybody*: pairs of any two people. *In
groups*: both are of one gender and ethnicity. *3 images*: nobody has more; else one person has up
to 530. *White M*: people of this group alone. *By people*: how often `--rule people` gives a
threshold. It promises α of each but 5 % of people against the reference people, half of those
drawn. *Above 5 %*: how often, against everybody, more people than that are above α. Their mean
share is *people above α*. Both are left out where single people have too few pairs. The other
columns are those of the first section.

Some few are drawn out of a finite many, so the truth has an error too. It makes variances larger by
the share of those drawn in the others, by 1 to 7 %. So coverage comes out a little low. All draws
are of the same people: they tell of this set, and not of another. Errors of its labels count as
errors. *In groups* intervals looked worst at first, so it has twice the draws, with the first among
them. The set rfw-scores has no identities: nobody can be drawn from it, and it is left out.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells: one set after another, for its pairs are made once."""
    specs: list[tuple[Spec, int]] = [
        ({"crowd": f"{name}: {pairs}", "people": people, "draws": DRAWS}, seed)
        for name in SETS
        for pairs in PAIRS
        for people in _SIZES
        for seed in range(SEEDS * (1 + (pairs == _TWICE)))
    ]
    return [({**spec, "draws": 2}, seed) for spec, seed in specs[:1]] if quick else specs


def cell(spec: Spec, seed: int, folder: Path) -> dict[str, Any]:
    """Return sums over draws, by rate; only these leave the set."""
    many = load(folder, spec["crowd"])
    found: dict[str, dict[str, float]] = {}
    for draw in range(spec["draws"]):
        rng = np.random.default_rng([seed, draw, spec["people"]])
        drawn = many.nobody
        drawn[rng.choice(len(drawn), spec["people"], replace=False)] = True
        imposters = many.imposters(drawn)
        for rate in RATES:
            if rate * many.trials(many.nobody).sum() / 2 >= _TOLD:
                count(found.setdefault(f"{rate:g}", {}), imposters, rate, many, drawn)
    return found


@lru_cache(maxsize=1)
def load(folder: Path, crowd: str) -> Many:
    """Return the people of a set whose pairs are asked for."""
    name, _, pairs = crowd.partition(": ")
    with (folder / name / "images.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    vectors = np.load(folder / name / "embeddings.npy").astype(np.float32)
    vectors = vectors[[int(row["image_id"]) for row in rows]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    identity = np.array([int(row["identity"]) for row in rows])
    groups = np.array([f"{row['ethnicity']} {row['gender']}" for row in rows])
    labelled = np.array([bool(row["ethnicity"] and row["gender"]) for row in rows])
    keep = np.ones(len(rows), np.bool_) if pairs.startswith("everybody") else labelled
    if pairs == "White M":
        keep = groups == pairs
    if pairs.endswith("images"):
        keep &= _at_most(_FEW, identity)
    if not pairs.startswith("in groups"):
        groups[:] = pairs
    first, person = np.unique(identity[keep], return_index=True, return_inverse=True)[1:]
    group = np.unique(groups[keep], return_inverse=True)[1][first]
    return Many(vectors[keep], person, group)


def _at_most(most: int, identity: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return so many images of each person, drawn evenly."""
    order = np.random.default_rng(0).permutation(len(identity))
    order = order[np.argsort(identity[order], kind="stable")]
    starts, sizes = np.unique(identity[order], return_index=True, return_counts=True)[1:]
    keep = np.zeros(len(order), np.bool_)
    keep[order] = np.arange(len(order)) - np.repeat(starts, sizes) < most
    return keep


def section(kept: Sequence[Kept]) -> str:
    """Return where it fails and what is judged."""
    summary, _, lines = judged(kept, "set: pairs").partition("\n\n")
    return f"{summary}\n{_ABOUT}\n{lines}"


REAL_PEOPLE = Part(
    "real-people", "Do promises hold of real people?", cells, cell, section, data=SETS
)
