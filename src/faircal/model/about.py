"""What a model file says of its model besides the map: where it is from, of whom, and how used."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError
from faircal._version import __version__
from faircal.metrics.likelihood import EvidenceBounds
from faircal.model.operating_point import OperatingPoint
from faircal.model.population import Population

#: Of the header: 0 had no such entry, 1 says where a model is from (`About`).
SCHEMA = 1
#: Before the names of the arrays in a model file that are of the population.
_PREFIX = "population"


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
    cohort : dict
        Whose vectors the model compares with, as `Cohort.record` has it; empty where it needs none.

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
    cohort: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        values = {**asdict(self), "limits": list(self.limits)}
        return values if self.cohort else {k: v for k, v in values.items() if k != "cohort"}

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
    "cohort": {str: object},
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


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    packages = ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "matplotlib")
    by_package = {"faircal": __version__, "python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):  # an extra
            by_package[name] = version(name)
    return by_package


_AS_CONNECTED = (
    " (nobody is identified: images that genuine pairs connect are one person, "
    "any other is one of its own)"
)


@dataclass(frozen=True, eq=False)
class About:
    """What is known of a model; parts that nobody has given are None.

    Attributes
    ----------
    provenance : Provenance, optional
        What it was made of and what for.
    population : Population, optional
        The images and scores that it was calibrated on, counted: what monitoring compares with.
    operating_point : OperatingPoint, optional
        Where to decide, and how that was determined.
    evidence : EvidenceBounds, optional
        How far likelihood ratios may go; None of models that were fitted before there were any.
    """

    provenance: Provenance | None = None
    population: Population | None = None
    operating_point: OperatingPoint | None = None
    evidence: EvidenceBounds | None = None

    @property
    def evidence_note(self) -> str:
        """How far likelihood ratios go, in a sentence."""
        of = self.evidence
        if of is None:
            return (
                "the model file has no bounds on evidence: likelihood ratios and probabilities at "
                "another share go beyond what its people can show; fit it again to have them"
            )
        low, high = (f"{math.exp(abs(end)):,.3g}" for end in (of.low, of.high))
        who, known = {
            "people": ("people", ""),
            "images": ("people", _AS_CONNECTED),
            "pairs": ("pairs", " (people are unknown: pairs stand for them)"),
        }[of.unit]
        return (
            f"evidence is bounded by what {of.imposter:.0f} {who} in imposter pairs and "
            f"{of.genuine:.0f} in genuine ones (effective numbers) can show: {high} to 1 for one "
            f"person, {low} to 1 against{known}; at a bound it is at least that"
        )

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what goes into the header of a model file, as JSON knows it, and its arrays."""
        provenance, point, population = self.provenance, self.operating_point, self.population
        values, arrays = (None, {}) if population is None else population.parts()
        header = {
            "provenance": None if provenance is None else provenance.as_json(),
            "operating_point": None if point is None else point.as_json(),
            "population": values,
        }
        if self.evidence is not None:
            header["evidence"] = self.evidence._asdict()
        return header, prefixed(_PREFIX, arrays)

    @classmethod
    def restore(
        cls, header: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[About, dict[str, NDArray[Any]]]:
        """Undo `parts`; return the arrays of a model file that are the model's own, too.

        What earlier versions did not write is None.
        """
        of_population = unprefixed(_PREFIX, arrays)
        own_arrays = {
            key: value for key, value in arrays.items() if not key.startswith(f"{_PREFIX}.")
        }
        if header is None:
            return cls(), own_arrays
        provenance, point, values = (
            header[key] for key in ("provenance", "operating_point", "population")
        )
        if not all(part is None or isinstance(part, Mapping) for part in (point, values)):
            raise DataError("about: expected what 'faircal fit' and 'faircal threshold' write")
        about = cls(
            None if provenance is None else Provenance.from_json(provenance),
            None if values is None else Population.restore(values, of_population),
            None if point is None else OperatingPoint.from_json(point),
            EvidenceBounds.from_json(header["evidence"]) if "evidence" in header else None,
        )
        return about, own_arrays


def one_line(text: object, most: int = 200) -> str:
    r"""Return `text` as one short line that can't steer a terminal: a file may say anything.

    Examples
    --------
    >>> one_line("two\nlines \x1b[2J")
    'two lines ?[2J'
    """
    line = " ".join(str(text).split())[:most]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
