"""Inner products of pairs of rows, on tensors: one fused kernel on a GPU, else gathered rows.

The kernel is written in Triton, which comes with PyTorch for GPUs.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from subprocess import CalledProcessError
from typing import Any

import torch
from torch import Tensor

#: Numbers that are gathered at a time where there is no fused kernel.
_GATHERED = 2**24
#: Columns of a row that are multiplied at a time, and products that one program holds: the best
#: of all that were tried on an H200, for rows of 128 to 2048 numbers of either kind.
_COLUMNS = 128
_PRODUCTS = 1024
_WARPS = 4

#: The kernel, compiled for what it is called with; None without Triton.
_fused_kernel: Any = None

if find_spec("triton") is not None:
    triton: Any = import_module("triton")
    tl: Any = import_module("triton.language")
    constexpr: Any = tl.constexpr  # Triton looks for this word in annotations

    # What a kernel is written in looks like Python and has other types.
    @triton.jit  # type: ignore[untyped-decorator]
    def _fused_kernel(  # type: ignore[no-untyped-def]
        vectors, left, right, out, m, d, pairs: constexpr, columns: constexpr
    ):
        # One program works out `pairs` inner products, `columns` numbers of each row at a time.
        pair = tl.program_id(0) * pairs + tl.arange(0, pairs)
        here = pair < m
        a = tl.load(left + pair, mask=here, other=0).to(tl.int64) * d
        b = tl.load(right + pair, mask=here, other=0).to(tl.int64) * d
        products = tl.zeros((pairs, columns), dtype=tl.float32)
        for start in range(0, d, columns):
            column = start + tl.arange(0, columns)
            inside = here[:, None] & (column < d)[None, :]
            x = tl.load(vectors + a[:, None] + column[None, :], mask=inside, other=0.0)
            y = tl.load(vectors + b[:, None] + column[None, :], mask=inside, other=0.0)
            products += x.to(tl.float32) * y.to(tl.float32)
        tl.store(out + pair, tl.sum(products, axis=1), mask=here)


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
        return _fused_dots(vectors, left, right)
    return gathered_dots(vectors, left, right)


def _fused_dots(vectors: Tensor, left: Tensor, right: Tensor) -> Tensor:
    m, d = len(left), vectors.shape[1]
    columns = min(_COLUMNS, triton.next_power_of_2(d))
    pairs = _PRODUCTS // columns
    out = torch.empty(m, dtype=torch.float32, device=vectors.device)
    if m:
        grid = (triton.cdiv(m, pairs),)
        with torch.cuda.device_of(vectors):  # type: ignore[no-untyped-call]
            _fused_kernel[grid](vectors, left, right, out, m, d, pairs, columns, num_warps=_WARPS)
    return out


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
    if _fused_kernel is None:
        return False
    rows = torch.zeros(1, dtype=torch.int32, device=device)
    try:
        _fused_dots(torch.zeros((1, 1), device=device), rows, rows)
    except (RuntimeError, OSError, CalledProcessError):
        return False
    return True
