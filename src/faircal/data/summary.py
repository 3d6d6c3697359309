"""Who is in pairs, counted part by part."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Progress
from faircal.data.columns import Column
from faircal.data.dataset import Dataset
from faircal.data.parts import PairParts, TallyState

#: An attribute with more values than this is no attribute of groups: it is left out.
MOST_COUNTED = 50


@dataclass
class AttributeCounts:
    """Images by value of an attribute, and people where they are known."""

    images: dict[str, int] = field(default_factory=dict)
    people: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    @classmethod
    def of(cls, column: Column, codes: NDArray[np.int32]) -> AttributeCounts:
        """Count the `codes` of a column; people are not known yet."""
        counts = np.bincount(codes[codes >= 0], minlength=len(column.names)).tolist()
        return cls(dict(zip(column.names, counts, strict=True)), {}, int((codes < 0).sum()))

    def add(self, more: AttributeCounts) -> None:
        """Add images; people are not known yet."""
        both = {**dict.fromkeys(more.images, 0), **self.images}
        # In the order of their names, whatever came first.
        self.images = {name: both[name] + more.images.get(name, 0) for name in sorted(both)}
        self.unknown += more.unknown


class DataSummary:
    """Counts who is in pairs, part by part; such counts add up, in any order.

    Parameters
    ----------
    n_images : int, optional
        Images that the pairs are of; None where they are of a score table, in which each side of
        a pair stands for its own.

    Attributes
    ----------
    pairs, genuine : int
    used : ndarray of bool, shape (n_images,)
        The images that occur; nothing where there are none.
    sides : dict from attribute to Group
        Sides of pairs of a score table, by value.
    names : set of str or None
        The people of a score table; None where they are not known.
    """

    def __init__(self, n_images: int | None = None) -> None:
        self.pairs = self.genuine = 0
        self.used = np.zeros(n_images or 0, bool)
        self.sides: dict[str, AttributeCounts] = {}
        self.names: set[str] | None = set()

    @classmethod
    def of(
        cls, data: PairParts, what: str, progress: Progress, columns: Collection[str] | None = None
    ) -> DataSummary:
        """Go through all pairs, of which `columns` are read, and tell `progress` of `what`."""
        images = data.images if data.has_images else None
        start = partial(cls, None if images is None else len(images))
        if images is not None:
            columns = ("genuine",)  # images bring their own groups and people
        summary = data.reduce(
            start, columns, progress=lambda done, total: progress(what, done, total, "")
        )
        progress(what, 0, 0, "")
        return summary

    @property
    def images(self) -> NDArray[np.intp]:
        """The rows of the images that occur, ascending."""
        return np.flatnonzero(self.used)

    def add(self, part: Dataset) -> None:
        """Count a part."""
        self.genuine += int(part.genuine.sum())
        self.pairs += len(part)
        if part.has_images:
            self.used[part.pairs.left] = self.used[part.pairs.right] = True
        else:
            self._add_sides(part)

    def _add_sides(self, part: Dataset) -> None:
        for name, column in part.images.attributes.items():
            of = self.sides.setdefault(name, AttributeCounts())
            if len(of.images) <= MOST_COUNTED:
                of.add(AttributeCounts.of(column, column.codes))
        identity = part.images.identity
        if identity is None or self.names is None:
            self.names = None
            return
        present = np.unique(identity.codes[identity.codes >= 0])
        self.names |= {identity.names[code] for code in present.tolist()}

    def merge(self, other: DataSummary) -> None:
        """Add what another one has counted of other parts."""
        self.pairs += other.pairs
        self.genuine += other.genuine
        self.used |= other.used
        for name, group in other.sides.items():
            self.sides.setdefault(name, AttributeCounts()).add(group)
        both = self.names is not None and other.names is not None
        self.names = {*(self.names or ()), *(other.names or ())} if both else None

    def state(self) -> TallyState:
        """Return all as JSON and arrays."""
        sides = {name: [of.images, of.unknown] for name, of in self.sides.items()}
        names = None if self.names is None else sorted(self.names)
        header = {"pairs": self.pairs, "genuine": self.genuine, "sides": sides, "names": names}
        return header, {"used": np.packbits(self.used)}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave, of pairs of the same images."""
        self.pairs, self.genuine = header["pairs"], header["genuine"]
        self.sides = {
            name: AttributeCounts(of, {}, lost) for name, (of, lost) in header["sides"].items()
        }
        self.names = None if header["names"] is None else set(header["names"])
        self.used = np.unpackbits(arrays["used"], count=len(self.used)).astype(bool)
