"""What a model file says of its model besides the map: where it is from, of whom, and how used."""

from faircal.model.about import SCHEMA, About, Provenance, one_line, versions
from faircal.model.operating_point import DEFAULT_POINT, OperatingPoint
from faircal.model.population import Places, Population

__all__ = [
    "DEFAULT_POINT",
    "SCHEMA",
    "About",
    "OperatingPoint",
    "Places",
    "Population",
    "Provenance",
    "one_line",
    "versions",
]
