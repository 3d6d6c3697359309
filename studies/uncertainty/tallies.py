"""Counting how often intervals cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Ends = tuple[float, float]
#: What is counted of ours, and of the pair-wise interval beside it.
_OURS = ("draws", "undefined", "covered", "above", "width")
_PAIRS = ("pair_draws", "pair_covered", "pair_width")


class Tally:
    """How often intervals of one thing cover its true value.

    Examples
    --------
    >>> tally = Tally(truth=0.01, errors=12)
    >>> tally.add((0.005, 0.02), (0.011, 0.02))
    >>> tally.add((0.012, 0.02))
    >>> row = tally.row()
    >>> row["draws"], row["covered"], row["above"], row["pair_draws"], row["pair_covered"]
    (2, 1, 1, 1, 0)
    """

    def __init__(self, truth: float, errors: float) -> None:
        self.truth, self.errors = truth, errors
        self.counts: dict[str, float] = dict.fromkeys((*_OURS, *_PAIRS), 0)

    def add(self, ends: Ends, pairs: Ends | None = None) -> None:
        """Count an interval, and the pair-wise one beside it."""
        if np.isnan(ends[0]):
            self.counts["undefined"] += 1
            return
        self._count(draws=1, covered=covers(ends, self.truth), width=ends[1] - ends[0])
        self._count(above=ends[0] > self.truth + 1e-12)
        if pairs is not None:
            inside = covers(pairs, self.truth)
            self._count(pair_draws=1, pair_covered=inside, pair_width=pairs[1] - pairs[0])

    def _count(self, **more: float) -> None:
        for name, value in more.items():
            self.counts[name] += value

    def row(self) -> dict[str, float]:
        """Return the numbers, as they are kept."""
        widths = {name: float(f"{self.counts[name]:.6g}") for name in ("width", "pair_width")}
        whole = {name: int(n) for name, n in self.counts.items() if name not in widths}
        return {"truth": float(f"{self.truth:.5g}"), "errors": round(self.errors, 2)} | (
            whole | widths
        )


def covers(ends: Ends, truth: float) -> bool:
    """Whether a true value is inside; 0, for what cannot be less, where it is not above.

    Examples
    --------
    >>> covers((0.0, 0.1), 0.0), covers((0.01, 0.1), 0.0), covers((0.1, 0.2), 0.3)
    (True, False, False)
    """
    return bool(ends[0] <= truth + 1e-12 and (truth <= 1e-12 or truth <= ends[1]))


def added(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the sum of kept tallies of one thing."""
    total: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            once = name in ("truth", "errors")
            total[name] = value if once else total.get(name, 0) + value
    return total
