"""Is there enough data? The one rule by which a number is told, or "not enough data" is said.

Pairs are counted (`faircal.metrics.proportions.trials_needed`), and people, each as much as the
pairs that show him let him count (`faircal.metrics.intervals.planning.people_needed`). Reports and
comparisons of runs both ask here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from faircal.metrics.intervals.planning import FEWEST_PEOPLE, people_needed
from faircal.metrics.proportions import trials_needed

NOT_ENOUGH = "not enough data"
_KINDS: dict[str, Literal["fpr", "fnr"]] = {"fpr": "fpr", "fnr": "fnr", "tpr": "fnr"}


def least_people(metric: str, wanted: float | None = None) -> int:
    """Return how many effective people a metric needs, at a `wanted` rate or wherever it lies.

    Examples
    --------
    >>> least_people("fpr", 0.01), least_people("fpr"), least_people("ks")
    (25, 20, 20)
    """
    if wanted is None or metric not in _KINDS:
        return FEWEST_PEOPLE
    return people_needed(wanted, _KINDS[metric])


def lacking(
    metric: str, pairs: int, people: float | None, wanted: float | None = None, *, of: str = "pairs"
) -> str | None:
    """Say what there is too little of for a metric to be told, or None.

    Parameters
    ----------
    metric : str
    pairs : int
        Those that it counts.
    people : float or None
        Effective people behind them; None where nobody knows.
    wanted : float, optional
        The rate that the operating point sets for all pairs.
    of : str
        What the pairs are, in words.

    Examples
    --------
    >>> lacking("fpr", 41, None, of="pairs of strangers")
    'only 41 pairs of strangers: not enough data (100 are needed)'
    >>> lacking("fpr", 4100, 21.4, 0.01)
    'only 21 effective people: not enough data (25 are needed)'
    >>> lacking("fpr", 4100, 25, 0.01)
    """
    if pairs < (least := trials_needed(wanted)):
        few = of.replace("pairs", "pair", 1) if pairs == 1 else of
        return f"only {pairs:,} {few}: {NOT_ENOUGH} ({least:,} are needed)"
    if people is not None and people < (fewest := least_people(metric, wanted)):
        n = min(round(people), fewest - 1)  # 24.9 is not said to be 25
        who = "person" if n == 1 else "people"
        return f"only {n:,} effective {who}: {NOT_ENOUGH} ({fewest:,} are needed)"
    return None


def people(run: Mapping[str, Any], attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known.

    Parameters
    ----------
    run : mapping
        ``run.json``.
    attribute : str
        What groups are made by: two attributes may have groups of the same name.
    """
    return {name: int(n) for name, n in _counted(run, attribute, "people").items()}


def effective_people(
    run: Mapping[str, Any], attribute: str, metric: str = "fpr"
) -> dict[str, float]:
    """Return how many people, each in equally many pairs, would tell as much; as far as known.

    What counts genuine pairs alone has the people of those, where the run counted them; all else
    those of imposter pairs. Where a set has none, its people count as they are.

    Examples
    --------
    >>> run = {"people": {"F": 40}, "effective_people": {"F": 31.5}}
    >>> effective_people(run, "sex"), effective_people(run, "sex", "fnr")
    ({'F': 31.5}, {'F': 31.5})
    >>> effective_people(run | {"effective_people_genuine": {"F": 12.0}}, "sex", "fnr")
    {'F': 12.0}
    """
    found = _counted(run, attribute, "effective_people")
    if _KINDS.get(metric) == "fnr":
        found = _counted(run, attribute, "effective_people_genuine") or found
    counted = people(run, attribute)
    return {name: n or float(counted.get(name, 0)) for name, n in found.items()}


def _counted(run: Mapping[str, Any], attribute: str, key: str) -> dict[str, float]:
    """Return numbers by group; audits and folders of old keep those of one attribute only."""
    by = run.get("people_by")
    own = by.get(attribute) if isinstance(by, dict) else None
    found = (own if isinstance(own, dict) else run).get(key)
    if not isinstance(found, dict):
        return {}
    return {str(name): float(n) for name, n in found.items() if isinstance(n, int | float)}
