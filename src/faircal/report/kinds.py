"""Which subject a run's report is about."""

from __future__ import annotations

from faircal.report.classes import CLASSES
from faircal.report.faces import FACES
from faircal.report.store import Store
from faircal.report.subject import Subject


def subject_of(store: Store) -> Subject:
    """Return what a store's report is about; faces, unless its kind is one of classifiers."""
    return CLASSES if store.kind in CLASSES.kinds else FACES
