"""False alarms with crowds chosen to break promises: score tables, some people, then others.

Nothing changes but who the people are. Of a crowd of the study of intervals, a genuine pair has
twice the effect of its person, what the person's own couple adds, and chance, and scores higher.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import faircal
from faircal.data import Dataset, Feature, Images, Pairs
from faircal.data.columns import Column
from faircal.methods import Method, Output
from faircal.production.monitoring import PairsInUse, Watch, survey
from studies.uncertainty.crowds import CHANCE, COUPLE, CROWDS, Crowd, Known
from studies.uncertainty.design import Int64, make_design
from studies.uncertainty.laws import Float64
from studies.uncertainty.populations import POPULATIONS

Told = Literal["people", "images", "nobody"]
TOLD: tuple[Told, ...] = ("people", "images", "nobody")
#: How pairs are looked at: as they come, or all at once, as `monitor` does with one file.
LOOKS = ("as they come", "at once")

#: Run twice as often as others.
HARDEST = (
    "normal",
    "0.3 · t₃",
    "one dominating",
    "exponential",
    "wolves, 10 %",
    "wolves, 10 %, scores × 1.8",
)
_OTHER_CROWDS = (
    "wolves, 1 %",
    "wolves, 5 %",
    "siblings",
    "images with the effect",
    "two sites",
    "ties",
    "embeddings, 16",
)
#: Imposter pairs at most, genuine pairs for each, and how much higher these score.
_IMPOSTERS, _GENUINE, _APART = 15_000, 1 / 3, 3.5
#: Images of a person on average; the share of labels that come back.
_IMAGES, _LABELS = 3, 0.1
#: People on whom a model is looked at whose labels raised an alarm.
_OTHERS = 1000


@dataclass(frozen=True)
class CrowdSetting:
    """A crowd, with so many people in calibration and so many others in use."""

    crowd: str
    calibration: int
    use: int
    runs: int
    rate: float = 0.01
    part: str = "crowds"

    @property
    def key(self) -> str:
        """What tells it from others."""
        return json.dumps(asdict(self), sort_keys=True)


def crowd_settings() -> list[CrowdSetting]:
    """Return all that is run: the hardest crowds more often, and with fewer and more people."""
    sizes = [(name, n, n) for name in HARDEST for n in (30, 120, 400)]
    sizes += [(name, 120, 120) for name in _OTHER_CROWDS]
    sizes += [("0.3 · t₃", 400, 100), ("0.3 · t₃", 800, 800)]
    sizes += [(name, 400, 400) for name in _OTHER_CROWDS]
    return [
        CrowdSetting(name, calibration, use, 200 if name in HARDEST else 100)
        for name, calibration, use in sizes
    ]


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """Scores in [-1, 1] of pairs in a random order; people and images of each are (2, n)."""

    score: Float64
    genuine: NDArray[np.bool_]
    person: Int64
    image: Int64

    @classmethod
    def draw(cls, name: str, rng: np.random.Generator, people: int) -> ScoredTable:
        """Draw people anew, and pairs among them."""
        crowd = CROWDS[name]
        if isinstance(crowd, Known):
            score, genuine, person, image = _of_images(name, rng, people)
        else:
            score, genuine, person, image = _of_effects(crowd, rng, people)
        order = rng.permutation(len(score))
        return cls(score[order], genuine[order], person[:, order], image[:, order])

    @property
    def dataset(self) -> Dataset:
        """The table as `faircal fit` reads it: scores, labels and identities, no images."""
        n = len(self.score)
        names = tuple(map(str, range(int(self.person.max()) + 1)))
        identity = Column(self.person.ravel().astype(np.int32), names)
        images = Images(pa.array(np.arange(2 * n)), identity, by_side=True)
        pairs = Pairs(np.arange(n), np.arange(n, 2 * n), self.genuine)
        return Dataset.assemble(
            "a crowd (simulated)", images, pairs, {"score": Feature(None, self.score)}, seed=None
        )

    def in_use(self, output: Output, told: Told, labelled: NDArray[np.bool_]) -> PairsInUse:
        """Return the pairs as `monitor` reads them, and labels of some."""
        sides = {"people": self.person, "images": self.image}.get(told)
        left, right = (None, None) if sides is None else sides
        labels = np.where(labelled, self.genuine, -1)
        known: Literal["people", "images"] = "images" if told == "images" else "people"
        return PairsInUse(
            output.score,
            output.probability,
            left_person=left,
            right_person=right,
            identified_by=known,
            genuine=labels,
        )


_Drawn = tuple[Float64, NDArray[np.bool_], Int64, Int64]


def _of_effects(crowd: Crowd, rng: np.random.Generator, people: int) -> _Drawn:
    """Return pairs of a crowd whose effects add up; people have images as they have pairs."""
    effect, width, share = crowd.members(rng, people)
    score, *sides = crowd.imposters(rng, effect, width, share)
    score, who = score[:_IMPOSTERS], np.stack(sides)[:, :_IMPOSTERS]
    own = rng.choice(people, int(_GENUINE * len(score)), p=share)
    couple = COUPLE**0.5 * rng.standard_normal(people)
    higher = couple[own] + CHANCE**0.5 * rng.standard_normal(len(own))
    higher = higher * width[own] ** 2 + 2 * effect[own] + crowd.sites * (own % 2) + _APART
    if crowd.ties:
        higher = np.round(higher / crowd.ties) * crowd.ties
    person = np.concatenate([who, np.stack([own, own])], axis=1)
    images = 1 + np.round((_IMAGES - 1) * people * share).astype(np.int64)
    image = (np.cumsum(images) - images)[person]
    image += (rng.random(person.shape) * images[person]).astype(np.int64)
    return _joined(np.tanh(score / 4), np.tanh(higher / 4), person, image)


def _of_images(name: str, rng: np.random.Generator, people: int) -> _Drawn:
    """Return pairs of the images of a population of the study of intervals."""
    design = make_design(people, _IMAGES if people <= 120 else 2, 0 if people <= 200 else 40_000)
    imposter, genuine = POPULATIONS[name].draw(rng, design, 0.0)
    some = rng.permutation(len(imposter))[:_IMPOSTERS]
    image = np.concatenate([design.imposter[:, some], design.genuine], axis=1)
    return _joined(imposter[some], genuine, design.owner[image], image)


def _joined(imposter: Float64, genuine: Float64, person: Int64, image: Int64) -> _Drawn:
    score = np.concatenate([imposter, genuine])
    return score, np.arange(len(score)) >= len(imposter), person, image


# ---------------------------------------------------------------------- running


def run_crowd(setting: CrowdSetting) -> dict[str, Any]:
    """Run a setting; return a line of ``monitoring.jsonl``: by look, in how many runs what alarmed.

    ``off`` is in how many of those that labels alarmed the model's probabilities are off by more
    than is tolerated for the crowd as a whole: such an alarm is right, though nothing changed.
    """
    alarms = {f"{told}, {look}": Counter[str]() for told in TOLD for look in LOOKS}
    started = time.perf_counter()
    for number in range(setting.runs):
        seed = [number, setting.calibration, setting.use, *setting.crowd.encode()]
        rng = np.random.default_rng(seed)
        calibration = ScoredTable.draw(setting.crowd, rng, setting.calibration).dataset
        model = faircal.Baseline().fit(calibration)
        survey(model, calibration)
        table = ScoredTable.draw(setting.crowd, rng, setting.use)
        output = model.apply(table.dataset)
        labelled = rng.random(len(table.score)) < _LABELS
        found: dict[str, list[str]] = {}
        for told in TOLD:
            pairs = table.in_use(output, told, labelled)
            for look in LOOKS:
                watch = Watch(model, false_alarms=setting.rate, in_order=look == LOOKS[0])
                watch.add(pairs)
                findings = watch.verdict().findings
                found[f"{told}, {look}"] = [each.name for each in findings if each.alarm]
        of_labels = any("calibration" in raised for raised in found.values())
        off = of_labels and _is_off(model, ScoredTable.draw(setting.crowd, rng, _OTHERS))
        for look_of, raised in found.items():
            said = [*raised, *["any"] * bool(raised)]
            alarms[look_of].update(said + ["off"] * (off and "calibration" in raised))
    seconds = round(time.perf_counter() - started, 1)
    return {
        "setting": asdict(setting),
        "runs": setting.runs,
        "alarms": {look: dict(counts) for look, counts in alarms.items()},
        "seconds": seconds,
    }


def _is_off(model: Method, others: ScoredTable) -> bool:
    """Whether probabilities are off by more than is tolerated for people of the same crowd."""
    watch = Watch(model, in_order=False)
    watch.add(others.in_use(model.apply(others.dataset), "people", others.score <= 1))
    finding = watch.verdict().findings[-1]
    return bool(finding.statistic > finding.details["tolerance"])
