"""Pairs in use over time, as the report of monitoring shows them; alarms come from `Watch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faircal.production.monitoring import Seen

Float64 = NDArray[np.float64]

#: The most stretches of time that are kept.
MOST = 120


class Stretch(NamedTuple):
    """A stretch of the stream of pairs: means and counts.

    Attributes
    ----------
    source : str
        The file or folder.
    pairs : int
    score, probability : float
        Means.
    images, outside : int
        Images (two a pair) whose place is known, and how many of them lie outside.
    feedback, genuine : int
        Labelled pairs, and the genuine ones.
    expected : float
        How many genuine ones their probabilities promise.
    """

    source: str
    pairs: int
    score: float
    probability: float
    images: int
    outside: int
    feedback: int
    genuine: int
    expected: float

    @classmethod
    def of(cls, seen: Seen, told: Float64, genuine: NDArray[np.bool_], source: str) -> Self:
        """Count pairs; `told` are the probabilities of the labelled ones."""
        sides = [side for side in (seen.left_outside, seen.right_outside) if side is not None]
        return cls(
            source=source,
            pairs=len(seen),
            score=float(np.mean(seen.score)),
            probability=float(np.mean(seen.probability)),
            images=sum(map(len, sides)),
            outside=int(sum(np.count_nonzero(side) for side in sides)),
            feedback=len(told),
            genuine=int(np.count_nonzero(genuine)),
            expected=float(told.sum()),
        )

    @classmethod
    def joined(cls, first: Stretch, second: Stretch) -> Stretch:
        """Return two neighbours as one.

        >>> day = Stretch("a.csv", 10, 0.5, 0.2, 20, 1, 0, 0, 0.0)
        >>> night = Stretch("b.csv", 30, 0.1, 0.2, 60, 3, 0, 0, 0.0)
        >>> both = Stretch.joined(day, night)
        >>> both.source, both.pairs, round(both.score, 3)
        ('a.csv … b.csv', 40, 0.2)
        """
        pairs = first.pairs + second.pairs
        ends = first.source.split(" … ")[0], second.source.split(" … ")[-1]
        added = {
            name: getattr(first, name) + getattr(second, name)
            for name in ("images", "outside", "feedback", "genuine", "expected")
        }
        means = {
            name: (first.pairs * getattr(first, name) + second.pairs * getattr(second, name))
            / pairs
            for name in ("score", "probability")
        }
        source = ends[0] if ends[0] == ends[1] else " … ".join(ends)
        return cls(source=source, pairs=pairs, **means, **added)


def shortened(timeline: Sequence[Stretch]) -> list[Stretch]:
    """Return a timeline that has grown too long with every two neighbours joined."""
    if len(timeline) <= MOST:
        return list(timeline)
    twos: list[Any] = [timeline[i : i + 2] for i in range(0, len(timeline), 2)]
    return [both[0] if len(both) == 1 else Stretch.joined(*both) for both in twos]
