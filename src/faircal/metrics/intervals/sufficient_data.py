"""Is there enough data? The one rule by which a number is reported, or "not enough data" is said.

Trials are counted, and effective people (`DataNeeded`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from faircal._base.errors import ParameterError
from faircal.metrics.results import Condition, Result

Metric = Literal["fpr", "fnr"]

#: With fewer trials no rate is reported, and with fewer people it is reported with a caution.
FEWEST_TRIALS, CAUTION_PEOPLE = 100, 30
#: With fewer people no rate is reported: their pairs' correlations can't be estimated.
FEWEST_PEOPLE = 20
#: Genuine pairs that a person brings at best, as far as `DataNeeded` counts on them.
_GENUINE_EACH = 10
NOT_ENOUGH = "not enough data"
#: The error rate that a rate is, or is one minus.
ERROR_RATES: dict[str, Metric] = {"fpr": "fpr", "fnr": "fnr", "tpr": "fnr"}
#: What the trials of a rate are, in words.
TRIALS = {"fpr": "pairs of strangers", "fnr": "pairs of one person"}


class DataNeeded(NamedTuple):
    """The least number of trials, and of effective people, with which a metric is reported.

    With fewer the answer is "not enough data". The rule is for what people read; files for machines
    keep every number. Both are floors: pairs share people, and what passes has an interval, which
    may be wide. Under 30 people that is said besides (`CAUTION_PEOPLE`).

    Trials:

    - Never fewer than 100. An interval is then at most 20 percentage points wide; with fewer, one
      pair more or less is over a percentage point, and any number would mislead.
    - Where groups are compared at a wanted rate r: never fewer than 3 / r, the rule of three. With
      no error in n trials the rate is below 3 / n, with 95 % confidence. So with fewer than 3 / r,
      not even a group without a single error could be shown to lie below r.

    People:

    - Never fewer than 20: below, intervals would rest on a variance that is itself a guess.
    - For the FPR, 3 / r pairs of different two people, by the same rule. All pairs of the same two
      people count once here, since they tend to decide alike, and n people make n (n − 1) / 2
      dyads. That is 25 people for 1 %, 78 for 0.1 % and 246 for 0.01 %.
    - For the FNR, 3 / r genuine pairs, of which a person brings ten at best (five images). That is
      30 people for 1 % and 300 for 0.1 %.
    """

    trials: int
    people: int

    @classmethod
    def of(cls, metric: str, rate: float | None = None) -> DataNeeded:
        """Return what a metric needs, at a wanted rate or wherever it lies.

        Parameters
        ----------
        metric : str
        rate : float, optional
            The wanted rate, in (0, 1); None where a decision is given and its rate is what comes
            out.

        Examples
        --------
        >>> DataNeeded.of("fpr"), DataNeeded.of("fpr", 0.01)
        (DataNeeded(trials=100, people=20), DataNeeded(trials=300, people=25))
        >>> [DataNeeded.of("fnr", rate).people for rate in (0.1, 0.01, 0.001)]
        [20, 30, 300]
        """
        if rate is None:
            return cls(FEWEST_TRIALS, FEWEST_PEOPLE)
        if not 0 < rate < 1:
            raise ParameterError(
                f"rate: expected between 0 and 1, found {rate:g}; write 1 % as 0.01"
            )
        least = 3 / rate * (1 - 1e-12)  # a whole quotient must not become one more by rounding
        of_people = {
            "fpr": math.ceil((1 + math.sqrt(1 + 8 * least)) / 2),
            "fnr": math.ceil(least / _GENUINE_EACH),
        }
        people = of_people.get(ERROR_RATES.get(metric, ""), 0)
        return cls(max(FEWEST_TRIALS, math.ceil(least)), max(FEWEST_PEOPLE, people))


def insufficient_data_reason(
    metric: str,
    trials: float,
    people: float | None,
    rate: float | None = None,
    *,
    of: str = "pairs",
    who: tuple[str, str] = ("person", "people"),
) -> str | None:
    """Say what there is too little of for a metric to be reported, or None.

    Parameters
    ----------
    metric : str
    trials : float
        The pairs or rows that it counts.
    people : float or None
        Effective people behind them; None where nobody knows.
    rate : float, optional
        The rate that the operating point sets for all pairs.
    of, who : str
        What trials and people are, in words.

    Examples
    --------
    >>> insufficient_data_reason("fpr", 41, None, of="pairs of strangers")
    'only 41 pairs of strangers: not enough data (100 are needed)'
    >>> insufficient_data_reason("fpr", 4100, 21.4, 0.01)
    'only 21 effective people: not enough data (25 are needed)'
    >>> insufficient_data_reason("fpr", 4100, 25, 0.01)
    """
    needed = DataNeeded.of(metric, rate)
    if trials < needed.trials:
        head, _, rest = of.partition(" ")
        few = " ".join([head.removesuffix("s"), rest]).strip() if trials == 1 else of
        return f"only {trials:,.0f} {few}: {NOT_ENOUGH} ({needed.trials:,} are needed)"
    if people is not None and people < needed.people:
        n = min(round(people), needed.people - 1)  # 24.9 is not said to be 25
        return f"only {n:,} effective {who[n != 1]}: {NOT_ENOUGH} ({needed.people:,} are needed)"
    return None


def withheld_reason(result: Result) -> str:
    """Say why a value of all pairs or of a group must not be shown; empty where it may.

    The one place where that is decided: everything that shows results reads what it says.

    Examples
    --------
    >>> rate = Result(metric="fpr", condition="global_fpr=0.01", value=0.05, trials=200)
    >>> withheld_reason(rate)
    'only 200 pairs of strangers: not enough data (300 are needed)'
    >>> withheld_reason(rate._replace(trials=2000.0, people=12.7))
    'only 13 effective people: not enough data (25 are needed)'
    >>> withheld_reason(rate._replace(trials=2000.0))
    ''
    """
    kind = ERROR_RATES.get(result.metric, result.metric)
    of = TRIALS.get(kind, "pairs")
    if result.trials == 0:
        return f"no {of}: nothing to say"
    people = None if math.isnan(result.people) else result.people
    rate = Condition.of(result.condition).wanted(kind)
    few = insufficient_data_reason(kind, result.trials, people, rate, of=of)
    undefined = math.isnan(result.value) and kind in TRIALS
    return few or ("undefined: no threshold could be set" if undefined else "")


class PeopleByGroup(NamedTuple):
    """The people of all pairs and of each group, as ``run.json`` counts them.

    Parameters
    ----------
    people : dict from group to int
        Empty where it is not known who is in the pairs.
    effective : dict from ``"fpr"`` and ``"fnr"`` to dict from group to float
        Effective people in imposter pairs, and in genuine ones where the run counted those. Where a
        set has none, its people count as they are.
    """

    people: dict[str, int]
    effective: dict[str, dict[str, float]]

    @classmethod
    def of(cls, run: Mapping[str, Any], attribute: str) -> PeopleByGroup:
        """Look people up by `attribute`: two may have groups of the same name.

        Examples
        --------
        >>> run = {"people": {"F": 40}, "effective_people": {"F": 31.5}}
        >>> PeopleByGroup.of(run, "sex")
        PeopleByGroup(people={'F': 40}, effective={'fpr': {'F': 31.5}, 'fnr': {'F': 31.5}})
        >>> PeopleByGroup.of(run | {"effective_people_genuine": {"F": 12.0}}, "sex").effective
        {'fpr': {'F': 31.5}, 'fnr': {'F': 12.0}}
        """
        by = run.get("people_by")
        by_group = by.get(attribute) if isinstance(by, dict) else None
        # Audits keep those of one attribute only.
        counts = by_group if isinstance(by_group, dict) else run
        numbers: dict[str, dict[str, float]] = {}
        for key in ("people", "effective_people", "effective_people_genuine"):
            of = counts.get(key)
            by_name = of.items() if isinstance(of, dict) else ()
            numbers[key] = {str(name): n for name, n in by_name if isinstance(n, int | float)}
        people = {name: int(n) for name, n in numbers["people"].items()}
        imposters = numbers["effective_people"]
        effective = {"fpr": imposters, "fnr": numbers["effective_people_genuine"] or imposters}
        return cls(
            people,
            {
                metric: {name: float(n or people.get(name, 0)) for name, n in of.items()}
                for metric, of in effective.items()
            },
        )
