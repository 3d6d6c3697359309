"""How much depends on clusters, on how many there are, and on how much labelled data there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from faircal.evaluation.benchmark.transfer import MovedRow, labelling_curves
from faircal.methods import METHODS
from faircal.metrics import DEVIATIONS
from faircal.metrics.results import ALL, GLOBAL, ClusterRow, ResultKey
from faircal.report.cells import TableValue
from faircal.report.figures.base import CAPTIONS, Figure, FigureRecord, FigureScope, long_table
from faircal.report.figures.style import RULE, draw_line, label, marker_look, percent_axis
from faircal.report.store import LabelledResults, Variant
from faircal.report.wording import calibrator_title, method_title, metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NO_GROUP = "no group known"


class DrawnCluster(NamedTuple):
    """A cluster: its images, how many of each group, the group with most, and its shift."""

    name: str
    images: float
    of_group: dict[str, float]
    shift: float

    @property
    def majority(self) -> str:
        """The group with most images; none where no image has a group."""
        most = max(self.of_group, key=self.of_group.__getitem__, default="")
        return most if self.of_group.get(most) else NO_GROUP

    @property
    def share(self) -> float:
        """The share of that group among the images with a group."""
        total = sum(self.of_group.values())
        return max(self.of_group.values()) / total if total else 0.0


def read_clusters(
    rows: Sequence[ClusterRow], method: str, feature: str, attribute: str, fold: str
) -> list[DrawnCluster]:
    """Return the clusters of one fit."""
    numbers: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        if (row.method, row.feature, row.fold) == (method, feature, fold) and (
            row.attribute in ("", attribute)
        ):
            numbers.setdefault(row.cluster, {})[row.group, row.quantity] = row.value
    return [
        DrawnCluster(
            name,
            values.get((ALL, "images"), 0.0),
            {
                group: value
                for (group, quantity), value in values.items()
                if quantity == "images" and group != ALL
            },
            values.get((ALL, "shift"), float("nan")),
        )
        for name, values in numbers.items()
    ]


@dataclass(eq=False, repr=False)
class ClusterShift(Figure):
    """By how much each cluster's threshold lies above that of all pairs, marked by its group.

    Parameters
    ----------
    clusters : sequence of DrawnCluster
        As `read_clusters` gives them.
    method, fold : str
        Which fit.

    Examples
    --------
    >>> clusters = [DrawnCluster("0", 9, {"F": 9}, 0.1), DrawnCluster("1", 1, {"F": 1}, -0.1)]
    >>> ClusterShift(clusters, "fsn").table["cluster"].to_pylist()
    ['1', '0']
    """

    clusters: Sequence[DrawnCluster]
    method: str
    fold: str = ""

    runs = ("benchmark", "reproduce")

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return the clusters of each method in the last fold."""
        rows = [row for row in scope.store.clusters if row.feature == scope.feature]
        figures: list[FigureRecord] = []
        for method in dict.fromkeys(row.method for row in rows):
            fold = rows[-1].fold
            clusters = read_clusters(rows, method, scope.feature, scope.attribute, fold)
            figure = cls(clusters, method, fold)
            figures += scope.panels([figure], [""], f"{figure.key}-{method}", figure.title)
        return figures

    def __post_init__(self) -> None:
        self.size, self.panel_size = (7.0, 3.6), (4.6, 3.0)
        self.key = self.key or "cluster-shift"
        title = f"Threshold shift of each cluster: {method_title(self.method)}"
        self.title = self.title or title
        shown = [cluster for cluster in self.clusters if cluster.shift == cluster.shift]
        self.shown = sorted(shown, key=lambda cluster: cluster.shift)
        unknown = len(self.clusters) - len(shown)
        more = f" {unknown} without a known shift are not drawn." if unknown else ""
        fold = f" Clusters of the run that left fold {self.fold} out." if self.fold else ""
        self.caption = CAPTIONS["ClusterShift"].format(unknown=more, fold=fold)
        groups = dict.fromkeys(group for cluster in self.clusters for group in cluster.of_group)
        #: The shifts of the clusters of each group, by their place.
        self.by_group = {
            group: {i: c.shift for i, c in enumerate(self.shown, 1) if c.majority == group}
            for group in [*groups, NO_GROUP]
        }
        medians = (
            f"{group} {np.median(list(shifts.values())):+.3f} ({len(shifts)} clusters)"
            for group, shifts in self.by_group.items()
            if shifts
        )
        self.numbers = f"Median shift of the clusters by their main group: {', '.join(medians)}."
        self.table = long_table(
            ("cluster", "shift", "group", "share", "images"),
            ((c.name, c.shift, c.majority, c.share, int(c.images)) for c in self.shown),
        )

    def _draw(self, ax: Axes) -> None:
        ax.axhline(0, color=RULE, linewidth=0.9)
        places = np.arange(1, len(self.shown) + 1)
        ax.vlines(places, 0, [cluster.shift for cluster in self.shown], "#CCCCCC", linewidth=0.8)
        for index, (group, shifts) in enumerate(self.by_group.items()):
            if shifts:
                look = marker_look(index)
                if group == NO_GROUP:
                    look = {"color": "#777777", "marker": "x"}
                x, y = list(shifts), list(shifts.values())
                ax.plot(x, y, linestyle="", label=label(group), **look)
        ax.set(xlabel="clusters, by shift", ylabel="threshold shift (score)")
        ax.set_xlim(0, len(self.shown) + 1)


@dataclass(eq=False, repr=False)
class Robustness(Figure):
    """A metric over the number of clusters K, with bars of one standard deviation over folds.

    Parameters
    ----------
    results : LabelledResults
    feature, attribute : str
    metric, condition : str
        As in ``results.csv``.
    lines : mapping from a name to variants
        What each line shows. One without clusters is the same at every K. `by_calibrator` and
        `by_method` make such mappings.

    Examples
    --------
    >>> import faircal
    >>> from faircal.metrics.results import Result
    >>> front = ("d", "", "faircal", "beta")
    >>> back = ("0", "mean", "sex", "all", "", "ks_mean")
    >>> rows = [Result(*front, k, *back, value) for k, value in (("5", 0.02), ("50", 0.01))]
    >>> results = LabelledResults(rows)
    >>> lines = by_calibrator(results, "faircal")
    >>> Robustness(results, "", "sex", "ks_mean", lines).table["value"].to_pylist()
    [0.02, 0.01]
    """

    results: LabelledResults
    feature: str
    attribute: str
    metric: str
    lines: Mapping[str, Sequence[Variant]]
    condition: str = ""

    runs = ("benchmark",)  # a reproduction has the paper's own

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return how methods, and calibrators of a method, do at each number of clusters."""
        results, figures = scope.store.results, list[FigureRecord]()
        where = scope.feature, scope.attribute
        with_clusters = [variant for variant in results.variants if variant.clusters]
        if len({variant.clusters for variant in with_clusters}) > 1:
            calibrator = next((v.calibrator for v in scope.variants if v.calibrator), "")
            lines = by_method(results, [variant.method for variant in scope.variants], calibrator)
            metrics = [("ks_mean", ""), ("ks_std", ""), ("auroc", "")]
            metrics += [("fpr_aad", scope.point)] if scope.point else []
            figures += scope.panels(
                [cls(results, *where, metric, lines, under) for metric, under in metrics],
                [metric_title(*metric) for metric in metrics],
                "robustness-methods",
                "Results over the number of clusters",
                columns=2,
            )
        order = dict.fromkeys([*METHODS, *sorted(variant.method for variant in with_clusters)])
        calibrators = {
            method: {v.calibrator for v in with_clusters if v.method == method} for method in order
        }
        several = [method for method, names in calibrators.items() if len(names) > 1]
        return figures + scope.panels(
            [cls(results, *where, "ks_mean", by_calibrator(results, name)) for name in several],
            [method_title(name) for name in several],
            "robustness-calibrators",
            "KS mean by calibrator and number of clusters",
            share_y=True,
        )

    def __post_init__(self) -> None:
        numbers = {variant.clusters for line in self.lines.values() for variant in line}
        #: The numbers of clusters, ascending.
        self.clusters = sorted(int(k) for k in numbers if k)
        group = ALL if self.metric.split("_")[-1] in DEVIATIONS else GLOBAL
        where = (self.attribute, group, self.condition, self.metric)
        #: The values of each line by number of clusters.
        self.points: dict[str, dict[int, TableValue]] = {}
        for name, variants in self.lines.items():
            values: dict[int, TableValue] = {}
            for variant in variants:
                value = self.results.value(ResultKey(self.feature, *variant, *where))
                if value.mean == value.mean:
                    at = [int(variant.clusters)] if variant.clusters else self.clusters
                    values |= dict.fromkeys(at, value)
            if values:
                self.points[name] = dict(sorted(values.items()))
        self.key = self.key or "robustness"
        title = metric_title(self.metric, self.condition)
        self.title = self.title or f"{title} over the number of clusters"
        self.caption = CAPTIONS["Robustness"]
        lines_in_words, rows = [], []
        for name, values in self.points.items():
            ends = dict.fromkeys((min(values), max(values)))
            listed = ", ".join(f"{rounded(values[k].mean)} at K = {k}" for k in ends)
            lines_in_words.append(f"{name} {listed}")
            rows += [(name, k, value.mean, value.std) for k, value in values.items()]
        self.numbers = "; ".join(lines_in_words) + "."
        self.table = long_table(("line", "clusters", "value", "std"), rows)

    def _draw(self, ax: Axes) -> None:
        # Evenly spaced: people sweep K in steps that grow.
        place = {k: i for i, k in enumerate(self.clusters)}
        for index, (name, values) in enumerate(self.points.items()):
            means = [value.mean for value in values.values()]
            errors = [value.std for value in values.values()]
            draw_line(ax, [place[k] for k in values], means, index, name, errors)
        ax.set_xticks(range(len(place)), [str(k) for k in place])
        if len(place) > 8:
            ax.tick_params(axis="x", rotation=45)
        ax.set(xlabel="number of clusters K", ylabel=f"{metric_title(self.metric)} (%)")
        percent_axis(ax.yaxis)


def by_calibrator(
    results: LabelledResults, method: str, calibrators: Iterable[str] | None = None
) -> dict[str, list[Variant]]:
    """Return a line for each calibrator that `method` was run with, of those named if any are.

    Examples
    --------
    >>> from faircal.metrics.results import Result
    >>> rest = ("5", "0", "mean", "", "global", "", "auroc", 0.9)
    >>> results = LabelledResults(Result("d", "", "fsn", name, *rest) for name in ("beta", "platt"))
    >>> list(by_calibrator(results, "fsn", ["platt", "spline"]))
    ['platt']
    """
    variants = [variant for variant in results.variants if variant.method == method]
    ran = dict.fromkeys(variant.calibrator for variant in variants)
    chosen = ran if calibrators is None else [name for name in calibrators if name in ran]
    return {
        calibrator_title(name): [v for v in variants if v.calibrator == name] for name in chosen
    }


def by_method(
    results: LabelledResults, methods: Iterable[str], calibrator: str = "beta"
) -> dict[str, list[Variant]]:
    """Return a line for each of the methods that was run, with one calibrator.

    Examples
    --------
    >>> from faircal.metrics.results import Result
    >>> rest = ("beta", "5", "0", "mean", "", "global", "", "auroc", 0.9)
    >>> results = LabelledResults([Result("d", "", "fsn", *rest)])
    >>> list(by_method(results, ["baseline", "fsn"]))
    ['FSN']
    """
    lines = {
        method_title(name): [
            v for v in results.variants if v.method == name and v.calibrator in ("", calibrator)
        ]
        for name in methods
    }
    return {name: line for name, line in lines.items() if line}


#: Metric and group of each kind of line, and what it is of.
_OF = ((("ks", GLOBAL), "all pairs"), (("ks_mean", ALL), "mean over groups"))


@dataclass(eq=False, repr=False)
class MovingCurves(Figure):
    """Calibration error (KS) of a method over the number of labelled pairs of new people.

    Parameters
    ----------
    rows : sequence of MovedRow
        ``moving.csv``.
    feature, attribute : str
    variant : Variant
        The method, with its calibrator and clusters.

    Examples
    --------
    >>> front = ("f", "baseline", "beta", "", "", "as-is", "0", "0")
    >>> rows = [MovedRow(*front, "1", "global", "", "ks", 0.1)]
    >>> figure = MovingCurves(rows, "f", "", Variant("baseline", "beta", ""))
    >>> figure.table["line"].to_pylist()
    ['recalibrated, all pairs']
    """

    rows: Sequence[MovedRow]
    feature: str
    attribute: str
    variant: Variant

    runs = ("benchmark",)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return a panel for each method that moved to another population."""
        moved = scope.store.moved
        variants = scope.variants if moved else []
        return scope.panels(
            [cls(moved, scope.feature, scope.attribute, variant) for variant in variants],
            [method_title(variant.method) for variant in variants],
            "moving",
            "KS by labelled pairs of the new population",
        )

    def __post_init__(self) -> None:
        place = (self.feature, *self.variant, self.attribute)
        of_variant = [row for row in self.rows if row[:5] == place]
        #: The curves by name: each strategy, of all pairs and as mean over groups.
        self.lines = {
            f"{curve.strategy}, {of}": curve
            for (metric, group), of in _OF
            for curve in labelling_curves(of_variant, metric, group)
        }
        self.key = self.key or "moving"
        self.title = self.title or "Calibration error by labelled pairs of the new population"
        self.caption = CAPTIONS["MovingCurves"]
        lines_in_words, rows = [], []
        for name, curve in self.lines.items():
            ends = dict.fromkeys((min(curve.points), curve.most))
            listed = ", ".join(f"{rounded(curve.points[n].mean)} with {n}" for n in ends)
            needed = f"about {curve.labels_needed} do as well"
            lines_in_words.append(f"{name}: {listed} labelled pairs, {needed}")
            points = curve.points.items()
            rows += [(name, n, at.people, at.mean, at.error) for n, at in points]
        self.numbers = "; ".join(lines_in_words) + "."
        self.table = long_table(("line", "labels", "people", "value", "error"), rows)

    def _draw(self, ax: Axes) -> None:
        for index, (name, curve) in enumerate(self.lines.items()):
            values = list(curve.points.values())
            means, errors = [at.mean for at in values], [at.error for at in values]
            draw_line(ax, list(curve.points), means, index, name, errors)
        steps = sorted({labels for curve in self.lines.values() for labels in curve.points})
        # Logarithmic, but with room for no label at all.
        least = min((labels for labels in steps if labels), default=1)
        ax.set_xscale("symlog", linthresh=least, linscale=0.6)
        # Labels of neighbours would run together.
        apart = [a for a, b in pairwise(steps) if b > 1.6 * a] + steps[-1:]
        ax.set_xticks(apart, [f"{labels:,}" for labels in apart])
        ax.set_xticks([], minor=True)
        ax.tick_params(axis="x", rotation=45)
        ax.set_ylim(bottom=0)
        ax.set(xlabel="labelled pairs of the new population", ylabel="KS (%)")
        percent_axis(ax.yaxis)
