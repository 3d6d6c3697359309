"""Intervals of everything that was measured of one set of scored pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import ndtri, stdtrit

from faircal.data import Groups
from faircal.metrics import DEVIATIONS, FAIRNESS, METRICS, log_likelihood_ratio, wilson
from faircal.metrics.intervals.calibration_error import BinnedCurve
from faircal.metrics.intervals.dependence import AurocDependence, Dependence
from faircal.metrics.intervals.dyadic import (
    FEWEST,
    Float64,
    IdentifiedPairs,
    PeopleVariance,
    replicates,
)
from faircal.metrics.intervals.over_groups import lower_end, unfairness_interval, upper_end
from faircal.metrics.intervals.sufficient_data import ERROR_RATES
from faircal.metrics.proportions import combined_reach
from faircal.metrics.results import ALL, GLOBAL, Condition, Result

#: Group, condition and metric of a measured value.
Key: TypeAlias = tuple[str, str, str]
Ends: TypeAlias = tuple[float, float]

REPLICATES = 1000
#: Metrics with a linear approximation; besides, those whose catalogue entry has `losses`.
_LINEAR = {*ERROR_RATES, "ks", "ece", "auroc", "cllr", "min_cllr"}
_UNDEFINED = (float("nan"), float("nan"))
_NONE = np.empty(0)

#: Random numbers for people without a name, however many there are.
_BUCKETS = 4096


@dataclass(frozen=True, eq=False)
class PairSet:
    """One set of pairs, and what was worked out of it.

    Of a rate, `metric` is ``fpr``, which counts imposter pairs, or ``fnr``, which counts genuine
    ones.

    Parameters
    ----------
    name : str
        ``global``, or that of a group.
    identified : IdentifiedPairs
    score, probability : ndarray of float64, shape (n_pairs,)
        Empty where there is none.
    independent : bool
        Whether nobody is known: pairs are taken as independent of each other.
    replicates, seed : int
        Of the noise of the calibration curve.
    """

    name: str
    identified: IdentifiedPairs
    score: Float64
    probability: Float64
    independent: bool
    replicates: int
    seed: int
    _scores: dict[str, tuple[Float64, Float64]] = field(default_factory=dict)
    _dependence: dict[str, Dependence] = field(default_factory=dict)
    _widths: dict[tuple[str, float], float] = field(default_factory=dict)
    _slopes: dict[tuple[str, float], float] = field(default_factory=dict)
    _spreads: dict[tuple[str, float, float], PeopleVariance] = field(default_factory=dict)

    def people(self, metric: str) -> int:
        """Return how many people are in the pairs that a value is measured of."""
        trials = self.identified.trials
        if metric == "auroc":
            return min(dyads.people for dyads in trials.values())
        if metric in ERROR_RATES:
            return trials[ERROR_RATES[metric]].people
        return len(self.identified.people)

    def scores(self, metric: str) -> tuple[Float64, Float64]:
        """Return the scores of the pairs that a rate counts: as they came, and ascending."""
        if metric not in self._scores:
            scores = self.score[self.identified.trials[metric].rows]
            self._scores[metric] = scores, np.sort(scores)
        return self._scores[metric]

    def dependence(self, metric: str) -> Dependence:
        """Return how pairs that share people exceed thresholds together, or fall below them."""
        if metric not in self._dependence:
            dyads, (scores, _) = self.identified.trials[metric], self.scores(metric)
            tail = scores if metric == "fpr" else -scores
            self._dependence[metric] = Dependence.of(tail, dyads)
        return self._dependence[metric]

    def effective_trials(self, metric: str, rate: float, near: float) -> float:
        """Return how many independent trials an error rate counts whose true value is `rate`.

        Fewer where the design effect is badly known: as much as Student's t is wider than normal,
        with the degrees of freedom at a rate that is `near`.
        """
        trials = self.identified.trials[metric].pairs
        if self.independent:
            return float(trials)
        dependence = self.dependence(metric)
        if (metric, near) not in self._widths:
            freedom = dependence.degrees_of_freedom(min(max(near, 1e-9), 1 - 1e-9))
            self._widths[metric, near] = (ndtri(0.975) / stdtrit(freedom, 0.975)) ** 2
        return float(
            trials
            * self._widths[metric, near]
            / (dependence.wider * dependence.design_effect(min(max(rate, 1e-9), 1.0)))
        )

    def slope(self, metric: str, threshold: float) -> float:
        """Return how fast a rate changes at a threshold: by its size around, per unit of score.

        Looked at where the pairs nearest to it are, about a third of the errors there are, and no
        fewer than eight pairs.
        """
        if (metric, threshold) not in self._slopes:
            _, ordered = self.scores(metric)
            n, below = len(ordered), int(np.searchsorted(ordered, threshold))
            near = min(max((n - below if metric == "fpr" else below) // 3, 8), n)
            around = ordered[max(below - near, 0) : below + near]
            away = np.partition(np.abs(around - threshold), near - 1)[near - 1] if n else np.inf
            slope = near / max(n, 1) / max(2 * float(away), 1e-12)
            self._slopes[metric, threshold] = slope
        return self._slopes[metric, threshold]

    def rate_spread(self, metric: str, threshold: float, rate: float) -> PeopleVariance:
        """Return how a rate at a threshold varies with the people, by its design effect."""
        key = metric, threshold, rate
        if key not in self._spreads:
            rows = self.identified.trials[metric].rows
            if not len(rows):
                return PeopleVariance(np.nan, 3.0, np.zeros(self.identified.n_people))
            wrong = (self.scores(metric)[0] >= threshold) == (metric == "fpr")
            residuals = np.zeros(len(self.score))
            residuals[rows] = (wrong - wrong.mean()) / len(rows)
            influence = self.identified.spread(residuals).influence
            dependence = self.dependence(metric)
            variance = rate * (1 - rate) / len(rows) * float(dependence.design_effect(rate))
            variance *= dependence.wider
            square = float((influence**2).sum())
            scale = np.sqrt(variance / square) if square > 0 else 0.0
            freedom = dependence.degrees_of_freedom(rate)
            self._spreads[key] = PeopleVariance(variance, freedom, influence * scale)
        return self._spreads[key]

    def spread(self, metric: str, prior: float) -> PeopleVariance:
        """Return how anything but a rate and the AUROC varies with the people, as far as linear.

        KS is taken as its curve at the place where that is largest; of the ECE bins and the signs
        of gaps are held fixed, and of the minimum of Cllr the map. Probabilities are calibrated at
        the share of genuine pairs `prior`.
        """
        genuine = self.identified.genuine
        if metric in ("cllr", "min_cllr"):
            ratio = (
                log_likelihood_ratio(self.probability, calibrated_at=prior)
                if metric == "cllr"
                else _best_ratio(self.score, genuine)
            )
            cost = np.logaddexp(0, np.where(genuine, -ratio, ratio)) / np.log(2)
            for dyads in self.identified.trials.values():
                of_class = cost[dyads.rows]
                cost[dyads.rows] = (of_class - of_class.mean()) / (2 * dyads.pairs)
            return self.identified.spread(cost)
        losses = METRICS[metric].losses
        if losses is not None:
            moved = losses(
                self.score if METRICS[metric].of == "score" else self.probability, genuine
            )
        else:
            gaps, bin_of, tens = self.probability - genuine, self.curve.bin_of, self.curve.tens
            if metric == "ks":
                curve = np.cumsum(np.bincount(bin_of, gaps, len(tens)))
                top = int(np.argmax(np.abs(curve)))
                moved = np.where(bin_of <= top, gaps, 0.0) * np.sign(curve[top])
            else:
                ten_of = tens[bin_of]
                moved = gaps * np.sign(np.bincount(ten_of, gaps))[ten_of]
        return self.identified.spread((moved - moved.mean()) / len(moved))

    @cached_property
    def ordering(self) -> AurocDependence:
        """How imposter pairs that share people score above genuine ones together."""
        return AurocDependence.of(self.score, self.identified)

    @cached_property
    def curve(self) -> BinnedCurve:
        """The calibration curve with replicates of its noise."""
        rng = np.random.default_rng([self.seed, len(self.name), *self.name.encode()])
        return BinnedCurve.of(self.probability, self.identified, self.replicates, rng)


def _best_ratio(scores: Float64, genuine: NDArray[np.bool_]) -> Float64:
    """Return the log-likelihood ratios that isotonic regression makes of scores; up to ±50."""
    _, at = np.unique(scores, return_inverse=True)
    pairs, hits = np.bincount(at), np.bincount(at, genuine)
    share = isotonic_regression(hits / pairs, weights=pairs).x
    prior = genuine.mean()
    with np.errstate(divide="ignore"):
        odds = np.log(share) - np.log1p(-share) - np.log(prior) + np.log1p(-prior)
    return np.asarray(np.clip(odds, -50, 50)[at])


#: All pairs and those of each group: which they are, and who is in them.
IdentifiedSets: TypeAlias = dict[str, tuple[NDArray[np.intp] | slice, IdentifiedPairs]]


def identified_sets(
    genuine: NDArray[np.bool_], people: Groups | None, groups: Groups | None
) -> IdentifiedSets:
    """Return the sets that `Uncertainty` is about: the same for all methods on these pairs."""
    everyone = IdentifiedPairs.of(genuine, people)
    sets: IdentifiedSets = {GLOBAL: (slice(None), everyone)}
    if groups is not None:
        code = groups.pair
        for g, name in enumerate(groups.names):
            rows = np.flatnonzero(code == g)
            sets[name] = rows, everyone.part(rows)
    return sets


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
    sets : dict, optional
        What `identified_sets` gives of pairs, people and groups, where somebody has it already.
    threshold_given : bool
        Whether other pairs than these set the thresholds.
    calibrated_at : float, optional
        As `measure` has it.
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
        sets: IdentifiedSets | None = None,
        threshold_given: bool = False,
        calibrated_at: float | None = None,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> None:
        self.calibrated_at = calibrated_at
        self.values = {m.what: m.value for m in measures}
        self.independent = people is None or not people.names
        self.names = () if people is None else people.names
        self._n, self._seed, self._given = replicates, seed, threshold_given
        sets = sets or identified_sets(genuine, people, groups)
        self.sets = {
            name: PairSet(
                name,
                identified,
                _NONE if score is None else score[of],
                _NONE if probability is None else probability[of],
                self.independent,
                replicates,
                seed,
            )
            for name, (of, identified) in sets.items()
        }
        #: The error rate that a rate is, or is one minus, and its value.
        self._rates = {
            (group, condition, metric): (
                ERROR_RATES[metric],
                min(max(1 - value if metric == "tpr" else value, 0.0), 1.0),
            )
            for (group, condition, metric), value in self.values.items()
            if metric in ERROR_RATES
        }
        self._thresholds: dict[str, float] = {}
        for (group, condition, metric), value in self.values.items():
            if (group, metric) == (GLOBAL, "threshold"):
                self._thresholds[condition] = value
                # A point of the ROC has the threshold that all pairs set.
                if condition.startswith("global_fpr="):
                    self._thresholds[condition.removeprefix("global_")] = value
        self._ends: dict[tuple[Key, float], Ends] = {}
        self._spreads: dict[Key, PeopleVariance] = {}

    def interval(self, group: str, condition: str, metric: str, level: float = 0.95) -> Ends:
        """Return (low, high) of a value; NaN where it is undefined or has no interval."""
        key = group, condition, metric
        if (key, level) not in self._ends:
            made = self._over_groups if group == ALL else self._of_set
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
            if group == ALL or not linear or np.isnan(value):
                return None
            pairs = self.sets[group]
            if pairs.people(metric) < FEWEST:
                return None
            if metric in ERROR_RATES:
                kind, rate = self._rates[key]
                spread = pairs.rate_spread(kind, self._thresholds.get(condition, np.nan), rate)
                if metric == "tpr":
                    spread = spread._replace(influence=-spread.influence)
            elif metric == "auroc":
                spread = pairs.ordering.spread
            else:
                share = self.sets[GLOBAL].identified.genuine.mean()
                spread = pairs.spread(metric, self.calibrated_at or float(share))
            self._spreads[key] = spread
        return self._spreads[key]

    def effective_trials(self, group: str, condition: str, metric: str) -> float:
        """Return how many independent pairs would make a rate as uncertain as it is."""
        key, pairs = (group, condition, metric), self.sets[group]
        kind, rate = self._rates[key]
        trials = pairs.identified.trials[kind].pairs
        if self.independent:
            return float(trials)
        if np.isnan(rate) or pairs.people(metric) < FEWEST:
            return float("nan")
        at = max(rate, 0.5 / max(trials, 1))
        if metric == "tpr" and condition and not self._given:
            low, high = self.interval(*key)
            half = max((high - low) / 2, 1e-12) / float(ndtri(0.975))
            return at * (1 - min(rate, 0.999)) / half**2
        return pairs.effective_trials(kind, at, rate) / self._wider(key, kind, rate)

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
        digest = blake2b(self.sets[GLOBAL].identified.genuine.tobytes(), digest_size=8).hexdigest()
        more = (f"?{digest}/{i}" for i in range(len(influence) - names))
        return replicates(influence, (*self.names, *more), self._n, self._seed)

    # ------------------------------------------------------------- of one set of pairs

    def _of_set(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a value of all pairs or of a group."""
        group, condition, metric = key
        pairs = self.sets[group]
        if metric == "threshold" or np.isnan(value):
            return _UNDEFINED
        if self.independent and metric in ERROR_RATES:
            trials = pairs.identified.trials[ERROR_RATES[metric]].pairs
            of_trials = wilson(np.clip(value, 0, 1) * trials, trials, level)
            return float(of_trials[0]), float(of_trials[1])
        if pairs.people(metric) < FEWEST:
            return _UNDEFINED
        if metric in ERROR_RATES:
            kind, rate = self._rates[key]
            wider = self._wider(key, kind, rate)
            low, high = pairs.dependence(kind).interval(rate, level, wider=wider)
            accepted = pairs.scores(kind)[0] >= self._thresholds.get(condition, np.nan)
            if not (accepted == (kind == "fpr")).any():
                low = 0.0  # a part of an error, between two scores, is none that was seen
            ends = (low, high) if kind == metric else (1 - high, 1 - low)
            at_fpr = metric == "tpr" and condition and not self._given
            return self._tpr_at_fpr(key, value, ends, level) if at_fpr else ends
        if metric in ("ks", "ece"):
            of_bins = pairs.curve.estimates[metric]
            ends = pairs.curve.interval(metric, level)
            scale = value / of_bins if of_bins > 0 else 1.0  # pairs show a little more than bins
            return ends[0] * scale, min(ends[1] * scale, 1.0)
        if metric == "auroc":
            return pairs.ordering.interval(value, level)
        spread = self.spread(*key)
        if spread is None:
            return _UNDEFINED
        ends = spread.interval(value, level, loss=True)
        return (ends[0], min(ends[1], 1.0)) if metric in ("brier", "min_cllr") else ends

    def _tpr_at_fpr(self, key: Key, value: float, ends: Ends, level: float) -> Ends:
        """Return the interval of a point of the ROC.

        Two things are not sure: the TPR at the threshold, whose interval `ends` is, and the
        threshold. The ends of both are put together as errors are (MOVER), with the correlation
        that people give them: those whose strangers score high often score high with themselves.
        """
        group, condition, _ = key
        pairs, rate = self.sets[group], Condition.of(condition).rate
        at = self._thresholds.get(condition, np.nan)
        # The highest and the lowest threshold at which the counted FPR may be that of the rate.
        (genuine, _), (_, imposters) = pairs.scores("fnr"), pairs.scores("fpr")
        missed = pairs.rate_spread("fnr", at, 1 - value).influence
        taken = pairs.rate_spread("fpr", at, rate)
        n, (least, most) = len(imposters), taken.interval(rate, level)
        counts = np.clip([np.floor(least * n), np.ceil(most * n)], 0, n - 1)
        thresholds = imposters[n - 1 - counts.astype(np.int64)]
        lower, upper = (float((genuine > threshold).mean()) for threshold in thresholds)
        size = float(np.sqrt((missed**2).sum() * (taken.influence**2).sum()))
        # More errors of either kind at the threshold mean a lower TPR at the rate.
        correlation = float(missed @ taken.influence) / size if size > 0 else 0.0
        low, high = ends
        down = combined_reach(value - low, max(value - lower, 0.0), correlation)
        up = combined_reach(high - value, max(upper - value, 0.0), correlation)
        return max(value - down, 0.0), min(value + up, 1.0)

    def _wider(self, key: Key, kind: str, rate: float) -> float:
        """Return by how much the threshold, which other people would have set, widens a variance.

        All pairs set it. Where other people would have more errors of the kind that is held fixed,
        the threshold moves, and with it the rate, by the ratio of the two densities there. At a
        global rate a group's interval is at least that at a given threshold: its rate at the very
        threshold that was set is of interest, too.
        """
        group, condition, _ = key
        under, at = Condition.of(condition), self._thresholds.get(condition, np.nan)
        held = under.metric
        given = self._given or not under.kind.startswith("global_")
        if given or np.isnan(at) or (group == GLOBAL and kind == held):
            return 1.0
        overall, of_group = self.sets[GLOBAL], self.sets[group]
        moved = of_group.rate_spread(kind, at, rate).influence
        alone = float((moved**2).sum())
        if alone <= 0:
            return 1.0
        ratio = of_group.slope(kind, at) / max(overall.slope(held, at), 1e-300)
        by = overall.rate_spread(held, at, under.rate).influence
        both = float(((moved - ratio * by if kind == held else moved + ratio * by) ** 2).sum())
        return max(1.0, both / alone)

    # ------------------------------------------------------------- over groups

    def _over_groups(self, key: Key, value: float, level: float) -> Ends:
        """Return the interval of a number over groups.

        There is none where a group's value has none, or no two groups have a value.
        """
        _, condition, full_name = key
        metric, _, name = full_name.partition("_")
        deviation, measure = name in DEVIATIONS or name == "gap", name or full_name
        if np.isnan(value) or not (deviation or measure in FAIRNESS):
            return _UNDEFINED
        keys_by_kind = []
        for kind in ("fpr", "fnr") if full_name in FAIRNESS else (metric,):
            keys = [
                (group, condition, kind)
                for group in self.sets
                if group != GLOBAL
                and not np.isnan(self.values.get((group, condition, kind), np.nan))
            ]
            if len(keys) < 2 or any(np.isnan(self.interval(*k, level)[0]) for k in keys):
                return _UNDEFINED
            keys_by_kind.append(keys)
        values = [np.array([self.values[k] for k in keys]) for keys in keys_by_kind]
        simulate = []
        for keys in keys_by_kind:
            noise = np.random.default_rng([self._seed, 1]).standard_normal((self._n, len(keys)))
            simulate.append(partial(self._simulated, keys, noise))
        if deviation:
            low = lower_end(name, values[0], simulate[0], level)
            # With no lower end to miss, all that the interval may miss is for the upper one.
            at = level if low > 0 else max(2 * level - 1, level / 2)
            ends = np.array([self.interval(*k, at) for k in keys_by_kind[0]])
            return low, upper_end(name, values[0], ends[:, 0], ends[:, 1])
        ends_by_kind = [np.array([self.interval(*k, level) for k in of]) for of in keys_by_kind]
        return unfairness_interval(
            measure,
            values,
            [(ends[:, 0], ends[:, 1]) for ends in ends_by_kind],
            simulate,
            level=level,
            replicates=self._n,
            rng=np.random.default_rng([self._seed, 2]),
        )

    def _simulated(self, keys: list[Key], noise: Float64, truth: Float64) -> Float64:
        """Return the groups' values again as other people would give them, were `truth` true.

        Rates vary as normal numbers of the variance at the true rate: of one group alone this makes
        the interval of `rate_interval`.

        Parameters
        ----------
        keys : list of (group, condition, metric)
        noise : ndarray of float64, shape (n_replicates, n_groups)
            Standard normal.
        truth : ndarray of float64, shape (n_groups,)

        Returns
        -------
        ndarray of float64, shape (n_replicates, n_groups)
        """
        metric = keys[0][2]
        values = np.array([self.values[k] for k in keys])
        pairs = [self.sets[group] for group, _, _ in keys]
        if metric in ERROR_RATES:
            near = np.maximum(values, values.mean())
            n = [
                of.effective_trials(ERROR_RATES[metric], rate, about)
                for of, rate, about in zip(pairs, truth, near, strict=True)
            ]
            return np.asarray(truth + noise * np.sqrt(truth * (1 - truth) / np.array(n)))
        if metric in ("ks", "ece"):
            scales = np.divide(truth, values, out=np.zeros_like(truth), where=values > 1e-9)
            sizes = [of.curve.size(metric, at) for of, at in zip(pairs, scales, strict=True)]
            return np.stack(sizes, axis=-1)
        spreads = [self.spread(*k) for k in keys]
        variances = [np.nan if spread is None else spread.variance for spread in spreads]
        return np.asarray(truth + noise * np.sqrt(variances))
