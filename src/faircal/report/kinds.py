"""Which subject a run's report is about."""

from __future__ import annotations

from faircal.report.classes import CLASSES, class_subject
from faircal.report.faces import FACES
from faircal.report.store import Store
from faircal.report.subject import Subject


def subject_of(store: Store) -> Subject:
    """Return what a store's report is about; faces, unless its kind is one of classifiers."""
    return class_subject(store) if store.kind in CLASSES.kinds else FACES


def is_audit(store: Store) -> bool:
    """Whether one set of scores or probabilities was measured, and no methods were compared."""
    return store.kind == "audit" or subject_of(store) is CLASSES
