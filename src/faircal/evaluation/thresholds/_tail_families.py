"""Two laws for what is above a high threshold, between which the tails of scores tend to lie.

With x the excess over the threshold and L = -log of the share of exceedances that go beyond x:

- `PARETO`, generalised Pareto: L = log(1 + shape x / scale) / shape. The law that extreme-value
  theory leads to in the limit. Tails like the Gaussian's get there so slowly that, fitted at 1 %,
  it ends too early: at a rate of 1e-5 its thresholds are too low.
- `LINEAR`, linear hazard: L = b x + c x²/2 with c >= 0. All but exact for a Gaussian; for cosines,
  which end at 1, its thresholds are too high.

Both are fitted by maximum likelihood and give the derivatives of each exceedance's likelihood,
from which comes what is fitted without the pairs of one person.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Float64 = NDArray[np.float64]
#: Closer to 0 a shape is taken as this: derivatives divide by its third power.
_FLAT = 1e-3


class Family(ABC):
    """A law of excesses with two parameters; excesses come in units of their mean."""

    name: str

    @abstractmethod
    def fit(self, excess: Float64) -> Float64:
        """Return the most likely parameters, shape (2,), of excesses of shape (k,)."""

    @abstractmethod
    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        """Return first (k, 2) and second (k, 3) derivatives of each log-likelihood."""

    @abstractmethod
    def excess(self, at: Float64, log_share: Float64) -> Float64:
        """Return the excess beyond which a share exp(-log_share) lies, for parameters (…, 2)."""

    @abstractmethod
    def log_share(self, at: Float64, excess: Float64) -> Float64:
        """Return -log of the share that lies beyond `excess`."""


class _Pareto(Family):
    """Parameters: log of the scale, and the shape."""

    name = "generalised Pareto"

    def fit(self, excess: Float64) -> Float64:
        """Search along shape / scale; given that, the best shape is a mean (Grimshaw 1993)."""

        def cost(slope: float) -> float:
            if abs(slope) < 1e-9:
                return float(np.log(excess.mean())) + 1
            shape = float(np.log1p(slope * excess).mean())
            return float(np.log(shape / slope)) + shape + 1

        # The end of the range may not be below the largest excess seen.
        first = -(1 - 1e-6) / float(excess.max())
        mean = float(excess.mean())
        slopes = np.concatenate([np.linspace(first, 0, 15), np.linspace(0, 3 / mean, 15)[1:]])
        slope = _lowest(cost, slopes, 1e-9 / mean)
        shape = float(np.log1p(slope * excess).mean())
        scale = shape / slope if abs(slope) >= 1e-9 else mean
        return np.array([np.log(scale), shape])

    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        shape = _not_flat(at[1], _FLAT)
        w = excess / np.exp(at[0])
        log = np.log1p(shape * w)
        r = w / (1 + shape * w)
        first = np.stack([(1 + shape) * r - 1, log / shape**2 - (1 + 1 / shape) * r], axis=1)
        second = np.stack(
            [
                -(1 + shape) * r / (1 + shape * w),
                r - (1 + shape) * r**2,
                -2 * log / shape**3 + 2 * r / shape**2 + (1 + 1 / shape) * r**2,
            ],
            axis=1,
        )
        return first, second

    def excess(self, at: Float64, log_share: Float64) -> Float64:
        # Without one person a shape can come out absurd; it is then merely very uncertain.
        shape = _not_flat(np.clip(at[..., 1], -1, 1), 1e-9)
        return np.exp(np.clip(at[..., 0], -5, 5)) * np.expm1(shape * log_share) / shape

    def log_share(self, at: Float64, excess: Float64) -> Float64:
        shape = _not_flat(at[1], 1e-9)
        return np.asarray(np.log1p(shape * excess / np.exp(at[0])) / shape)


class _LinearHazard(Family):
    """Parameters: the hazard at the threshold, b, and by how much it grows, c."""

    name = "linear hazard"

    def fit(self, excess: Float64) -> Float64:
        """Search along c / b; given that, the best b is in closed form."""
        mean, square = float(excess.mean()), float((excess**2).mean())

        def cost(ratio: float) -> float:
            return float(np.log(mean + ratio * square / 2) - np.log1p(ratio * excess).mean())

        steps = np.concatenate([[0.0], np.geomspace(0.01, 100, 15)]) / mean
        ratio = _lowest(cost, steps, 1e-7 / mean)
        b = 1 / (mean + ratio * square / 2)
        return np.array([b, b * ratio])

    def derivatives(self, at: Float64, excess: Float64) -> tuple[Float64, Float64]:
        hazard = at[0] + at[1] * excess
        first = np.stack([1 / hazard - excess, excess / hazard - excess**2 / 2], axis=1)
        second = -np.stack([np.ones_like(excess), excess, excess**2], axis=1)
        return first, second / hazard[:, None] ** 2

    def excess(self, at: Float64, log_share: Float64) -> Float64:
        b, c = np.maximum(at[..., 0], 1e-3), at[..., 1]
        # A falling hazard (c < 0, without one person) is not let fall to 0.
        root = np.sqrt(np.maximum(b**2 + 2 * c * log_share, (0.2 * b) ** 2))
        return np.asarray(2 * log_share / (b + root))

    def log_share(self, at: Float64, excess: Float64) -> Float64:
        return np.asarray(at[0] * excess + at[1] * excess**2 / 2)


def _lowest(cost: Callable[[float], float], grid: Float64, tolerance: float) -> float:
    """Return where `cost` is lowest: the best of the grid, then between its neighbours."""
    costs = [cost(float(g)) for g in grid]
    at = int(np.argmin(costs))
    ends = (float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)]))
    found = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": tolerance})
    return float(found.x) if found.fun < costs[at] else float(grid[at])


def _not_flat(shape: Float64, least: float) -> Float64:
    return np.where(np.abs(shape) < least, least, shape)


PARETO, LINEAR = _Pareto(), _LinearHazard()
FAMILIES: tuple[Family, ...] = (PARETO, LINEAR)
