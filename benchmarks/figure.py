"""One measured figure: a ratio, a share of a limit, an exponent of growth, or what is beside."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Better = Literal["higher", "lower"]

#: What needs no place in a file.
_UNSET = {"better": None, "guarded": False, "goal": None, "unit": "", "points": []}

#: Digits that are kept.
DIGITS = 4


@dataclass(frozen=True)
class Figure:
    """A figure of a part.

    Parameters
    ----------
    name : str
        Short, one of a kind within its part; what a kept figure is found by.
    what : str
        In words.
    value : float
    better : {"higher", "lower"} or None
        None where neither is.
    guarded : bool
        Whether a loss against the kept figure fails the run. Ratios are; seconds, which depend on
        the machine, and errors, which are rounding, are not.
    goal : float, optional
        The least (where higher is better) or the most that is wanted.
    unit : str
    points : tuple of (size, seconds)
        Of a growth curve.

    Examples
    --------
    >>> Figure("speed-up", "plain version's time / ours", 31.42, "higher", goal=30).met
    True
    """

    name: str
    what: str
    value: float
    better: Better | None = None
    guarded: bool = False
    goal: float | None = None
    unit: str = ""
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.guarded and not (self.better and math.isfinite(self.value) and self.value > 0):
            raise ValueError(f"{self.name}: a guarded figure has a direction and is positive")
        if self.goal is not None and self.better is None:
            raise ValueError(f"{self.name}: a goal needs a direction")

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal

    @property
    def shown(self) -> str:
        """The value as people read it."""
        return f"{number(self.value)} {self.unit}".strip()

    @property
    def wanted(self) -> str:
        """The goal as people read it."""
        if self.goal is None:
            return ""
        return f"{'≥' if self.better == 'higher' else '≤'} {number(self.goal)} {self.unit}".strip()

    def as_json(self) -> dict[str, Any]:
        """Return the figure as plain values, rounded, without what is not set."""
        found = asdict(self) | {"value": rounded(self.value)}
        found["points"] = [[rounded(x), rounded(y)] for x, y in self.points]
        return {key: value for key, value in found.items() if value != _UNSET.get(key, ...)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Figure:
        """Restore what `as_json` gave."""
        points = tuple((x, y) for x, y in found.get("points", ()))
        return cls(**{**found, "points": points})


def ratio(
    name: str, what: str, value: float, better: Better = "higher", goal: float | None = None
) -> Figure:
    """Return a guarded ratio."""
    return Figure(name, what, value, better, guarded=True, goal=goal)


def aside(name: str, what: str, value: float, unit: str = "") -> Figure:
    """Return what stands beside the ratios: seconds, memory, rates of the machine."""
    return Figure(name, what, value, unit=unit)


def rounded(value: float) -> float:
    """Round to a few significant digits, so that files stay readable."""
    return float(f"{value:.{DIGITS}g}")


def number(value: float) -> str:
    """Return a number for a table.

    Examples
    --------
    >>> number(31.4159), number(0.01234), number(3e-9), number(123456.0), number(1.0)
    ('31.4', '0.0123', '3e-09', '123,456', '1')
    """
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if 0.9 <= abs(value) < 1.1:  # next to one the digits after it are what counts
        return f"{value:.4g}"
    return f"{value:.3g}"
