"""The folds of pairs that are read part by part, and which pairs are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.data.columns import parse_fold
from faircal.data.dataset import no_such_fold
from faircal.data.origins import Origin


@dataclass(frozen=True)
class Pick:
    """The fold to keep, or to leave out, as it is printed."""

    fold: str
    keep: bool


class Folds:
    """The folds of a stream, found by reading their column alone, once, where need be."""

    def __init__(self, origin: Origin, pick: Pick | None = None) -> None:
        self._origin = origin
        self.pick = pick

    @property
    def there(self) -> bool:
        """Whether the pairs have a column ``fold``."""
        return "fold" in self._origin.table.schema.names

    def picking(self, fold: str, keep: bool) -> Folds:
        """Return the same folds with one to keep or to leave out; it must leave something."""
        where = self._origin.where
        if self.pick is not None:
            raise ParameterError(f"{where}: a fold is picked already; pick from the whole stream")
        if not self.there:
            raise DataError(
                f"{self._origin.table.path}: has no column 'fold' to tell the pairs of fold "
                f"{fold!r} by; add it"
            )
        if fold not in map(str, self.names):
            raise no_such_fold(fold, self.names, where)
        picked = Folds(self._origin, Pick(fold, keep))
        picked.text, picked.names, picked._counts = self.text, self.names, self._counts
        if not picked.kept.sum():
            raise DataError(f"{where}: no pairs are left but those of fold {fold!r}")
        return picked

    @cached_property
    def text(self) -> bool:
        """Whether the names of folds are text: one that is makes all of them."""
        if not self.there or pa.types.is_integer(self._origin.table.schema.field("fold").type):
            return False  # and nothing need be read to tell
        return any(fold.dtype.kind == "U" for fold in self._read(text=False))

    @cached_property
    def _counts(self) -> list[dict[Any, int]]:
        """How many pairs of each fold are in each batch."""
        found = (np.unique(fold, return_counts=True) for fold in self._read(self.text))
        return [dict(zip(names.tolist(), n.tolist(), strict=True)) for names, n in found]

    def _read(self, text: bool) -> Iterator[NDArray[Any]]:
        where = str(self._origin.table.path)
        for span, table in self._origin.read(["fold"]):
            yield parse_fold(table["fold"], where, span, text)

    @cached_property
    def names(self) -> list[Any]:
        """The folds that occur, in order: all numbers or all text."""
        return sorted({name for counts in self._counts for name in counts})

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """How many pairs of each batch are kept, where a fold is asked for."""
        return np.array([self._kept(counts) for counts in self._counts], dtype=np.int64)

    def _kept(self, counts: Mapping[Any, int]) -> int:
        if self.pick is None:
            return sum(counts.values())
        fold, keep = self.pick.fold, self.pick.keep
        return sum(n for name, n in counts.items() if (str(name) == fold) == keep)

    def mask(self, fold: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which pairs are kept."""
        if self.pick is None:
            return np.ones(len(fold), dtype=bool)
        named = [name for name in self.names if str(name) == self.pick.fold]
        return np.asarray(np.isin(fold, named) == self.pick.keep)
