"""How large a job becomes: blocks, bytes moved, memory, processor hours, cost. Needs no Spark."""

from faircal.scale.spark.sizing.planning import Plan, plan
from faircal.scale.spark.sizing.resources import Rates

__all__ = ["Plan", "Rates", "plan"]
