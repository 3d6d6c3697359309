"""The results folder of a classifier's audit; the report is made from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faircal._base.files import output_folder, staged
from faircal.evaluation.classes.audit import ClassAudit
from faircal.evaluation.classes.intervals import ClassDifference
from faircal.evaluation.curves import CURVES, as_table, write_curves
from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import (
    GLOBAL,
    read_rows,
    versions,
    without_nan,
    write_results,
    write_rows,
    write_run,
)

DIFFERENCES = "differences.csv"
KIND = "classify"
#: Up to so many small groups are told of one by one; of more, so many are named.
_SINGLY, _NAMED = 3, 6


def write_class_audit(folder: Path, audit: ClassAudit, run: Mapping[str, Any]) -> None:
    """Write ``results.csv``, ``differences.csv``, curves and ``run.json``.

    All of them take their places together, when all are written.

    Parameters
    ----------
    folder : Path
        Made where it is not there; files of an earlier run are replaced.
    audit : ClassAudit
    run : mapping
        What ``run.json`` says besides what the audit knows: ``settings``, ``methods``, wall time.
        Its ``notes`` come before those of the audit; for any other key it has the last word.

    Examples
    --------
    >>> import tempfile
    >>> from faircal.evaluation.classes import audit_classes
    >>> result = audit_classes({"a": [[0.9, 0.1]] * 9, "b": [[0.8, 0.2]] * 9}, [0] * 9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_class_audit(Path(folder), result, {"settings": {"seed": 0}})
    ...     row = read_differences(folder)[0]
    >>> row.method, row.reference, row.metric, row.difference
    ('b', 'a', 'accuracy', 0.0)
    """
    record = {**class_record(audit), **run}
    record["notes"] = [*run.get("notes", ()), *notes(audit)]
    target = output_folder(folder)
    differences = audit.differences()
    with staged(target) as draft:
        write_results(draft, audit.rows)
        write_rows(draft / DIFFERENCES, ClassDifference, differences)
        write_curves(draft / CURVES, as_table(audit.curves))
        write_run(draft, without_nan(record))
    if not differences:  # of an earlier run with several methods
        (target / DIFFERENCES).unlink(missing_ok=True)


def read_differences(folder: str | Path) -> list[ClassDifference]:
    """Read ``differences.csv``; none where there is no such file, as of one method alone."""
    return read_rows(Path(folder) / DIFFERENCES, ClassDifference)


def class_record(audit: ClassAudit) -> dict[str, Any]:
    """Return what ``run.json`` says of the rows."""
    sets = (GLOBAL, *audit.groups)
    known = not audit.data.independent
    lacking = {name: audit.insufficient_data_reason(name) for name in sets}
    unknown = audit.count() - sum(audit.count(name) for name in audit.groups)
    shares = {"rows": audit.count(), "unknown_rows": unknown}
    return {
        "kind": KIND,
        "dataset": audit.dataset,
        "classes": list(audit.classes),
        "class_rows": dict(zip(audit.classes, audit.data.per_class, strict=True)),
        "methods": {method: {} for method in audit.methods},
        "rows": audit.count(),
        "attributes": [audit.attribute] if audit.attribute else [],
        "groups": {audit.attribute: shares} if audit.attribute else {},
        "units": audit.units() if known else None,
        "group_rows": {name: audit.count(name) for name in audit.groups},
        "group_units": {name: audit.units(name) for name in audit.groups} if known else None,
        "effective_units": (
            {name: round(audit.effective_units(name), 1) for name in sets} if known else None
        ),
        "not_enough": {name: reason for name, reason in lacking.items() if reason is not None},
        "interval_kind": audit.interval_kind,
        "level": LEVEL,
        "settings": {},
        "versions": versions(),
    }


def notes(audit: ClassAudit) -> list[str]:
    """Say what a reader has to know of the rows: unknown groups, groups that are too small."""
    lines = []
    unknown = audit.count() - sum(audit.count(name) for name in audit.groups)
    if audit.groups and unknown:
        share = 100 * unknown / audit.count()
        lines.append(
            f"{unknown} of {audit.count()} rows ({share:.1f} %) have an unknown "
            f"{audit.attribute or 'group'}: they count globally and in no group"
        )
    small = {
        name: reason
        for name in audit.groups
        if (reason := audit.insufficient_data_reason(name)) is not None
    }
    if len(small) <= _SINGLY:
        return [*lines, *(f"{name}: {reason}" for name, reason in small.items())]
    names = ", ".join(list(small)[:_NAMED])
    more = f" and {len(small) - _NAMED:,} more" if len(small) > _NAMED else ""
    return [
        *lines,
        f"{len(small):,} of {len(audit.groups):,} groups have not enough data: {names}{more}",
    ]
