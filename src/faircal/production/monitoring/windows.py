"""Recent windows of many lengths: their counts, and when each is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from faircal.production.monitoring.counts import Int64

#: Blocks in a window: it moves on by a quarter of its length.
IN_WINDOW = 4
#: Windows that begin when watching does: of these many blocks of the lowest level.
_EARLY = (1, 2, 4)
#: Shares of the false-alarm rate by level, as far as they are given; each further level has half.
_SHARES = (0.06, 0.12, 0.20, 0.32, 0.14)
#: Longer windows are not kept: two million times a block.
_MOST_LEVELS = 20
#: The length of a block that never ends.
ENDLESS = 1 << 62
#: The part of the false-alarm rate that each thing has that is watched.
RATE_PARTS = {"clusters": 0.35, "scores": 0.35, "outside": 0.15, "calibration": 0.15}


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
    return total / ((number + 1) * (number + 2))  # sums to `total` over all numbers


@dataclass(frozen=True, eq=False)
class CountedWindow:
    """A window that is looked at.

    `end` and `length` are in pairs (or labels), `share` is the part of the false-alarm rate that is
    set aside for the look, `alarm` what came of it.
    """

    end: int
    length: int
    share: float
    counts: Int64
    alarm: bool = False

    def level(self, name: str, false_alarms: float) -> float:
        """Return the chance of a false alarm that is set aside for this look at one thing."""
        return false_alarms * RATE_PARTS[name] * self.share

    def replaces(self, before: CountedWindow) -> bool:
        """Whether it is worth more than an earlier one: as long, or that one is out of date."""
        return self.length >= before.length or self.end - before.end >= before.length

    def get_state(self) -> dict[str, Any]:
        """Return arrays and numbers."""
        return {**asdict(self), "alarm": int(self.alarm)}

    @classmethod
    def restore(cls, state: Mapping[str, Any], size: int) -> CountedWindow:
        """Undo `get_state`."""
        counts = np.array(state["counts"], np.int64).reshape(size)
        end, length, share = int(state["end"]), int(state["length"]), float(state["share"])
        return cls(end, length, share, counts, bool(state["alarm"]))


class WindowLadder:
    """Blocks of counts, joined two by two from level to level; the last few of each are kept.

    A window of level j is four blocks of 2^j of the lowest. From level 1 on, each is looked at as
    each block ends, so that a change is in a full window soon, however much came before it; at the
    lowest level only what came first is, after 1, 2 and 4 blocks.

    Attributes
    ----------
    size, block : int
        Counts in a block, and pairs (or labels).
    count : int
        Pairs (or labels) so far.
    part : ndarray of shape (size,)
        The block that is not full yet.
    """

    def __init__(self, size: int, block: int) -> None:
        self.size, self.block, self.count = size, block, 0
        self.part: Int64 = np.zeros(size, np.int64)
        self.levels: list[list[Int64]] = []
        self.done = 0  # blocks that were full

    def add(self, blocks: Int64, n: int) -> list[CountedWindow]:
        """Add `n` things, counted in the blocks they belong to, (n_blocks, size).

        Returns the windows that are to be looked at, shortest first.
        """
        self.count += n
        blocks[0] += self.part
        full = len(blocks) - (self.count % self.block != 0)
        self.part = blocks[-1].copy() if full < len(blocks) else np.zeros(self.size, np.int64)
        return [window for block in blocks[:full] for window in self._climb(block)]

    def everything(self) -> CountedWindow:
        """Return all that was counted as one window, where blocks are endless."""
        return CountedWindow(self.count, self.count, 1.0, self.part)

    def _climb(self, block: Int64) -> Iterator[CountedWindow]:
        """Take a full block to all levels that it completes a block of."""
        self.done += 1
        end = self.done * self.block
        for level in range(_MOST_LEVELS):
            if level == len(self.levels):
                self.levels.append([])
            kept = self.levels[level]
            kept.append(block)
            del kept[:-IN_WINDOW]
            number = self.done >> level  # of this level's blocks
            if level == 0 and number in _EARLY:
                share = share_of(0, _EARLY.index(number))
                yield CountedWindow(end, number * self.block, share, np.sum(kept, axis=0))
            elif level and number >= IN_WINDOW:
                share = share_of(level, number - IN_WINDOW)
                length = (IN_WINDOW << level) * self.block
                yield CountedWindow(end, length, share, np.sum(kept, axis=0))
            if number % 2:
                return
            block = kept[-2] + kept[-1]

    def get_state(self) -> dict[str, Any]:
        """Return what `restore` needs: a number, and counts of blocks."""
        kept = [block for level in self.levels for block in level]
        rows = np.array(kept, np.int64).reshape(len(kept), self.size)
        small = rows.max(initial=0) < 2**31
        return {
            "count": self.count,
            "part": self.part,
            "blocks": rows.astype(np.int32) if small else rows,
        }

    @classmethod
    def restore(cls, size: int, block: int, state: Mapping[str, Any]) -> WindowLadder:
        """Undo `get_state`; `ValueError` where it does not hold together."""
        ladder = cls(size, block)
        ladder.count = int(state["count"])
        ladder.part = np.array(state["part"], np.int64).reshape(size)
        ladder.done = ladder.count // block
        rows = np.asarray(state["blocks"]).astype(np.int64).reshape(-1, size)
        at = 0
        for level in range(min(ladder.done.bit_length(), _MOST_LEVELS)):
            kept = min(ladder.done >> level, IN_WINDOW)
            ladder.levels.append(list(rows[at : at + kept]))
            at += kept
        # Counts that belong to no level, or are negative, are those of a damaged file.
        if at != len(rows) or (rows < 0).any():
            raise ValueError("blocks do not fit their number")
        return ladder
