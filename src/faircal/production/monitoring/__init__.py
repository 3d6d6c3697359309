"""Monitoring: whether pairs in use are still like those of calibration."""

from faircal.production.monitoring.findings import Finding, Verdict
from faircal.production.monitoring.pairs_in_use import PairsInUse
from faircal.production.monitoring.population import survey
from faircal.production.monitoring.watch import Watch

__all__ = ["Finding", "PairsInUse", "Verdict", "Watch", "survey"]
