"""Logistic regressions of many sets at once, and their maps, on tensors of float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Float64 = NDArray[np.float64]

#: Points that are added up on the device; sets are made of whole blocks.
_BLOCK = 512
#: Blocks at a time: 2 million points.
_BLOCKS = 2**12


class LogisticSums:
    """The log-loss of each set, its gradient and its Hessian, at parameters of its own.

    The points of a set are cut in blocks, of which the last is filled up with points of no mass.
    Blocks are added up on the device, sets from their blocks in order: the same bits every time.

    Parameters
    ----------
    features : Tensor of shape (m, n)
    target, mass : Tensor of shape (n,)
    starts : ndarray of shape (K + 1,)
        Set k has the points from ``starts[k]`` to ``starts[k + 1]``.
    """

    def __init__(
        self, features: Tensor, target: Tensor, mass: Tensor, starts: NDArray[np.integer]
    ) -> None:
        starts = np.asarray(starts, dtype=np.int64)
        self._device = features.device
        self._blocks = -(-np.diff(starts) // _BLOCK)  # of each set
        self._first = np.cumsum(self._blocks) - self._blocks
        owner = np.repeat(np.arange(len(self._blocks)), self._blocks)
        begins = starts[owner] + _BLOCK * (np.arange(len(owner)) - self._first[owner])
        at = self._there(begins)[:, None] + torch.arange(_BLOCK, device=self._device)
        inside = at < self._there(starts[1:][owner])[:, None]
        at.clamp_(max=max(0, len(target) - 1))
        # (blocks, m + 1, _BLOCK): the last of the rows is the intercept's
        self._rows = torch.stack([*(x[at] for x in features), inside.double()], dim=1)
        self._target = target[at]
        self._mass = mass[at] * inside

    def __call__(
        self, theta: Float64, which: NDArray[np.integer]
    ) -> tuple[Float64, Float64, Float64]:
        """Return loss (k,), gradient (k, m + 1) and Hessian (k, m + 1, m + 1) of k of the sets.

        Parameters
        ----------
        theta : ndarray of shape (k, m + 1)
            The intercept last.
        which : ndarray of shape (k,), integer
        """
        count, n = self._blocks[which], self._rows.shape[1]
        ends = np.cumsum(count)
        owner = np.repeat(np.arange(len(count)), count)
        blocks = np.arange(len(owner)) + (self._first[which] - ends + count)[owner]
        parts = [np.empty((0, 1 + n + n * n))]
        for start in range(0, len(blocks), _BLOCKS):
            part = slice(start, start + _BLOCKS)
            own = self._there(np.asarray(theta, dtype=np.float64)[owner[part]])
            parts.append(self._sums(own, self._there(blocks[part])).cpu().numpy())
        sums = np.zeros((len(count), 1 + n + n * n))
        filled = np.flatnonzero(count)
        if len(filled):
            sums[filled] = np.add.reduceat(np.concatenate(parts), (ends - count)[filled])
        loss, gradient, hessian = np.split(sums, [1, 1 + n], axis=1)
        return loss[:, 0], gradient, hessian.reshape(-1, n, n)

    def _sums(self, theta: Tensor, blocks: Tensor) -> Tensor:
        """Return loss, gradient and Hessian of `blocks`, side by side."""
        rows, target, mass = self._rows[blocks], self._target[blocks], self._mass[blocks]
        eta = torch.bmm(theta[:, None], rows)[:, 0]
        probability = torch.sigmoid(eta)
        # log(1 + e^η) − y·η, written so that nothing overflows.
        loss = eta.clamp(min=0) - target * eta + torch.log1p(torch.exp(-eta.abs()))
        gradient = torch.bmm(rows, (mass * (probability - target))[..., None])
        curvature = mass * probability * (1 - probability)
        hessian = torch.bmm(rows * curvature[:, None], rows.mT)
        total = (mass * loss).sum(1, keepdim=True)
        return torch.cat([total, gradient[..., 0], hessian.flatten(1)], dim=1)

    def _there(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self._device)
