"""The parts of the study; a new one is a file with a `Part` and a line here."""

from __future__ import annotations

from studies.uncertainty.coverage_page import COVERAGE
from studies.uncertainty.guarantee import GUARANTEE
from studies.uncertainty.part import Part
from studies.uncertainty.regions import REGIONS
from studies.uncertainty.tail import TAIL

PARTS: dict[str, Part] = {part.name: part for part in (GUARANTEE, COVERAGE, TAIL, REGIONS)}
