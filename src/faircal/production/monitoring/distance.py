"""How far pairs in use may be from calibration, and whether a distance is surely more than that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from faircal._base.errors import ParameterError


@dataclass(frozen=True)
class Tolerance:
    """What is let pass. An alarm says that a distance is surely larger, not only that it is there.

    Attributes
    ----------
    clusters : float
        Half the relative change of regions' shares, root mean square: 0.01 is 2 % more or less.
    scores : float
        Distance of the distribution functions of scores, root mean square.
    outside : float
        More images out of the population, as a share of all.
    intercept, slope : float
        Of log-odds: how far they may be off for pairs in doubt, and by what part they may be
        surer, or less sure, than is right.
    """

    clusters: float = 0.01
    scores: float = 0.005
    outside: float = 0.02
    intercept: float = 0.5
    slope: float = 0.25

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0.0 if name in ("clusters", "scores", "outside") else 1e-6
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise ParameterError(
                    f"tolerance {name}: expected a number of at least {least:g}, found {value!r}"
                )


Float64 = NDArray[np.float64]


class Exceedance(NamedTuple):
    """A distance, less what chance brings, and the chance of such a one at the tolerance."""

    distance: float
    p_value: float


def beyond(
    difference: Float64,
    covariances: tuple[tuple[Float64, float], ...],
    tolerance: float,
) -> Exceedance:
    """Test whether the length of the true difference is more than `tolerance`.

    The squared length Q of the difference found has the mean Δ² + tr Σ, so Q − tr Σ estimates Δ²;
    and at a true length of δ its variance is 2 tr Σ² + 4 δᵀΣδ, which 4 δ² λ bounds for λ the
    largest eigenvalue (taken as twice the mean one, weighed by itself, at most √(tr Σ²)). A
    multiple of χ² with that mean and variance (Satterthwaite, Patnaik) gives the chance; as Σ is
    itself found from lots, it becomes Fisher's F.

    Parameters
    ----------
    difference : ndarray of shape (m,)
        Scaled so that its length is the distance.
    covariances : tuple of (ndarray of shape (m, m), float)
        Independent parts of Σ, each with its degrees of freedom (the lots it was found from).
    tolerance : float
    """
    square = float(difference @ difference)
    traces = np.array([float(np.trace(part)) for part, _ in covariances])
    squares = np.array([_square(part, freedom) for part, freedom in covariances])
    cross = sum(
        2 * float((a * b).sum())
        for i, (a, _) in enumerate(covariances)
        for b, _ in covariances[i + 1 :]
    )
    trace = float(traces.sum())
    if not trace > 0:
        return Exceedance(np.sqrt(square), float(square <= tolerance**2))
    squared = min(max(float(squares.sum()) + cross, trace**2 / len(difference)), trace**2)
    mean = trace + tolerance**2
    largest = min(2 * squared / trace, np.sqrt(squared))
    variance = 2 * squared + 4 * tolerance**2 * largest
    freedoms = np.array([freedom for _, freedom in covariances])
    doubt = float((2 * squares / freedoms).sum())
    chance = fdtrc(2 * mean**2 / variance, 2 * mean**2 / max(doubt, 1e-300), square / mean)
    return Exceedance(float(np.sqrt(max(square - trace, 0.0))), float(chance))


def _square(part: Float64, freedom: float) -> float:
    """Return tr Σ², of an estimate from `freedom` independent squares, which alone has too much."""
    raw, trace = float((part * part).sum()), float(np.trace(part))
    if not np.isfinite(freedom):
        return raw
    freedom = max(freedom, 2.0)
    fair = freedom**2 / ((freedom - 1) * (freedom + 2)) * (raw - trace**2 / freedom)
    return float(np.clip(fair, trace**2 / len(part), trace**2))
