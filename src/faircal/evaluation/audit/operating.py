"""Error rates at an operating point: of all pairs and of each group, with their intervals."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from faircal._base.errors import ParameterError
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.metrics.intervals.enough import lacking
from faircal.metrics.measures import Rankings, at_threshold


class OperatingRates(NamedTuple):
    """What was measured of all pairs, or of a group, at a threshold.

    Rates and the ends of their intervals are NaN where they are not told: `fpr_lacking` and
    `fnr_lacking` say why. `people` are those of imposter pairs, `effective_people` how many, each
    in equally many pairs, would tell as much; None where nobody knows who is in the pairs.
    """

    name: str
    people: int | None
    effective_people: float | None
    imposters: int
    fpr: float
    fpr_low: float
    fpr_high: float
    genuine: int
    fnr: float
    fnr_low: float
    fnr_high: float
    fpr_lacking: str | None
    fnr_lacking: str | None

    def as_json(self) -> dict[str, Any]:
        """Return it by name as JSON knows it: None where a rate is not told."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in self._asdict().items()
        }


def rates_at(pairs: ScoredPairs, threshold: float, *, level: float = 0.95) -> list[OperatingRates]:
    """Count the errors of ``score >= threshold``: of all pairs, then of each group.

    Rates and intervals are those of `faircal.audit` at this threshold, and are told where it tells
    them. Intervals know that pairs share people where it is known who is in them.

    Parameters
    ----------
    pairs : Scored
    threshold : float
    level : float
        Of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> genuine = np.repeat([True, False], 200)
    >>> scores = np.concatenate([np.linspace(0.3, 1, 200), np.linspace(-1, 0.4, 200)])
    >>> (found,) = rates_at(Scored.of(genuine, scores), 0.35)
    >>> found.fpr, found.fnr, round(found.fpr_low, 3), round(found.fpr_high, 3)
    (0.04, 0.075, 0.02, 0.077)
    """
    scores = pairs.ranked
    if scores is None:
        raise ParameterError("rates: expected pairs with scores, found none; score them first")
    rankings = Rankings.of(scores, None, pairs.genuine, pairs.groups)
    found = list(at_threshold(rankings, threshold))
    sure = pairs.uncertainty(found)

    def told(name: str, metric: str) -> tuple[tuple[float, float, float], str | None]:
        behind = None if sure.independent else sure.effective_people(name, metric)
        why = lacking(metric, sure.trials(name, metric), behind)
        value, ends = sure.values[name, "", metric], sure.interval(name, "", metric, level)
        if why is None and not math.isnan(ends[0]):
            return (value, *ends), None
        return (math.nan, math.nan, math.nan), why

    rows = []
    for name in rankings.scores:
        (false, no_false), (missed, no_missed) = told(name, "fpr"), told(name, "fnr")
        sharing = sure.sets[name].sharing("fpr")
        known = not sure.independent
        rows.append(
            OperatingRates(
                name,
                sharing.people if known else None,
                sharing.effective_people if known else None,
                sure.trials(name, "fpr"),
                *false,
                sure.trials(name, "fnr"),
                *missed,
                no_false,
                no_missed,
            )
        )
    return rows
