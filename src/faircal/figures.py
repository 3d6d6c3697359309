"""Figures: each computed once from results or score histograms, then drawn, saved or put in words.

The public name of what `faircal.report.figures` has.
"""

from faircal.report.figures import *  # noqa: F403
from faircal.report.figures import __all__ as __all__
