"""SmoothFairCal: a map for each image, without clusters."""

from faircal.methods.smooth.method import SmoothFairCal

__all__ = ["SmoothFairCal"]
