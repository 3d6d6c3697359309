"""Recent windows of many lengths: their counts, and when each is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.production.monitoring.shares import Int64

Counts = NDArray[np.int64]

#: Blocks in a window: it moves on by a quarter of its length.
IN_WINDOW = 4
#: Windows that begin when watching does: of these many blocks of the lowest level.
_EARLY = (1, 2, 4)
#: Shares of the false-alarm rate by level, as far as they are told; each further level has half.
_SHARES = (0.06, 0.12, 0.20, 0.32, 0.14)
#: Longer windows are not kept: two million times a block.
_MOST_LEVELS = 20


class DueWindow(NamedTuple):
    """A window that is due to be looked at.

    `end` is the block it ends with, `blocks` its length, both in blocks; `share` is the part of the
    false-alarm rate set aside for it.
    """

    end: int
    blocks: int
    share: float
    counts: Counts


def share_of(level: int, number: int) -> float:
    """Return the part of the false-alarm rate for look `number` (from 0) at windows of `level`.

    The parts of all looks there can ever be sum to 1, so by Boole's inequality the chance of any
    false alarm is at most the rate, however long one watches and whatever looks have in common.

    Examples
    --------
    >>> round(sum(share_of(j, i) for j in range(40) for i in range(20_000)), 3)
    1.0
    """
    if level == 0:
        return _SHARES[0] / len(_EARLY) if number < len(_EARLY) else 0.0
    given = len(_SHARES)
    left = 1 - sum(_SHARES)
    total = _SHARES[level] if level < given else left * 0.5 ** (level - given + 1)
    return total / ((number + 1) * (number + 2))


@dataclass(eq=False)
class WindowLadder:
    """Blocks of counts, joined two by two from level to level; the last few of each are kept.

    A window of level j is four blocks of 2^j of the lowest. From level 1 on, each is looked at as
    each block ends, so that a change is in a full window soon, however much came before it; at the
    lowest level only what came first is, after 1, 2 and 4 blocks.
    """

    size: int
    levels: list[list[Counts]] = field(default_factory=list)
    done: int = 0

    def push(self, block: Counts) -> list[DueWindow]:
        """Add a block that is full; return the windows to be looked at, shortest first."""
        return list(self._climb(block))

    def _climb(self, block: Counts) -> Iterator[DueWindow]:
        self.done += 1
        for level in range(_MOST_LEVELS):
            if level == len(self.levels):
                self.levels.append([])
            kept = self.levels[level]
            kept.append(block)
            del kept[:-IN_WINDOW]
            number = self.done >> level  # of this level's blocks
            if level == 0 and number in _EARLY:
                counts = np.sum(kept, axis=0)
                yield DueWindow(self.done, number, share_of(0, _EARLY.index(number)), counts)
            elif level and number >= IN_WINDOW:
                share = share_of(level, number - IN_WINDOW)
                yield DueWindow(self.done, IN_WINDOW << level, share, np.sum(kept, axis=0))
            if number % 2:
                return
            block = kept[-2] + kept[-1]

    def get_state(self) -> dict[str, Counts]:
        """Return arrays: `restore` undoes it."""
        kept = [block for level in self.levels for block in level]
        rows = np.array(kept, np.int64).reshape(len(kept), self.size)
        return {
            "blocks": rows.astype(np.int32) if rows.max(initial=0) < 2**31 else rows,
            "kept": np.array([len(level) for level in self.levels], np.int64),
            "done": np.array([self.done], np.int64),
        }

    @classmethod
    def restore(cls, size: int, state: dict[str, NDArray[np.integer]]) -> WindowLadder:
        """Undo `get_state`; `ValueError` where it does not hold together."""
        rows = np.asarray(state["blocks"]).astype(np.int64).reshape(-1, size)
        ladder = cls(size, [], int(state["done"][0]))
        at = 0
        for level, count in enumerate(np.asarray(state["kept"]).tolist()):
            if count != min(ladder.done >> level, IN_WINDOW):
                raise ValueError("blocks do not fit their number")
            ladder.levels.append(list(rows[at : at + count]))
            at += count
        if at != len(rows) or (rows < 0).any():
            raise ValueError("blocks do not fit their number")
        return ladder


#: The part of the false-alarm rate that each thing has that is watched.
PARTS = {"clusters": 0.35, "scores": 0.35, "outside": 0.15, "calibration": 0.15}


@dataclass(frozen=True, eq=False)
class WindowRecord:
    """A window that was looked at: where it ended, how long it was, what was counted in it."""

    end: int
    length: int
    share: float
    counts: Int64
    alarm: bool = False

    def level(self, name: str, false_alarms: float) -> float:
        """Return the chance of a false alarm that is set aside for this look at one thing."""
        return false_alarms * PARTS[name] * self.share

    def replaces(self, before: WindowRecord) -> bool:
        """Whether it is worth more than an earlier look: as long, or that one is out of date."""
        return self.length >= before.length or self.end - before.end >= before.length

    def with_alarm(self, alarm: bool) -> WindowRecord:
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
    def restore(cls, state: Mapping[str, Any], size: int) -> WindowRecord:
        """Undo `get_state`."""
        counts = np.array(state["counts"], np.int64).reshape(size)
        end, length, share = int(state["end"]), int(state["length"]), float(state["share"])
        return cls(end, length, share, counts, bool(state["alarm"]))
