"""Comparing runs and methods: paired differences, with intervals and a correction for many.

`Run` is what a folder holds, `compare` puts two of them side by side, `differences` the methods of
one; `no_worse` and `non_inferior` say whether an update may pass.
"""

from faircal.comparing.compare import compare, differences
from faircal.comparing.matching import can_pair, notes
from faircal.comparing.paired import Difference, Estimate, difference, holm
from faircal.comparing.runs import Run
from faircal.comparing.verdicts import (
    Comparison,
    Gate,
    check_margin,
    no_worse,
    non_inferior,
    whom,
)

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "Gate",
    "Run",
    "can_pair",
    "check_margin",
    "compare",
    "difference",
    "differences",
    "holm",
    "no_worse",
    "non_inferior",
    "notes",
    "whom",
]
