"""Do promises hold of newcomers? Faces on a sphere, written anew and apart from rule and crowds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.uncertainty.judged import Many, count, judged
from studies.uncertainty.part import Kept, Part, Spec

RATES = (0.01, 0.001)
DRAWS, _MANY = 25, 9000
#: People, and how many seeds.
_SIZES = {60: 8, 120: 8, 200: 8, 400: 4}
_DIMENSION, _FAMILIES, _CAMERAS, _MOST, _OF_KIN = 48, 150, 15, 15, 0.003
_ABOUT = f"""\

Images are directions in {_DIMENSION} dimensions, some of which vary more than others; scores are
cosines of all pairs. How many images a person has follows Zipf's law, up to {_MOST}. *Families*:
{_FAMILIES} kinds of people look alike, and some are far more frequent. *Hubs*: people lie near a
common face, a few of them far nearer. *Blur*: some people's images are blurred, and blurred images
look alike. *Cameras*: each session has one of {_CAMERAS} cameras, which leaves its mark on images.
*Split*: two people in a hundred are there under two identities; the truth has none such. *Kin*: one
person in ten looks very much like three others in a thousand. *All*: all of these, but no kin. The
truth are {_MANY:,} other people, by all of their pairs; its error makes variances up to 4 % larger.
Columns are as above.

Promises by people are about errors against half of those drawn. Who looks like a few in a thousand
may meet none of them there, and have more errors against everybody.
"""
Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class World:
    """How people look; what is not said is left out.

    Parameters
    ----------
    families, hubs, blur, cameras : float
        How much of each there is.
    split, kin : float
        The share of people who are there twice, and of those who have kin.
    """

    families: float = 0.0
    hubs: float = 0.0
    blur: float = 0.0
    cameras: float = 0.0
    split: float = 0.0
    kin: float = 0.0

    def draw(self, rng: np.random.Generator, people: int, *, split: bool = True) -> Many:
        """Return images of so many people."""
        fixed = np.random.default_rng(29)  # what all who are drawn have in common
        common, blurred = _directions(fixed, 2)
        families, cameras = _directions(fixed, _FAMILIES), _directions(fixed, _CAMERAS)
        face = _directions(rng, people)
        family = families[rng.choice(_FAMILIES, people, p=_frequent(_FAMILIES))]
        face = np.sqrt(1 - self.families) * face + np.sqrt(self.families) * family
        face += (self.hubs * rng.pareto(3.0, people))[:, None] * common
        blur = self.blur * rng.beta(0.3, 2.0, people)
        if self.kin:
            which = (rng.random(people) / _OF_KIN).astype(np.int64)
            kin, near = _directions(fixed, round(1 / _OF_KIN) + 1), which < self.kin / _OF_KIN
            face[near] = np.sqrt(0.1) * face[near] + np.sqrt(0.9) * kin[which[near]]
        if split:
            for twin in range(round(self.split * people)):
                face[2 * twin], blur[2 * twin] = face[2 * twin + 1], blur[2 * twin + 1]
        images = np.minimum(rng.zipf(2.1, people), _MOST)
        person = np.repeat(np.arange(people), images)
        # A session has four images at most; whoever has more has more of them.
        session = np.cumsum(images) - images
        session = session[person] + (np.arange(len(person)) - session[person]) // 4
        camera = rng.choice(_CAMERAS, len(person), p=_frequent(_CAMERAS))[session]
        image = face[person] + 0.6 * _directions(rng, len(person))
        image += self.cameras * cameras[camera]
        image += (blur[person] * rng.random(len(person)))[:, None] * blurred
        image /= np.linalg.norm(image, axis=1, keepdims=True)
        return Many(image.astype(np.float32), person, np.zeros(people, np.int64))


#: Named for what is in them.
WORLDS = {
    "sphere": World(),
    "families": World(families=0.4),
    "hubs": World(hubs=0.5),
    "blur": World(blur=2.5),
    "cameras": World(cameras=0.5),
    "split": World(split=0.02),
    "kin": World(kin=0.099),
    "all": World(families=0.25, hubs=0.3, blur=1.5, cameras=0.3, split=0.02),
}


def _directions(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return directions of length 1 on average; the first dimensions vary more."""
    spread = np.arange(1, _DIMENSION + 1) ** -0.25
    return np.asarray(rng.standard_normal((n, _DIMENSION)) * spread / np.linalg.norm(spread))


def _frequent(n: int) -> NDArray[np.float64]:
    """Return shares by Zipf's law."""
    shares = 1 / np.arange(1, n + 1)
    return np.asarray(shares / shares.sum())


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells: one world after another, for its truth is made once."""
    specs: list[tuple[Spec, int]] = [
        ({"crowd": name, "people": people, "draws": DRAWS}, seed)
        for name in WORLDS
        for people, seeds in _SIZES.items()
        for seed in range(seeds)
    ]
    few = {"draws": 2, "many": 500}
    return [({**spec, **few}, seed) for spec, seed in specs[:1]] if quick else specs


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Return sums over draws, by rate."""
    name = spec["crowd"]
    truth = _truth(name, spec.get("many", _MANY))
    found: dict[str, dict[str, float]] = {}
    for draw in range(spec["draws"]):
        rng = np.random.default_rng([seed, draw, spec["people"], *name.encode()])
        imposters = WORLDS[name].draw(rng, spec["people"]).imposters()
        for rate in RATES:
            count(found.setdefault(f"{rate:g}", {}), imposters, rate, truth, truth.nobody)
    return found


@lru_cache(maxsize=1)
def _truth(name: str, many: int) -> Many:
    rng = np.random.default_rng([1_000_003, *name.encode()])
    return WORLDS[name].draw(rng, many, split=False)


def section(kept: Sequence[Kept]) -> str:
    """Return where it fails and what is judged."""
    summary, _, lines = judged(kept, "world").partition("\n\n")
    return f"{summary}\n{_ABOUT}\n{lines}"


NEWCOMERS = Part("newcomers", "Do promises hold of newcomers?", cells, cell, section)
