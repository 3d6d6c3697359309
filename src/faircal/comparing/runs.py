"""What a run left that can be compared with another: values, intervals, replicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from faircal.comparing.estimates import of_values
from faircal.comparing.paired import Estimate, Noise
from faircal.errors import DataError
from faircal.results import (
    AGAIN,
    REPLICATES,
    Interval,
    Replicated,
    read_intervals,
    read_replicates,
    read_results,
    read_run,
)
from faircal.uncertainty import Key


class Scored(NamedTuple):
    """Whose scores values are of, and by which attribute groups are made."""

    feature: str
    method: str
    calibrator: str
    clusters: str
    attribute: str


@dataclass(frozen=True, eq=False)
class Run:
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
    estimates: dict[Scored, dict[Key, Estimate]]

    @classmethod
    def read(cls, folder: str | Path) -> Run:
        """Read the folder that ``faircal benchmark`` or ``faircal audit`` wrote."""
        home = Path(folder)
        read_results(home)  # what is no run at all is told so
        replicates = read_replicates(home / REPLICATES)
        intervals = read_intervals(home)
        if not replicates or not intervals:
            missing = "intervals.csv" if replicates else REPLICATES
            raise DataError(
                f"{home}: no {missing}, which differences are made of; {AGAIN} with this version"
                " (audits of streamed pairs keep none: leave --stream out)"
            )
        return cls(str(home), read_run(home), _estimates(intervals, replicates))

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

    def people(self, group: str) -> float | None:
        """Return the effective number of people of a group; None where they are not known."""
        found = self.record.get("effective_people")
        people = found.get(group) if isinstance(found, dict) else None
        return float(people) if isinstance(people, int | float) else None

    @property
    def thresholded(self) -> bool:
        """Whether error rates at a threshold of the user's own were measured."""
        return any(("global", "", "fpr") in found for found in self.estimates.values())

    @property
    def data_hash(self) -> str:
        """The hash of the data; empty where none is kept."""
        return str(self.record.get("data_sha256") or "")


def _estimates(
    intervals: Iterable[Interval], replicates: Iterable[Replicated]
) -> dict[Scored, dict[Key, Estimate]]:
    noise: dict[Scored, dict[Key, Noise]] = {}
    for row in replicates:
        key = row.group, row.condition, row.metric
        noise.setdefault(Scored(*row[:5]), {})[key] = row.noise
    values: dict[Scored, dict[Key, tuple[float, float, float]]] = {}
    level = 0.95
    for each in intervals:
        level = each.level
        key = each.group, each.condition, each.metric
        values.setdefault(Scored(*each[:5]), {})[key] = each.value, each.low, each.high
    return {
        scored: of_values(values[scored], noise[scored], level)
        for scored in noise
        if scored in values
    }
