"""Kernels in Triton, which comes with PyTorch for GPUs; without it there are none."""

# mypy: ignore-errors
# What a kernel is written in looks like Python and has other types.

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

INSTALLED = find_spec("triton") is not None

#: Columns of a row that are multiplied at a time, and products that one program holds: the best
#: of all that were tried on an H200, for rows of 128 to 2048 numbers of either kind.
_COLUMNS = 128
_PRODUCTS = 1024
_WARPS = 4

#: The kernel, compiled for what it is called with; None without Triton.
_dots: Any = None

if INSTALLED:
    triton = import_module("triton")
    tl = import_module("triton.language")

    @triton.jit
    def _dots(vectors, left, right, out, m, d, pairs: tl.constexpr, columns: tl.constexpr):
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


def dots(
    vectors: Tensor,
    left: Tensor,
    right: Tensor,
) -> Tensor:
    """Return the inner products of rows `left` and `right` of `vectors`, shape (m,), float32."""
    m, d = len(left), vectors.shape[1]
    columns = min(_COLUMNS, triton.next_power_of_2(d))
    pairs = _PRODUCTS // columns
    out = torch.empty(m, dtype=torch.float32, device=vectors.device)
    if m:
        grid = (triton.cdiv(m, pairs),)
        with torch.cuda.device_of(vectors):
            _dots[grid](vectors, left, right, out, m, d, pairs, columns, num_warps=_WARPS)
    return out
