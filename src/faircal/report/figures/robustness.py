"""How a metric depends on the number of clusters: the paper's robustness plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from faircal.metrics import DEVIATIONS
from faircal.metrics.results import ALL, GLOBAL
from faircal.report.figures.base import Figure, long_table
from faircal.report.figures.style import MARKERS, label, line_look, percent_axis
from faircal.report.figures.wording import metric_title, percent
from faircal.report.tables import Results, Value, Variant, calibrator_title, method_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = {
    "line": pa.string(),
    "clusters": pa.int64(),
    "value": pa.float64(),
    "std": pa.float64(),
}


@dataclass(frozen=True, eq=False)
class Robustness(Figure):
    """A metric over the number of clusters K, with a band of one standard deviation over folds.

    Parameters
    ----------
    results : Results
    feature, attribute : str
    metric, condition : str
        As in ``results.csv``.
    lines : mapping from a name to variants
        What each line shows. One without clusters is the same at every K. `by_calibrator` and
        `by_method` make such mappings.
    group : str, optional
        ``all`` for numbers over groups and ``global`` for others, unless told.

    Examples
    --------
    >>> import faircal
    >>> from faircal.metrics.results import ResultRow
    >>> front = ("d", "", "faircal", "beta")
    >>> back = ("0", "mean", "sex", "all", "", "ks_mean")
    >>> results = Results([Row(*front, "5", *back, 0.02), Row(*front, "50", *back, 0.01)])
    >>> lines = by_calibrator(results, "faircal")
    >>> Robustness(results, "", "sex", "ks_mean", lines).table["value"].to_pylist()
    [0.02, 0.01]
    """

    results: Results
    feature: str
    attribute: str
    metric: str
    lines: Mapping[str, Sequence[Variant]]
    condition: str = ""
    group: str = ""

    _key = "robustness"

    def _title(self) -> str:
        return f"{metric_title(self.metric, self.condition)} over the number of clusters"

    @cached_property
    def clusters(self) -> list[int]:
        """The numbers of clusters, ascending."""
        found = {variant.clusters for line in self.lines.values() for variant in line}
        return sorted(int(k) for k in found if k)

    @cached_property
    def points(self) -> dict[str, dict[int, Value]]:
        """The values of each line by number of clusters."""
        group = self.group or (ALL if self.metric.split("_")[-1] in DEVIATIONS else GLOBAL)
        where = (self.attribute, group, self.condition, self.metric)
        found: dict[str, dict[int, Value]] = {}
        for name, variants in self.lines.items():
            values: dict[int, Value] = {}
            for variant in variants:
                value = self.results.value(self.feature, variant, *where)
                if value.mean == value.mean:
                    at = [int(variant.clusters)] if variant.clusters else self.clusters
                    values |= dict.fromkeys(at, value)
            if values:
                found[name] = dict(sorted(values.items()))
        return found

    @cached_property
    def table(self) -> pa.Table:
        """Columns `line`, `clusters`, `value` (mean over folds) and `std`."""
        return long_table(
            _COLUMNS,
            (
                (name, k, value.mean, value.std)
                for name, values in self.points.items()
                for k, value in values.items()
            ),
        )

    @property
    def caption(self) -> str:
        """How to read it."""
        return (
            "Mean over folds for different numbers of clusters K; bands are one standard deviation "
            "over folds to either side. What uses no clusters is a level line."
        )

    def _numbers(self) -> str:
        said = []
        for name, values in self.points.items():
            ends = dict.fromkeys((min(values), max(values)))
            listed = ", ".join(f"{percent(values[k].mean)} at K = {k}" for k in ends)
            said.append(f"{name} {listed}")
        return "; ".join(said) + "."

    def _draw(self, ax: Axes) -> None:
        place = {k: i for i, k in enumerate(self.clusters)}
        for index, (name, values) in enumerate(self.points.items()):
            look = line_look(index) | {"marker": MARKERS[index % len(MARKERS)]}
            x = [place[k] for k in values]
            mean = [value.mean for value in values.values()]
            ax.plot(x, mean, label=label(name), **look)
            self._draw_band(ax, x, list(values.values()), look["color"])
        ax.set_xticks(range(len(place)), [str(k) for k in place])
        if len(place) > 8:
            ax.tick_params(axis="x", rotation=45)
        ax.set(xlabel="number of clusters K", ylabel=f"{metric_title(self.metric)} (%)")
        percent_axis(ax.yaxis)

    def _draw_band(self, ax: Axes, x: list[int], values: list[Value], colour: Any) -> None:
        mean = [value.mean for value in values]
        std = [0.0 if value.std != value.std else value.std for value in values]
        low, high = ([m + sign * s for m, s in zip(mean, std, strict=True)] for sign in (-1, 1))
        ax.fill_between(x, low, high, color=colour, alpha=0.22, linewidth=0)
        if len(x) == 1:
            ax.errorbar(x, mean, std, color=colour, linewidth=1)


def by_calibrator(
    results: Results, method: str, calibrators: Iterable[str] | None = None
) -> dict[str, list[Variant]]:
    """Return a line for each calibrator that `method` was run with, of those named if any are.

    Examples
    --------
    >>> from faircal.metrics.results import ResultRow
    >>> rest = ("5", "0", "mean", "", "global", "", "auroc", 0.9)
    >>> results = Results(Row("d", "", "fsn", name, *rest) for name in ("beta", "platt"))
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
    results: Results, methods: Iterable[str], calibrator: str = "beta"
) -> dict[str, list[Variant]]:
    """Return a line for each of the methods that was run, with one calibrator.

    Examples
    --------
    >>> from faircal.metrics.results import ResultRow
    >>> rest = ("beta", "5", "0", "mean", "", "global", "", "auroc", 0.9)
    >>> results = Results([Row("d", "", "fsn", *rest)])
    >>> list(by_method(results, ["baseline", "fsn"]))
    ['FSN']
    """
    variants = results.variants
    found = {
        method_title(name): [
            v for v in variants if v.method == name and v.calibrator in ("", calibrator)
        ]
        for name in methods
    }
    return {name: line for name, line in found.items() if line}
