"""Operating points with a guarantee: of all pairs, in every group, or in every cluster.

One threshold for several sets needs no correction for their number: it is too low for some set only
if it is too low for the set that needs the highest one. Whichever that is, the highest of the sets'
thresholds is at least its own, which is too low with a probability of at most `risk`. Thresholds
that are used side by side, each for its own set, do need one: each is found at risk / sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.data import Groups
from faircal.evaluation.thresholds.imposters import ImposterSet
from faircal.evaluation.thresholds.tail import Tail, fit_tail
from faircal.metrics.error_rates import between
from faircal.metrics.intervals.dyadic import Float64, IdentifiedPairs
from faircal.metrics.intervals.sufficient_data import (
    FEWEST_PEOPLE,
    NOT_ENOUGH,
    DataNeeded,
    insufficient_data_reason,
)
from faircal.metrics.results import GLOBAL

Scope = Literal["global", "groups", "clusters"]
#: How a threshold is chosen: so that a rate is promised, of all people together or of each but a
#: few, or so that it is what was counted.
Rule = Literal["promised", "people", "measured"]

#: How a threshold was found: from counted errors, or by the tail's law beyond what can be counted.
#: Both assume a law: how people vary is carried from higher rates. That of people assumes none.
COUNTED, EXTRAPOLATED = "counted, model-based", "extrapolated, model-based"
OF_PEOPLE = "by people"
#: People who may be missing count so many times as much where the tail is extrapolated.
_TIMES_IN_TAIL = 8
#: Of all pairs, where the promise is for groups or clusters or there is none: only measured.
MEASURED = "measured"
REFUSED = "refused: "


class GuaranteeRow(NamedTuple):
    """One set at the threshold; rates are NaN where there are too few people to tell them.

    `low` and `high` are the two ends of the interval of `rate`, `upper` is what the rate does not
    exceed, each at the wanted confidence; `own_threshold` would be this set's where every set has
    one of its own. `status` is ``counted, model-based``, ``extrapolated, model-based``, ``by
    people``, ``measured`` or ``refused: why``. `heavy_tailed` says whether a few people score far
    higher or lower than the others: then more is demanded of the promise.
    """

    name: str
    people: int
    effective_people: float
    imposters: int
    errors: int
    rate: float
    low: float
    high: float
    upper: float
    own_threshold: float
    status: str
    heavy_tailed: bool = False


class DataRequirement(NamedTuple):
    """What a set would take for a rate to be counted: people, each in as many pairs as now."""

    name: str
    people: int
    more_people: int
    imposters: int
    more_imposters: int


@dataclass(frozen=True)
class Guarantee:
    """A threshold and what is promised of it; see `guarantee` and `counted`.

    Attributes
    ----------
    threshold : float
        With the wanted confidence the FPR is at most `fpr` there, in every set. NaN where a set is
        refused: then nothing is promised.
    told_threshold : float
        The same for those sets that are not refused; the rows are counted there.
    fpr, confidence : float
    scope : {"global", "groups", "clusters"}
    resolved : float
        The lowest rate that counting could promise in every set; NaN with too few people in one.
    rows : tuple of GuaranteeRow
    needed : tuple of DataRequirement
        What it would take to count so low a rate, of sets where that can't be done.
    rule : {"promised", "people", "measured"}
        With ``people`` at least the share `confidence` of people have an FPR of at most `fpr`
        against the reference people, half of those here. Where only measured, the counted FPR is
        at most `fpr`, nothing is promised.
    """

    threshold: float
    told_threshold: float
    fpr: float
    confidence: float
    scope: Scope
    resolved: float
    rows: tuple[GuaranteeRow, ...]
    needed: tuple[DataRequirement, ...] = ()
    rule: Rule = "promised"

    def apart_from(self, scores: Float64) -> Guarantee:
        """Return the same with thresholds a hair below the scores they are equal to.

        A score comes out with another last digit where sums are taken in another order, as in an
        exported graph: no pair that was counted may depend on that. The hair is 1e-9 or more, or a
        quarter of what is free below, and leaves a number of few digits. Tied scores are steps of
        a scale, with no score between them: there it is about half a step.
        """
        below = np.sort(scores)

        def moved(threshold: float) -> float:
            at = int(np.searchsorted(below, threshold))  # scores below it
            if at == len(below) or below[at] != threshold:  # also NaN
                return threshold
            lower = threshold - 1.0 if at == 0 else float(below[at - 1])
            tied = np.count_nonzero(below[at : at + 2] == threshold) > 1
            return between(lower if tied else max(lower, threshold - 4e-9), threshold)

        rows = tuple(row._replace(own_threshold=moved(row.own_threshold)) for row in self.rows)
        threshold, partial = moved(self.threshold), moved(self.told_threshold)
        return replace(self, threshold=threshold, told_threshold=partial, rows=rows)

    @property
    def refused(self) -> tuple[GuaranteeRow, ...]:
        """The sets that nothing is promised of."""
        return tuple(row for row in self.rows if row.status.startswith(REFUSED))

    def reasons(self) -> list[str]:
        """Say which sets are refused and why; those with the same reason together."""
        names: dict[str, list[str]] = {}
        for row in self.refused:
            names.setdefault(row.status, []).append(row.name)
        return [
            f"{', '.join(each)} {'is' if len(each) == 1 else 'are'} {status}"
            for status, each in names.items()
        ]

    @property
    def extrapolated(self) -> tuple[GuaranteeRow, ...]:
        """The sets whose tail was followed beyond what was counted."""
        return tuple(row for row in self.rows if row.status == EXTRAPOLATED)


def imposters(scores: Float64, genuine: NDArray[np.bool_], people: Groups | None) -> ImposterSet:
    """Return the imposter pairs of all pairs; without people they are taken as independent."""
    identified = IdentifiedPairs.of(genuine, people)
    rows = np.flatnonzero(~genuine)
    if not len(rows):
        raise DataError("expected imposter pairs, found none; an FPR counts pairs of two people")
    return ImposterSet(scores[rows], identified.left[rows], identified.right[rows])


def guarantee(
    all_imposters: ImposterSet,
    sets: Mapping[str, ImposterSet] | None = None,
    *,
    fpr: float,
    confidence: float = 0.95,
    scope: Scope = "global",
    upper: float = 1.0,
    rule: Literal["promised", "people"] = "promised",
) -> Guarantee:
    """Find the lowest threshold at which the FPR is promised to be at most `fpr` in every set.

    Valid where pairs share people. Where a set is too small for its errors to be counted at so low
    a rate, its tail is extrapolated (`fit_tail`); where that can't be done either it is refused,
    with the reason.

    Parameters
    ----------
    all_imposters : ImposterSet
        All imposter pairs; see `imposters`.
    sets : mapping from name to ImposterSet, optional
        Those of each group or cluster; None for a promise of all pairs alone.
    fpr : float
        The wanted rate, α.
    confidence : float
        1 − δ: the probability that the promise holds.
    scope : {"global", "groups", "clusters"}
        What the sets are.
    upper : float
        The highest score that is possible; infinity where there is none.
    rule : {"promised", "people"}
        Of what: the FPR of all people together, by a law of how they vary, or that of each person
        but a few against the reference people, by no law (`ImposterSet.threshold_of_people`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> left, right = np.triu_indices(100, 1)
    >>> everybody = ImposterSet(rng.normal(size=len(left)), left, right)
    >>> result = guarantee(everybody, fpr=0.01, upper=np.inf)
    >>> result.rows[0].errors, result.rows[0].imposters, result.rows[0].status
    (19, 4950, 'counted, model-based')
    >>> print(guarantee(everybody, fpr=1e-4, upper=np.inf).rows[0].status[:51])
    refused: these pairs show a rate of 0.22 % at best;
    """
    _check(fpr, confidence)
    risk = 1 - confidence
    required = {GLOBAL: all_imposters} if sets is None else dict(sets)
    if not required:
        raise DataError(
            f"{scope}: expected at least one, found none; give an attribute with groups"
        )
    tails = {
        name: cache(partial(fit_tail, each.scores, each.left, each.right, upper=upper))
        for name, each in required.items()
    }
    needed = {
        name: _threshold_of(each, fpr, risk, upper, tails[name])
        if rule == "promised"
        else _threshold_of_people(each, fpr, risk)
        for name, each in required.items()
    }
    thresholds = [t for t, status in needed.values() if not status.startswith(REFUSED)]
    at = max(thresholds, default=math.nan)
    rows = (
        []
        if sets is None
        else [_row(GLOBAL, all_imposters, at, math.nan, MEASURED, fpr, confidence)]
    )
    for name, each in required.items():
        status = needed[name][1]
        own_threshold = needed[name][0]
        if len(required) > 1 and rule == "promised":
            own_threshold = _threshold_of(each, fpr, risk / len(required), upper, tails[name])[0]
        row = _row(name, each, at, own_threshold, status, fpr, confidence)
        if status == EXTRAPOLATED:  # no more is known of it: that the promise holds
            row = row._replace(upper=fpr)
        rows.append(row)
    threshold = at if len(thresholds) == len(required) else math.nan
    resolved = float(np.max([each.resolved(risk) for each in required.values()]))
    uncounted = [name for name, (_, status) in needed.items() if status != COUNTED]
    short = uncounted if rule == "promised" else []
    more = tuple(requirement(name, required[name], fpr, risk) for name in short)
    return Guarantee(threshold, at, fpr, confidence, scope, resolved, tuple(rows), more, rule)


def counted(all_imposters: ImposterSet, *, fpr: float, confidence: float = 0.95) -> Guarantee:
    """Find the lowest threshold at which the *counted* FPR of all pairs is at most `fpr`.

    Nothing is promised: with other people the rate is higher about as often as not. What it does
    not exceed, with the wanted confidence, is in the row. Refused where an audit would not tell so
    low a rate.

    Examples
    --------
    >>> left, right = np.arange(2000), np.arange(2000, 4000)
    >>> everybody = ImposterSet(np.linspace(-1, 0.999, 2000), left, right)
    >>> result = counted(everybody, fpr=0.01)
    >>> round(result.threshold, 3), result.rows[0].errors, result.rows[0].status
    (0.98, 20, 'measured')
    """
    _check(fpr, confidence)
    n, risk = len(all_imposters.scores), 1 - confidence
    at, status = math.nan, MEASURED
    why = insufficient_data_reason("fpr", n, all_imposters.sharing.effective_people, fpr)
    if why is None:
        # 0.07 · 100 is 7.000…001, other products are just below: rounding may cost no error.
        at = all_imposters.threshold_with(math.floor(fpr * n * (1 + 1e-12)))
    else:
        status = f"{REFUSED}{why}"
    row = _row(GLOBAL, all_imposters, at, math.nan, status, fpr, confidence)
    resolved = all_imposters.resolved(risk)
    more = () if why is None else (requirement(GLOBAL, all_imposters, fpr),)
    return Guarantee(at, at, fpr, confidence, "global", resolved, (row,), more, "measured")


def requirement(
    name: str, each: ImposterSet, fpr: float, risk: float | None = None
) -> DataRequirement:
    """Return about how many people and imposter pairs would let a rate of `fpr` be counted.

    People like these, each in as many pairs: so many times the people make so many times the
    effective pairs. With the fewest errors these show a rate r; what shows a lower one grows as
    r / fpr and as the design effect, which is another there. Without `risk` nothing is to be
    promised, and it is what an audit needs to tell the rate.
    """
    sharing, pairs = each.sharing, len(each.scores)
    trials, people = DataNeeded.of("fpr", fpr)
    if sharing.people < FEWEST_PEOPLE:
        imposters = max(trials, math.ceil(pairs * people / max(sharing.people, 1)))
    else:
        times = max(people / sharing.effective_people, trials / pairs, 1.0)
        if risk is not None:
            shown = each.upper_bound(each.fewest, risk)
            effect = each.dependence.design_effect
            times = max(times, shown / fpr * float(effect(fpr)) / float(effect(shown)))
        people, imposters = math.ceil(times * sharing.people), math.ceil(times * pairs)
    return DataRequirement(name, people, people - sharing.people, imposters, imposters - pairs)


def group_sets(
    all_imposters: ImposterSet, groups: Groups, genuine: NDArray[np.bool_]
) -> dict[str, ImposterSet]:
    """Return the imposter pairs of each group; `groups` are those of all pairs."""
    code = groups.pair[~genuine]
    return {name: all_imposters.part(code == g) for g, name in enumerate(groups.names)}


def cluster_sets(
    all_imposters: ImposterSet,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    centers: NDArray[np.floating],
    *,
    fpr: float,
    confidence: float = 0.95,
) -> dict[str, ImposterSet]:
    """Return the imposter pairs of each cluster: those with at least one image in it.

    A cluster of so few people that even no error would show no rate as low as `fpr` is put to the
    one whose centre is nearest, the smallest first, until all could show it or one is left. What
    decides is how many pairs and people there are and how alike these decide, not where a threshold
    would lie.

    Parameters
    ----------
    left, right : ndarray of int, shape (n_imposters,)
        The cluster of each imposter pair's two images.
    centers : ndarray of float, shape (n_clusters, d)
    """
    _check(fpr, confidence)
    home = np.arange(len(centers))
    sizes = np.bincount(np.concatenate([left, right]), minlength=len(centers)).astype(np.float64)
    places = np.array(centers, dtype=np.float64)

    def gather(k: int) -> ImposterSet:
        return all_imposters.part((home[left] == k) | (home[right] == k))

    sets = {int(k): gather(int(k)) for k in np.flatnonzero(sizes)}
    most = {k: each.allowed(fpr, 1 - confidence) for k, each in sets.items()}
    while len(sets) > 1:
        small = [k for k in sets if most[k] < 0]
        if not small:
            break
        worst = min(small, key=lambda k: sets[k].sharing.effective_people)
        del sets[worst]
        others = np.array(list(sets))
        near = int(others[np.argmin(((places[others] - places[worst]) ** 2).sum(axis=1))])
        both = sizes[[near, worst]]
        places[near] = both @ places[[near, worst]] / both.sum()
        sizes[near] += sizes[worst]
        home[home == worst] = near
        sets[near] = gather(near)
        most[near] = sets[near].allowed(fpr, 1 - confidence)
    named = {}
    for k, each in sorted(sets.items()):
        more = int((home == k).sum()) - 1
        named[f"cluster {k}" + (f" and {more} more" if more else "")] = each
    return named


def _threshold_of(
    each: ImposterSet, fpr: float, risk: float, upper: float, fitted: Callable[[], Tail]
) -> tuple[float, str]:
    """Return a set's threshold and how it was found; NaN and why where there is none."""
    people = each.sharing.effective_people
    if people < FEWEST_PEOPLE:
        few = f"{people:.0f} people (effective), expected at least {FEWEST_PEOPLE}"
        return math.nan, f"{REFUSED}{NOT_ENOUGH}: {few}"
    counted = each.threshold(fpr, risk)
    if not math.isnan(counted):
        return counted, COUNTED
    tail = fitted()
    # The same people who may be missing as where errors are counted, as bad as the worst there.
    rate = fpr / (1 + _TIMES_IN_TAIL * each.missing(risk) * tail.largest)
    if each.dependence.heavy:
        why = "a few people score far higher or lower than the others, no tail can be extrapolated"
    elif not tail.fits:
        why = tail.reason
    elif rate > tail.highest:
        why = f"the tail begins at a rate of {100 * tail.highest:.2g} %"
    elif math.isnan(threshold := tail.threshold_for(rate, 1 - risk)):
        why = tail.why_not(rate)
    elif threshold < upper:
        return threshold, EXTRAPOLATED
    else:
        why = f"nothing below the highest score, {upper:g}, is safe"
    best = f"these pairs show a rate of {100 * each.resolved(risk):.2g} % at best"
    return math.nan, f"{REFUSED}{best}; not extrapolated: {why}"


def _threshold_of_people(each: ImposterSet, fpr: float, risk: float) -> tuple[float, str]:
    """Return the threshold that all people but a few have, and how it was found or why not."""
    if not each.shared:
        return math.nan, f"{REFUSED}nobody is known to be in two pairs"
    threshold = each.threshold_of_people(fpr, risk)
    if not math.isnan(threshold):
        return threshold, OF_PEOPLE
    if fpr < (lowest := each.lowest_of_people):
        pairs = f"half of people are in {1 / lowest:.0f} pairs with the reference people or fewer"
        return math.nan, f"{REFUSED}{pairs}, which show no rate below {100 * lowest:.2g} %"
    least = 2 * math.ceil(math.log(risk) / math.log(1 - risk))
    return math.nan, f"{REFUSED}{each.sharing.people} people, expected about {least}"


def _row(
    name: str,
    each: ImposterSet,
    at: float,
    own_threshold: float,
    status: str,
    fpr: float,
    confidence: float,
) -> GuaranteeRow:
    sharing, n = each.sharing, len(each.scores)
    errors = each.errors(at)
    rate = low = high = upper = math.nan
    if (each.enough_people(fpr) or status in (EXTRAPOLATED, OF_PEOPLE)) and not math.isnan(at):
        rate = errors / n
        low, high = each.dependence.interval(rate, confidence)
        upper = each.upper_bound(errors, 1 - confidence)
    people = sharing.effective_people
    return GuaranteeRow(
        name,
        sharing.people,
        people,
        n,
        errors,
        rate,
        low,
        high,
        upper,
        own_threshold,
        status,
        each.dependence.heavy,
    )


def _check(fpr: float, confidence: float) -> None:
    if not 0 < fpr < 0.5:
        raise ParameterError(
            f"fpr: expected a rate between 0 and 0.5, found {fpr:g}; write 0.1 % as 0.001"
        )
    if not 0.5 < confidence < 1:
        raise ParameterError(
            f"confidence: expected between 0.5 and 1, found {confidence:g}; write 95 % as 0.95"
        )
