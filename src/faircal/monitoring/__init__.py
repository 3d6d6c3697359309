"""Monitoring: whether pairs in use are still like those of calibration."""

from faircal.monitoring.seen import Seen
from faircal.monitoring.surveying import survey
from faircal.monitoring.tolerance import Tolerance
from faircal.monitoring.verdict import Finding, Verdict
from faircal.monitoring.watch import Watch

__all__ = ["Finding", "Seen", "Tolerance", "Verdict", "Watch", "survey"]
