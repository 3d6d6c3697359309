"""Operating points: where a model decides, and how that was found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError

Float64 = NDArray[np.float64]
On = Literal["score", "probability"]


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold: a pair is taken for genuine where its value is at least that.

    Attributes
    ----------
    threshold : float
    on : {"score", "probability"}
        Which value: what the model ranks by, or P(genuine) at whatever share users are given it.
    source : str
        In a few words how it came about: ``faircal threshold``, ``told``, ``default``.
    fpr, confidence : float, optional
        The rate that is promised, and with what confidence; where `within` is empty, the rate that
        was counted, and the confidence of the intervals in `measured`.
    within : str
        Of what it is promised: ``global``, ``groups``, ``clusters``; empty where nothing is.
    data, data_sha256 : str
        What it was determined on.
    measured : tuple of dict
        The rates that were measured there: ``name``, ``people``, ``imposters``, ``fpr``,
        ``fpr_low``, ``fpr_high``, ``genuine``, ``fnr``, ``fnr_low``, ``fnr_high``; None where it is
        not known or not reported, for which ``fpr_lacking`` and ``fnr_lacking`` have the reason.
    assumption : str
        What the promise assumes of who is in the data, as the end of its sentence.

    Examples
    --------
    >>> OperatingPoint(0.4).decide(np.array([0.3, 0.4]), np.array([0.1, 0.9]))
    array([False,  True])
    """

    threshold: float
    on: On = "score"
    source: str = "told"
    fpr: float | None = None
    confidence: float | None = None
    within: str = ""
    data: str = ""
    data_sha256: str = ""
    measured: tuple[Mapping[str, Any], ...] = ()
    assumption: str = ""

    def __post_init__(self) -> None:
        if self.on not in ("score", "probability"):
            raise ParameterError(f"on: expected score or probability, found {self.on!r}")
        if not _is_number(self.threshold) or not math.isfinite(self.threshold):
            raise ParameterError(f"threshold: expected a finite number, found {self.threshold!r}")
        for name in ("fpr", "confidence"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and 0 < value < 1):
                raise ParameterError(f"{name}: expected a number between 0 and 1, found {value!r}")
        for name in ("source", "within", "data", "data_sha256", "assumption"):
            if not isinstance(getattr(self, name), str):
                raise ParameterError(f"{name}: expected text, found {getattr(self, name)!r}")

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Groups whose measured FPR is surely above the rate that all pairs together keep to."""
        return () if self.fpr is None else above(self.measured, self.fpr)

    @property
    def promised(self) -> bool:
        """Whether `fpr` is promised, and not only what was counted."""
        return self.fpr is not None and bool(self.within)

    def decide(self, score: Float64, probability: Float64) -> NDArray[np.bool_]:
        """Say which pairs are taken for genuine."""
        return np.asarray((score if self.on == "score" else probability) >= self.threshold)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {**asdict(self), "measured": [dict(row) for row in self.measured]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OperatingPoint:
        """Undo `as_json`."""
        names = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or not names.issuperset(value):
            raise DataError("operating point: expected what 'faircal threshold' writes")
        rows = value.get("measured", ())
        if not isinstance(rows, list | tuple) or not all(map(_is_row, rows)):
            raise DataError("operating point: expected measured rows of numbers and texts")
        return cls(**{**value, "measured": tuple(dict(row) for row in rows)})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_row(row: object) -> bool:
    return isinstance(row, Mapping) and all(
        isinstance(key, str) and (value is None or isinstance(value, str) or _is_number(value))
        for key, value in row.items()
    )


def above(measured: Iterable[Mapping[str, Any]], rate: float) -> tuple[str, ...]:
    """Return the names of measured rows whose FPR is surely above `rate`: its whole interval is."""
    rows = [row for row in measured if row.get("fpr_low") is not None]
    return tuple(str(row["name"]) for row in rows if row["fpr_low"] > rate)


#: Where none was given: more likely genuine than not.
DEFAULT_POINT = OperatingPoint(0.5, "probability", "default")
