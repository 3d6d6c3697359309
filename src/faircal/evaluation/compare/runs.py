"""What a run left that can be compared with another: values, intervals, replicates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from faircal._base.errors import DataError
from faircal.evaluation.compare.estimates import of_values
from faircal.evaluation.compare.paired import Estimate, Noise
from faircal.metrics.intervals import Key
from faircal.metrics.intervals.enough import effective_people, lacking
from faircal.metrics.results import (
    AGAIN,
    ALL,
    INTERVALS,
    REPLICATES,
    RESULTS,
    Condition,
    Interval,
    Replicated,
    read_intervals,
    read_replicates,
    read_results,
    read_run,
)

_KINDS = ("fpr", "fnr")


class ScoreKey(NamedTuple):
    """Whose scores values are of, and by which attribute groups are made."""

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """The values of a benchmark (means over folds) or an audit, and how sure they are.

    Parameters
    ----------
    name : str
        The folder, for messages.
    record : dict
        ``run.json``.
    estimates : dict from Scored to dict from (group, condition, metric) to Estimate
    """

    name: str
    record: dict[str, Any]
    estimates: dict[ScoreKey, dict[Key, Estimate]]

    @classmethod
    def read(cls, folder: str | Path) -> ComparedRun:
        """Read the folder that ``faircal benchmark`` or ``faircal audit`` wrote."""
        home = Path(folder)
        if not (home / RESULTS).exists():
            read_results(home)  # no run at all: says so
        return cls.of(home, read_run(home), read_intervals(home))

    @classmethod
    def of(cls, home: Path, record: dict[str, Any], intervals: Sequence[Interval]) -> ComparedRun:
        """Put what was read already together with the replicates of the same folder."""
        replicates = read_replicates(home / REPLICATES)
        if not replicates or not intervals:
            missing = INTERVALS if replicates else REPLICATES
            raise DataError(
                f"{home}: no {missing}, which differences are made of; {AGAIN} with this version"
                " (audits of streamed pairs keep none: leave --stream out)"
            )
        return cls(str(home), record, _estimates(intervals, replicates))

    @staticmethod
    def kept(folder: str | Path) -> bool:
        """Whether a folder has what differences are made of; damaged or not."""
        return all((Path(folder) / name).exists() for name in (INTERVALS, REPLICATES))

    def names(self, field: str) -> list[str]:
        """Return the features, methods or attributes, in order."""
        return list(dict.fromkeys(getattr(each, field) for each in self.estimates))

    def find(self, feature: str, method: str, attribute: str) -> dict[Key, Estimate] | None:
        """Return the values of a method's main variant; None where it was not run."""
        for each, found in self.estimates.items():
            if (each.feature, each.method, each.attribute) == (feature, method, attribute):
                return found
        return None

    @property
    def people_known(self) -> bool:
        """Whether it is known who is in the pairs."""
        return self.record.get("effective_people") is not None

    def people(self, attribute: str, group: str, metric: str) -> float | None:
        """Return the effective people behind a metric of a group; None where they are not known."""
        return effective_people(self.record, attribute, metric).get(group)

    def enough(self, attribute: str, found: Mapping[Key, Estimate], key: Key) -> bool:
        """Whether a report of this run would tell one of the values `found` by an attribute."""
        group, condition, metric = key
        if group == ALL:
            return True
        kind = "fnr" if metric == "tpr" else metric
        pairs = found[key].trials if kind in _KINDS else _pairs(found, group)
        least = 10**9 if math.isnan(pairs) else round(pairs)  # not known: people decide
        people = self.people(attribute, group, metric)
        return lacking(kind, least, people, Condition.of(condition).wanted(kind)) is None

    @property
    def thresholded(self) -> bool:
        """Whether error rates at a threshold of the user's own were measured."""
        return any(("global", "", "fpr") in found for found in self.estimates.values())

    @property
    def data_hash(self) -> str:
        """The hash of the data; empty where none is kept."""
        return str(self.record.get("data_sha256") or "")


def _pairs(found: Mapping[Key, Estimate], group: str) -> float:
    """Return a group's pairs, both kinds: those that its rates count; NaN without rates."""
    counted = {
        metric: each.trials
        for (of, _, metric), each in found.items()
        if of == group and metric in _KINDS and each.trials == each.trials
    }
    return sum(counted.values()) if len(counted) == len(_KINDS) else math.nan


def _estimates(
    intervals: Iterable[Interval], replicates: Iterable[Replicated]
) -> dict[ScoreKey, dict[Key, Estimate]]:
    noise: dict[ScoreKey, dict[Key, Noise]] = {}
    for row in replicates:
        key = row.group, row.condition, row.metric
        noise.setdefault(ScoreKey(*row[:5]), {})[key] = row.noise
    values: dict[ScoreKey, dict[Key, tuple[float, float, float]]] = {}
    trials: dict[ScoreKey, dict[Key, float]] = {}
    level = 0.95
    for each in intervals:
        level = each.level
        key = each.group, each.condition, each.metric
        values.setdefault(ScoreKey(*each[:5]), {})[key] = each.value, each.low, each.high
        trials.setdefault(ScoreKey(*each[:5]), {})[key] = each.trials
    return {
        scored: of_values(values[scored], noise[scored], level, trials[scored])
        for scored in noise
        if scored in values
    }
