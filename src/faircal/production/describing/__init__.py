"""Telling a model where it is from; what is told goes into its file, and into its card."""

from faircal.production.describing.describe import describe

__all__ = ["describe"]
