"""Tables as people read them, made from the results store alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from faircal.evaluation.curves import ScoreSource
from faircal.methods import METHODS
from faircal.metrics import METRICS
from faircal.metrics.fairness import FAIRNESS
from faircal.metrics.results import ALL, GLOBAL, MEAN, STD, Condition, ResultRow
from faircal.report.cells import Heading, Line, Table, TableValue

__all__ = [
    "UNDEFINED",
    "ColumnSpec",
    "Heading",
    "Line",
    "Results",
    "Table",
    "TableValue",
    "Variant",
    "accuracy_table",
    "calibration_table",
    "calibrator_title",
    "equality_table",
    "fairness_measures",
    "fairness_table",
    "further_tables",
    "group_table",
    "main_tables",
    "mark_best",
    "method_table",
    "method_title",
    "rate_text",
    "unit_of",
]


@dataclass(frozen=True)
class Variant:
    """A method with its calibrator and number of clusters: one row of a table."""

    method: str
    calibrator: str
    clusters: str

    @classmethod
    def of(cls, found: ResultRow | ScoreSource) -> Variant:
        """Return the variant that a row of results, or a curve, is of."""
        return cls(found.method, found.calibrator, found.clusters)

    @property
    def yardstick(self) -> bool:
        """Whether the method is shown apart and never best."""
        return self.method in METHODS and METHODS[self.method].yardstick


#: A ratio to a group without an error.
UNDEFINED = "undefined"
#: What is no share of anything: ratios, indices, costs.
_PLAIN = ("max_min", "max_geomean", "gini", "fdr", "ir", "garbe", "cllr", "min_cllr", "nll")


def unit_of(metric: str) -> float:
    """Return what a value is multiplied with to be printed: 100, or 1 where it is no share.

    Examples
    --------
    >>> unit_of("fpr_gap"), unit_of("fpr_max_min"), unit_of("cllr")
    (100.0, 1.0, 1.0)
    """
    return 1.0 if metric.endswith(_PLAIN) else 100.0


def method_title(name: str) -> str:
    """Return what a method is called; bare scores, as in audits, have no method."""
    return METHODS[name].title if name in METHODS else name or "scores"


def calibrator_title(name: str) -> str:
    """Return what a calibrator is called.

    Examples
    --------
    >>> calibrator_title("beta"), calibrator_title("histogram:n_bins=25")
    ('beta', 'histogram (n_bins = 25)')
    """
    kind, colon, setting = name.partition(":")
    return f"{kind} ({setting.replace('=', ' = ')})" if colon else kind


class Results:
    """The rows of a results store, looked up by what they are.

    Attributes
    ----------
    rows : list of ResultRow
    dataset : str
    features, attributes : list of str
        In order of appearance.
    variants : list of Variant
        Methods with calibrator and clusters; yardsticks last.
    """

    def __init__(self, rows: Iterable[ResultRow]) -> None:
        self.rows = list(rows)
        self._values: dict[tuple[str, ...], float] = {}
        # Looked through once: a sweep has hundreds of thousands of rows.
        features: dict[str, None] = {}
        variants: dict[Variant, None] = {}
        conditions: dict[str, None] = {}
        groups: dict[str, dict[str, None]] = {}  # by attribute
        for row in self.rows:
            key = (row.feature, row.method, row.calibrator, row.clusters, row.fold, row.attribute)
            self._values[(*key, row.group, row.condition, row.metric)] = row.value
            features[row.feature] = conditions[row.condition] = None
            variants[Variant.of(row)] = None
            groups.setdefault(row.attribute, {})[row.group] = None
        self.dataset = self.rows[0].dataset if self.rows else ""
        self.features, self.attributes = list(features), list(groups)
        self.variants = sorted(variants, key=lambda variant: variant.yardstick)
        self._conditions = list(conditions)
        self._groups = {
            attribute: [group for group in found if group not in (GLOBAL, ALL)]
            for attribute, found in groups.items()
        }

    def label(self, variant: Variant) -> str:
        """Return the variant's name, as long as needed to tell it from the others."""
        same = [other for other in self.variants if other.method == variant.method]
        more = []
        if len({other.clusters for other in same}) > 1:
            more.append(f"K = {variant.clusters}")
        if len({other.calibrator for other in same}) > 1:
            more.append(calibrator_title(variant.calibrator))
        return ", ".join([method_title(variant.method), *more])

    def groups(self, attribute: str) -> list[str]:
        """Return the groups of `attribute`."""
        return self._groups.get(attribute, [])

    def rates(self, kind: str) -> list[str]:
        """Return the conditions of a kind, ``["global_fpr=0.001", …]``."""
        return [under for under in self._conditions if Condition.of(under).kind == kind]

    def has(
        self,
        feature: str,
        variant: Variant,
        attribute: str,
        group: str,
        condition: str,
        metric: str,
    ) -> bool:
        """Whether a value was measured, be it undefined."""
        front = (feature, variant.method, variant.calibrator, variant.clusters)
        back = (attribute, group, condition, metric)
        return any((*front, fold, *back) in self._values for fold in (MEAN, ""))

    def caution(self, attribute: str, metric: str, conditions: Sequence[str]) -> str:
        """Say which groups count in numbers over groups, but have not enough data themselves."""
        groups = self.groups(attribute)
        small = {
            condition: [
                group
                for group in groups
                if any(
                    self.value(feature, variant, attribute, group, condition, metric).says
                    for feature in self.features
                    for variant in self.variants[:1]
                )
            ]
            for condition in conditions
        }
        front = " Part of it, but with not enough data to be told alone: "
        if not any(small.values()):
            return ""
        if len({tuple(found) for found in small.values()}) == 1:
            return f"{front}{', '.join(small[conditions[0]])}."
        said = [
            f"at {rate_text(condition)} " + ("each group" if found == groups else ", ".join(found))
            for condition, found in small.items()
            if found
        ]
        return f"{front}{'; '.join(said)}."

    def value(
        self,
        feature: str,
        variant: Variant,
        attribute: str,
        group: str,
        condition: str,
        metric: str,
    ) -> TableValue:
        """Look a value up: mean and std over folds, or the one value of an audit."""
        front = (feature, variant.method, variant.calibrator, variant.clusters)
        back = (attribute, group, condition, metric)
        mean = self._values.get((*front, MEAN, *back))
        std = float("nan")
        if mean is None:
            mean = self._values.get((*front, "", *back), float("nan"))
        else:
            std = self._values.get((*front, STD, *back), float("nan"))
        if np.isinf(mean):
            return TableValue(float("nan"), says=UNDEFINED)
        return TableValue(mean, std, unit=unit_of(metric))


def rate_text(condition: str) -> str:
    """Print the rate of a condition, ``global_fpr=0.001`` → ``0.1 %``."""
    return f"{100 * Condition.of(condition).rate:g} %"


@dataclass(frozen=True)
class ColumnSpec:
    """A column to be filled: where its values are in the results."""

    name: str
    metric: str
    group: str = GLOBAL
    condition: str = ""
    better: str = "lower"


def method_table(
    results: Results,
    attribute: str,
    key: str,
    title: str,
    caption: str,
    wanted: Sequence[ColumnSpec],
) -> Table:
    """Build a table with a row per method and a block of columns per feature, best in bold."""
    headings = tuple(
        Heading(feature, want.name, want.better) for feature in results.features for want in wanted
    )
    grid = [
        [
            results.value(feature, variant, attribute, want.group, want.condition, want.metric)
            for feature in results.features
            for want in wanted
        ]
        for variant in results.variants
    ]
    contest = [i for i, variant in enumerate(results.variants) if not variant.yardstick]
    mark_best(grid, contest, headings)
    lines = tuple(
        Line(results.label(variant), tuple(values), variant.yardstick)
        for variant, values in zip(results.variants, grid, strict=True)
    )
    return Table(key, title, caption, headings, lines)


def mark_best(
    grid: list[list[TableValue]], contest: Sequence[int], headings: Sequence[Heading]
) -> None:
    """Mark in each column the best of the rows `contest`, and those that print the same."""
    for column, heading in enumerate(headings):
        shown = {i: round(100 * grid[i][column].mean, 2) for i in contest}
        known = [value for value in shown.values() if not np.isnan(value)]
        if not heading.better or len(contest) < 2 or not known:
            continue
        best = max(known) if heading.better == "higher" else min(known)
        for i in contest:
            if shown[i] == best:
                grid[i][column] = replace(grid[i][column], best=True)


def accuracy_table(results: Results, attribute: str) -> Table:
    """The paper's first table: global accuracy."""
    wanted = [ColumnSpec("AUROC", "auroc", better="higher")]
    wanted += [
        ColumnSpec(f"TPR @ {rate_text(under)} FPR", "tpr", condition=under, better="higher")
        for under in results.rates("fpr")
    ]
    return method_table(
        results,
        attribute,
        "accuracy",
        "Accuracy",
        "Over all pairs. Percent; higher is better.",
        wanted,
    )


_OVER = (("mean", "Mean"), ("aad", "AAD"), ("mad", "MAD"), ("std", "STD"))


def calibration_table(results: Results, attribute: str, metric: str = "ks") -> Table:
    """The paper's second table: calibration error over groups."""
    title = METRICS[metric].title
    wanted = [ColumnSpec(f"{title} {name}", f"{metric}_{key}", group=ALL) for key, name in _OVER]
    return method_table(
        results,
        attribute,
        f"calibration-{metric}",
        f"Fairness calibration ({title})",
        f"{title} of each group: mean over groups, average (AAD) and largest (MAD) absolute "
        "deviation from it, standard deviation (STD). Percent; lower is better."
        + results.caution(attribute, metric, [""]),
        wanted,
    )


def equality_table(results: Results, attribute: str, metric: str = "fpr") -> Table:
    """The paper's third table: predictive equality (``fpr``), or equal opportunity (``fnr``)."""
    upper = metric.upper()
    wanted = [
        ColumnSpec(f"{name} @ {rate_text(under)}", f"{metric}_{key}", group=ALL, condition=under)
        for under in results.rates(f"global_{metric}")
        for key, name in _OVER[1:]
    ]
    title = "Predictive equality" if metric == "fpr" else "Equal opportunity"
    return method_table(
        results,
        attribute,
        f"equality-{metric}",
        f"{title} ({upper} deviations)",
        f"Deviation of the groups' {upper} at the threshold of a given global {upper}. "
        "Percent; lower is better."
        + results.caution(attribute, metric, results.rates(f"global_{metric}")),
        wanted,
    )


def fairness_table(results: Results, attribute: str, condition: str) -> Table:
    """How unequal groups are at one operating point, as standards and laboratories tell it."""
    wanted = [
        ColumnSpec(title, metric, ALL, condition, FAIRNESS[metric.removeprefix(f"{rate}_")].better)
        for rate, metric, title in fairness_measures()
    ]
    return method_table(
        results,
        attribute,
        f"fairness-{condition}",
        f"Fairness measures at a global FPR of {rate_text(condition)}",
        "Max − min in percent, the rest as it is. Groups are alike where ratios, FDR and the "
        "inequity rate are 1 and the others 0. Undefined: a ratio to a group without an error."
        + results.caution(attribute, "fpr", [condition]),
        wanted,
    )


def fairness_measures() -> list[tuple[str, str, str]]:
    """Return rate ("" for both), name as in ``results.csv``, and title of every measure."""
    single = [
        (rate, f"{rate}_{name}", f"{rate.upper()} {measure.title}")
        for rate in ("fpr", "fnr")
        for name, measure in FAIRNESS.items()
        if measure.of == "rate"
    ]
    return single + [("", n, m.title) for n, m in FAIRNESS.items() if m.of == "both"]


def group_table(results: Results, attribute: str, metric: str, condition: str = "") -> Table:
    """A metric of each group, and of all pairs, by method.

    Under a condition the values share a fixed global rate, so none is better than another.
    """
    title, better = metric.upper(), ""
    if metric in METRICS:
        title, better = METRICS[metric].title, METRICS[metric].better
    names = [(GLOBAL, "Global"), *((group, group) for group in results.groups(attribute))]
    wanted = [ColumnSpec(name, metric, group, condition, better) for group, name in names]
    where, hint = "", f" {better} is better."
    if condition:
        rate = Condition.of(condition).metric.upper()
        where, hint = f" at a global {rate} of {rate_text(condition)}", " equal is better."
    return method_table(
        results,
        attribute,
        f"groups-{metric}" + (f"-{condition}" if condition else ""),
        f"{title} by group{where}",
        f"{title} of all pairs and of each group. Percent;{hint}",
        wanted,
    )


def main_tables(results: Results, attribute: str) -> list[Table]:
    """The three tables of the paper's main text, as far as they were measured."""
    tables = [accuracy_table(results, attribute)]
    if results.groups(attribute):
        tables += [calibration_table(results, attribute), equality_table(results, attribute)]
    return [table for table in tables if table.measured]


def further_tables(results: Results, attribute: str) -> list[Table]:
    """What the report shows besides the main tables."""
    if not results.groups(attribute):
        return []
    tables = [equality_table(results, attribute, "fnr")]
    tables += [calibration_table(results, attribute, metric) for metric in ("ece", "brier")]
    tables.append(group_table(results, attribute, "ks"))
    tables += [
        group_table(results, attribute, "fpr", under) for under in results.rates("global_fpr")
    ]
    if len(results.variants) > 1:  # an audit has them in its outline
        tables += [fairness_table(results, attribute, c) for c in results.rates("global_fpr")[-1:]]
    return [table for table in tables if table.measured]
