"""What is true in a cell, and people drawn for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.metrics.intervals.over_groups import deviation_of
from faircal.metrics.results import ALL, GLOBAL
from studies.uncertainty.design import Design, make_design
from studies.uncertainty.laws import Float64, Law, together
from studies.uncertainty.populations import APART, POPULATIONS, Population

RATES = (0.01, 0.001)
NAMES = ("A", "B", "C", "D")
#: These groups are plain in every cell: their rates are the nominal ones.
PLAIN = ("A", "B")
LOSSES = ("ks", "ece", "brier", "nll")
OVER = ("aad", "mad", "std", "gap")
#: By how much probabilities are off, in log-odds, where groups differ.
TILT = 2.0
#: What a true calibration error of 0 is on a grid.
_NONE = 1e-4

#: Group, condition and metric; a condition such as ``0.01`` is the fixed threshold of that rate.
Key = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class Setting:
    """What is the same for all draws of a cell: who is paired, and what is true."""

    population: Population
    design: Design
    apart: tuple[float, ...]
    tilt: float
    laws: list[Law]

    @cached_property
    def thresholds(self) -> dict[float, float]:
        """The thresholds at which a plain group has the nominal rates."""
        return {rate: self.laws[0].threshold(rate) for rate in RATES}

    @property
    def counts(self) -> tuple[int, int]:
        """Imposter and genuine pairs of a group."""
        return self.design.imposter.shape[1], self.design.genuine.shape[1]

    def said(self, score: Float64) -> Float64:
        """Return the probabilities of scores."""
        return self.population.probability(score, self.design.share, self.tilt)

    def truths(self) -> dict[Key, tuple[float, float]]:
        """Return true values, with how many errors (or genuine pairs) they are told from."""
        found: dict[Key, tuple[float, float]] = {}
        for rate in RATES:
            found |= self._at_threshold(rate) | self._set_by_all(rate)
        genuine = self.counts[1]
        if not genuine:
            return found
        found["plain", "", "auroc"] = self.laws[0].auroc, genuine
        groups = [law.calibration(self.said(law.scores), self.design.share) for law in self.laws]
        for name in LOSSES:
            found["plain", "", name] = _or_none(name, groups[0][name]), genuine
        ks = np.array([_or_none("ks", group["ks"]) for group in groups])
        found[ALL, "", "ks_aad"] = float(deviation_of("aad", ks)), genuine
        return found

    def _at_threshold(self, rate: float) -> dict[Key, tuple[float, float]]:
        at, (imposters, genuine) = self.thresholds[rate], self.counts
        rates = np.array([law.fpr(at) for law in self.laws])
        under = f"{rate:g}"
        found: dict[Key, tuple[float, float]] = {
            ("plain", under, "fpr"): (float(rates[0]), imposters * float(rates[0]))
        }
        for name in OVER:
            truth = float(deviation_of(name, rates))
            found[ALL, under, f"fpr_{name}"] = truth, imposters * float(rates.min())
        if genuine:
            fnr = self.laws[0].fnr(at)
            found["plain", under, "fnr"] = fnr, genuine * fnr
        return found

    def _set_by_all(self, rate: float) -> dict[Key, tuple[float, float]]:
        """The same where the threshold is the one of that rate among all pairs."""
        imposters, genuine = self.counts
        n = len(self.laws)
        overall = together(self.laws, [imposters] * n, [genuine] * n)
        at = overall.threshold(rate)
        fpr = self.laws[0].fpr(at)
        found: dict[Key, tuple[float, float]] = {
            ("plain", f"global_fpr={rate:g}", "fpr"): (fpr, imposters * fpr)
        }
        if genuine:
            fnr = overall.fnr(at)
            found[GLOBAL, f"fpr={rate:g}", "tpr"] = 1 - fnr, n * genuine * fnr
        return found


def _or_none(name: str, value: float) -> float:
    return 0.0 if name in ("ks", "ece") and value < _NONE else value


@lru_cache(maxsize=2)
def make_setting(name: str, people: int, images: int, imposters: int, differ: bool) -> Setting:
    """Return a cell's setting; with `differ`, groups C and D are set apart."""
    population = POPULATIONS[name]
    apart = (0.0, 0.0, *(APART[name] if differ else (0.0, 0.0)))
    laws = {a: population.law(a) for a in set(apart)}
    design = make_design(people, images, imposters)
    return Setting(population, design, apart, TILT * differ, [laws[a] for a in apart])


@dataclass(frozen=True, eq=False)
class Draw:
    """The pairs of people drawn once, group by group."""

    score: Float64
    genuine: NDArray[np.bool_]
    people: Groups
    groups: Groups

    @classmethod
    def of(cls, setting: Setting, rng: np.random.Generator) -> Draw:
        """Draw people and their scores."""
        design, n = setting.design, len(setting.apart)
        classes = [setting.population.draw(rng, design, apart) for apart in setting.apart]
        score = np.concatenate([scores for both in classes for scores in both])
        genuine = np.tile(np.repeat([False, True], setting.counts), n)
        code = np.repeat(np.arange(n, dtype=np.int32), design.pairs.shape[1])
        left, right = (np.tile(side, n) + code * design.people for side in design.pairs)
        names = tuple(f"person {i}" for i in range(n * design.people))
        people = Groups(names, left.astype(np.int32), right.astype(np.int32))
        return cls(score, genuine, people, Groups(NAMES[:n], code, code))

    def rows(self, group: str) -> slice:
        """Return where the pairs of a group are; of all pairs for another name."""
        if group not in NAMES:
            return slice(None)
        each = len(self.score) // len(self.groups.names)
        return slice(NAMES.index(group) * each, (NAMES.index(group) + 1) * each)
