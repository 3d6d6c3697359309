"""Inner products of pairs of rows, on tensors."""

from __future__ import annotations

from functools import cache
from subprocess import CalledProcessError

import torch
from torch import Tensor

from faircal.compute import _triton

#: Numbers that are gathered at a time where there is no fused kernel.
_GATHERED = 2**24


def dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the inner products of rows `left` and `right` of `vectors`, shape (m,), float32.

    One kernel on a GPU: rows are read once and nothing is written but the result.

    Parameters
    ----------
    vectors : Tensor of shape (n, d), float16 or float32, contiguous
    left, right : Tensor of shape (m,), int32 or int64
        From 0 to n − 1; this is not checked.
    """
    if vectors.is_cuda and _has_fused(vectors.device):
        return _triton.dots(vectors, left, right)
    return gathered_dots(vectors, left, right)


def gathered_dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return the same without a fused kernel: rows are copied together, then multiplied."""
    out = torch.empty(len(left), dtype=torch.float32, device=vectors.device)
    step = max(1, _GATHERED // vectors.shape[1])
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        a, b = (vectors.index_select(0, rows[part]).float() for rows in (left, right))
        out[part] = a.mul_(b).sum(1)
    return out


@cache
def _has_fused(device: torch.device) -> bool:
    """Say whether Triton is here and can compile; it needs a C compiler at run time."""
    if not _triton.INSTALLED:
        return False
    rows = torch.zeros(1, dtype=torch.int32, device=device)
    try:
        _triton.dots(torch.zeros((1, 1), device=device), rows, rows)
    except (RuntimeError, OSError, CalledProcessError):
        return False
    return True
