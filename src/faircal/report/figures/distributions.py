"""How scores and probabilities are spread in each group: reliability diagrams, split violins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from faircal.evaluation.curves import Of, ScoreSource
from faircal.metrics import Histogram, probability_edges
from faircal.metrics.ranking import FloatArray, IntArray
from faircal.metrics.results import GLOBAL
from faircal.report.figures.base import FigureScope, long_table
from faircal.report.figures.curves import CurvesFigure, spoken_rate
from faircal.report.figures.style import (
    FAINT,
    GENUINE,
    IMPOSTER,
    MARK,
    draw_line,
    percent_axis,
    text,
)
from faircal.report.wording import group_name, left_out, listed, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Bins with fewer pairs tell next to nothing and are left out of the line.
LEAST = 10


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(CurvesFigure):
    """The share of genuine pairs among those of about the same probability, by group.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    n_bins : int
        Bins of equal width. Their borders are moved to the nearest of the histogram's edges,
        which lie every 0.001.

    Examples
    --------
    >>> import faircal
    >>> found = faircal.audit(probability=[0.2] * 10 + [0.9] * 10, genuine=[0] * 10 + [1] * 10)
    >>> ReliabilityDiagram(found.curves).words
    'Reliability by group. Largest distance from the diagonal: all pairs 20 %.'
    """

    n_bins: int = 10

    _key, _about = "reliability", "Reliability by group"
    _of: ClassVar[Of] = "probability"
    #: What is counted, what it is sorted by, and what happens: columns of the table.
    _columns: ClassVar[tuple[str, str, str]] = ("pairs", "probability", "genuine")
    #: What stands along the axes.
    _axes: ClassVar[tuple[str, str]] = ("mean probability (%)", "genuine (%)")

    @classmethod
    def _drawable(cls, scope: FigureScope, source: ScoreSource) -> bool:
        """Whether there are probabilities, too."""
        likely = scope.store.curves.has("probability", source)
        return likely and super()._drawable(scope, source)

    @cached_property
    def bins(self) -> dict[str, tuple[IntArray, FloatArray, FloatArray]]:
        """Pairs, mean probability and share of genuine pairs in each bin of each group."""
        bins = {}
        for group in self.groups:
            histogram = self.histogram(group)
            borders = np.round(np.arange(1, self.n_bins) / self.n_bins, 3)
            which = np.searchsorted(borders, histogram.edges, side="right")
            pairs, genuine, total = (
                np.bincount(which, weights=values, minlength=self.n_bins)
                for values in (
                    histogram.genuine + histogram.imposter,
                    histogram.genuine,
                    histogram.total,
                )
            )
            some = np.maximum(pairs, 1)
            bins[group] = pairs.astype(np.int64), total / some, genuine / some
        return bins

    @cached_property
    def lines(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """What is drawn of each group: the bins with enough pairs."""
        enough = {group: pairs >= LEAST for group, (pairs, _, _) in self.bins.items()}
        return {
            group: (mean[enough[group]], share[enough[group]])
            for group, (_, mean, share) in self.bins.items()
            if enough[group].any()
        }

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `pairs`, `probability` (mean), `genuine` (share), a bin a row."""
        rows = [
            (group, int(n), float(mean), float(share))
            for group, columns in self.bins.items()
            for n, mean, share in zip(*columns, strict=True)
            if n >= LEAST
        ]
        return long_table(("group", *self._columns), rows)

    @property
    def gaps(self) -> dict[str, float]:
        """The largest distance from the diagonal in each group."""
        return {group: float(np.abs(y - x).max()) for group, (x, y) in self.lines.items()}

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        missing = left_out((g for g in self.groups if g not in self.lines), "for want of pairs")
        counts = {"bins": str(self.n_bins), "least": str(LEAST)}
        return counts | {"missing": missing, "pooled": self._pooled()}

    def _numbers(self) -> str:
        return f"Largest distance from the diagonal: {listed(self.gaps)}."

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8)
        for index, group in enumerate(self.groups):
            if group in self.lines:
                draw_line(ax, *self.lines[group], index, group)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=self._axes[0], ylabel=self._axes[1])
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)


#: Points of an outline; the largest half width, so that neighbours stay apart; the least share of
#: it, since imposters can outnumber genuine pairs a hundredfold.
_POINTS, _HALF, _LEAST = 100, 0.42, 0.25
_COLUMNS = ("group", "pairs", "quantity", "at", "width")
_SIDES = {"imposter": (-1, IMPOSTER), "genuine": (1, GENUINE)}


class ViolinHalf(NamedTuple):
    """Half a violin: its outline, and the quartiles with the width there."""

    at: FloatArray
    width: FloatArray
    quartiles: FloatArray
    quartile_width: FloatArray


@dataclass(frozen=True, eq=False)
class Violins(CurvesFigure):
    """How scores (``of="score"``) or probabilities of each group are spread, and its threshold.

    Parameters
    ----------
    curves, source, fold
        As of every figure of curves.
    of : {"score", "probability"}
    rate : float
        The false-positive rate at which thresholds are drawn.
    threshold : float, optional
        That of all pairs, where it is given: its rate takes the place of `rate`.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> found = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"))
    >>> Violins(found.curves, rate=0.2).words
    'Scores by group. Threshold at an FPR of 20 %: all pairs 0.6; of the groups: A 0.6, B 0.402.'
    """

    of: Of = "score"
    rate: float = 0.05
    threshold: float | None = None

    _key, _about = "distributions", "Scores by group"
    _papers, _shared = True, False

    @classmethod
    def _options(cls, scope: FigureScope) -> dict[str, Any]:
        """Draw the threshold given, or that of the rate that the summary speaks of."""
        given = scope.store.run.get("settings", {}).get("threshold")
        return {"rate": spoken_rate(scope), "threshold": given}

    @property
    def _bounded(self) -> bool:
        """Whether these are probabilities; some methods decide by theirs."""
        edges = self.histogram(of=self.of).edges
        return self.of == "probability" or np.array_equal(edges, probability_edges())

    @cached_property
    def halves(self) -> dict[tuple[str, str], ViolinHalf]:
        """The outlines, by group and kind of pairs."""
        halves = {}
        for group in self.groups:
            histogram = self.histogram(group, self.of)
            counts = {kind: getattr(histogram, kind) for kind in _SIDES}
            most = max(int(count.sum()) for count in counts.values())
            for kind, count in counts.items():
                if count.any():
                    share = max(count.sum() / most, _LEAST)
                    halves[group, kind] = _half(histogram, count, share, self._bounded)
        return halves

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """The threshold of all pairs (``global``) and of each group; none without imposters."""
        names = dict.fromkeys([GLOBAL, *self.groups])
        thresholds = {name: _threshold(self.histogram(name, self.of), self._rate) for name in names}
        if self.threshold is not None:
            thresholds[GLOBAL] = self.threshold
        return {name: value for name, value in thresholds.items() if value == value}

    @property
    def _rate(self) -> float:
        """The rate of all pairs, to the next bin where a threshold is given."""
        if self.threshold is None:
            return self.rate
        histogram = self.histogram(of=self.of)
        return float(histogram.fpr[np.argmin(np.abs(histogram.edges - self.threshold))])

    @cached_property
    def table(self) -> pa.Table:
        """Columns `group`, `pairs`, `quantity` (outline, quartile, threshold), `at`, `width`."""
        rows: list[tuple[str, str, str, float, float | None]] = []
        for (group, kind), half in self.halves.items():
            for quantity, at, width in (
                ("outline", half.at, half.width),
                ("quartile", half.quartiles, half.quartile_width),
            ):
                rows += [
                    (group, kind, quantity, float(a), float(w))
                    for a, w in zip(at, width, strict=True)
                ]
        rows += [(group, "", "threshold", at, None) for group, at in self.thresholds.items()]
        return long_table(_COLUMNS, rows)

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        which = "the threshold" if self.threshold is None else "the threshold given,"
        return {"which": which, "rate": rounded(self._rate), "pooled": self._pooled()}

    def _numbers(self) -> str:
        of_groups = {name: at for name, at in self.thresholds.items() if name != GLOBAL}
        said = ", ".join(f"{name} {at:.3g}" for name, at in of_groups.items())
        overall = self.thresholds.get(GLOBAL, float("nan"))
        apart = f"; of the groups: {said}" if said else ""
        said = "Threshold" if self.threshold is None else "Threshold given,"
        return f"{said} at an FPR of {rounded(self._rate)}: all pairs {overall:.3g}{apart}."

    def _draw(self, ax: Axes) -> None:
        for place, group in enumerate(self.groups):
            for kind, (side, colour) in _SIDES.items():
                half = self.halves.get((group, kind))
                if half is None:
                    continue
                outline = np.concatenate([[place], place + side * half.width, [place]])
                ax.fill(
                    outline,
                    np.concatenate([half.at[:1], half.at, half.at[-1:]]),
                    facecolor=colour,
                    edgecolor="black",
                    linewidth=0.4,
                    label=kind,
                )
                ends = place + side * half.quartile_width
                light = "white" if kind == "genuine" else "black"
                ax.hlines(half.quartiles, place, ends, light, "dotted", linewidth=0.9)
        self._draw_thresholds(ax)
        names = [text(group_name(group)) for group in self.groups]
        turned = sum(map(len, names)) > 36
        ax.set_xticks(
            range(len(names)),
            names,
            rotation=35 if turned else 0,
            ha="right" if turned else "center",
            rotation_mode="anchor",
        )
        ax.grid(visible=False, axis="x")
        ax.set(xlim=(-0.6, len(names) - 0.4), ylabel="probability" if self._bounded else "score")

    def _draw_thresholds(self, ax: Axes) -> None:
        if GLOBAL in self.thresholds:
            at = self.thresholds[GLOBAL]
            name = "threshold of all pairs" if self.threshold is None else "threshold given"
            ax.axhline(at, color="black", linewidth=1.2, label=name)
        for place, group in enumerate(self.groups):
            if group in self.thresholds and group != GLOBAL:
                at = self.thresholds[group]
                ends = place - 0.48, place + 0.48
                ax.hlines(at, *ends, MARK, linewidth=2.2, label="threshold of the group")


def _threshold(histogram: Histogram, rate: float) -> float:
    """Return the threshold nearest to a rate; where nobody passes, just above the last imposter."""
    nobody = histogram.edges[histogram.accepted_imposter == 0]
    highest = float(nobody[0]) if len(nobody) else np.inf
    return min(histogram.threshold_at_fpr(rate), highest)


def _half(histogram: Histogram, count: IntArray, share: float, bounded: bool) -> ViolinHalf:
    """Smooth counts by a Gaussian of Silverman's width; reflect it at the ends of [0, 1]."""
    edges = histogram.edges
    middle = (edges + np.append(edges[1:], edges[-1])) / 2
    some = np.flatnonzero(count)
    low, high = edges[some[0]], edges[min(some[-1] + 1, len(edges) - 1)]
    n = count.sum()
    mean = (count * middle).sum() / n
    spread = np.sqrt((count * (middle - mean) ** 2).sum() / n)
    least = 0.015 if bounded else (edges[-1] - edges[0]) / 1000
    width = max(0.9 * spread * n**-0.2, (high - low) / 100, least)
    low, high = low - 2 * width, high + 2 * width
    if bounded:
        low, high = max(low, 0.0), min(high, 1.0)
    at = np.linspace(low, high, _POINTS)
    mirrors = (middle, -middle, 2 - middle) if bounded else (middle,)
    smooth = np.sum(
        [norm.pdf((at[:, None] - m[None, some]) / width) @ count[some] for m in mirrors], axis=0
    )
    outline = _HALF * share * smooth / smooth.max()
    quartiles = _quantiles(edges, count)
    return ViolinHalf(at, outline, quartiles, np.interp(quartiles, at, outline))


def _quantiles(edges: FloatArray, count: IntArray) -> FloatArray:
    """Return the quartiles of counted values, evenly spread within each bin."""
    upper = np.append(edges[1:], edges[-1])
    some = np.flatnonzero(count)
    below = np.cumsum(count[some]) / count.sum()
    x = np.stack([edges[some], upper[some]], axis=1).ravel()
    y = np.stack([np.append(0.0, below[:-1]), below], axis=1).ravel()
    return np.asarray(np.interp([0.25, 0.5, 0.75], y, x))
