"""How many people a wanted interval needs: the work of ``faircal plan``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faircal._base.errors import DataError, ParameterError
from faircal.data import PairFiles
from faircal.data.pair_files import check_one_feature
from faircal.evaluation.audit import ScoredPairs
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import IdentifiedPairs
from faircal.metrics.intervals.planning import (
    PairDependence,
    PeoplePlan,
    expect,
    plan,
    typical_dependence,
)
from faircal.metrics.intervals.sufficient_data import FEWEST_PEOPLE, DataNeeded, Metric

METRICS: tuple[Metric, ...] = ("fpr", "fnr")


@dataclass(frozen=True)
class SamplePlan:
    """How many people and pairs it takes, or what those there are will give.

    Attributes
    ----------
    rate, level : float
        The error rate that is expected, and the confidence of the interval.
    groups : int
        Each needs the people.
    plans : list of PeoplePlan
        For the FPR, then for the FNR.
    alike : list of PairDependence
        How alike pairs that share people are, for each.
    """

    rate: float
    level: float
    groups: int
    plans: list[PeoplePlan]
    alike: list[PairDependence]

    @property
    def notes(self) -> list[str]:
        """Where correlations are from, and where people are too few to report a rate."""
        of = "correlations of pairs that share people"
        sources = {plan.metric: alike.source for plan, alike in self._both()}
        if len(set(sources.values())) == 1:
            notes = [f"{of}: {source}" for source in set(sources.values())]
        else:
            notes = [f"{metric.upper()}: {of}: {source}" for metric, source in sources.items()]
        for each in self.plans:
            least = DataNeeded.of(each.metric, self.rate).people
            if each.people < least:
                notes.append(
                    f"{each.metric.upper()}: under {least} people a rate of {self.rate:g} is not"
                    " told; plan with no fewer"
                )
        return notes

    def as_json(self) -> list[dict[str, Any]]:
        """Return each plan by name."""
        rows = []
        for each, alike in self._both():
            both, one = (float(r) for r in alike.dependence.correlations(self.rate))
            rows.append(
                {
                    **asdict(each),
                    "half_width": each.half_width,
                    "people_all_groups": self.groups * each.people,
                    "pairs_all_groups": self.groups * each.pairs,
                    "least_people": DataNeeded.of(each.metric, self.rate).people,
                    "error_correlation_same_people": both,
                    "error_correlation_one_person": one,
                    "correlations_from": alike.source,
                }
            )
        return rows

    def _both(self) -> zip[tuple[PeoplePlan, PairDependence]]:
        return zip(self.plans, self.alike, strict=True)


def plan_sample(
    rate: float,
    *,
    within: float | None = None,
    ratio: float | None = None,
    people: int | None = None,
    groups: int = 1,
    images: int = 5,
    per_person: int | None = None,
    level: float = 0.95,
    pilot: PairFiles | str | Path | None = None,
    attribute: str | None = None,
    feature: str | None = None,
) -> SamplePlan:
    """Say how many people and pairs a wanted interval of an error rate needs.

    Parameters
    ----------
    rate : float
        The error rate that is expected.
    within : float, optional
        Wanted: half the interval's width.
    ratio : float, optional
        Or wanted: times the rate that the interval's upper end may be.
    people : int, optional
        The other way round: what so many people of a group will give.
    groups : int
    images : int
        Of each person.
    per_person : int, optional
        Imposter pairs that each person is in; all within the group unless given.
    level : float
        Confidence of the interval.
    pilot : PairFiles or path, optional
        Labelled pairs with identities, which tell how alike pairs that share people are.
    attribute, feature : str, optional
        Which pairs of the pilot, and which scores.

    Examples
    --------
    >>> fpr, fnr = plan_sample(0.01, within=0.005).plans
    >>> fpr.people, fnr.people
    (94, 323)
    """
    if sum(value is not None for value in (within, ratio, people)) != 1:
        raise ParameterError("expected one of --within, --ratio and --people; give just one")
    if pilot is None and (attribute is not None or feature is not None):
        raise ParameterError("--attribute and --feature: are for --pilot; give it too")
    measured = {} if pilot is None else _measured(PairFiles.of(pilot), attribute, feature)
    alike = [measured.get(metric) or typical_dependence(metric) for metric in METRICS]
    how: dict[str, Any] = {"images": images, "per_person": per_person, "level": level}
    plans = [
        expect(rate, people, metric, **how, pilot=each)
        if people is not None
        else plan(rate, metric, within=within, ratio=ratio, **how, pilot=each)
        for metric, each in zip(METRICS, alike, strict=True)
    ]
    return SamplePlan(rate, level, groups, plans, alike)


def _measured(
    pilot: PairFiles, attribute: str | None, feature: str | None
) -> dict[Metric, PairDependence]:
    """Return how alike pairs of the pilot are: all of them, or those within groups."""
    path = pilot.path
    data = pilot.load([feature] if feature else (), measuring=True)
    check_one_feature(data.features, path)
    pairs = ScoredPairs.of_data(data, None, attribute)
    if pairs.people is None or pairs.ranked is None:
        raise DataError(f"{path}: expected identities, found none; add identity to plan with it")
    identified, scores = IdentifiedPairs.of(pairs.genuine, pairs.people), pairs.ranked
    if pairs.groups is not None:
        rows = np.flatnonzero(pairs.groups.pair >= 0)
        identified, scores = identified.part(rows), scores[rows]
    alike: dict[Metric, PairDependence] = {}
    for metric in METRICS:
        dyads, tail = identified.trials[metric], scores if metric == "fpr" else -scores
        if dyads.effective_people < FEWEST_PEOPLE:
            raise DataError(
                f"{path}: expected at least {FEWEST_PEOPLE} people (effective) for the"
                f" {metric.upper()}, found {dyads.effective_people:.0f}; use a larger pilot"
            )
        source = f"{path.name}, {dyads.people} people"
        alike[metric] = PairDependence(Dependence.of(tail[dyads.rows], dyads), source)
    return alike
