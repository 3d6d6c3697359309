"""Where a model is from: data, settings, versions, population, intended use, limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        wrong = [name for name, each in value.items() if not _CHECKS[name](each)]
        if wrong:
            raise DataError(f"provenance: {wrong[0]} is not what 'faircal fit' writes")
        return cls(**{**value, "limits": tuple(value.get("limits", ()))})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_counts(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_count, value.values()))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "data": _is_text,
    "data_sha256": _is_text,
    "feature": _is_text,
    "counts": lambda value: (
        isinstance(value, Mapping)
        and all(count is None or _is_count(count) for count in value.values())
    ),
    "groups": lambda value: isinstance(value, Mapping) and all(map(_is_counts, value.values())),
    "simulated": lambda value: isinstance(value, bool),
    "settings": lambda value: isinstance(value, Mapping),
    "versions": lambda value: isinstance(value, Mapping) and all(map(_is_text, value.values())),
    "intended_use": _is_text,
    "limits": lambda value: isinstance(value, list) and all(map(_is_text, value)),
}
