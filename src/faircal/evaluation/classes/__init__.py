"""Any classifier: methods that calibrate it fairly, and audits of what it says.

`audit_classes` measures class probabilities, overall, by group and by class, with intervals and
differences between methods; `write_class_audit` leaves them in a results folder. `CLASS_METHODS`
are the ways to calibrate that are compared, `out_of_fold` what each says of rows it did not see.
"""

from faircal.evaluation.classes.audit import (
    ClassAudit,
    ClassDifference,
    audit_classes,
    read_class_differences,
    write_class_audit,
)
from faircal.evaluation.classes.methods import (
    CLASS_METHODS,
    ClassMethod,
    MethodRows,
    out_of_fold,
)

__all__ = [
    "CLASS_METHODS",
    "ClassAudit",
    "ClassDifference",
    "ClassMethod",
    "MethodRows",
    "audit_classes",
    "out_of_fold",
    "read_class_differences",
    "write_class_audit",
]
