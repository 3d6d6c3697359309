"""Enrolled vectors in memory, for exact search: all cosines, then the best."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError

#: Rows of a block: growing adds a block and copies nothing.
INDEX_BLOCK = 4096


class VectorIndex:
    """Unit vectors in blocks, each under the number its row has in the database.

    Vectors are scaled to unit length here, so that one product gives cosines. What is removed is
    overwritten with zeros at once. Safe to use from many threads.

    >>> gallery = VectorIndex()
    >>> gallery.add([1, 2], ["a", "b"], np.eye(2, 3, dtype=np.float32))
    >>> gallery.search(np.array([2, 1, 0], dtype=np.float32), limit=1)
    [('a', 0.8944...)]
    >>> gallery.remove([1])
    >>> len(gallery)
    1
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: list[NDArray[np.float32]] = []
        self._ids: list[str] = []
        self._numbers: list[int] = []
        self._rows: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, numbers: Sequence[int], ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add vectors (n, d), in the order of `numbers` and `ids`."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = (vectors / lengths).astype(np.float32, copy=False)
        with self._lock:
            done = 0
            while done < len(ids):
                block, start = divmod(len(self._ids), INDEX_BLOCK)
                if block == len(self._blocks):
                    self._blocks.append(np.zeros((INDEX_BLOCK, units.shape[1]), np.float32))
                part = slice(done, min(done + INDEX_BLOCK - start, len(ids)))
                room = self._blocks[block][start : start + part.stop - done]
                room[...] = units[part]
                for number, id_ in zip(numbers[part], ids[part], strict=True):
                    self._rows[number] = len(self._ids)
                    self._ids.append(id_)
                    self._numbers.append(number)
                done = part.stop
        # The second copy: what is enrolled must be only where `remove` can erase it.
        units.fill(0)

    def remove(self, numbers: Sequence[int]) -> None:
        """Take out the vectors of `numbers`, those that are here, and overwrite them."""
        with self._lock:
            for number in numbers:
                row = self._rows.pop(number, None)
                if row is None:
                    continue
                # The last vector takes the place of this one, and zeros take its own.
                last = len(self._ids) - 1
                moved = self._ids.pop(), self._numbers.pop()
                freed = self._blocks[last // INDEX_BLOCK][last % INDEX_BLOCK]
                if row != last:
                    self._blocks[row // INDEX_BLOCK][row % INDEX_BLOCK] = freed
                    self._ids[row], self._numbers[row] = moved
                    self._rows[moved[1]] = row
                freed[...] = 0
                if last % INDEX_BLOCK == 0:
                    self._blocks.pop()

    def clear(self) -> None:
        """Overwrite and forget everything."""
        with self._lock:
            for block in self._blocks:
                block[...] = 0
            self._blocks.clear()
            self._ids.clear()
            self._numbers.clear()
            self._rows.clear()

    def search(self, probe: NDArray[np.float32], limit: int) -> list[tuple[str, float]]:
        """Return ids and cosines of the `limit` vectors most like `probe` (d,), best first.

        Equal cosines come in the order of their ids, also where `limit` cuts through them.
        """
        unit = probe / np.linalg.norm(probe)
        with self._lock:
            if not self._ids:
                return []
            expected = self._blocks[0].shape[1]
            if unit.size != expected:
                raise DataError(
                    f"probe: expected {expected} numbers, as the enrolled templates have; "
                    f"found {unit.size}"
                )
            cosines = np.concatenate([block @ unit for block in self._blocks])[: len(self._ids)]
            best = np.arange(cosines.size)
            if limit < cosines.size:  # the greatest, and all that equal the least of them
                best = np.flatnonzero(cosines >= -np.partition(-cosines, limit - 1)[limit - 1])
            nearest = [(self._ids[row], float(np.clip(cosines[row], -1, 1))) for row in best]
        nearest.sort(key=lambda one: (-one[1], one[0]))
        return nearest[:limit]
