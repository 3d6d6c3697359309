"""Intervals of everything that was measured of one set of scored pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from faircal.data import Groups
from faircal.metrics import DEVIATIONS, FAIRNESS, METRICS, wilson
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dyadic import FEWEST, Float64, PeopleVariance, replicates
from faircal.metrics.intervals.inversion import rate_interval
from faircal.metrics.intervals.over_groups import (
    lower_end,
    rate_noise,
    unfairness_interval,
    upper_end,
)
from faircal.metrics.intervals.pair_sets import PairSet, pair_sets
from faircal.metrics.proportions import combined_reach
from faircal.metrics.results import ALL, GLOBAL, Condition, Result

#: Group, condition and metric of a measured value.
Key: TypeAlias = tuple[str, str, str]
Ends: TypeAlias = tuple[float, float]

REPLICATES = 1000
RATES = ("fpr", "fnr", "tpr")
#: Metrics with a linear approximation; besides, those whose catalogue entry has `losses`.
_LINEAR = {*RATES, "ks", "ece", "auroc", "cllr", "min_cllr"}
_UNDEFINED = (float("nan"), float("nan"))

#: Random numbers for people without a name, however many there are.
_BUCKETS = 4096


class Uncertainty:
    """Intervals of the values that `measure` and `at_threshold` (`faircal.metrics`) give.

    Intervals are worked out when they are asked for, and kept.

    Parameters
    ----------
    measures : sequence of Result
    genuine : ndarray of bool, shape (n_pairs,)
    people : Groups, optional
        Who is in each pair; each unknown identity counts as a distinct person. Without it pairs
        are taken as independent of each other.
    score, probability : ndarray of float64, shape (n_pairs,), optional
        The pairs' own; `score` is what decisions rank by.
    groups : Groups, optional
    threshold_given : bool
        Whether other pairs than these set the thresholds.
    replicates : int
        Draws of noise for what has no formula: calibration errors, and deviations over groups.
    seed : int
    """

    def __init__(
        self,
        measures: Sequence[Result],
        *,
        genuine: NDArray[np.bool_],
        people: Groups | None = None,
        score: Float64 | None = None,
        probability: Float64 | None = None,
        groups: Groups | None = None,
        threshold_given: bool = False,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self.values = {m.what: m.value for m in measures}
        self.independent = people is None or not people.names
        sets = pair_sets(score, probability, genuine, groups, people)
        self.sets = {each.name: each for each in sets}
        self.names = () if people is None else people.names
        self._n, self._seed, self._given = replicates, seed, threshold_given
        self._ends: dict[tuple[Key, float], Ends] = {}
        self._spreads: dict[Key, PeopleVariance] = {}
        self._curves: dict[str, BinnedCurve] = {}

    def interval(self, group: str, condition: str, metric: str, level: float = 0.95) -> Ends:
        """Return (low, high) of a value; NaN where it is undefined or has no interval."""
        key = group, condition, metric
        if (key, level) not in self._ends:
            made = self._deviation if group == ALL else self._value
            self._ends[key, level] = made(key, self.values[key], level)
        return self._ends[key, level]

    def spread(self, group: str, condition: str, metric: str) -> PeopleVariance | None:
        """Return how a value varies with the people; None where it is no sum over pairs.

        That of a calibration error is that of its curve where it is largest.
        """
        key = group, condition, metric
        if key not in self._spreads:
            value = self.values[key]
            losses = METRICS[metric].losses if metric in METRICS else None
            linear = metric in _LINEAR or losses is not None
            varies = group != ALL and linear and not np.isnan(value)
            if not varies or self._too_few(group, metric):
                return None
            self._spreads[key] = self._spread(key, value)
        return self._spreads[key]

    def effective_people(self, group: str = GLOBAL, metric: str = "fpr") -> float:
        """Return the effective number of people in the pairs of a kind.

        Imposter pairs for ``fpr``, genuine ones for ``fnr`` and ``tpr``.
        """
        return self.sets[group].dyads(metric).effective_people

    def trials(self, group: str, metric: str) -> int:
        """Return the pairs that a rate counts."""
        return self.sets[group].trials("fnr" if metric == "tpr" else metric)

    def effective_trials(self, group: str, condition: str, metric: str) -> float:
        """Return how many independent pairs would make a rate as uncertain as it is."""
        key = group, condition, metric
        kind, rate = self._kind(metric, self.values[key])
        pairs = self.sets[group]
        if self.independent:
            return float(pairs.trials(kind))
        if np.isnan(rate) or self._too_few(group, metric):
            return float("nan")
        if metric == "tpr" and condition and not self._given:
            low, high = self.interval(*key)
            half = max((high - low) / 2, 1e-12) / float(ndtri(0.975))
            return max(rate, 0.5 / pairs.trials(kind)) * (1 - min(rate, 0.999)) / half**2
        at = max(rate, 0.5 / max(pairs.trials(kind), 1))
        return self._effective(pairs, kind, rate)(at) / self._wider(key, rate)

    def replicates(self, keys: Sequence[Key]) -> NDArray[np.float32]:
        """Return replicates of values, less the values, shape (n_replicates, n_keys).

        People without a name, of whom there may be as many as pairs, come in so many buckets: what
        they move is about 0 on the whole, so a bucket varies as they do.
        """
        names = len(self.names)
        nameless = np.arange(self.sets[GLOBAL].identified.n_people - names) % _BUCKETS
        influence = np.zeros((names + min(len(nameless), _BUCKETS), len(keys)))
        for i, key in enumerate(keys):
            spread = self.spread(*key)
            if spread is not None:
                influence[:names, i] = spread.influence[:names]
                if len(nameless):
                    influence[names:, i] = np.bincount(nameless, spread.influence[names:])
        # They are the same for every method on these pairs.
        here = blake2b(self.sets[GLOBAL].identified.genuine.tobytes(), digest_size=8).hexdigest()
        more = (f"?{here}/{i}" for i in range(len(influence) - names))
        return replicates(influence, (*self.names, *more), self._n, self._seed)

    # ------------------------------------------------------------- of one group

    def _value(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a value of all pairs or of a group."""
        group, _, metric = key
        if metric == "threshold" or np.isnan(value):
            return _UNDEFINED
        if self.independent and metric in RATES:
            trials = self.sets[group].trials(self._kind(metric, value)[0])
            low, high = wilson(np.clip(value, 0, 1) * trials, trials, level)
            return float(low), float(high)
        if self._too_few(group, metric):
            return _UNDEFINED
        if metric == "tpr" and key[1] and not self._given:
            return self._tpr_at_fpr(key, value, level)
        if metric in RATES:
            return self._rate(key, value, level)
        if metric in ("ks", "ece"):
            return self._calibration(group, metric, value, level)
        if metric == "auroc":
            return self._auroc(group, value, level)
        spread = self.spread(*key)
        if spread is None:
            return _UNDEFINED
        ends = spread.scaled(value, level)
        return (ends[0], min(ends[1], 1.0)) if metric in ("brier", "min_cllr") else ends

    def _auroc(self, group: str, value: float, level: float) -> Ends:
        ordering = self.sets[group].ordering
        wrong = value if ordering.turned else 1 - value
        if not len(ordering.rates) or not 0 <= wrong < 0.5:
            return _UNDEFINED
        compared = self.trials(group, "fpr") * self.trials(group, "fnr")
        low, high = rate_interval(
            wrong,
            compared,
            lambda p: compared * ordering.correlation(p),
            level=level,
            freedom=ordering.degrees_of_freedom(wrong),
        )
        return (low, high) if ordering.turned else (1 - high, 1 - low)

    def _too_few(self, group: str, metric: str) -> bool:
        """Whether there are too few people in the pairs that a value is measured of."""
        pairs = self.sets[group]
        if metric in RATES:
            return pairs.dyads(self._kind(metric, 0.0)[0]).people < FEWEST
        if metric == "auroc":
            return min(pairs.dyads(kind).people for kind in ("fpr", "fnr")) < FEWEST
        return pairs.identified.people < FEWEST

    def _spread(self, key: Key, value: float) -> PeopleVariance:
        group, condition, metric = key
        pairs = self.sets[group]
        if metric in RATES:
            kind, rate = self._kind(metric, value)
            spread = pairs.rate_spread(kind, self._threshold(condition), rate)
            return spread if kind == metric else spread._replace(influence=-spread.influence)
        if metric == "ks":
            return pairs.ks_spread()
        if metric == "ece":
            return pairs.ece_spread()
        if metric in ("cllr", "min_cllr"):
            overall = self.sets[GLOBAL].identified.genuine
            return pairs.cllr_spread(float(overall.mean()) if metric == "cllr" else None)
        return pairs.ordering.spread if metric == "auroc" else pairs.loss_spread(METRICS[metric])

    @staticmethod
    def _kind(metric: str, value: float) -> tuple[str, float]:
        """Return the error rate that a rate is, or is one minus, and its value."""
        kind, rate = ("fnr", 1 - value) if metric == "tpr" else (metric, value)
        return kind, min(max(rate, 0.0), 1.0)

    def _rate(self, key: Key, value: float, level: float) -> Ends:
        group, condition, metric = key
        kind, rate = self._kind(metric, value)
        pairs = self.sets[group]
        low, high = pairs.dependence(kind).interval(rate, level, wider=self._wider(key, rate))
        if not pairs.errors(kind, self._threshold(condition)):
            low = 0.0  # a part of an error, between two scores, is none that was seen
        return (low, high) if kind == metric else (1 - high, 1 - low)

    def _tpr_at_fpr(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a point of the ROC.

        Two things are not sure: the TPR at the threshold, and the threshold. The ends of both are
        put together as errors are (MOVER), with the correlation that people give them: those whose
        strangers score high often score high with themselves.
        """
        group, condition, _ = key
        pairs, rate, at = self.sets[group], Condition.of(condition).rate, self._threshold(condition)
        low, high = self._rate(key, value, level)
        lower, upper = pairs.tpr_between(rate, level)
        wrong, taken = (
            pairs.rate_spread(kind, at, p).influence
            for kind, p in (("fnr", 1 - value), ("fpr", rate))
        )
        size = float(np.sqrt((wrong**2).sum() * (taken**2).sum()))
        # More errors of either kind at the threshold mean a lower TPR at the rate.
        correlation = float(wrong @ taken) / size if size > 0 else 0.0
        ends = (
            value - combined_reach(value - low, max(value - lower, 0.0), correlation),
            value + combined_reach(high - value, max(upper - value, 0.0), correlation),
        )
        return max(ends[0], 0.0), min(ends[1], 1.0)

    def _threshold(self, condition: str) -> float:
        """Return the threshold of a condition; that of a point of the ROC is set by all pairs."""
        set_by = f"global_{condition}" if condition.startswith("fpr=") else condition
        return self.values.get((GLOBAL, set_by, "threshold"), float("nan"))

    def _wider(self, key: Key, rate: float) -> float:
        """Return by how much the threshold, which other people would have set, widens a variance.

        All pairs set it. Where other people would have more errors of the kind that is held fixed,
        the threshold moves, and with it the rate, by the ratio of the two densities there. At a
        global rate a group's interval is at least that at a given threshold: its rate at the very
        threshold that was set is of interest, too.
        """
        group, condition, metric = key
        under, at = Condition.of(condition), self._threshold(condition)
        kind, held = self._kind(metric, 0.0)[0], under.metric
        given = self._given or not under.kind.startswith("global_")
        if given or np.isnan(at) or (group == GLOBAL and kind == held):
            return 1.0
        overall, own = self.sets[GLOBAL], self.sets[group]
        moved = own.rate_spread(kind, at, rate).influence
        alone = float((moved**2).sum())
        if alone <= 0:
            return 1.0
        ratio = own.slope(kind, at) / max(overall.slope(held, at), 1e-300)
        by = overall.rate_spread(held, at, under.rate).influence
        both = float(((moved - ratio * by if kind == held else moved + ratio * by) ** 2).sum())
        return max(1.0, both / alone)

    def _curve(self, group: str) -> BinnedCurve:
        if group not in self._curves:
            self._curves[group] = self.sets[group].curve(self._n, self._seed)
        return self._curves[group]

    def _calibration(self, group: str, metric: str, value: float, level: float) -> Ends:
        curve = self._curve(group)
        of_bins = curve.estimate(metric)
        low, high = curve.interval(metric, level)
        scale = value / of_bins if of_bins > 0 else 1.0  # single pairs show a little more than bins
        return low * scale, min(high * scale, 1.0)

    # ------------------------------------------------------------- over groups

    def _deviation(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a number over groups."""
        _, condition, full_name = key
        metric, _, name = full_name.partition("_")
        if np.isnan(value):
            return _UNDEFINED
        if name in DEVIATIONS or name == "gap":
            keys = self._groups(condition, metric, level)
            return self._deviated(name, keys, level) if keys else _UNDEFINED
        kinds = ("fpr", "fnr") if full_name in FAIRNESS else (metric,)
        keys_by_kind = [self._groups(condition, kind, level) for kind in kinds]
        if not all(keys_by_kind) or (name or full_name) not in FAIRNESS:
            return _UNDEFINED
        rates = [np.array([self.values[k] for k in keys]) for keys in keys_by_kind]
        ends = [np.array([self.interval(*k, level) for k in keys]).T for keys in keys_by_kind]
        return unfairness_interval(
            name or full_name,
            rates,
            [(each[0], each[1]) for each in ends],
            [self._simulate(k, r) for k, r in zip(keys_by_kind, rates, strict=True)],
            level=level,
            replicates=self._n,
            rng=np.random.default_rng([self._seed, 2]),
        )

    def _groups(self, condition: str, metric: str, level: float) -> list[Key]:
        """Return the groups with a value; none where one has no interval, or there are no two."""
        keys = [
            (group, condition, metric)
            for group in self.sets
            if group != GLOBAL and not np.isnan(self.values.get((group, condition, metric), np.nan))
        ]
        unsure = any(np.isnan(self.interval(*k, level)[0]) for k in keys)
        return [] if unsure or len(keys) < 2 else keys

    def _deviated(self, name: str, keys: list[Key], level: float) -> Ends:
        values = np.array([self.values[k] for k in keys])
        low = lower_end(name, values, self._simulate(keys, values), level)
        # With no lower end to miss, all that the interval may miss is for the upper one.
        ends = np.array(
            [self.interval(*k, level if low > 0 else max(2 * level - 1, level / 2)) for k in keys]
        )
        return low, upper_end(name, values, ends[:, 0], ends[:, 1])

    def _simulate(self, keys: list[Key], values: Float64) -> Callable[[Float64], Float64]:
        """Return what finds the groups' values again, with the noise of other people."""
        metric = keys[0][2]
        rng = np.random.default_rng([self._seed, 1])
        if metric in RATES:
            return rate_noise([self._again(k, values) for k in keys], self._n, rng)
        if metric in ("ks", "ece"):
            curves = [self._curve(group) for group, _, _ in keys]

            def sizes(truth: Float64) -> Float64:
                scales = np.divide(truth, values, out=np.zeros_like(truth), where=values > 1e-9)
                pairs = zip(curves, scales, strict=True)
                return np.stack([curve.size(metric, scale) for curve, scale in pairs], axis=-1)

            return sizes
        spreads = [self.spread(*k) for k in keys]
        noise = rng.standard_normal((self._n, len(keys)))
        noise *= np.sqrt([np.nan if s is None else s.variance for s in spreads])
        return lambda truth: truth + noise

    def _again(self, key: Key, values: Float64) -> Callable[[float], float]:
        group, _, metric = key
        pairs = self.sets[group]
        if self.independent:
            return lambda _: float(pairs.trials(metric))
        return self._effective(pairs, metric, max(self.values[key], float(values.mean())))

    @staticmethod
    def _effective(pairs: PairSet, metric: str, near: float) -> Callable[[float], float]:
        """Return how many independent trials a rate counts, by the true rate, which is `near`.

        Fewer where the design effect is badly known: as much as Student's t is wider than normal.
        """
        dependence, trials = pairs.dependence(metric), pairs.trials(metric)
        freedom = dependence.degrees_of_freedom(min(max(near, 1e-9), 1 - 1e-9))
        few = (ndtri(0.975) / stdtrit(freedom, 0.975)) ** 2
        return lambda p: float(trials * few / dependence.design_effect(min(max(p, 1e-9), 1.0)))
