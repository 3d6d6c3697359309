"""Auditing: per-group measurement of anybody's scores or probabilities.

`audit` measures pairs in memory, exactly. `Auditor` counts pairs of any number, part by part, and
says how far its values can be from the exact ones; `audit_stream` runs it.
"""

from faircal.evaluation.audit.counted import Auditor
from faircal.evaluation.audit.in_memory import audit, audit_pairs
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.audit.rates import imposter_matrix
from faircal.evaluation.audit.regions import find_regions
from faircal.evaluation.audit.result import Audit
from faircal.evaluation.audit.stream import audit_stream, files_digest

__all__ = [
    "Audit",
    "Auditor",
    "ScoredPairs",
    "audit",
    "audit_pairs",
    "audit_stream",
    "files_digest",
    "find_regions",
    "imposter_matrix",
]
