"""How far pairs in use may be from calibration before it matters."""

from __future__ import annotations

from dataclasses import asdict, dataclass

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
