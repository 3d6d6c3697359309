"""Comparing runs and methods: paired differences, with intervals and a correction for many.

`ComparedRun` is what a folder holds, `compare` puts two of them side by side, `differences` the
methods of one; `no_worse` and `non_inferior` say whether an update may pass.
"""

from faircal.evaluation.compare.compare import (
    REFERENCE,
    ComparedRuns,
    compare,
    compare_runs,
    differences,
    write_differences,
)
from faircal.evaluation.compare.paired import Difference, Estimate, difference, holm
from faircal.evaluation.compare.runs import ComparedRun, can_pair, notes
from faircal.evaluation.compare.verdicts import (
    Comparison,
    GateVerdict,
    check_margin,
    group_title,
    no_worse,
    non_inferior,
)

__all__ = [
    "REFERENCE",
    "ComparedRun",
    "ComparedRuns",
    "Comparison",
    "Difference",
    "Estimate",
    "GateVerdict",
    "can_pair",
    "check_margin",
    "compare",
    "compare_runs",
    "difference",
    "differences",
    "group_title",
    "holm",
    "no_worse",
    "non_inferior",
    "notes",
    "write_differences",
]
