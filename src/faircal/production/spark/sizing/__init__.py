"""How large a job becomes: blocks, bytes moved, memory, processor hours, cost. Needs no Spark."""

from faircal.production.spark.sizing.planning import Plan, plan
from faircal.production.spark.sizing.resources import Rates

__all__ = ["Plan", "Rates", "plan"]
