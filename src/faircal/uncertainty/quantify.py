"""Intervals of everything that was measured of one set of scored pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri, stdtrit

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.measures import Measure
from faircal.metrics import DEVIATIONS, FAIRNESS, wilson
from faircal.results import ALL, GLOBAL, Condition
from faircal.uncertainty.crowd import Spread
from faircal.uncertainty.curve import Curve
from faircal.uncertainty.deviations import lower_end, rate_noise, upper_end
from faircal.uncertainty.pairs import PairSet, pair_sets
from faircal.uncertainty.rates import rate_interval
from faircal.uncertainty.replicates import replicates
from faircal.uncertainty.sharing import Float64
from faircal.uncertainty.unfairness import unfairness_interval

#: Group, condition and metric of a measured value.
Key: TypeAlias = tuple[str, str, str]
Ends: TypeAlias = tuple[float, float]

REPLICATES = 1000
_RATES = ("fpr", "fnr", "tpr")
_UNDEFINED = (float("nan"), float("nan"))

#: With fewer people nothing can be said of how values vary with them.
FEWEST = 4


class Uncertainty:
    """How sure each value is that `faircal.measures.measure` and `at_threshold` found of pairs.

    Intervals are worked out when they are asked for, and kept.

    Parameters
    ----------
    found : sequence of Measure
    genuine : ndarray of bool, shape (n_pairs,)
    people : Groups, optional
        Who is in each pair; a person who is not known is taken as nobody else. Without it pairs are
        taken as independent of each other.
    score, probability : ndarray of float64, shape (n_pairs,), optional
        What was measured; `score` is what decisions rank by.
    groups : Groups, optional
    replicates : int
        Draws of noise for what has no formula: calibration errors, and deviations over groups.
    seed : int
    """

    def __init__(
        self,
        found: Sequence[Measure],
        *,
        genuine: NDArray[np.bool_],
        people: Groups | None = None,
        score: Float64 | None = None,
        probability: Float64 | None = None,
        groups: Groups | None = None,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self.values = {(m.group, m.condition, m.metric): m.value for m in found}
        self.independent = people is None
        if people is None:
            nobody = np.full(len(genuine), UNKNOWN, np.int32)
            people = Groups((), nobody, nobody)
        sets = pair_sets(score, probability, genuine, groups, people)
        self.sets = {each.name: each for each in sets}
        self.names = people.names
        self._n, self._seed = replicates, seed
        self._ends: dict[tuple[Key, float], Ends] = {}
        self._spreads: dict[Key, Spread] = {}
        self._curves: dict[str, Curve] = {}

    def interval(self, group: str, condition: str, metric: str, level: float = 0.95) -> Ends:
        """Return (low, high) of a value; NaN where it is undefined or has no interval."""
        key = group, condition, metric
        if (key, level) not in self._ends:
            made = self._deviation if group == ALL else self._value
            self._ends[key, level] = made(key, self.values[key], level)
        return self._ends[key, level]

    def spread(self, group: str, condition: str, metric: str) -> Spread | None:
        """Return how a value varies with the people; None where it is no sum over pairs.

        That of a calibration error is that of its curve where it is largest.
        """
        key = group, condition, metric
        if key not in self._spreads:
            value = self.values[key]
            known = group != ALL and metric != "threshold" and not np.isnan(value)
            if not known or self.sets[group].crowd.people < FEWEST:
                return None
            self._spreads[key] = self._spread(key, value)
        return self._spreads[key]

    def effective_people(self, group: str = GLOBAL) -> float:
        """Return how many people, each in equally many imposter pairs, would tell as much."""
        return self.sets[group].crowd.miss_sharing.effective_people

    def trials(self, group: str, metric: str) -> int:
        """Return the pairs that a rate counts."""
        return self.sets[group].trials("fnr" if metric == "tpr" else metric)

    def effective_trials(self, group: str, condition: str, metric: str) -> float:
        """Return how many independent pairs would make a rate as uncertain as it is."""
        key = group, condition, metric
        kind, rate = self._kind(metric, self.values[key])
        found = self.sets[group]
        if self.independent or np.isnan(rate) or found.crowd.people < FEWEST:
            return float(found.trials(kind))
        at = max(rate, 0.5 / max(found.trials(kind), 1))
        wider = self._wider(key, rate)
        return self._effective(found, kind, rate)(at) / wider

    def replicates(self, keys: Sequence[Key]) -> NDArray[np.float32]:
        """Return replicates of values, less the values, shape (n_replicates, n_keys)."""
        spreads = [self.spread(*key) for key in keys]
        n_people = self.sets[GLOBAL].crowd.n_people
        influence = np.zeros((n_people, len(keys)))
        for i, spread in enumerate(spreads):
            if spread is not None:
                influence[:, i] = spread.influence
        more = (f"?{i}" for i in range(n_people - len(self.names)))
        return replicates(influence, (*self.names, *more), self._n, self._seed)

    # ------------------------------------------------------------- of one group

    def _value(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a value of all pairs or of a group."""
        group, _, metric = key
        if metric == "threshold" or np.isnan(value):
            return _UNDEFINED
        if self.independent and metric in _RATES:
            trials = self.sets[group].trials(self._kind(metric, value)[0])
            low, high = wilson(np.clip(value, 0, 1) * trials, trials, level)
            return float(low), float(high)
        if self.sets[group].crowd.people < FEWEST:
            return _UNDEFINED
        if metric in _RATES:
            return self._rate(key, value, level)
        if metric in ("ks", "ece"):
            return self._calibration(group, metric, value, level)
        spread = self.spread(*key)
        return _UNDEFINED if spread is None else _scaled(metric, value, spread, level)

    def _spread(self, key: Key, value: float) -> Spread:
        group, condition, metric = key
        found = self.sets[group]
        if metric in _RATES:
            kind, rate = self._kind(metric, value)
            spread = found.rate_spread(kind, self._threshold(condition), rate)
            return spread if kind == metric else spread._replace(influence=-spread.influence)
        if metric == "ks":
            return found.ks_spread()
        if metric == "ece":
            return found.ece_spread()
        if metric in ("cllr", "min_cllr"):
            overall = self.sets[GLOBAL].crowd.genuine
            return found.cllr_spread(float(overall.mean()) if metric == "cllr" else None)
        return found.auroc_spread() if metric == "auroc" else found.loss_spread(metric)

    @staticmethod
    def _kind(metric: str, value: float) -> tuple[str, float]:
        """Return the error rate that a rate is, or is one minus, and its value."""
        kind, rate = ("fnr", 1 - value) if metric == "tpr" else (metric, value)
        return kind, min(max(rate, 0.0), 1.0)

    def _rate(self, key: Key, value: float, level: float) -> Ends:
        group, _, metric = key
        kind, rate = self._kind(metric, value)
        found = self.sets[group]
        dependence, wider = found.dependence(kind), self._wider(key, rate)
        low, high = rate_interval(
            rate,
            found.trials(kind),
            lambda p: wider * dependence.design_effect(p),
            level=level,
            freedom=dependence.degrees_of_freedom(rate),
        )
        return (low, high) if kind == metric else (1 - high, 1 - low)

    def _threshold(self, condition: str) -> float:
        """Return the threshold of a condition; that of a point of the ROC is set by all pairs."""
        set_by = f"global_{condition}" if condition.startswith("fpr=") else condition
        return self.values.get((GLOBAL, set_by, "threshold"), float("nan"))

    def _wider(self, key: Key, rate: float) -> float:
        """Return by how much the threshold, which other people would have set, widens a variance.

        All pairs set it: V = V_g (1 − 2 c w) + c² V_0, where w is the group's share of them and c
        the ratio of its density at the threshold to theirs. A group that is most of them has less
        than the variance at a given threshold; that one is what the interval has at least.
        """
        group, condition, metric = key
        under = Condition.of(condition)
        at = self._threshold(condition)
        if not condition or np.isnan(at) or (group == GLOBAL and under.kind == f"global_{metric}"):
            return 1.0
        kind = "fnr" if metric == "tpr" else metric
        overall, own = self.sets[GLOBAL], self.sets[group]
        sets_it = under.metric
        set_rate = self.values.get((GLOBAL, condition, sets_it), under.rate)
        v_0 = set_rate * (1 - set_rate) / max(overall.trials(sets_it), 1)
        v_0 *= float(overall.dependence(sets_it).design_effect(set_rate))
        v_g = rate * (1 - rate) / max(own.trials(kind), 1)
        v_g *= float(own.dependence(kind).design_effect(rate))
        if v_g <= 0:
            return 1.0
        c = own.slope(kind, at) / max(overall.slope(sets_it, at), 1e-300)
        w = own.trials(kind) / max(overall.trials(kind), 1) if kind == sets_it else 0.0
        return max(1.0, 1 - 2 * c * w + c**2 * v_0 / v_g)

    def _curve(self, group: str) -> Curve:
        if group not in self._curves:
            self._curves[group] = self.sets[group].curve(self._n, self._seed)
        return self._curves[group]

    def _calibration(self, group: str, metric: str, value: float, level: float) -> Ends:
        curve = self._curve(group)
        found = curve.found(metric)
        low, high = curve.interval(metric, level)
        scale = value / found if found > 0 else 1.0  # single pairs show a little more than bins
        return low * scale, min(high * scale, 1.0)

    # ------------------------------------------------------------- over groups

    def _deviation(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a number over groups."""
        _, condition, whole = key
        metric, _, name = whole.partition("_")
        if np.isnan(value):
            return _UNDEFINED
        if name in DEVIATIONS or name == "gap":
            known = self._groups(condition, metric, level)
            return self._deviated(name, known, level) if known else _UNDEFINED
        kinds = ("fpr", "fnr") if whole in FAIRNESS else (metric,)
        found = [self._groups(condition, kind, level) for kind in kinds]
        if not all(found) or (name or whole) not in FAIRNESS:
            return _UNDEFINED
        rates = [np.array([self.values[k] for k in known]) for known in found]
        ends = [np.array([self.interval(*k, level) for k in known]).T for known in found]
        return unfairness_interval(
            name or whole,
            rates,
            [(each[0], each[1]) for each in ends],
            [self._simulate(k, r) for k, r in zip(found, rates, strict=True)],
            level=level,
            replicates=self._n,
            rng=np.random.default_rng([self._seed, 2]),
        )

    def _groups(self, condition: str, metric: str, level: float) -> list[Key]:
        """Return the groups with a value; none where one has no interval, or there are no two."""
        known = [
            (group, condition, metric)
            for group in self.sets
            if group != GLOBAL and not np.isnan(self.values.get((group, condition, metric), np.nan))
        ]
        unsure = any(np.isnan(self.interval(*k, level)[0]) for k in known)
        return [] if unsure or len(known) < 2 else known

    def _deviated(self, name: str, known: list[Key], level: float) -> Ends:
        values = np.array([self.values[k] for k in known])
        low = lower_end(name, values, self._simulate(known, values), level)
        # With no lower end to miss, all that the interval may miss is for the upper one.
        ends = np.array([self.interval(*k, level if low > 0 else 2 * level - 1) for k in known])
        return low, upper_end(name, values, ends[:, 0], ends[:, 1])

    def _simulate(self, keys: list[Key], values: Float64) -> Callable[[Float64], Float64]:
        """Return what finds the groups' values again, with the noise of other people."""
        metric = keys[0][2]
        rng = np.random.default_rng([self._seed, 1])
        if metric in _RATES:
            return rate_noise([self._again(k, values) for k in keys], self._n, rng)
        if metric in ("ks", "ece"):
            curves = [self._curve(group) for group, _, _ in keys]

            def sizes(truth: Float64) -> Float64:
                scales = truth / np.maximum(values, 1e-300)
                pairs = zip(curves, scales, strict=True)
                return np.stack([curve.size(metric, scale) for curve, scale in pairs], axis=-1)

            return sizes
        spreads = [self.spread(*k) for k in keys]
        noise = rng.standard_normal((self._n, len(keys)))
        noise *= np.sqrt([np.nan if s is None else s.variance for s in spreads])
        return lambda truth: truth + noise

    def _again(self, key: Key, values: Float64) -> Callable[[float], float]:
        group, _, metric = key
        found = self.sets[group]
        if self.independent:
            return lambda _: float(found.trials(metric))
        return self._effective(found, metric, max(self.values[key], float(values.mean())))

    @staticmethod
    def _effective(found: PairSet, metric: str, near: float) -> Callable[[float], float]:
        """Return how many independent trials a rate counts, by the true rate; `near` it was found.

        Fewer where the design effect is badly known: as much as Student's t is wider than normal.
        """
        dependence, trials = found.dependence(metric), found.trials(metric)
        freedom = dependence.degrees_of_freedom(min(max(near, 1e-9), 1 - 1e-9))
        few = (ndtri(0.975) / stdtrit(freedom, 0.975)) ** 2
        return lambda p: float(trials * few / dependence.design_effect(min(max(p, 1e-9), 1.0)))


def _scaled(metric: str, value: float, spread: Spread, level: float) -> Ends:
    """Return an interval on a scale without ends: logit of an AUROC, log of a loss."""
    error = float(np.sqrt(spread.variance) * stdtrit(spread.freedom, (1 + level) / 2))
    if not 0 < value < (1 if metric == "auroc" else np.inf):
        return (value, value) if error == 0 else _UNDEFINED
    if metric == "auroc":
        half = error / (value * (1 - value))
        return float(expit(logit(value) - half)), float(expit(logit(value) + half))
    return float(value * np.exp(-error / value)), float(value * np.exp(error / value))
