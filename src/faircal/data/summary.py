"""Who is in pairs, and which labels can't be right, counted part by part."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Progress
from faircal.data.columns import Column
from faircal.data.dataset import Dataset
from faircal.data.parts import PairParts, TallyState

#: An attribute with more values than this is no attribute of groups: it is left out.
MOST_COUNTED = 50
#: Data with a larger share of wrong pairs is refused; below it they are counted in a note.
MOST_WRONG = 0.01
#: Standard errors from which on scores are surely the wrong way round.
_SURE = 10.0
_LABEL_OR_IDENTITY = "correct the label or the identity (a person's, not an image's)"
#: Kinds of pairs that are wrong whatever the images show, each with its remedy.
REMEDIES = {
    (_SELF := "pairs of an image with itself"): "remove them: their score says nothing",
    (_APART := "genuine pairs of two different identities"): _LABEL_OR_IDENTITY,
    (_ONE := "imposter pairs of one identity"): _LABEL_OR_IDENTITY,
    (_BOTH := "pairs labelled both genuine and imposter"): "correct the label",
}


def _wrong_pairs(data: Dataset) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Give the pairs of each kind; where identities are known they say which label is right."""
    left, right, genuine, people = data.pairs.left, data.pairs.right, data.genuine, data.people
    named = np.zeros(len(data), bool)
    if people is not None:
        same, named = people.left == people.right, ~people.unknown
        yield _APART, named & genuine & ~same
        yield _ONE, named & ~genuine & same
    if not data.has_images:
        return
    yield _SELF, left == right
    rows = np.flatnonzero(~named)
    if len(rows):
        low, high = (each(left[rows], right[rows]) for each in (np.minimum, np.maximum))
        code, true = low.astype(np.int64) * len(data.images) + high, genuine[rows]
        both = np.zeros(len(data), bool)
        both[rows[~true]] = np.isin(code[~true], code[true])
        yield _BOTH, both


class WrongPairs:
    """Counts pairs that are wrong whatever the images show, part by part.

    Their label contradicts the identities, or the label that the same two images have elsewhere
    in the part; or both images are one.

    Attributes
    ----------
    pairs, wrong : int
        All, and those with anything wrong.
    kinds : dict from kind to [int, str]
        How many, and one of them.
    """

    def __init__(self) -> None:
        self.pairs = self.wrong = 0
        self.kinds: dict[str, list[Any]] = {}

    @classmethod
    def of(cls, data: Dataset) -> WrongPairs:
        """Count those of `data`, once for all who ask."""
        return data.memo("wrong pairs", lambda: cls()._look_at(data))

    def _look_at(self, part: Dataset) -> WrongPairs:
        what, names, of = "images", part.images.ids, cast("Any", part.pairs)
        if not part.has_images and part.people is not None:
            # Not the row, which nobody knows on a cluster.
            what, names, of = "people", part.people.names, part.people
        wrong = np.zeros(len(part), bool)
        for kind, mask in _wrong_pairs(part):
            if mask.any():
                row = int(np.argmax(mask))
                one, other = (names[int(side[row])] for side in (of.left, of.right))
                self.kinds[kind] = [int(mask.sum()), f"{what} {one} and {other}"]
                wrong |= mask
        self.pairs, self.wrong = len(part), int(wrong.sum())
        return self

    def merge(self, other: WrongPairs) -> None:
        """Add what another one has counted of other parts."""
        self.pairs += other.pairs
        self.wrong += other.wrong
        for kind, (count, example) in other.kinds.items():
            self.kinds.setdefault(kind, [0, example])[0] += count

    @property
    def refused(self) -> bool:
        """Whether they are too many for the data to be used."""
        return self.wrong > MOST_WRONG * self.pairs

    def notes(self, where: str) -> list[str]:
        """Say how many there are, if any."""
        if not self.wrong:
            return []
        kinds = (f"{n} {kind} (for example {one})" for kind, (n, one) in self.kinds.items())
        share = f"{100 * self.wrong / self.pairs:.3g} %"
        text = f"{where}: {self.wrong} of {self.pairs} pairs ({share}) can't be right: "
        text += ", ".join(kinds)
        remedies = "; ".join(dict.fromkeys(REMEDIES[kind] for kind in self.kinds))
        return [f"{text}; {remedies}"]

    def check(self, where: str) -> list[str]:
        """Return `notes`; raise where there are too many."""
        notes = self.notes(where)
        if self.refused:
            raise DataError(
                f"{notes[0]}; data with more than {100 * MOST_WRONG:g} % of such pairs is refused"
            )
        return notes


def check_direction(data: Dataset) -> list[str]:
    """Say so where genuine pairs score lower, on average, than imposter pairs.

    Raise where that is sure and nobody is identified: then nothing else says which labels hold.
    """
    scores, genuine = data.scores, data.genuine
    n = np.array([genuine.sum(), (~genuine).sum()], np.float64)
    if not n.all() or scores[genuine].mean() >= scores[~genuine].mean():
        return []
    text = (
        f"{data.where}: genuine pairs score lower than imposter pairs, on average; labels may be "
        "reversed, or the score is a distance: give its negative"
    )
    # Mann and Whitney's U, by normal law; that pairs share people makes it less sure.
    imposters, right = np.sort(scores[~genuine]), 0.0
    for side in ("left", "right"):  # of equal scores half count
        right += float(np.searchsorted(imposters, scores[genuine], side).sum()) / 2
    sure = n.prod() / 2 - right > _SURE * math.sqrt(n.prod() * (n.sum() + 1) / 12)
    if sure and (data.people is None or data.people.unknown.all()):
        raise DataError(f"{text}, or correct the labels; identities would tell which labels hold")
    return [text]


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
    wrong : WrongPairs
    used : ndarray of bool, shape (n_images,)
        The images that occur; nothing where there are none.
    sides : dict from attribute to Group
        Sides of pairs of a score table, by value.
    names : set of str or None
        The people of a score table; None where they are not known.
    """

    def __init__(self, n_images: int | None = None) -> None:
        self.pairs = self.genuine = 0
        self.wrong = WrongPairs()
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
        self.wrong.merge(WrongPairs.of(part))
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
        self.wrong.merge(other.wrong)
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
        header["wrong"] = vars(self.wrong)
        return header, {"used": np.packbits(self.used)}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave, of pairs of the same images."""
        self.pairs, self.genuine = header["pairs"], header["genuine"]
        self.sides = {
            name: AttributeCounts(of, {}, lost) for name, (of, lost) in header["sides"].items()
        }
        self.names = None if header["names"] is None else set(header["names"])
        vars(self.wrong).update(header["wrong"])
        self.used = np.unpackbits(arrays["used"], count=len(self.used)).astype(bool)
