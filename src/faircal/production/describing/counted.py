"""Who is in calibration pairs: counted in memory, or part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress
from faircal.data import Dataset, PairStream
from faircal.data.summary import MOST_COUNTED, AttributeCounts, DataSummary
from faircal.data.types import Images


class Surveyed(Protocol):
    """Pairs that are gone through somewhere else, such as on a cluster, and were counted there."""

    name: str
    feature: str
    provenance: Mapping[str, Any]
    images: Images | None
    census: DataSummary

    def __len__(self) -> int:
        """How many pairs there are."""

    def sample(self, most: int, seed: int = 0) -> Dataset:
        """Return some of the pairs, here."""

    def fingerprint(self) -> str:
        """Return what tells whether this is the same data as another time."""


@dataclass
class Counted:
    """Who is in the pairs."""

    pairs: int = 0
    genuine: int = 0
    images: int | None = None
    people: int | None = None
    groups: dict[str, AttributeCounts] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Dataset | PairStream | Surveyed, progress: Progress) -> Counted:
        """Count; of a folder's pairs the images are shared by all parts."""
        if isinstance(data, Dataset | PairStream):
            census = DataSummary.of(data, "counting calibration pairs", progress)
        else:
            census = data.census
        found = cls(census.pairs, census.genuine)
        if data.images is not None and len(census.used):
            found._add_images(data.images, census.images)
        else:
            found.people = len(census.names) if census.names else None
            found.groups = census.sides
        found.groups = {
            name: of for name, of in found.groups.items() if 0 < len(of.images) <= MOST_COUNTED
        }
        return found

    def _add_images(self, images: Any, used: NDArray[np.intp]) -> None:
        self.images = len(used)
        identity = images.identity
        whom = None if identity is None or not identity.names else identity.take(used)
        self.people = None if whom is None else len(np.unique(whom[whom >= 0]))
        for name, column in images.attributes.items():
            if len(column.names) > MOST_COUNTED:
                continue
            self.groups[name] = of = AttributeCounts.of(column, column.take(used))
            if whom is not None:
                for code, value in enumerate(column.names):
                    theirs = whom[(column.take(used) == code) & (whom >= 0)]
                    of.people[value] = len(np.unique(theirs))

    def counts(self) -> dict[str, int | None]:
        """Return the numbers by name."""
        return {
            "pairs": self.pairs,
            "genuine": self.genuine,
            "imposters": self.pairs - self.genuine,
            "images": self.images,
            "people": self.people,
        }
