"""Auditing: per-group measurement of anybody's scores or probabilities.

`audit` measures arrays, `audit_parts` pairs wherever they are.
"""

from faircal.evaluation.audit.collected import AuditedPairs, audit_parts, files_digest
from faircal.evaluation.audit.pairs import ScoredPairs
from faircal.evaluation.audit.rates import imposter_matrix
from faircal.evaluation.audit.regions import find_regions
from faircal.evaluation.audit.result import Audit, audit, audit_pairs

__all__ = [
    "Audit",
    "AuditedPairs",
    "ScoredPairs",
    "audit",
    "audit_pairs",
    "audit_parts",
    "files_digest",
    "find_regions",
    "imposter_matrix",
]
