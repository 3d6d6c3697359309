"""Figures: each gathered once from results or score histograms, then drawn, saved or put in words.

Matplotlib is needed to draw (``pip install 'faircal[figures]'``), not for tables and words.
"""

from __future__ import annotations

from faircal.report.figures.base import (
    Drawing,
    Figure,
    FigureRecord,
    FigureScope,
    Panels,
    save,
    svg,
    tell_apart,
)
from faircal.report.figures.curves import DetCurves, FprCurves, RocCurves
from faircal.report.figures.distributions import ReliabilityDiagram, Tippett, Violins
from faircal.report.figures.groups import Differences, GroupHeatmap, GroupRateDots
from faircal.report.figures.paper import paper_figures
from faircal.report.figures.regions import Montage, RegionDots
from faircal.report.figures.robustness import (
    ClusterShift,
    MovingCurves,
    Robustness,
    by_calibrator,
    by_method,
)
from faircal.report.store import ResultsFolder

#: What a report shows, in its order: a new figure is a line here.
FIGURES: tuple[type[Figure], ...] = (
    MovingCurves,
    Differences,
    GroupRateDots,
    GroupHeatmap,
    FprCurves,
    Violins,
    ReliabilityDiagram,
    Tippett,
    RocCurves,
    DetCurves,
    ClusterShift,
    RegionDots,
    Robustness,
)

__all__ = [
    "FIGURES",
    "ClusterShift",
    "DetCurves",
    "Differences",
    "Drawing",
    "Figure",
    "FigureRecord",
    "FigureScope",
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
    "Tippett",
    "Violins",
    "by_calibrator",
    "by_method",
    "paper_figures",
    "save",
    "standard_figures",
    "svg",
]


def standard_figures(store: ResultsFolder, attribute: str) -> list[FigureRecord]:
    """Return the figures of a report by one attribute, as far as the data carries them.

    Parameters
    ----------
    store : ResultsFolder
        What a benchmark or an audit wrote.
    attribute : str
        One of ``store.results.attributes``.

    Examples
    --------
    >>> from pathlib import Path
    >>> import faircal
    >>> from faircal.report.store import LabelledResults
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> audit = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"), threshold=0.5)
    >>> run, rows = {"kind": "audit"}, LabelledResults(audit.rows)
    >>> store = ResultsFolder(Path(), rows, run, audit.curves, [], [])
    >>> [figure.key for figure in standard_figures(store, store.results.attributes[0])]
    ['distributions', 'roc']
    """
    kinds = [kind for kind in FIGURES if store.kind in kind.runs]
    scopes = [FigureScope(store, feature, attribute) for feature in store.results.features]
    return tell_apart(
        figure for scope in scopes for kind in kinds for figure in kind.in_report(scope)
    )
