"""Figures: each computed once from results or score histograms, then drawn, saved or put in words.

Matplotlib is needed to draw (``pip install 'faircal[figures]'``), not for tables and words.
"""

from faircal.report.figures.base import Figure, Panels
from faircal.report.figures.clusters import ClusterComposition, ClusterShift
from faircal.report.figures.differences import Differences
from faircal.report.figures.fpr import FprCurves
from faircal.report.figures.matrix import GroupMatrix
from faircal.report.figures.montage import Montage
from faircal.report.figures.moving import MovingCurves
from faircal.report.figures.paper import paper_figures
from faircal.report.figures.rates import GroupRates
from faircal.report.figures.regions import RegionDots
from faircal.report.figures.reliability import ReliabilityDiagram
from faircal.report.figures.robustness import Robustness, by_calibrator, by_method
from faircal.report.figures.roc import DetCurves, RocCurves
from faircal.report.figures.saving import Drawing, save, svg
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
    "GroupMatrix",
    "GroupRates",
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
