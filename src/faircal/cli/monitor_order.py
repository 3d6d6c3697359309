"""Pairs of a file in random order, in bounded memory.

Most files know no order of time: pairs of a dataset are sorted by person, group or label, and a
watch that took the first of them for the first in time would raise an alarm over nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal.production.monitoring import Seen

if TYPE_CHECKING:
    from faircal.cli.monitor_read import Chunk

#: Pairs that are held in memory, about, and that are given at a time.
_HELD, _PART = 1 << 20, 1 << 16
#: Not a number of pairs: those are the seeds by which the watch draws places in time, and the same
#: seed twice would put pairs back where they were.
_SEED = (0, 1 << 62)
_PAIR = np.dtype(
    [
        ("score", np.float64),
        ("probability", np.float64),
        ("left_cluster", np.int32),
        ("right_cluster", np.int32),
        ("left_outside", np.int8),
        ("right_outside", np.int8),
        ("left_person", np.int64),
        ("right_person", np.int64),
        ("told", np.float64),
        ("genuine", np.int8),  # −1 where nobody knows
    ]
)


def in_random_order(chunks: Iterable[Chunk], n_pairs: int, held: int = _HELD) -> Iterator[Chunk]:
    """Yield all pairs in an order that is as likely as any other; the same each time.

    Above `held` pairs they are dealt to files on disk first, which hold about so many each.
    """
    rng = np.random.default_rng(_SEED)
    count = max(-(-n_pairs // held), 1)
    with tempfile.TemporaryDirectory(prefix="faircal-monitor-") as home:
        paths = [Path(home) / str(i) for i in range(count)]
        first: Seen | None = None
        parts: list[NDArray[Any]] = []
        for chunk in chunks:
            first = first or chunk.seen
            rows = _rows(chunk)
            if count == 1:
                parts.append(rows)
                continue
            dealt = rng.integers(count, size=len(rows))
            for i, path in enumerate(paths):
                with path.open("ab") as file:
                    file.write(rows[dealt == i].tobytes())
        if first is None:
            return
        for path in paths:
            rows = np.concatenate(parts) if count == 1 else np.fromfile(path, _PAIR)
            rows = rng.permutation(rows)
            parts = []
            for start in range(0, len(rows), _PART):
                yield _chunk(rows[start : start + _PART], first)


def _rows(chunk: Chunk) -> NDArray[Any]:
    rows = np.full(len(chunk.labelled), -1, _PAIR)
    for name in _PAIR.names or ():
        values = getattr(chunk.seen, name, None)
        if values is not None:
            rows[name] = values
    rows["told"] = chunk.told
    rows["genuine"][chunk.labelled] = chunk.genuine
    return rows


def _chunk(rows: NDArray[Any], like: Seen) -> Chunk:
    from faircal.cli.monitor_read import Chunk

    known = {
        name: rows[name].copy()
        for name in _PAIR.names or ()
        if getattr(like, name, None) is not None
    }
    labelled = rows["genuine"] >= 0
    return Chunk(
        Seen(**known, known=like.known),
        rows["told"].copy(),
        rows["genuine"][labelled].astype(bool),
        labelled,
    )
