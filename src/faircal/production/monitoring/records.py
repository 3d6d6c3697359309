"""The look that counts for each thing that is watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faircal.production.monitoring.lots import Int64

#: The part of the false-alarm rate that each thing has that is watched.
PARTS = {"clusters": 0.35, "scores": 0.35, "outside": 0.15, "calibration": 0.15}


@dataclass(frozen=True, eq=False)
class Record:
    """A window that was looked at: where it ended, how long it was, what was counted in it."""

    end: int
    length: int
    share: float
    counts: Int64
    alarm: bool = False

    def level(self, name: str, false_alarms: float) -> float:
        """Return the chance of a false alarm that is set aside for this look at one thing."""
        return false_alarms * PARTS[name] * self.share

    def replaces(self, before: Record) -> bool:
        """Whether it is worth more than an earlier look: as long, or that one is out of date."""
        return self.length >= before.length or self.end - before.end >= before.length

    def with_alarm(self, alarm: bool) -> Record:
        """Return it with what came of it."""
        return replace(self, alarm=alarm)

    def get_state(self) -> dict[str, Any]:
        """Return arrays and numbers."""
        return {
            "end": self.end,
            "length": self.length,
            "share": self.share,
            "alarm": int(self.alarm),
            "counts": self.counts,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any], size: int) -> Record:
        """Undo `get_state`."""
        counts = np.array(state["counts"], np.int64).reshape(size)
        end, length, share = int(state["end"]), int(state["length"]), float(state["share"])
        return cls(end, length, share, counts, bool(state["alarm"]))
