"""Monitoring: whether pairs in use are still like those of calibration."""

from faircal.production.monitoring.seen import Seen
from faircal.production.monitoring.surveying import survey
from faircal.production.monitoring.tolerance import Tolerance
from faircal.production.monitoring.verdict import Finding, Verdict
from faircal.production.monitoring.watch import Watch

__all__ = ["Finding", "Seen", "Tolerance", "Verdict", "Watch", "survey"]
