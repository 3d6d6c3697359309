"""Is anything found where there is nothing? Regions found in populations with and without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from faircal.data import Dataset
from faircal.evaluation.audit.regions import find_regions
from studies.uncertainty.part import Kept, Part, Spec
from studies.words import number, table

_DIMENSION, _IMAGES, _SHARE, _Q = 32, 4, 0.2, 0.05
DRAWS, SEEDS_ALIKE, SEEDS_UNFAIR = 20, 25, 5
_ABOUT = """\
`faircal regions` on populations in which no region differs, and on some in which the 20 % of people
of one region are unfairly treated. *faces*: an image is its person and noise in 32 dimensions, the
score is the cosine; *wolves*: scores add a number of each person, which has nothing to do with
where he is; *quality*: images of very different noise; *clumps*: people come in clumps of people
who look alike, evenly. The effect is what the region's people have in common, added to the cosines
among them, or, for *wolves*, how much higher pairs among them score, in standard deviations. *The
right one*: most of the images nearest to a found region's centre are of its people. Four images
each, 40 imposter pairs a person, level of false discoveries 5 %. Where nothing differs every
discovery is false, so the share of runs with any is to be at most 5 % and what chance adds.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells without and with an unfair region."""
    alike: list[Spec] = [
        {"model": model, "people": people, "rate": 0.01, "effect": 0.0}
        for model in ("faces", "wolves", "quality", "clumps")
        for people in (50, 100, 400)
    ]
    unfair: list[Spec] = [
        {"model": model, "people": people, "rate": 0.01, "effect": effect}
        for model, effects in (("faces", (0.1, 0.2, 0.3)), ("wolves", (1.0, 1.5)))
        for effect in effects
        for people in (50, 100, 200, 400, 800)
    ]
    if quick:
        return [({**spec, "draws": 2}, 0) for spec in (alike[0], unfair[0])]
    return [
        ({**spec, "draws": DRAWS}, seed)
        for specs, seeds in ((alike, SEEDS_ALIKE), (unfair, SEEDS_UNFAIR))
        for spec in specs
        for seed in range(seeds)
    ]


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Return in how many populations something was found, and the right region."""
    found = {"draws": spec["draws"], "fpr": 0, "gap": 0, "any": 0, "hit": 0, "tested": 0}
    for draw in range(spec["draws"]):
        data, unfair = _draw(spec, [seed, draw, 8])
        regions = find_regions(data, rate=spec["rate"], q=_Q, seed=seed)
        rows = [row for row in regions.rows if row.found or row.gap_found]
        found["fpr"] += any(row.found for row in rows)
        found["gap"] += any(row.gap_found for row in rows)
        found["any"] += bool(rows)
        # The right one: most of the images nearest to its centre are of the unfair region.
        examples = [[int(name) for name in json.loads(r.examples)] for r in rows if r.found]
        found["hit"] += any(unfair[images].mean() > 0.5 for images in examples)
        found["tested"] += regions.tested
    return found


def _draw(spec: Spec, seed: list[int]) -> tuple[Dataset, NDArray[np.bool_]]:
    """Return pairs of a population, and which images are of people of the unfair region."""
    rng = np.random.default_rng(seed)
    n, model, effect = int(spec["people"]), spec["model"], float(spec["effect"])
    unfair = np.arange(n) < round(_SHARE * n) * (effect > 0)
    person = np.repeat(np.arange(n), _IMAGES)
    own = _directions(rng, n)
    if model == "clumps":
        clumps = _directions(rng, max(n // 8, 2))
        own = np.sqrt(0.3) * clumps[rng.integers(len(clumps), size=n)] + np.sqrt(0.7) * own
    common = np.where(unfair, 0.3 if model == "wolves" else effect, 0.0)
    own = np.sqrt(common)[:, None] * _directions(rng, 1) + np.sqrt(1 - common)[:, None] * own
    noise = np.full(len(person), 0.9)
    if model == "quality":
        noise *= np.exp(0.6 * rng.standard_normal(len(person)))
    images = own[person] + noise[:, None] * _directions(rng, len(person))
    first, second = np.triu_indices(_IMAGES, 1)
    starts = _IMAGES * np.arange(n)[:, None]
    one, two = rng.integers(0, len(person), (2, 40 * n))
    other = person[one] != person[two]
    left = np.concatenate([(starts + first).ravel(), one[other]])
    right = np.concatenate([(starts + second).ravel(), two[other]])
    genuine = np.arange(len(left)) < n * len(first)
    pairs: dict[str, Any] = {"left": left, "right": right, "genuine": genuine}
    if model == "wolves":
        of_person = 0.5 * rng.standard_normal(n)
        a, b = person[left], person[right]
        score = of_person[a] + of_person[b] + effect * (unfair[a] & unfair[b])
        score += 4.0 * genuine + 0.7 * rng.standard_normal(len(genuine))
        pairs["score"] = np.clip(score / 8, -1, 1)
    vectors = images.astype(np.float32)
    data = Dataset(embeddings=vectors, pairs=pairs, attributes={"identity": person})
    return data, unfair[person]


def _directions(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.asarray(rng.standard_normal((n, _DIMENSION)) / _DIMENSION**0.5)


def _sums(kept: Sequence[Kept]) -> dict[tuple[str, float, int], dict[str, int]]:
    """Return sums over seeds by model, effect and people."""
    sums: dict[tuple[str, float, int], dict[str, int]] = {}
    for spec, _, values in kept:
        total = sums.setdefault((spec["model"], spec["effect"], spec["people"]), {})
        for name, value in values.items():
            total[name] = total.get(name, 0) + value
    return dict(sorted(sums.items()))


def section(kept: Sequence[Kept]) -> str:
    """Return false discoveries, then power."""
    alike, unfair = [], []
    for (model, effect, people), of in _sums(kept).items():
        n = of["draws"]
        where = [f"{model}", f"{people}", f"{n}", number(of["tested"] / n, 0)]
        shares = [number(100 * of[name] / n, 1) for name in ("fpr", "gap", "any", "hit")]
        if effect:
            unfair.append([*where[:1], f"{effect:g}", *where[1:], *shares])
        else:
            most = float(binom.ppf(0.99, n, _Q)) / n
            verdict = "ok" if of["any"] / n <= most else "too many"
            alike.append([*where, *shares[:3], number(100 * most, 1), verdict])
    header = ["people", "runs", "tested", "false matches", "calibration", "any"]
    nothing = table(["population", *header, "at most", "bar"], alike)
    power = table(["population", "effect", *header, "the right one"], unfair)
    return f"{_ABOUT}\n### Nothing to be found\n\n{nothing}\n\n### One unfair region\n\n{power}"


def picture(kept: Sequence[Kept], plt: Any) -> Any:
    """Draw power by number of people, and false discoveries."""
    lines: dict[tuple[str, float], list[tuple[int, float]]] = {}
    for (model, effect, people), of in _sums(kept).items():
        what = of["hit"] if effect else of["any"]
        lines.setdefault((model, effect), []).append((people, 100 * what / of["draws"]))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    for (model, effect), points in lines.items():
        ax, more = (axes[1], f", {effect:g}") if effect else (axes[0], "")
        style = "--" if model == "wolves" and effect else "-"
        ax.plot(*zip(*points, strict=True), f"o{style}", markersize=4, label=f"{model}{more}")
    axes[0].axhline(100 * _Q, color="black", linestyle=":", label="allowed")
    axes[0].set(ylabel="runs with a false discovery, %", title="nothing to be found")
    axes[1].set(ylabel="runs that find it, %", title="one unfair region, by effect")
    for ax in axes:
        ax.set(xlabel="people", xscale="log", ylim=(-0.4 if ax is axes[0] else -3, None))
        sizes = sorted({size for points in lines.values() for size, _ in points})
        ax.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        ax.set_xticks([], minor=True)
        ax.grid(visible=True, alpha=0.3)
        if ax.lines:
            ax.legend(fontsize=7)
    figure.tight_layout()
    return figure


REGIONS = Part(
    "regions", "Is anything found where there is nothing?", cells, cell, section, picture
)
