"""Is there enough data? The one rule by which a number is reported, or "not enough data" is said.

Trials are counted (`trials_needed`), and effective people (`people_needed`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from faircal._base.errors import ParameterError
from faircal.metrics.results import Condition, Result

Metric = Literal["fpr", "fnr"]

#: With fewer trials no rate is reported, and with fewer people it is reported with a caution.
FEWEST_TRIALS, CAUTION_PEOPLE = 100, 30
#: With fewer people no rate is reported: their pairs' correlations can't be estimated.
FEWEST_PEOPLE = 20
#: Genuine pairs that a person brings at best, as far as `people_needed` counts on them.
_GENUINE_EACH = 10
NOT_ENOUGH = "not enough data"
_ERROR_RATES: dict[str, Metric] = {"fpr": "fpr", "fnr": "fnr", "tpr": "fnr"}
#: What the trials of a rate are, in words.
TRIALS = {"fpr": "pairs of strangers", "fnr": "pairs of one person"}


def trials_needed(rate: float | None = None) -> int:
    """Return the least number of trials with which an error rate is reported.

    The rule is for what people read; files for machines keep every number.

    - Never fewer than 100. An interval is then at most 20 percentage points wide; with fewer, one
      pair more or less is over a percentage point, and any number would mislead.
    - Where groups are compared at a wanted rate r: never fewer than 3 / r, the rule of three. With
      no error in n trials the rate is below 3 / n, with 95 % confidence. So with fewer than 3 / r,
      not even a group without a single error could be shown to lie below r.

    The rule counts pairs. Pairs share people, so it is a floor: what passes may still rest on few
    people, and under 30 of them that is said besides (`CAUTION_PEOPLE`).

    Parameters
    ----------
    rate : float, optional
        The wanted rate, in (0, 1); None where a decision is given and its rate is what comes out.

    Examples
    --------
    >>> trials_needed(), trials_needed(0.01), trials_needed(0.001), trials_needed(0.1)
    (100, 300, 3000, 100)
    """
    if rate is None:
        return FEWEST_TRIALS
    check_rate(rate)
    # A whole quotient must not become one more by rounding.
    return max(FEWEST_TRIALS, math.ceil(3 / rate * (1 - 1e-12)))


def people_needed(rate: float, metric: Metric = "fpr") -> int:
    """Return the least number of (effective) people with whom an error rate is reported.

    With fewer the answer is "not enough data". It is a floor, as is `trials_needed` for pairs,
    which holds besides: what passes has an interval, which may be wide.

    - Never fewer than 20: below, intervals would rest on a variance that is itself a guess.
    - For the FPR, 3 / rate pairs of different two people: by the rule of three, with no error
      among n independent trials the rate is below 3 / n with 95 % confidence. All pairs of the same
      two people count once here, since they tend to decide alike, and n people make n (n − 1) / 2
      dyads. That is 25 people for 1 %, 78 for 0.1 % and 246 for 0.01 %.
    - For the FNR, 3 / rate genuine pairs, of which a person brings ten at best (five images). That
      is 30 people for 1 % and 300 for 0.1 %.

    Examples
    --------
    >>> [people_needed(rate) for rate in (0.1, 0.01, 0.001)]
    [20, 25, 78]
    >>> [people_needed(rate, "fnr") for rate in (0.1, 0.01, 0.001)]
    [20, 30, 300]
    """
    check_rate(rate)
    least = 3 / rate * (1 - 1e-12)  # a whole quotient must not become one more by rounding
    if metric == "fnr":
        return max(FEWEST_PEOPLE, math.ceil(least / _GENUINE_EACH))
    return max(FEWEST_PEOPLE, math.ceil((1 + math.sqrt(1 + 8 * least)) / 2))


def least_people(metric: str, rate: float | None = None) -> int:
    """Return how many effective people a metric needs, at a wanted rate or wherever it lies.

    Examples
    --------
    >>> least_people("fpr", 0.01), least_people("fpr"), least_people("ks")
    (25, 20, 20)
    """
    if rate is None or metric not in _ERROR_RATES:
        return FEWEST_PEOPLE
    return people_needed(rate, _ERROR_RATES[metric])


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
    if trials < (least := trials_needed(rate)):
        head, _, rest = of.partition(" ")
        few = " ".join([head.removesuffix("s"), rest]).strip() if trials == 1 else of
        return f"only {trials:,.0f} {few}: {NOT_ENOUGH} ({least:,} are needed)"
    if people is not None and people < (fewest := least_people(metric, rate)):
        n = min(round(people), fewest - 1)  # 24.9 is not said to be 25
        return f"only {n:,} effective {who[n != 1]}: {NOT_ENOUGH} ({fewest:,} are needed)"
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
    kind = _ERROR_RATES.get(result.metric, result.metric)
    of = TRIALS.get(kind, "pairs")
    if result.trials == 0:
        return f"no {of}: nothing to say"
    people = None if math.isnan(result.people) else result.people
    rate = Condition.of(result.condition).wanted(kind)
    few = insufficient_data_reason(kind, result.trials, people, rate, of=of)
    undefined = math.isnan(result.value) and kind in TRIALS
    return few or ("undefined: no threshold could be set" if undefined else "")


def people_by_group(run: Mapping[str, Any], attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known.

    Parameters
    ----------
    run : mapping
        ``run.json``.
    attribute : str
        What groups are made by: two attributes may have groups of the same name.
    """
    return {name: int(n) for name, n in _counted(run, attribute, "people").items()}


def effective_people_by_group(
    run: Mapping[str, Any], attribute: str, metric: str = "fpr"
) -> dict[str, float]:
    """Return the effective number of people of all pairs and of each group; empty where unknown.

    What counts genuine pairs alone has the people of those, where the run counted them; all else
    those of imposter pairs. Where a set has none, its people count as they are.

    Examples
    --------
    >>> run = {"people": {"F": 40}, "effective_people": {"F": 31.5}}
    >>> effective_people_by_group(run, "sex"), effective_people_by_group(run, "sex", "fnr")
    ({'F': 31.5}, {'F': 31.5})
    >>> effective_people_by_group(run | {"effective_people_genuine": {"F": 12.0}}, "sex", "fnr")
    {'F': 12.0}
    """
    effective = _counted(run, attribute, "effective_people")
    if _ERROR_RATES.get(metric) == "fnr":
        effective = _counted(run, attribute, "effective_people_genuine") or effective
    counted = people_by_group(run, attribute)
    return {name: n or float(counted.get(name, 0)) for name, n in effective.items()}


def _counted(run: Mapping[str, Any], attribute: str, key: str) -> dict[str, float]:
    """Return numbers by group; audits keep those of one attribute only."""
    by = run.get("people_by")
    own = by.get(attribute) if isinstance(by, dict) else None
    numbers = (own if isinstance(own, dict) else run).get(key)
    if not isinstance(numbers, dict):
        return {}
    return {str(name): float(n) for name, n in numbers.items() if isinstance(n, int | float)}


def check_rate(rate: float) -> None:
    """Raise where an error rate is not between 0 and 1."""
    if not 0 < rate < 1:
        raise ParameterError(f"rate: expected between 0 and 1, found {rate:g}; write 1 % as 0.01")
