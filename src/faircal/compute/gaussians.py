"""Mixtures of Gaussians: their components, and the search by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Float64 = NDArray[np.float64]

#: Rounds of the search for shares.
_SHARE_ROUNDS = 100


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


def mixture_shares(likelihood: Float64, weight: Float64, imagined: float = 0.0) -> Float64:
    """Return the shares of components that make points likeliest, by expectation-maximisation.

    Parameters
    ----------
    likelihood : ndarray of shape (n, k)
        Of each point in each component.
    weight : ndarray of shape (n,)
    imagined : float
        Points of each component that are imagined besides.

    Examples
    --------
    >>> mixture_shares(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.ones(3)).round(2)
    array([0.67, 0.33])
    """
    # A component that nothing is of has no share from the beginning.
    possible = likelihood.max(axis=0) > 0
    shares = np.asarray(possible / possible.sum(), np.float64)
    for _ in range(_SHARE_ROUNDS):
        belongs = likelihood * shares
        belongs /= belongs.sum(axis=1, keepdims=True)
        shares = (weight @ belongs + imagined) / (weight.sum() + imagined * len(shares))
    return shares
