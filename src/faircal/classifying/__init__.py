"""Any classifier: methods that calibrate it fairly, and audits of what it says.

`audit_classes` measures class probabilities, overall, by group and by class, with intervals and
differences between methods; `write_class_audit` leaves them in a results folder.
"""

from faircal.classifying.audit import ClassAudit, audit_classes
from faircal.classifying.differences import ClassDifference
from faircal.classifying.folder import read_differences, write_class_audit

__all__ = [
    "ClassAudit",
    "ClassDifference",
    "audit_classes",
    "read_differences",
    "write_class_audit",
]
