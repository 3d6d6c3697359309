"""Where a model is from: data, settings, versions, population, intended use, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from faircal.errors import DataError


@dataclass(frozen=True)
class Provenance:
    """What a model was made of, and what for; all of it is text and numbers.

    Attributes
    ----------
    data, data_sha256 : str
        Name and fingerprint of the calibration data.
    feature : str
        The face network whose embeddings or scores were used.
    counts : dict
        ``pairs``, ``genuine``, ``imposters``, ``images``, ``people``: None where unknown.
    groups : dict
        By attribute, the images of each group: who the population was.
    simulated : bool
    settings : dict
        How the fit was called.
    versions : dict
    intended_use : str
    limits : tuple of str
    """

    data: str = ""
    data_sha256: str = ""
    feature: str = ""
    counts: Mapping[str, int | None] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    simulated: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    intended_use: str = ""
    limits: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {**asdict(self), "limits": list(self.limits)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Provenance:
        """Undo `as_json`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or not known.issuperset(value):
            raise DataError("provenance: expected what 'faircal fit' writes")
        return cls(**{**value, "limits": tuple(map(str, value.get("limits", ())))})
