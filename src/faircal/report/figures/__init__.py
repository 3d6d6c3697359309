"""Figures: each computed once from results or score histograms, then drawn, saved or put in words.

Matplotlib is needed to draw (``pip install 'faircal[figures]'``), not for tables and words.
"""

from faircal.report.figures.base import Drawing, Figure, Panels, save, svg
from faircal.report.figures.clusters import ClusterComposition, ClusterShift, Montage
from faircal.report.figures.curves import DetCurves, FprCurves, RocCurves
from faircal.report.figures.dots import Differences, GroupRateDots
from faircal.report.figures.matrix import GroupHeatmap
from faircal.report.figures.paper import paper_figures
from faircal.report.figures.regions import RegionDots
from faircal.report.figures.reliability import ReliabilityDiagram
from faircal.report.figures.robustness import MovingCurves, Robustness, by_calibrator, by_method
from faircal.report.figures.standard import standard_figures
from faircal.report.figures.violins import Violins

__all__ = [
    "ClusterComposition",
    "ClusterShift",
    "DetCurves",
    "Differences",
    "Drawing",
    "Figure",
    "FprCurves",
    "GroupHeatmap",
    "GroupRateDots",
    "Montage",
    "MovingCurves",
    "Panels",
    "RegionDots",
    "ReliabilityDiagram",
    "Robustness",
    "RocCurves",
    "Violins",
    "by_calibrator",
    "by_method",
    "paper_figures",
    "save",
    "standard_figures",
    "svg",
]
