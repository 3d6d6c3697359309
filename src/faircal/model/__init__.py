"""What a model file says of its model besides the map: where it is from, of whom, and how used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError
from faircal.model.operating_point import DEFAULT_POINT, OperatingPoint
from faircal.model.population import Places, Population
from faircal.model.provenance import Provenance

__all__ = [
    "DEFAULT_POINT",
    "SCHEMA",
    "About",
    "OperatingPoint",
    "Places",
    "Population",
    "Provenance",
    "one_line",
]

#: Of the header: 0 had no such entry, 1 says where a model is from (`About`).
SCHEMA = 1
#: Before the names of the arrays in a model file that are of the population.
_PREFIX = "population"


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
    """

    provenance: Provenance | None = None
    population: Population | None = None
    operating_point: OperatingPoint | None = None

    def parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what goes into the header of a model file, as JSON knows it, and its arrays."""
        provenance, point, population = self.provenance, self.operating_point, self.population
        values, arrays = (None, {}) if population is None else population.parts()
        header = {
            "provenance": None if provenance is None else provenance.as_json(),
            "operating_point": None if point is None else point.as_json(),
            "population": values,
        }
        return header, prefixed(_PREFIX, arrays)

    @classmethod
    def restore(
        cls, header: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[About, dict[str, NDArray[Any]]]:
        """Undo `parts`; return the arrays of a model file that are the model's own, too.

        What earlier versions did not write is None.
        """
        theirs = unprefixed(_PREFIX, arrays)
        own = {key: value for key, value in arrays.items() if not key.startswith(f"{_PREFIX}.")}
        if header is None:
            return cls(), own
        provenance, point, values = (
            header[key] for key in ("provenance", "operating_point", "population")
        )
        if not all(part is None or isinstance(part, Mapping) for part in (point, values)):
            raise DataError("about: expected what 'faircal fit' and 'faircal threshold' write")
        about = cls(
            None if provenance is None else Provenance.from_json(provenance),
            None if values is None else Population.restore(values, theirs),
            None if point is None else OperatingPoint.from_json(point),
        )
        return about, own


def one_line(text: object, most: int = 200) -> str:
    r"""Return `text` as one short line that can't steer a terminal: a file may say anything.

    Examples
    --------
    >>> one_line("two\nlines \x1b[2J")
    'two lines ?[2J'
    """
    line = " ".join(str(text).split())[:most]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
