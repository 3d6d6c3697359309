"""How metrics depend on the number of clusters, and on how much labelled data there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from faircal.evaluation.benchmark.transfer import LabellingCurve, MovedRow, labelling_curves
from faircal.methods import METHODS
from faircal.metrics import DEVIATIONS
from faircal.metrics.results import ALL, GLOBAL, ResultKey
from faircal.report.cells import TableValue
from faircal.report.figures.base import Anything, Figure, FigureScope, long_table
from faircal.report.figures.style import draw_means, percent_axis
from faircal.report.store import LabelledResults, Variant
from faircal.report.wording import calibrator_title, method_title, metric_title, rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
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

    _key = "robustness"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give how methods, and calibrators of a method, do at each number of clusters."""
        results = scope.store.results
        if scope.store.kind == "reproduce":  # which has the paper's own
            return
        calibrator = next((v.calibrator for v in scope.variants if v.calibrator), "")
        lines = by_method(results, [variant.method for variant in scope.variants], calibrator)
        metrics = [("ks_mean", ""), ("ks_std", ""), ("auroc", "")]
        metrics += [("fpr_aad", scope.point)] if scope.point else []
        where = scope.feature, scope.attribute
        if len({variant.clusters for variant in results.variants if variant.clusters}) > 1:
            yield from scope.panels(
                [cls(results, *where, metric, lines, under) for metric, under in metrics],
                [metric_title(*metric) for metric in metrics],
                "robustness-methods",
                "Results over the number of clusters",
                columns=2,
            )
        with_clusters = {variant.method for variant in results.variants if variant.clusters}
        order = [*(name for name in METHODS if name in with_clusters), *sorted(with_clusters)]
        maps = {method: by_calibrator(results, method) for method in dict.fromkeys(order)}
        maps = {method: lines for method, lines in maps.items() if len(lines) > 1}
        yield from scope.panels(
            [cls(results, *where, "ks_mean", lines) for lines in maps.values()],
            [method_title(method) for method in maps],
            "robustness-calibrators",
            "KS mean by calibrator and number of clusters",
            share_y=True,
        )

    def _title(self) -> str:
        return f"{metric_title(self.metric, self.condition)} over the number of clusters"

    @cached_property
    def clusters(self) -> list[int]:
        """The numbers of clusters, ascending."""
        numbers = {variant.clusters for line in self.lines.values() for variant in line}
        return sorted(int(k) for k in numbers if k)

    @cached_property
    def points(self) -> dict[str, dict[int, TableValue]]:
        """The values of each line by number of clusters."""
        group = ALL if self.metric.split("_")[-1] in DEVIATIONS else GLOBAL
        where = (self.attribute, group, self.condition, self.metric)
        points: dict[str, dict[int, TableValue]] = {}
        for name, variants in self.lines.items():
            values: dict[int, TableValue] = {}
            for variant in variants:
                value = self.results.value(ResultKey(self.feature, *variant, *where))
                if value.mean == value.mean:
                    at = [int(variant.clusters)] if variant.clusters else self.clusters
                    values |= dict.fromkeys(at, value)
            if values:
                points[name] = dict(sorted(values.items()))
        return points

    @cached_property
    def table(self) -> pa.Table:
        """Columns `line`, `clusters`, `value` (mean over folds) and `std`."""
        return long_table(
            ("line", "clusters", "value", "std"),
            (
                (name, k, value.mean, value.std)
                for name, values in self.points.items()
                for k, value in values.items()
            ),
        )

    def _numbers(self) -> str:
        lines_in_words = []
        for name, values in self.points.items():
            ends = dict.fromkeys((min(values), max(values)))
            listed = ", ".join(f"{rounded(values[k].mean)} at K = {k}" for k in ends)
            lines_in_words.append(f"{name} {listed}")
        return "; ".join(lines_in_words) + "."

    def _draw(self, ax: Axes) -> None:
        # Evenly spaced: people sweep K in steps that grow.
        place = {k: i for i, k in enumerate(self.clusters)}
        for index, (name, values) in enumerate(self.points.items()):
            means = [value.mean for value in values.values()]
            errors = [value.std for value in values.values()]
            draw_means(ax, [place[k] for k in values], means, errors, index, name)
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


@dataclass(frozen=True, eq=False)
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

    _key, _about = "moving", "Calibration error by labelled pairs of the new population"

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give a panel for each method that moved to another population."""
        where = scope.store.moved, scope.feature, scope.attribute
        yield from scope.panels(
            [cls(*where, variant) for variant in scope.variants],
            [method_title(variant.method) for variant in scope.variants],
            cls._key,
            "KS by labelled pairs of the new population",
        )

    @cached_property
    def lines(self) -> dict[str, LabellingCurve]:
        """The curves by name: each strategy, of all pairs and as mean over groups."""
        own = self.variant
        place = (self.feature, own.method, own.calibrator, own.clusters, self.attribute)
        rows = [row for row in self.rows if row[:5] == place]
        return {
            f"{curve.strategy}, {of}": curve
            for (metric, group), of in _OF
            for curve in labelling_curves(rows, metric, group)
        }

    @cached_property
    def table(self) -> pa.Table:
        """Columns `line`, `labels`, `people`, `value` (mean over folds) and `error` (standard)."""
        return long_table(
            ("line", "labels", "people", "value", "error"),
            (
                (name, labels, at.people, at.mean, at.error)
                for name, curve in self.lines.items()
                for labels, at in curve.points.items()
            ),
        )

    def _numbers(self) -> str:
        lines_in_words = []
        for name, curve in self.lines.items():
            ends = dict.fromkeys((min(curve.points), curve.most))
            listed = ", ".join(f"{rounded(curve.points[n].mean)} with {n}" for n in ends)
            lines_in_words.append(
                f"{name}: {listed} labelled pairs, about {curve.labels_needed} do as well"
            )
        return "; ".join(lines_in_words) + "."

    def _draw(self, ax: Axes) -> None:
        for index, (name, curve) in enumerate(self.lines.items()):
            values = list(curve.points.values())
            means, errors = [at.mean for at in values], [at.error for at in values]
            draw_means(ax, list(curve.points), means, errors, index, name)
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
