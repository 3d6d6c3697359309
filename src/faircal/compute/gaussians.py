"""Mixtures of Gaussians: their components, and the search by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussians:
    """The components of a mixture, each with a covariance of its own.

    Attributes
    ----------
    means : ndarray of shape (J, k)
    factors : ndarray of shape (J, k, k)
        Lower triangular; ``factors[j] @ (z − means[j])`` is standard normal.
    constants : ndarray of shape (J,)
        Log of the determinants of `factors`, and of the components' weights where they have some.
    """

    means: Float64
    factors: Float64
    constants: Float64

    def __len__(self) -> int:
        return len(self.means)

    def log_densities(self, points: Float64) -> Float64:
        """Return log densities, (n, J), less what is the same everywhere."""
        logs = np.empty((len(points), len(self)))
        for j, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            # log |L| − ½ ‖L (z − μ)‖², with Lᵀ L the inverse of the covariance.
            away = (points - mean) @ factor.T
            logs[:, j] = self.constants[j] - 0.5 * np.einsum("ij,ij->i", away, away)
        return logs


def whitening(covariances: Float64) -> tuple[Float64, Float64]:
    """Return `Gaussians.factors` of covariances (J, k, k), and the logs of their determinants."""
    eye = np.eye(covariances.shape[-1])
    # Σ = C Cᵀ, so C⁻¹ (z − μ) is standard normal: solved for, C⁻¹ is as exact as C.
    factors = np.stack(
        [solve_triangular(np.linalg.cholesky(one), eye, lower=True) for one in covariances]
    )
    return factors, np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)


_Mixture = TypeVar("_Mixture", bound=Gaussians)


def climb(
    step: Callable[[_Mixture], tuple[float, _Mixture]], start: _Mixture, gain: float, rounds: int
) -> tuple[_Mixture, _Mixture]:
    """Go on with expectation and maximisation until a round gains little; return the last two.

    Parameters
    ----------
    step : callable
        From a mixture to its log-likelihood and to the next, likelier mixture.
    start : Gaussians
    gain : float
        Log-likelihood that a round gains at least; else it is the last one.
    rounds : int
        At most so many.
    """
    before, mixture = -np.inf, start
    for _ in range(rounds):
        likelihood, following = step(mixture)
        if likelihood - before < gain:
            return mixture, following
        before, mixture = likelihood, following
    return mixture, mixture
