"""Auditing: per-group measurement of anybody's scores or probabilities.

`audit` measures pairs in memory, exactly. `Auditor` counts pairs of any number, part by part, and
says how far its values can be from the exact ones; `audit_stream` runs it.
"""

from faircal.auditing.found import Audit, bounds_note
from faircal.auditing.matrix import imposter_matrix
from faircal.auditing.pairs import Scored
from faircal.auditing.regions import find_regions
from faircal.auditing.run import audit_stream, files_digest
from faircal.auditing.stream import Auditor
from faircal.auditing.whole import audit, audit_pairs

__all__ = [
    "Audit",
    "Auditor",
    "Scored",
    "audit",
    "audit_pairs",
    "audit_stream",
    "bounds_note",
    "files_digest",
    "find_regions",
    "imposter_matrix",
]
