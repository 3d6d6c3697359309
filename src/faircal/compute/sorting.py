"""The order of very many numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Fewer scores than this are sorted as they are.
_FEW = 1 << 15


def ascending(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the order that sorts `values`, a few times faster than argsort for very many.

    Examples
    --------
    >>> ascending(np.array([0.3, 0.1, 0.2]))
    array([1, 2, 0])
    """
    if len(values) < _FEW:
        return np.argsort(values, kind="stable")
    low = values.min()
    with np.errstate(all="ignore"):  # one score only, or a range that no number can hold
        place = (values - low) * ((2.0**32 - 1) / (values.max() - low))
    if not np.isfinite(place).all():
        return np.argsort(values, kind="stable")
    # Sixteen bits at a time are sorted by counting. Values closer than 2⁻³² of the range are left
    # as they came; the last sort finds all but these in order, and takes next to no time then.
    key = place.astype(np.uint32)
    order = np.argsort(key.astype(np.uint16), kind="stable")
    order = order[np.argsort((key >> 16).astype(np.uint16)[order], kind="stable")]
    return order[np.argsort(values[order], kind="stable")]
