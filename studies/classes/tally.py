"""Splits put together: means, and differences with intervals that know splits overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

Row = Mapping[str, Any]
Key = tuple[str, str]
HELPS, UNCLEAR, HURTS = "helps", "no clear difference", "hurts"


class Difference(NamedTuple):
    """The mean difference of a measure over splits, its 95 % interval and what it says."""

    mean: float
    low: float
    high: float
    within: float

    @property
    def verdict(self) -> str:
        """What may be said of a measure that is better when small."""
        if self.high < 0:
            return HELPS
        return HURTS if self.low > 0 else UNCLEAR


def corrected(differences: Sequence[float], share: float) -> tuple[float, float, float]:
    """Return mean and 95 % interval over repeated splits of one set.

    Splits have rows in common, so their differences vary less than those of other data would. After
    Nadeau and Bengio (2003) the variance of the mean of J splits is taken as (1/J + `share`) S²,
    where S² is the differences' own; t has J − 1 degrees of freedom.

    Parameters
    ----------
    differences : sequence of float
        One a split.
    share : float
        Test rows over all others.

    Returns
    -------
    tuple of float
        Mean, low, high; the ends are NaN for fewer than two splits.

    Examples
    --------
    >>> [round(end, 3) for end in corrected([1.0, 2.0, 3.0], 0.5)]
    [2.0, -1.928, 5.928]
    """
    values = np.asarray(differences, float)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    error = np.sqrt((1 / len(values) + share) * values.var(ddof=1))
    reach = float(t.ppf(0.975, len(values) - 1) * error)
    return mean, mean - reach, mean + reach


class Tally:
    """Kept rows by set and base classifier.

    Parameters
    ----------
    rows : iterable of mapping
        Lines of ``classes.jsonl``.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[Key, list[Row]] = {}
        for row in rows:
            self.rows.setdefault((row["set"], row["base"]), []).append(row)

    def keys(self, order: Sequence[str]) -> list[Key]:
        """Return what was run, sets in the order that is asked for."""
        place = {name: i for i, name in enumerate(order)}
        return sorted(self.rows, key=lambda key: (place.get(key[0], len(place)), key))

    def mean(self, key: Key, name: str, metric: str) -> float:
        """Return a contender's mean over splits; NaN where it was not measured."""
        found = [row["values"].get(name, {}).get(metric, np.nan) for row in self.rows[key]]
        return float(np.mean(found))

    def group(self, key: Key, name: str, group: str) -> float:
        """Return the mean over splits of a group's KS."""
        return float(np.nanmean([row["by_group"][name][group] for row in self.rows[key]]))

    def difference(self, key: Key, a: str, b: str, metric: str) -> Difference:
        """Return a − b; `within` is the standard error of one split from its test units alone."""
        rows = self.rows[key]
        each = [row["values"][a][metric] - row["values"][b][metric] for row in rows]
        errors = [row["errors"].get(f"{a} - {b}", {}).get(metric, np.nan) for row in rows]
        train, calibration, test = np.mean([row["rows"] for row in rows], axis=0)
        within = float(np.sqrt(np.mean(np.square(errors))))
        return Difference(*corrected(each, test / (train + calibration)), within)

    def same(self, key: Key, a: str, b: str) -> int:
        """Return in how many splits two contenders said the same: all measures are equal."""
        metrics = ("nll", "brier", "top_ks_mean", "class_ks_mean")
        return sum(
            all(row["values"][a][m] == row["values"][b][m] for m in metrics)
            for row in self.rows[key]
        )
