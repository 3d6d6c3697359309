"""Who may be paired with whom: runs of images in order of group and person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Homes(ABC):
    """What people have in groups: a *home* is the images of a person in a group.

    Images are in order of their homes, homes in order of group, then person. Left and right are
    the same images where a block meets itself; a pair then has the later one on the right.

    Attributes
    ----------
    person, group : ndarray of shape (n_homes,)
    right : ndarray of shape (n_right,)
        The home of each image on the right, ascending.
    itself : bool
        Whether left and right are the same images.
    """

    person: NDArray[np.integer]
    group: NDArray[np.integer]
    right: Ints
    itself: bool

    @cached_property
    def start(self) -> Ints:
        """Where on the right the images of each home begin, shape (n_homes,)."""
        return np.searchsorted(self.right, np.arange(len(self.person))).astype(np.int64)

    @cached_property
    def size(self) -> Ints:
        """How many they are."""
        return np.bincount(self.right, minlength=len(self.person)).astype(np.int64)

    @cached_property
    def group_start(self) -> Ints:
        """Where on the right the images of each home's group begin."""
        return np.append(self.start, 0)[np.searchsorted(self.group, self.group)]

    @cached_property
    def group_end(self) -> Ints:
        """Where on the right the images of the next group begin."""
        return np.append(self.start, len(self.right))[
            np.searchsorted(self.group, self.group, side="right")
        ]

    @property
    @abstractmethod
    def allowed(self) -> Ints:
        """With how many on the right an image of each home is paired."""

    @abstractmethod
    def reach(self, first: int, last: int) -> tuple[int, int]:
        """Return the places on the right between which images of homes `first` … `last` pair."""

    @abstractmethod
    def meet(self, left: Ints, begin: int, end: int) -> NDArray[np.bool_]:
        """Return whether images of homes `left` are paired with each of those right, by place."""

    @abstractmethod
    def place(self, home: Ints, rank: Ints) -> Ints:
        """Return the place on the right of number `rank` of those that a `home` is paired with."""


class Within(Homes):
    """Both images are of one group."""

    @property
    def allowed(self) -> Ints:
        """With how many on the right an image of each home is paired."""
        if self.itself:
            return self.group_end - self.start - self.size
        return self.group_end - self.group_start - self.size

    def reach(self, first: int, last: int) -> tuple[int, int]:
        """Return the places on the right between which images of homes `first` … `last` pair."""
        low = self.start[first] + self.size[first] if self.itself else self.group_start[first]
        return int(low), int(self.group_end[last])

    def meet(self, left: Ints, begin: int, end: int) -> NDArray[np.bool_]:
        """Return whether images of homes `left` are paired with each of those right, by place."""
        one, two = left[:, None], self.right[begin:end]
        apart = two > one if self.itself else two != one
        return np.asarray(apart & (self.group[one] == self.group[two]))

    def place(self, home: Ints, rank: Ints) -> Ints:
        """Return the place on the right of number `rank` of those that a `home` is paired with."""
        if self.itself:
            return self.start[home] + self.size[home] + rank
        at = self.group_start[home] + rank
        return at + np.where(at >= self.start[home], self.size[home], 0)


class Across(Homes):
    """The two images are of different groups. A person may be in several."""

    @cached_property
    def by_person(self) -> NDArray[np.intp]:
        """Homes, those of a person next to each other."""
        return np.argsort(self.person, kind="stable")

    @cached_property
    def ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where in `by_person` the homes of each home's person begin and end."""
        ordered = self.person[self.by_person]
        return (
            np.searchsorted(ordered, self.person),
            np.searchsorted(ordered, self.person, side="right"),
        )

    @property
    def allowed(self) -> Ints:
        """With how many on the right an image of each home is paired."""
        first, last = self.ends
        sums: Ints = np.append(0, np.cumsum(self.size[self.by_person]))
        if self.itself:
            own = np.empty(len(self.person), dtype=np.int64)
            own[self.by_person] = np.arange(len(self.person))
            return len(self.right) - self.group_end - (sums[last] - sums[own + 1])
        others = sums[last] - sums[first] - self.size
        return len(self.right) - (self.group_end - self.group_start) - others

    def reach(self, first: int, last: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the places on the right between which images of homes `first` … `last` pair."""
        return int(self.group_end[first]) if self.itself else 0, len(self.right)

    def meet(self, left: Ints, begin: int, end: int) -> NDArray[np.bool_]:
        """Return whether images of homes `left` are paired with each of those right, by place."""
        one, two = left[:, None], self.right[begin:end]
        group, other = self.group[one], self.group[two]
        apart = other > group if self.itself else other != group
        return np.asarray(apart & (self.person[one] != self.person[two]))

    def place(self, home: Ints, rank: Ints) -> Ints:
        """Return the place on the right of number `rank` of those that a `home` is paired with.

        What is to be jumped over are the runs of the person, from left to right; that in the own
        group is widened to all of the group. Few people are in many groups, so turns are few.
        """
        at = rank + self.group_end[home] if self.itself else rank.copy()
        first, last = (end[home] for end in self.ends)
        rows = np.flatnonzero(first < last)
        turn = 0
        while len(rows):
            mine, run = home[rows], self.by_person[first[rows] + turn]
            own = run == mine
            if self.itself:
                begin, size = self.start[run], np.where(run > mine, self.size[run], 0)
            else:
                whole = self.group_end[mine] - self.group_start[mine]
                begin = np.where(own, self.group_start[mine], self.start[run])
                size = np.where(own, whole, self.size[run])
            at[rows] += np.where(at[rows] >= begin, size, 0)
            turn += 1
            rows = rows[first[rows] + turn < last[rows]]
        return at
