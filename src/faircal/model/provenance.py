"""Where a model is from: data, settings, versions, population, intended use, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from faircal._base.errors import DataError


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
        ``pairs``, ``genuine``, ``imposters``, ``images``, ``people``: None where unknown. Of a
        classifier ``rows``, ``classes``, ``units``.
    groups : dict
        By attribute, the images of each group: who the population was. Where images are not known,
        the sides of pairs; of a classifier the rows.
    simulated : bool
    settings : dict
        How the fit was called.
    versions : dict
    intended_use : str
    limits : tuple of str

    Examples
    --------
    >>> provenance = Provenance(data="faces", counts={"pairs": 100, "people": None})
    >>> Provenance.from_json(provenance.as_json()) == provenance
    True
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
    def from_json(cls, value: Any) -> Provenance:
        """Undo `as_json`; what is of another kind is an error, as a file may say anything."""
        names = {field.name for field in fields(cls)}
        if not isinstance(value, Mapping) or not names.issuperset(value):
            raise DataError("provenance: expected what 'faircal fit' writes")
        wrong = [name for name, each in value.items() if not _is(_KINDS[name], each)]
        if wrong:
            raise DataError(f"provenance: {wrong[0]} is not what 'faircal fit' writes")
        return cls(**{**value, "limits": tuple(value.get("limits", ()))})


#: What a file may say of each: a type, lists of one, mappings to one; None where it may be unknown.
_KINDS: dict[str, Any] = {
    "data": str,
    "data_sha256": str,
    "feature": str,
    "counts": {str: (int, None)},
    "groups": {str: {str: int}},
    "simulated": bool,
    "settings": {str: object},
    "versions": {str: str},
    "intended_use": str,
    "limits": [str],
}


def _is(kind: Any, value: object) -> bool:
    """Whether `value` is of a kind as `_KINDS` has them; whole numbers are counts."""
    if isinstance(kind, dict):
        return isinstance(value, Mapping) and all(_is(kind[str], each) for each in value.values())
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is(kind[0], each) for each in value)
    if isinstance(kind, tuple):
        return value is None or _is(kind[0], value)
    if kind is int:
        return type(value) is int and 0 <= value < 1 << 53
    return isinstance(value, kind)
