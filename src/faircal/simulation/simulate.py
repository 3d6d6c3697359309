"""Drawing a simulated dataset from a preset."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.data import Dataset, Embeddings, Feature, Images, Pairs
from faircal.data.columns import Column
from faircal.errors import ParameterError
from faircal.simulation.presets import N_FOLDS, PRESETS, Preset
from faircal.simulation.sampling import Layout, Partners

_FEATURE = "simulated"
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
    >>> data
    <Dataset 'small (simulated)': 3200 pairs, 800 images, features simulated, attributes ethnicity, gender>
    >>> data.fold_names
    [1, 2, 3, 4, 5]
    """
    name, chosen = preset, PRESETS[preset]
    _whole("seed", seed, 0)
    plan, layout = _plan(chosen, people, images, pairs, dimension)
    vectors_seed, pairs_seed = np.random.SeedSequence(seed).spawn(2)
    vectors = plan.population.embed(
        layout.group, layout.person, plan.dimension, np.random.default_rng(vectors_seed)
    )
    sizes = {key: getattr(plan, key) for key in ("people", "images", "pairs", "dimension")}
    return Dataset.assemble(
        f"{name} (simulated)",
        _images(plan, layout),
        _pairs(plan, layout, np.random.default_rng(pairs_seed)),
        {_FEATURE: Feature(Embeddings.of(vectors, "simulated embeddings"))},
        provenance={"simulated": True, "preset": name, "seed": seed, **sizes},
    )


def _plan(
    preset: Preset,
    people: int | None,
    images: int | None,
    pairs: int | None,
    dimension: int | None,
) -> tuple[Preset, Layout]:
    """Return the preset with the sizes asked for, and its people and images."""
    groups = len(preset.population.groups)
    people = preset.people if people is None else people
    _whole("people", people, 2 * preset.splits * groups, "two for each group of each split")
    if images is None:
        images = preset.images * people // preset.people
    _whole("images", images, 2 * people, f"two for each of {people} people")
    dimension = preset.dimension if dimension is None else dimension
    _whole("dimension", dimension, _LEAST_DIMENSION)
    layout = Layout.of(people, images, preset.splits, groups)
    most = min(
        # One pair is left for rounding.
        int((partners.most() - 1) / _shares(preset)[kind])
        for kind, partners in layout.runs().items()
        if _shares(preset)[kind]
    )
    if pairs is None:
        pairs = min(preset.pairs * images // preset.images, most)
    least = 8 * preset.splits * groups
    _whole("pairs", pairs, least, "eight for each group of each split")
    if pairs > most:
        raise ParameterError(
            f"pairs: expected at most {most}, as many as {people} people in {images} images give "
            f"without repeats, found {pairs}; ask for fewer pairs or more images"
        )
    sizes = {"people": people, "images": images, "pairs": pairs, "dimension": dimension}
    return dataclasses.replace(preset, **sizes), layout


def _whole(name: str, value: Any, least: int, why: str = "") -> None:
    reason = f" ({why})" if why else ""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(
            f"{name}: expected a whole number of at least {least}{reason}, found {value!r}"
        )


def _shares(preset: Preset) -> dict[str, float]:
    """Return the share of each kind of pair."""
    genuine = 1 / (1 + preset.imposters_per_genuine)
    across = (1 - genuine) * preset.cross_group_share
    return {"genuine": genuine, "within": 1 - genuine - across, "across": across}


def _images(plan: Preset, layout: Layout) -> Images:
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


def _pairs(plan: Preset, layout: Layout, rng: np.random.Generator) -> Pairs:
    """Draw the pairs inside splits; ordered by split, in it by kind and group."""
    shares, runs = _shares(plan), layout.runs()
    counts = {kind: round(plan.pairs * shares[kind]) for kind in ("genuine", "across")}
    counts["within"] = plan.pairs - sum(counts.values())
    parts = [
        (left, right, np.full(len(left), kind == "genuine"))
        for kind, partners in runs.items()
        for left, right in _draw(partners, counts[kind], rng)
    ]
    left, right, genuine = (np.concatenate(part) for part in zip(*parts, strict=True))
    split = layout.split[layout.person[left]]
    order = np.argsort(split, kind="stable")
    left, right, genuine, split = left[order], right[order], genuine[order], split[order]
    swap = rng.random(len(left)) < 0.5
    left, right = np.where(swap, right, left), np.where(swap, left, right)
    fold = split * N_FOLDS // plan.splits + 1
    return Pairs(left, right, genuine, fold)


def _draw(
    partners: Partners, n: int, rng: np.random.Generator
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    return list(partners.draw(n, rng)) if n else []
