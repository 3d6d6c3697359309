"""Who is in calibration pairs: counted in memory, or part by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Dataset, PairStream
from faircal.data.columns import Column
from faircal.jobs import Progress

#: An attribute with more values than this is no attribute of groups: it is left out.
MOST_GROUPS = 50


@dataclass
class Group:
    """Images by value of an attribute, and people where they are known."""

    images: dict[str, int] = field(default_factory=dict)
    people: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    @classmethod
    def of(cls, column: Column, codes: NDArray[np.int32]) -> Group:
        """Count the `codes` of a column; people are not known yet."""
        known = np.bincount(codes[codes >= 0], minlength=len(column.names)).tolist()
        return cls(dict(zip(column.names, known, strict=True)), {}, int((codes < 0).sum()))


@dataclass
class Counted:
    """Who is in the pairs, gone through part by part."""

    pairs: int = 0
    genuine: int = 0
    images: int | None = None
    people: int | None = None
    groups: dict[str, Group] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Dataset | PairStream, progress: Progress) -> Counted:
        """Count; of a folder's pairs the images are shared by all parts."""
        found, used = cls(), None
        names: set[str] | None = set()
        for part in data.parts() if isinstance(data, PairStream) else [data]:
            found.pairs += len(part)
            found.genuine += int(part.genuine.sum())
            if part.has_images:
                used = np.zeros(len(part.images), bool) if used is None else used
                used[part.pairs.left] = used[part.pairs.right] = True
                images = part.images
            else:
                names = found._add_sides(part, names)
            progress("counting calibration pairs", found.pairs, len(data), "")
        progress("counting calibration pairs", 0, 0, "")
        if used is not None:
            found._add_images(images, np.flatnonzero(used))
        elif names:
            found.people = len(names)
        found.groups = {
            name: of for name, of in found.groups.items() if 0 < len(of.images) <= MOST_GROUPS
        }
        return found

    def _add_images(self, images: Any, used: NDArray[np.intp]) -> None:
        self.images = len(used)
        identity = images.identity
        whom = None if identity is None or not identity.names else identity.take(used)
        self.people = None if whom is None else len(np.unique(whom[whom >= 0]))
        for name, column in images.attributes.items():
            if len(column.names) > MOST_GROUPS:
                continue
            self.groups[name] = of = Group.of(column, column.take(used))
            if whom is not None:
                for code, value in enumerate(column.names):
                    theirs = whom[(column.take(used) == code) & (whom >= 0)]
                    of.people[value] = len(np.unique(theirs))

    def _add_sides(self, part: Dataset, names: set[str] | None) -> set[str] | None:
        """Count the sides of pairs of a score table, whose images are its own; return who is in."""
        for name, column in part.images.attributes.items():
            of = self.groups.setdefault(name, Group())
            if len(of.images) > MOST_GROUPS:
                continue
            more = Group.of(column, column.codes)
            for value, count in more.images.items():
                of.images[value] = of.images.get(value, 0) + count
            of.unknown += more.unknown
        identity = part.images.identity
        if names is None or identity is None:
            return None
        present = np.unique(identity.codes[identity.codes >= 0])
        return names | {identity.names[code] for code in present.tolist()}

    def counts(self) -> dict[str, int | None]:
        """Return the numbers by name."""
        return {
            "pairs": self.pairs,
            "genuine": self.genuine,
            "imposters": self.pairs - self.genuine,
            "images": self.images,
            "people": self.people,
        }
