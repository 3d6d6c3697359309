"""Counting people: of all pairs, and of the pairs of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.metrics.results import GLOBAL

#: Bits of a group's number in a key of person and group.
_BITS = 20


class PeopleSeen:
    """Who was seen, and in which groups; memory grows with the people, not with the pairs.

    Examples
    --------
    >>> people = People()
    >>> pairs = Groups(("ann", "bea", "cleo"), np.array([0, 0, 1]), np.array([0, 1, 2]))
    >>> people.add(pairs, np.array([0, 0, UNKNOWN]))
    >>> people.count(["A", "B"])
    {'global': 3, 'A': 2, 'B': 0}
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._last: tuple[tuple[str, ...], NDArray[np.int64]] = (
            (),
            np.full(1, UNKNOWN, np.int64),
        )
        self._seen = np.zeros(0, np.bool_)
        # Most people are of one group: the first one they were seen in, and others as keys.
        self._home = np.zeros(0, np.int32)
        self._more = np.zeros(0, np.int64)

    def add(self, people: Groups, group: NDArray[Any] | None) -> None:
        """Count the two people of each pair, and `group`, that of the pair; −1 for none.

        Parameters
        ----------
        people : Groups
            Those of the left and of the right image, as codes into names.
        group : ndarray of int, shape (n_pairs,), optional
        """
        table = self._table(people.names)
        for side in (people.left, people.right):
            who = table[side]
            known = who != UNKNOWN
            self._seen[who[known]] = True
            if group is not None:
                known &= group != UNKNOWN
                self._place(who[known], group[known])

    def _table(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """Return our numbers for the codes of `names`; −1, at the end, stays."""
        # Parts of a folder share their names, and those of a table have often the same ones.
        if self._last[0] is not names and self._last[0] != names:
            codes = self._codes
            found = [codes.setdefault(name, len(codes)) for name in names]
            self._last = names, np.array([*found, UNKNOWN], np.int64)
            more = len(codes) - len(self._seen)
            self._seen = np.append(self._seen, np.zeros(more, np.bool_))
            self._home = np.append(self._home, np.full(more, UNKNOWN, np.int32))
        return self._last[1]

    def _place(self, who: NDArray[np.int64], group: NDArray[Any]) -> None:
        new = self._home[who] == UNKNOWN
        self._home[who[new]] = group[new]
        other = self._home[who] != group
        if other.any():
            keys = (who[other] << _BITS) | group[other].astype(np.int64)
            self._more = np.union1d(self._more, keys)

    def merge(self, other: PeopleSeen, groups: NDArray[Any]) -> None:
        """Add what `other` has seen; `groups` are our numbers for its groups."""
        if not other._codes:
            return
        table = self._table(tuple(other._codes))
        self._seen[table[:-1][other._seen]] = True
        home = np.flatnonzero(other._home != UNKNOWN)
        self._place(table[home], groups[other._home[home]])
        self._place(table[other._more >> _BITS], groups[other._more & ((1 << _BITS) - 1)])

    def count(self, groups: Sequence[str]) -> dict[str, int]:
        """Return the number of people of all pairs and of each group."""
        found = np.bincount(self._home[self._home != UNKNOWN], minlength=len(groups))
        found += np.bincount(self._more & ((1 << _BITS) - 1), minlength=len(groups))
        return {GLOBAL: int(self._seen.sum())} | dict(zip(groups, found.tolist(), strict=True))

    def state(self) -> tuple[list[str], dict[str, NDArray[Any]]]:
        """Return names and arrays, for a checkpoint; only of people who were seen."""
        names, seen = list(self._codes), np.flatnonzero(self._seen)
        place = np.cumsum(self._seen) - 1
        more = (place[self._more >> _BITS] << _BITS) | (self._more & ((1 << _BITS) - 1))
        arrays = {"seen": self._seen[seen], "home": self._home[seen], "more": more}
        return [names[i] for i in seen], arrays

    @classmethod
    def from_state(cls, names: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> PeopleSeen:
        """Return what `state` was made of."""
        made = cls()
        made._codes = {name: code for code, name in enumerate(names)}
        made._seen, made._home, made._more = (arrays[key] for key in ("seen", "home", "more"))
        return made
