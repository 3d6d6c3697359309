"""Embeddings that fit nowhere: block files, and pairs sorted to two of them at a time."""

from faircal.production.spark.blocks.folder import Blocks

__all__ = ["Blocks"]
