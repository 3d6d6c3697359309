"""How scores and probabilities are spread in each group: reliability diagrams, split violins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logit
from scipy.stats import norm

from faircal.evaluation.curves import Of
from faircal.metrics import Histogram, probability_edges
from faircal.metrics.ranking import FloatArray, IntArray
from faircal.metrics.results import GLOBAL
from faircal.report.figures.base import CAPTIONS, FigureRecord, FigureScope, long_table
from faircal.report.figures.curves import CurvesFigure
from faircal.report.figures.style import (
    FAINT,
    GENUINE,
    IMPOSTER,
    MARK,
    RULE,
    draw_line,
    percent_axis,
    text,
)
from faircal.report.wording import group_name, left_out, listed, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Bins with fewer pairs tell next to nothing and are left out of the line.
LEAST = 10


@dataclass(eq=False, repr=False)
class ReliabilityDiagram(CurvesFigure):
    """The share of genuine pairs among those of about the same probability, by group.

    Parameters
    ----------
    curves, source, fold, of, without
        As of every figure of curves.
    n_bins : int
        Bins of equal width. Their borders are moved to the nearest of the histogram's edges,
        which lie every 0.001.

    Attributes
    ----------
    bins : dict
        Pairs, mean probability and share of genuine pairs in each bin of each group.
    lines : dict
        What is drawn of each group: the bins with enough pairs.
    gaps : dict of float
        The largest distance from the diagonal in each group.

    Examples
    --------
    >>> import faircal
    >>> audit = faircal.audit(probability=[0.2] * 10 + [0.9] * 10, genuine=[0] * 10 + [1] * 10)
    >>> ReliabilityDiagram(audit.curves).words
    'Reliability by group. Largest distance from the diagonal: all pairs 20 %.'
    """

    n_bins: int = 10
    of: Of = field(default="probability", kw_only=True)

    _key, _about = "reliability", "Reliability by group"
    _caption = CAPTIONS["ReliabilityDiagram"]
    #: What is counted, what it is sorted by, and what happens: columns of the table.
    _columns: ClassVar[tuple[str, str, str]] = ("pairs", "probability", "genuine")
    #: What stands along the axes.
    _axes: ClassVar[tuple[str, str]] = ("mean probability (%)", "genuine (%)")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.bins: dict[str, tuple[IntArray, FloatArray, FloatArray]] = {}
        self.lines: dict[str, tuple[FloatArray, FloatArray]] = {}
        rows: list[tuple[str, int, float, float]] = []
        borders = np.round(np.arange(1, self.n_bins) / self.n_bins, 3)
        for group, counted in self.histograms.items():
            which = np.searchsorted(borders, counted.edges, side="right")
            pairs, genuine, total = (
                np.bincount(which, weights=values, minlength=self.n_bins)
                for values in (counted.genuine + counted.imposter, counted.genuine, counted.total)
            )
            mean, share = total / np.maximum(pairs, 1), genuine / np.maximum(pairs, 1)
            self.bins[group] = pairs.astype(np.int64), mean, share
            shown = pairs >= LEAST
            if shown.any():
                self.lines[group] = mean[shown], share[shown]
            rows += [
                (group, int(pairs[i]), float(mean[i]), float(share[i]))
                for i in np.flatnonzero(shown)
            ]
        self.gaps = {group: float(np.abs(y - x).max()) for group, (x, y) in self.lines.items()}
        missing = left_out((g for g in self.groups if g not in self.lines), "for want of pairs")
        self.caption = self._caption.format(
            bins=self.n_bins, least=LEAST, missing=missing, pooled=self.pooled
        )
        self.numbers = f"Largest distance from the diagonal: {listed(self.gaps)}."
        self.table = long_table(("group", *self._columns), rows)

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8)
        for index, group in enumerate(self.groups):
            if group in self.lines:
                draw_line(ax, *self.lines[group], index, group)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=self._axes[0], ylabel=self._axes[1])
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)


@dataclass(eq=False, repr=False)
class Tippett(CurvesFigure):
    """The share of pairs whose likelihood ratio is at least so large, genuine pairs and imposters.

    Parameters
    ----------
    curves, source, fold, of, without
        As of every figure of curves.
    share : float, optional
        Of genuine pairs, that probabilities hold for; that of these pairs by default.
    bounds : (float, float), optional
        Log-likelihood ratios (nats) beyond which the people of the pairs carry none.

    Examples
    --------
    >>> import faircal
    >>> audit = faircal.audit(probability=[0.2] * 9 + [0.9] * 11, genuine=[0] * 10 + [1] * 10)
    >>> Tippett(audit.curves).numbers
    'Misleading: 10 % of pairs of strangers speak for one person, 0 % of genuine pairs for two.'
    """

    share: float | None = None
    bounds: tuple[float, float] | None = None
    of: Of = field(default="probability", kw_only=True)

    _key, _about, _caption = "tippett", "Tippett plot", CAPTIONS["Tippett"]
    runs = ("audit",)

    @classmethod
    def in_report(cls, scope: FigureScope, **options: Any) -> Sequence[FigureRecord]:
        """Draw the bounds that the audit measured."""
        measured = scope.store.run.get("evidence", {}).get(scope.feature)
        if measured:
            bounds = measured["low"], measured["high"]
            options |= {"share": measured["calibrated_at"], "bounds": bounds}
        return super().in_report(scope, **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        counted = self.curves.get(GLOBAL, self.of, self.source, self.fold)
        share = self.share or counted.n_genuine / (counted.n_genuine + counted.n_imposter)
        inside = (counted.edges > 0) & (counted.edges < 1)
        self.at = (logit(counted.edges[inside]) - logit(share)) / np.log(10)
        self.lines = {"genuine": 1 - counted.fnr[inside], "imposter": counted.fpr[inside]}
        zero = int(np.searchsorted(self.at, 0.0))  # counted: no pair is cut
        wrong = [float(line[zero]) for line in self.lines.values()]
        self.numbers = (
            f"Misleading: {rounded(wrong[1])} of pairs of strangers speak for one person, "
            f"{rounded(1 - wrong[0])} of genuine pairs for two."
        )
        ends = [] if self.bounds is None else [f"{np.exp(abs(end)):,.3g}" for end in self.bounds]
        carried = f"{ends[1]} to 1 for one person, {ends[0]} to 1 against" if ends else "not known"
        self.caption = self._caption.format(share=rounded(share), carried=carried)
        rows = [(k, *at) for k, y in self.lines.items() for at in zip(self.at, y, strict=True)]
        self.table = long_table(("pairs", "log10_likelihood_ratio", "share_at_least"), rows)

    def _draw(self, ax: Axes) -> None:
        for (kind, line), colour in zip(self.lines.items(), (GENUINE, MARK), strict=True):
            ax.plot(self.at, line, color=colour, label=kind)
        for end in (0.0, *np.divide(self.bounds or (), np.log(10))):
            ax.axvline(end, color=FAINT if end == 0 else RULE, linestyle="--", linewidth=0.9)
        ax.set(xlabel="likelihood ratio, powers of ten", ylabel="at least so large (%)")
        percent_axis(ax.yaxis)


#: Points of an outline; the largest half width, so that neighbours stay apart; the least share of
#: it, since imposters can outnumber genuine pairs a hundredfold.
_POINTS, _HALF, _LEAST = 100, 0.42, 0.25
_SIDES = {"imposter": (-1, IMPOSTER), "genuine": (1, GENUINE)}


class ViolinHalf(NamedTuple):
    """Half a violin: its outline, and the quartiles with the width there."""

    at: FloatArray
    width: FloatArray
    quartiles: FloatArray
    quartile_width: FloatArray


@dataclass(eq=False, repr=False)
class Violins(CurvesFigure):
    """How scores (``of="score"``) or probabilities of each group are spread, and its threshold.

    Parameters
    ----------
    curves, source, fold, of, without
        As of every figure of curves.
    rate : float
        The false-positive rate at which thresholds are drawn.
    threshold : float, optional
        That of all pairs, where it is given: its rate takes the place of `rate`.

    Attributes
    ----------
    halves : dict of ViolinHalf
        The outlines, by group and kind of pairs.
    thresholds : dict of float
        The threshold of all pairs (``global``) and of each group; none without imposters.
    bounded : bool
        Whether values lie between 0 and 1: probabilities, by which some methods decide.

    Examples
    --------
    >>> import faircal
    >>> score, genuine = [0.1, 0.3, 0.6, 0.2, 0.4, 0.8, 0.9, 0.7], [0, 0, 0, 0, 0, 1, 1, 1]
    >>> audit = faircal.audit(score=score, genuine=genuine, groups=list("AAABBABB"))
    >>> Violins(audit.curves, rate=0.2).words
    'Scores by group. Threshold at an FPR of 20 %: all pairs 0.6; of the groups: A 0.6, B 0.402.'
    """

    rate: float = 0.05
    threshold: float | None = None

    _key, _about, _caption = "distributions", "Scores by group", CAPTIONS["Violins"]
    _shared = False
    runs = ("audit", "benchmark")  # a reproduction has it among the paper's own

    @classmethod
    def in_report(cls, scope: FigureScope, **options: Any) -> Sequence[FigureRecord]:
        """Draw the threshold given, or that of the rate that the summary speaks of."""
        given = scope.store.run.get("settings", {}).get("threshold")
        return super().in_report(scope, rate=scope.rate, threshold=given, **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        overall = self.curves.get(GLOBAL, self.of, self.source, self.fold)
        bounded = self.of == "probability" or np.array_equal(overall.edges, probability_edges())
        self.bounded = bounded
        if self.threshold is not None:  # to the next bin
            self.rate = float(overall.fpr[np.argmin(np.abs(overall.edges - self.threshold))])
        self.halves: dict[tuple[str, str], ViolinHalf] = {}
        rows: list[tuple[str, str, str, float, float | None]] = []
        for group, histogram in self.histograms.items():
            counts = {kind: getattr(histogram, kind) for kind in _SIDES}
            most = max(int(count.sum()) for count in counts.values())
            for kind, count in counts.items():
                if count.any():
                    share = max(count.sum() / most, _LEAST)
                    half = self.halves[group, kind] = _half(histogram, count, share, bounded)
                    outline = zip(half.at, half.width, strict=True)
                    quartiles = zip(half.quartiles, half.quartile_width, strict=True)
                    rows += [(group, kind, "outline", *at) for at in outline]
                    rows += [(group, kind, "quartile", *at) for at in quartiles]
        self.thresholds: dict[str, float] = {}
        for group, histogram in ({GLOBAL: overall} | self.histograms).items():
            # The threshold nearest to the rate; where nobody passes, just above the last imposter.
            accepting_none = histogram.edges[histogram.accepted_imposter == 0]
            highest = float(accepting_none[0]) if len(accepting_none) else np.inf
            at = min(histogram.threshold_at_fpr(self.rate), highest)
            if group == GLOBAL and self.threshold is not None:
                at = self.threshold
            if at == at:
                self.thresholds[group] = at
                rows.append((group, "", "threshold", at, None))
        self.table = long_table(("group", "pairs", "quantity", "at", "width"), rows)
        which, rate = ("" if self.threshold is None else " given,"), rounded(self.rate)
        self.caption = self._caption.format(
            which=f"the threshold{which}", rate=rate, pooled=self.pooled
        )
        at_groups = [f"{g} {at:.3g}" for g, at in self.thresholds.items() if g != GLOBAL]
        apart = f"; of the groups: {', '.join(at_groups)}" if at_groups else ""
        at = self.thresholds.get(GLOBAL, float("nan"))
        self.numbers = f"Threshold{which} at an FPR of {rate}: all pairs {at:.3g}{apart}."

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
        if GLOBAL in self.thresholds:
            name = "threshold of all pairs" if self.threshold is None else "threshold given"
            ax.axhline(self.thresholds[GLOBAL], color="black", linewidth=1.2, label=name)
        for place, group in enumerate(self.groups):
            if group in self.thresholds and group != GLOBAL:
                at, sides = self.thresholds[group], (place - 0.48, place + 0.48)
                ax.hlines(at, *sides, colors=MARK, linewidth=2.2, label="threshold of the group")
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
        ax.set(xlim=(-0.6, len(names) - 0.4), ylabel="probability" if self.bounded else "score")


def _half(histogram: Histogram, count: IntArray, share: float, bounded: bool) -> ViolinHalf:
    """Smooth counts by a Gaussian of Silverman's width; reflect it at the ends of [0, 1]."""
    edges, upper = histogram.edges, np.append(histogram.edges[1:], histogram.edges[-1])
    middle = (edges + upper) / 2
    filled = np.flatnonzero(count)
    low, high = edges[filled[0]], edges[min(filled[-1] + 1, len(edges) - 1)]
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
        [norm.pdf((at[:, None] - m[None, filled]) / width) @ count[filled] for m in mirrors], axis=0
    )
    outline = _HALF * share * smooth / smooth.max()
    # Quartiles: values are spread evenly within each bin.
    below = np.cumsum(count[filled]) / n
    x = np.stack([edges[filled], upper[filled]], axis=1).ravel()
    y = np.stack([np.append(0.0, below[:-1]), below], axis=1).ravel()
    quartiles = np.asarray(np.interp([0.25, 0.5, 0.75], y, x))
    return ViolinHalf(at, outline, quartiles, np.interp(quartiles, at, outline))
