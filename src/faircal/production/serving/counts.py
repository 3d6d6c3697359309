"""What a service has counted since it started."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from faircal.production.serving.verified import Verified, VerifiedBatch

#: Bins of equal width that probabilities are counted in.
BINS = 10


@dataclass
class Counts:
    """Whole numbers; pairs of verifications only, unless their names say otherwise.

    Attributes
    ----------
    requests : int
        Of the API and of the page's form, whatever was answered.
    pairs, same : int
        Judged, and taken for genuine.
    outside, placed : int
        Pairs with an image outside the population, of those of which it is known.
    probabilities : tuple of int
        Pairs by probability, in bins of equal width.
    batches, identify, enrol, delete, feedback : int
    swaps, refused_swaps : int
        Models taken, and not taken, while running.
    """

    requests: int = 0
    pairs: int = 0
    same: int = 0
    outside: int = 0
    placed: int = 0
    probabilities: tuple[int, ...] = (0,) * BINS
    batches: int = 0
    identify: int = 0
    enrol: int = 0
    delete: int = 0
    feedback: int = 0
    swaps: int = 0
    refused_swaps: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def numbers(self) -> dict[str, Any]:
        """Return all of them by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def add(self, **more: int) -> None:
        """Add to numbers by name."""
        with self._lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)

    def saw(self, verified: Verified) -> None:
        """Count a pair."""
        place = min(int(verified.probability * BINS), BINS - 1)
        with self._lock:
            self.pairs += 1
            self.same += verified.same
            if verified.outside is not None:
                self.placed += 1
                self.outside += any(verified.outside)
            before = self.probabilities
            self.probabilities = (*before[:place], before[place] + 1, *before[place + 1 :])

    def saw_many(self, batch: VerifiedBatch) -> None:
        """Count the pairs of a batch."""
        place = np.minimum((batch.judged.probability * BINS).astype(np.int64), BINS - 1)
        found = np.bincount(place, minlength=BINS).tolist()
        outside = batch.outside
        with self._lock:
            self.batches += 1
            self.pairs += len(batch)
            self.same += int(batch.judged.same.sum())
            if outside is not None:
                self.placed += len(batch)
                self.outside += int(outside.sum())
            self.probabilities = tuple(
                a + b for a, b in zip(self.probabilities, found, strict=True)
            )
