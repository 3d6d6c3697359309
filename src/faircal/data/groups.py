"""Groups of pairs, from one attribute or several crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.data.columns import UNKNOWN, Column


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each pair's two images, as codes into `names`; −1 is unknown.

    A pair belongs to a group only when both of its images do. A pair of two different groups is
    *cross-group*; one with an unknown attribute is *unknown*; both count globally, in no group.
    Groups of crossed attributes have the groups of each attribute alone as `parts`, by name.
    """

    names: tuple[str, ...]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    parts: Mapping[str, Groups] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def unknown(self) -> NDArray[np.bool_]:
        """Pairs with at least one unknown side, shape (n_pairs,)."""
        return np.asarray((self.left == UNKNOWN) | (self.right == UNKNOWN))

    @cached_property
    def cross(self) -> NDArray[np.bool_]:
        """Pairs of two different known groups, shape (n_pairs,)."""
        return np.asarray((self.left != self.right) & ~self.unknown)

    @cached_property
    def pair(self) -> NDArray[np.int32]:
        """Code of the group both images belong to, or −1, shape (n_pairs,)."""
        return np.where(self.left == self.right, self.left, np.int32(UNKNOWN))

    def shares(self) -> dict[str, int]:
        """Count all, cross-group and unknown pairs."""
        return {
            "pairs": len(self),
            "cross_group_pairs": int(self.cross.sum()),
            "unknown_pairs": int(self.unknown.sum()),
        }

    def unknown_note(self, attribute: str) -> list[str]:
        """Say what share of the pairs is of unknown group; nothing where there is none."""
        return unknown_note(attribute, int(self.unknown.sum()), len(self))

    def renamed(self, names: Sequence[str]) -> Groups:
        """Return the same groups coded by `names`; a group that is not among them is unknown."""
        code = {name: i for i, name in enumerate(names)}
        table = np.array(
            [code.get(name, UNKNOWN) for name in self.names] + [UNKNOWN], dtype=np.int32
        )
        return Groups(tuple(names), table[self.left], table[self.right])


def unknown_note(attribute: str, unknown: int, pairs: int) -> list[str]:
    """Say what share of `pairs` is of unknown group; nothing where there is none."""
    share = 100 * unknown / max(pairs, 1)
    said = f"{unknown} of {pairs} pairs ({share:.1f} %) have an unknown {attribute}: "
    return [said + "they count globally and in no group"] if unknown else []


def cross(columns: Mapping[str, Column], attribute: str, where: str = "data") -> Column:
    """Return the column of `attribute`; ``a+b`` crosses two columns into ``"A B"`` groups.

    Examples
    --------
    >>> e, g = Column.of(["Asian", "Black", "Asian"]), Column.of(["F", "M", ""])
    >>> cross({"ethnicity": e, "gender": g}, "ethnicity+gender")
    Column(codes=array([ 0,  1, -1], dtype=int32), names=('Asian F', 'Black M'))
    """
    parts = attribute.split("+")
    for part in parts:
        if part not in columns:
            hint = did_you_mean(part, columns)
            raise DataError(f"{where}: attribute '{part}' is not in the data; {hint}")
        if parts.count(part) > 1:
            raise DataError(f"{where}: '{attribute}' crosses '{part}' with itself; name it once")
    codes = columns[parts[0]].codes.astype(np.int64)
    names = list(columns[parts[0]].names)
    for part in parts[1:]:
        column = columns[part]
        width = max(len(column.names), 1)
        unknown = (codes == UNKNOWN) | (column.codes == UNKNOWN)
        codes = np.where(unknown, UNKNOWN, codes * width + column.codes)
        names = [f"{a} {b}" for a in names for b in column.names]
    # Only combinations that occur are groups.
    present = np.flatnonzero(np.bincount(codes + 1, minlength=len(names) + 1)[1:])
    renumber = np.full(max(len(names), 1) + 1, UNKNOWN, dtype=np.int32)
    renumber[present] = np.arange(len(present), dtype=np.int32)
    return Column(renumber[codes], tuple(names[i] for i in present))
