"""Who is in which split and image, and which images are compared.

Images are kept in the order split, group, person. Then all images of a person, of a group inside
a split, and of a split lie in one run of rows, and the possible partners of an image further
down (same person; same group, other person; other group) are one run each. Distinct pairs are
distinct numbers, and can be drawn evenly without a loop and without repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def share_out(n: int, parts: int) -> Rows:
    """Divide `n` things among `parts` as evenly as whole numbers allow.

    Examples
    --------
    >>> share_out(10, 4)
    array([2, 3, 2, 3])
    """
    return np.diff(np.arange(parts + 1) * n // parts)


@dataclass(frozen=True, eq=False)
class Layout:
    """People and images in order; attributes are arrays over people or over images.

    Parameters
    ----------
    split, group : ndarray of shape (n_people,)
        Where each person belongs, numbers from 0.
    person : ndarray of shape (n_images,)
        The person in each image.
    """

    split: Rows
    group: Rows
    person: Rows

    @classmethod
    def of(cls, people: int, images: int, splits: int, groups: int) -> Layout:
        """Deal people evenly to all groups of all splits, and images evenly to people."""
        cell = np.repeat(np.arange(splits * groups), share_out(people, splits * groups))
        person = np.repeat(np.arange(people), share_out(images, people))
        return cls(cell // groups, cell % groups, person)

    def runs(self) -> dict[str, Partners]:
        """Return the possible pairs by kind: ``genuine``, ``within`` and ``across`` groups."""
        groups = int(self.group.max()) + 1
        cell = (self.split * groups + self.group)[self.person]
        split = self.split[self.person]
        row = np.arange(len(self.person))
        end_person, end_cell, end_split = _ends(self.person), _ends(cell), _ends(split)
        return {
            "genuine": Partners(row + 1, end_person, _starts(cell)),
            "within": Partners(end_person, end_cell, _starts(cell)),
            "across": Partners(end_cell, end_split, _starts(split)),
        }


@dataclass(frozen=True, eq=False)
class Partners:
    """The possible pairs of one kind: image i can be paired with images first[i] … last[i] − 1.

    Parameters
    ----------
    first, last : ndarray of shape (n_images,)
    start : ndarray of shape (n_cells + 1,)
        Cell k holds the images start[k] … start[k + 1] − 1; pairs are dealt evenly to cells.
    """

    first: Rows
    last: Rows
    start: Rows

    def most(self) -> int:
        """Return the largest number of pairs that can be dealt evenly."""
        before = np.concatenate([[0], np.cumsum(self.last - self.first)])
        return int(np.diff(before[self.start]).min()) * (len(self.start) - 1)

    def draw(self, n: int, rng: np.random.Generator) -> Iterator[tuple[Rows, Rows]]:
        """Draw `n` distinct pairs; yields those of one cell after the other."""
        for cell, count in enumerate(share_out(n, len(self.start) - 1)):
            rows = np.arange(self.start[cell], self.start[cell + 1])
            width = self.last[rows] - self.first[rows]
            after = np.cumsum(width)
            # Pair number c of the cell is that of the image in whose run of numbers c lies.
            number = np.sort(rng.choice(after[-1], size=int(count), replace=False))
            at = np.searchsorted(after, number, side="right")
            left = rows[at]
            yield left, self.first[left] + number - (after[at] - width[at])


def _ends(code: Rows) -> Rows:
    """Return for each row the row after the last with the same code (`code` ascends from 0)."""
    return np.asarray(_starts(code)[code + 1])


def _starts(code: Rows) -> Rows:
    return np.searchsorted(code, np.arange(int(code[-1]) + 2))
