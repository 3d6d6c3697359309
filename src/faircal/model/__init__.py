"""What a model file says of its model besides the map: where it is from, of whom, and how used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ModelFileError
from faircal._version import __version__
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
    "check_schema",
    "one_line",
    "own_arrays",
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

    def header(self) -> dict[str, Any]:
        """Return what goes into the header of a model file, as JSON knows it."""
        return {
            "provenance": None if self.provenance is None else self.provenance.as_json(),
            "operating_point": (
                None if self.operating_point is None else self.operating_point.as_json()
            ),
            "population": None if self.population is None else self.population.values(),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file that are not the model's own."""
        if self.population is None:
            return {}
        return prefixed(_PREFIX, self.population.arrays())

    @classmethod
    def restore(cls, header: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]) -> About:
        """Undo `header` and `arrays`; what earlier versions did not write is None."""
        if header is None:
            return cls()
        provenance, point, values = (
            header[key] for key in ("provenance", "operating_point", "population")
        )
        if not all(part is None or isinstance(part, Mapping) for part in (point, values)):
            raise DataError("about: expected what 'faircal fit' and 'faircal threshold' write")
        own = unprefixed(_PREFIX, arrays)
        return cls(
            None if provenance is None else Provenance.from_json(provenance),
            None if values is None else Population.restore(values, own),
            None if point is None else OperatingPoint.from_json(point),
        )


def own_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model file that are the model's own."""
    return {key: value for key, value in arrays.items() if not key.startswith(f"{_PREFIX}.")}


def check_schema(header: Mapping[str, Any]) -> None:
    """Raise where the header is of a version that is not known yet."""
    schema = header.get("schema", 0)
    if type(schema) is not int or schema < 0:
        raise ModelFileError("damaged: its schema is no number; copy or fit it again")
    if schema > SCHEMA:
        writer = one_line(header.get("faircal", "?"), 20)
        raise ModelFileError(
            f"written by a newer faircal ({writer}) in schema {one_line(schema, 20)}; "
            f"this one ({__version__}) reads up to {SCHEMA}: upgrade"
        )


def one_line(text: object, most: int = 200) -> str:
    r"""Return `text` as one short line that can't steer a terminal: a file may say anything.

    Examples
    --------
    >>> one_line("two\nlines \x1b[2J")
    'two lines ?[2J'
    """
    line = " ".join(str(text).split())[:most]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
