"""How many people, images and pairs an error rate needs, before they are collected.

The width of an interval follows from the rate, the number of pairs, who shares whom, and how alike
pairs that share people score. The last is taken from a pilot, or typical: pairs of the same two
people correlate a lot, pairs with one person in common a little. But of the latter there are so
many that more images of the same people soon add nothing: people do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from faircal._base.errors import ParameterError
from faircal.metrics.intervals.dependence import Dependence
from faircal.metrics.intervals.dyadic import Dyads, Float64
from faircal.metrics.intervals.inversion import rate_interval
from faircal.metrics.intervals.sufficient_data import DataNeeded, Metric

#: Degrees of freedom of a variance for each person: what simulations of all pairs of up to a
#: hundred people gave. Where people are many it makes no difference.
_FREEDOM_EACH = 0.3
#: Plans with more people are refused.
_MOST_PEOPLE = 10_000_000


class PairDependence(NamedTuple):
    """How alike pairs that share people score, and the source of it."""

    dependence: Dependence
    source: str


def typical_dependence(metric: Metric) -> PairDependence:
    """Return what is planned with where there is no pilot.

    At rates of 5 % to 0.1 %, MobileFaceNet on LFW and simulated faces (``bfw-like``, ``small``)
    gave correlations of 0.71 to 1 for imposter pairs of the same two people, 0.01 to 0.14 for
    imposter pairs with one person in common, and 0.26 to 0.51 for genuine pairs of a person.
    """
    no_dyads = Dyads(np.zeros(0, np.int64), np.zeros(0, np.int64))
    rate, weight, freedom = (np.array([value]) for value in (0.1, 1.0, 3.0))
    both_and_one = np.array([[0.8, 0.1] if metric == "fpr" else [0.45, 0.0]])
    dependence = Dependence(rate, weight, both_and_one, freedom, no_dyads)
    return PairDependence(dependence, "typical of LFW and of simulated faces")


@dataclass(frozen=True)
class PeoplePlan:
    """What so many people give in one group.

    Attributes
    ----------
    metric : {"fpr", "fnr"}
    people, images, pairs : int
        People of a group, images of each, and its imposter or genuine pairs.
    effective_pairs : float
        Independent pairs that would give as narrow an interval.
    rate, low, high : float
        The interval to be expected where the rate is what is counted.
    """

    metric: Metric
    people: int
    images: int
    pairs: int
    effective_pairs: float
    rate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    @property
    def ratio(self) -> float:
        """The upper end over the rate."""
        return self.high / self.rate


def expect(
    rate: float,
    people: int,
    metric: Metric = "fpr",
    *,
    images: int = 5,
    per_person: int | None = None,
    pilot: PairDependence | None = None,
    level: float = 0.95,
) -> PeoplePlan:
    """Return what an interval will be like with so many people in a group.

    Parameters
    ----------
    rate : float
        The error rate that is expected.
    people : int
        People of the group.
    images : int
        Images of each person.
    per_person : int, optional
        Imposter pairs that each person is in, drawn at random; by default all there are. Genuine
        pairs are always all.
    pilot : PairDependence, optional
        How alike pairs that share people are, in a pilot; `typical_dependence` by default.
    level : float

    Examples
    --------
    >>> small = expect(0.01, people=100, images=5)
    >>> small.pairs, round(small.effective_pairs), round(small.low, 4), round(small.high, 4)
    (123750, 2220, 0.0068, 0.0163)
    >>> twice = expect(0.01, people=100, images=10)  # more images hardly help
    >>> twice.pairs, round(twice.effective_pairs)
    (495000, 2239)
    """
    _check(rate, people, images, per_person, level)
    dependence = pilot or typical_dependence(metric)
    design = _Design.of(metric, people, images, per_person)
    low, high = rate_interval(
        rate,
        design.pairs,
        lambda at: design.effect(at, dependence),
        level=level,
        freedom=max(_FREEDOM_EACH * people, 3.0),
    )
    effective = design.pairs / float(design.effect(rate, dependence))
    return PeoplePlan(metric, people, images, round(design.pairs), effective, rate, low, high)


def plan(
    rate: float,
    metric: Metric = "fpr",
    *,
    within: float | None = None,
    ratio: float | None = None,
    images: int = 5,
    per_person: int | None = None,
    pilot: PairDependence | None = None,
    level: float = 0.95,
) -> PeoplePlan:
    """Return the fewest people of a group with whom an interval is as narrow as wanted.

    Parameters
    ----------
    within : float, optional
        Half the interval's width, as in "1 % within 0.5 %".
    ratio : float, optional
        Or how many times the rate its upper end may be. One of the two.
    rate, metric, images, per_person, pilot, level
        As in `expect`.

    Examples
    --------
    >>> plan(0.01, within=0.005).people, plan(0.01, "fnr", within=0.005).people
    (94, 323)
    """
    if within is not None and ratio is None and within > 0:
        target = within
    elif ratio is not None and within is None and ratio > 1:
        target = ratio
    else:
        raise ParameterError(
            "expected either within, half a width above 0, or ratio, above 1;"
            f" found within={within}, ratio={ratio}"
        )

    def narrow_enough(people: int) -> PeoplePlan | None:
        plan = expect(
            rate, people, metric, images=images, per_person=per_person, pilot=pilot, level=level
        )
        width = plan.ratio if within is None else plan.half_width
        return plan if width <= target else None

    low = DataNeeded.of(metric, rate).people - 1
    high = low + 1
    while (fewest := narrow_enough(high)) is None:
        low, high = high, 2 * high
        if high > _MOST_PEOPLE:
            raise ParameterError(
                f"expected an interval that {_MOST_PEOPLE:,} people can give, found {target:g};"
                " ask for a wider one"
            )
    while high - low > 1:
        middle = (low + high) // 2
        fewer = narrow_enough(middle)
        if fewer is None:
            low = middle
        else:
            fewest, high = fewer, middle
    return fewest


class _Design(NamedTuple):
    """Pairs of one group, and how many others each shares both people and one person with.

    These are C₂ / N and C₁ / N of `faircal.metrics.intervals.dependence`.
    """

    pairs: float
    both: float
    one: float

    @classmethod
    def of(cls, metric: Metric, people: int, images: int, per_person: int | None) -> _Design:
        if metric == "fnr":
            each = images * (images - 1) / 2
            return cls(people * each, each - 1, 0.0)
        each = images**2
        every = people * (people - 1) / 2 * each
        pairs = every if per_person is None else min(people * per_person / 2, every)
        # Drawn at random, the same part is there of all pairs that a pair shares people with.
        drawn = pairs / every
        return cls(pairs, drawn * (each - 1), drawn * 2 * (people - 2) * each)

    def effect(self, rate: npt.ArrayLike, pilot: PairDependence) -> Float64:
        """Return the design effect at a rate, as `Dependence.design_effect`."""
        both, one = pilot.dependence.correlations(rate)
        return np.asarray(pilot.dependence.wider * (1 + self.both * both + self.one * one))


def _check(rate: float, people: int, images: int, per_person: int | None, level: float) -> None:
    DataNeeded.of("fpr", rate)  # refuses what is no rate
    least = {
        "people": (people, 3),
        "images": (images, 2),
        "per_person": (1 if per_person is None else per_person, 1),
    }
    for name, (value, fewest) in least.items():
        if value < fewest:
            raise ParameterError(f"{name}: expected at least {fewest}, found {value}")
    if not 0 < level < 1:
        raise ParameterError(f"level: expected between 0 and 1, found {level:g}")
