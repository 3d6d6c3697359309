"""The parts of the study; a new one is a file with a `Part` and a line here."""

from __future__ import annotations

from studies.uncertainty.coverage_page import COVERAGE
from studies.uncertainty.guarantee import GUARANTEE
from studies.uncertainty.newcomers import NEWCOMERS
from studies.uncertainty.part import Part
from studies.uncertainty.real_people import REAL_PEOPLE
from studies.uncertainty.regions import REGIONS
from studies.uncertainty.tail import TAIL

_ALL = (GUARANTEE, COVERAGE, REAL_PEOPLE, NEWCOMERS, TAIL, REGIONS)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
