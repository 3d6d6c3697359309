"""Any classifier: methods that calibrate it fairly, and audits of what it says.

`audit_classes` measures class probabilities, overall, by group and by class, with intervals and
differences between methods; `write_class_audit` leaves them in a results folder. `CLASS_METHODS`
are the ways to calibrate that are compared, `out_of_fold` what each says of rows it did not see.
"""

from faircal.classifying.audit import ClassAudit, audit_classes
from faircal.classifying.differences import ClassDifference
from faircal.classifying.folder import read_differences, write_class_audit
from faircal.classifying.methods import CLASS_METHODS, ClassMethod, make_class_method
from faircal.classifying.run import out_of_fold

__all__ = [
    "CLASS_METHODS",
    "ClassAudit",
    "ClassDifference",
    "ClassMethod",
    "audit_classes",
    "make_class_method",
    "out_of_fold",
    "read_differences",
    "write_class_audit",
]
