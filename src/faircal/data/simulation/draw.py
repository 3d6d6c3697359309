"""Who is in which split and image, and which images are compared.

Images are kept in the order split, group, person. Then all images of a person, of a group inside
a split, and of a split lie in one run of rows, and the possible partners of an image further
down (same person; same group, other person; other group) are one run each. Distinct pairs are
distinct numbers, and can be drawn evenly without a loop and without repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import ParameterError
from faircal._base.registry import check_integer
from faircal.data import Dataset, Embeddings, Feature, Images, Pairs
from faircal.data.columns import Column
from faircal.data.simulation.population import N_FOLDS, PRESETS, Preset
from faircal.data.types import DEFAULT_FEATURE

Rows = NDArray[np.intp]


def share_out(n: int, parts: int) -> Rows:
    """Divide `n` things among `parts` as evenly as whole numbers allow.

    Examples
    --------
    >>> share_out(10, 4)
    array([2, 3, 2, 3])
    """
    return np.diff(np.arange(parts + 1) * n // parts)


@dataclass(frozen=True, eq=False)
class SimulatedPeople:
    """People and images in order, all as numbers from 0.

    `split` and `group` say where each person belongs, `person` who is in each image.
    """

    split: Rows
    group: Rows
    person: Rows

    @classmethod
    def of(cls, people: int, images: int, splits: int, groups: int) -> SimulatedPeople:
        """Deal people evenly to all groups of all splits, and images evenly to people."""
        cell = np.repeat(np.arange(splits * groups), share_out(people, splits * groups))
        person = np.repeat(np.arange(people), share_out(images, people))
        return cls(cell // groups, cell % groups, person)

    def runs(self) -> dict[str, Partners]:
        """Return the possible pairs by kind: ``genuine``, ``within`` and ``across`` groups."""
        groups = int(self.group.max()) + 1
        cell = (self.split * groups + self.group)[self.person]
        split = self.split[self.person]
        row = np.arange(len(self.person))
        end_person, end_cell, end_split = _ends(self.person), _ends(cell), _ends(split)
        return {
            "genuine": Partners(row + 1, end_person, _starts(cell)),
            "within": Partners(end_person, end_cell, _starts(cell)),
            "across": Partners(end_cell, end_split, _starts(split)),
        }


@dataclass(frozen=True, eq=False)
class Partners:
    """The possible pairs of one kind: image i can be paired with images first[i] … last[i] − 1.

    Cell k holds the images start[k] … start[k + 1] − 1; pairs are dealt evenly to cells.
    """

    first: Rows
    last: Rows
    start: Rows

    def most(self) -> int:
        """Return the largest number of pairs that can be dealt evenly."""
        before = np.concatenate([[0], np.cumsum(self.last - self.first)])
        return int(np.diff(before[self.start]).min()) * (len(self.start) - 1)

    def draw(self, n: int, rng: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
        """Draw `n` distinct pairs; yields those of one cell after the other."""
        for cell, count in enumerate(share_out(n, len(self.start) - 1)):
            rows = np.arange(self.start[cell], self.start[cell + 1])
            width = self.last[rows] - self.first[rows]
            after = np.cumsum(width)
            # Pair number c of the cell is that of the image in whose run of numbers c lies.
            number = np.sort(rng.choice(after[-1], size=int(count), replace=False))
            at = np.searchsorted(after, number, side="right")
            left = rows[at]
            yield left, self.first[left] + number - (after[at] - width[at])


def _ends(code: Rows) -> Rows:
    """Return for each row the row after the last with the same code (`code` ascends from 0)."""
    return np.asarray(_starts(code)[code + 1])


def _starts(code: Rows) -> Rows:
    return np.searchsorted(code, np.arange(int(code[-1]) + 2))


_LEAST_DIMENSION = 16


def simulate(
    preset: str,
    seed: int = 0,
    *,
    people: int | None = None,
    images: int | None = None,
    pairs: int | None = None,
    dimension: int | None = None,
) -> Dataset:
    """Draw a simulated dataset: embeddings of people who do not exist.

    The same arguments give the same bytes. A size that is not given follows from those that are:
    images in proportion to people, pairs in proportion to images (fewer, where there are not as
    many distinct ones). Other pairs of the same people and images have the same embeddings.

    Parameters
    ----------
    preset : str
        ``small``, ``rfw-like`` or ``bfw-like``; all are in `PRESETS`.
    seed : int
        At least 0.
    people, images, pairs : int, optional
        How many in all, dealt evenly to groups and folds.
    dimension : int, optional
        Length of an embedding.

    Returns
    -------
    Dataset
        Named ``"<preset> (simulated)"``, with identities, attributes and folds 1 … 5 that share
        no person.

    Examples
    --------
    >>> data = simulate("small", seed=3, people=80)
    >>> data.name, len(data.pairs), data.embeddings.vectors.shape
    ('small (simulated)', 3200, (800, 128))
    >>> data.fold_names
    [1, 2, 3, 4, 5]
    """
    check_integer("seed", seed, 0)
    plan, layout = _plan(PRESETS[preset], people, images, pairs, dimension)
    vectors_seed, pairs_seed = np.random.SeedSequence(seed).spawn(2)
    vectors = plan.population.embed(
        layout.group, layout.person, plan.dimension, np.random.default_rng(vectors_seed)
    )
    sizes = {key: getattr(plan, key) for key in ("people", "images", "pairs", "dimension")}
    return Dataset.assemble(
        f"{preset} (simulated)",
        _images(plan, layout),
        _pairs(plan, layout, np.random.default_rng(pairs_seed)),
        {DEFAULT_FEATURE: Feature(Embeddings.of(vectors, "simulated embeddings"))},
        provenance={"simulated": True, "preset": preset, "seed": int(seed), **sizes},
    )


def _plan(
    preset: Preset,
    people: int | None,
    images: int | None,
    pairs: int | None,
    dimension: int | None,
) -> tuple[Preset, SimulatedPeople]:
    """Return the preset with the sizes asked for, and its people and images."""
    groups = len(preset.population.groups)
    people = preset.people if people is None else people
    check_integer("people", people, 2 * preset.splits * groups, "two for each group of each split")
    images = preset.images * people // preset.people if images is None else images
    check_integer("images", images, 2 * people, f"two for each of {people} people")
    dimension = preset.dimension if dimension is None else dimension
    check_integer("dimension", dimension, _LEAST_DIMENSION)
    layout = SimulatedPeople.of(people, images, preset.splits, groups)
    least, most = 4 * preset.splits * groups, _most_pairs(preset, layout)
    scaled = min(max(preset.pairs * images // preset.images, least), most)
    pairs = scaled if pairs is None else pairs
    check_integer("pairs", pairs, least, "four for each group of each split")
    if pairs > most:
        raise ParameterError(
            f"pairs: expected at most {most}, as many as {people} people in {images} images give "
            f"without repeats, found {pairs}; ask for fewer pairs or more images"
        )
    people, images, pairs, dimension = map(int, (people, images, pairs, dimension))
    plan = replace(preset, people=people, images=images, pairs=pairs, dimension=dimension)
    return plan, layout


def _shares(preset: Preset) -> dict[str, float]:
    """Return the share of each kind of pair."""
    genuine = 1 / (1 + preset.imposters_per_genuine)
    across = (1 - genuine) * preset.cross_group_share
    return {"genuine": genuine, "within": 1 - genuine - across, "across": across}


def _counts(preset: Preset, pairs: int) -> dict[str, int]:
    """Return how many of `pairs` pairs are of each kind."""
    counts = {kind: round(pairs * _shares(preset)[kind]) for kind in ("genuine", "across")}
    return {**counts, "within": pairs - sum(counts.values())}


def _most_pairs(preset: Preset, layout: SimulatedPeople) -> int:
    """Return the largest number of pairs for which there are enough distinct ones of each kind."""
    limits = {kind: partners.most() for kind, partners in layout.runs().items()}
    most = min(int(limits[kind] / share) for kind, share in _shares(preset).items() if share)
    while any(count > limits[kind] for kind, count in _counts(preset, most).items()):
        most -= 1  # a step or two, for rounding
    return most


def _images(plan: Preset, layout: SimulatedPeople) -> Images:
    """Name the people, and give every image its person's attributes."""
    width = len(str(plan.people))
    identity = Column(
        layout.person.astype(np.int32), tuple(f"p{i:0{width}}" for i in range(plan.people))
    )
    group = layout.group[layout.person]
    attributes = {
        name: Column(plan.population.codes(number)[group], plan.population.names[number])
        for number, name in enumerate(plan.population.attributes)
    }
    return Images(pa.array(np.arange(plan.images)), identity, attributes, tuple(attributes))


def _pairs(plan: Preset, layout: SimulatedPeople, rng: np.random.Generator) -> Pairs:
    """Draw the pairs inside splits; ordered by split, in it by kind and group."""
    counts = _counts(plan, plan.pairs)
    parts = [
        (left, right, np.full(len(left), kind == "genuine"))
        for kind, partners in layout.runs().items()
        if counts[kind]
        for left, right in partners.draw(counts[kind], rng)
    ]
    left, right, genuine = (np.concatenate(part) for part in zip(*parts, strict=True))
    split = layout.split[layout.person[left]]
    order = np.argsort(split, kind="stable")
    left, right, genuine, split = left[order], right[order], genuine[order], split[order]
    swap = rng.random(len(left)) < 0.5
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    fold = split * N_FOLDS // plan.splits + 1
    return Pairs(left, right, genuine, fold)
