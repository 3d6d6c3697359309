"""The paper's tables in its order and form, filled from a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from faircal.metrics.results import ALL, Condition
from faircal.report.cells import Heading, Line, Table, TableValue
from faircal.report.paper.published import Matched, properties
from faircal.report.tables import ColumnSpec, mark_best
from faircal.report.wording import method_title, rate_text

_DEVIATIONS = {
    "aad": "average absolute deviation",
    "mad": "largest absolute deviation",
    "std": "standard deviation",
}
_SPELT = "; ".join(f"{key.upper()}: {words}" for key, words in _DEVIATIONS.items())

ACCURACY = (
    ColumnSpec("AUROC", "auroc", better="higher"),
    ColumnSpec("TPR @ 0.1 % FPR", "tpr", condition="fpr=0.001", better="higher"),
    ColumnSpec("TPR @ 1 % FPR", "tpr", condition="fpr=0.01", better="higher"),
)
KS_MEAN = ColumnSpec("Mean", "ks_mean", group=ALL)
FPR_RATES = ("global_fpr=0.001", "global_fpr=0.01")
FNR_RATES = ("global_fnr=0.001", "global_fnr=0.01")


def deviations(metric: str) -> tuple[ColumnSpec, ...]:
    """Return the columns with the deviations of a metric over groups."""
    return tuple(ColumnSpec(key.upper(), f"{metric}_{key}", group=ALL) for key in _DEVIATIONS)


@dataclass(frozen=True)
class TableLayout:
    """One of the paper's tables: which columns stand under each feature, which blocks of rows.

    Parameters
    ----------
    key : str
        The paper's label.
    datasets : tuple of str
        Those that the paper has columns for.
    title, caption : str
    columns : tuple of ColumnSpec
        Columns under each feature; none: a column for all pairs and one for each group.
    rates : tuple of str
        Conditions, each a block of rows.
    spreads : bool
        Whether the spread over folds is printed.
    """

    key: str
    datasets: tuple[str, ...]
    title: str
    caption: str
    columns: tuple[ColumnSpec, ...] = ()
    rates: tuple[str, ...] = ()
    spreads: bool = False

    def blocks(self, matched: Matched) -> list[tuple[str, list[ColumnSpec]]]:
        """Return the blocks of rows, each with the columns under a feature."""
        if not self.columns:
            groups = [ColumnSpec(group.title, "ks", group.name) for group in matched.groups]
            return [("", [ColumnSpec("Global", "ks"), *groups])]
        if not self.rates:
            return [("", list(self.columns))]
        return [
            (_rate(rate), [replace(column, condition=rate) for column in self.columns])
            for rate in self.rates
        ]

    def over_folds(self, key: str, column: ColumnSpec) -> TableLayout:
        """Return the appendix's table of one column, with its spread over folds."""
        return replace(
            self,
            key=key,
            title=f"{self.title}, {column.name}, over folds",
            caption=f"{self.caption} Mean ± standard deviation over the folds.",
            columns=(column,),
            spreads=True,
        )

    def table(self, matched: Matched) -> Table:
        """Fill the table."""
        blocks = self.blocks(matched)
        headings = tuple(
            Heading(feature.title, column.name, column.better)
            for feature in matched.features
            for column in blocks[0][1]
        )
        return Table(
            self.key,
            f"{self.title} on {matched.title}",
            self.caption,
            headings,
            tuple(line for block in blocks for line in _lines(matched, headings, *block)),
            self.spreads,
            matched.simulated,
        )


def _lines(
    matched: Matched, headings: tuple[Heading, ...], block: str, columns: list[ColumnSpec]
) -> Iterator[Line]:
    grid = [
        [
            matched.value(feature, variant, column)
            for feature in matched.features
            for column in columns
        ]
        for variant in matched.variants
    ]
    contest = [i for i, variant in enumerate(matched.variants) if not variant.yardstick]
    mark_best(grid, contest, headings)
    for variant, values in zip(matched.variants, grid, strict=True):
        yield Line(method_title(variant.method), tuple(values), variant.yardstick, block)


def _rate(condition: str) -> str:
    """Print a condition as the name of a block, ``global_fpr=0.001`` → ``0.1 % FPR``."""
    return f"{rate_text(condition)} {Condition.of(condition).metric.upper()}"


_MAIN, _IJBC = ("rfw", "bfw"), ("ijbc",)
_ACCURACY = TableLayout(
    "global_performance_beta",
    _MAIN,
    "Accuracy",
    "Area under the ROC curve, and share of genuine pairs accepted at two false-positive "
    "rates, over all pairs. Percent; higher is better.",
    ACCURACY,
)
_CALIBRATION = TableLayout(
    "fair_calibration_ks",
    _MAIN,
    "Fairness of calibration",
    "Calibration error (KS) of the groups: their mean, and how far they lie apart "
    f"({_SPELT}). Percent; lower is better.",
    (KS_MEAN, *deviations("ks")),
)
_EQUALITY = TableLayout(
    "predictive_equality_at_fpr_beta",
    _MAIN,
    "Predictive equality",
    "How far the FPRs of the groups lie apart at the threshold of two global FPRs "
    f"({_SPELT}). Percent; lower is better.",
    deviations("fpr"),
    FPR_RATES,
)
_OPPORTUNITY = TableLayout(
    "equal_opportunity_at_fnr_beta",
    _MAIN,
    "Equal opportunity",
    _EQUALITY.caption.replace("FPR", "FNR"),
    deviations("fnr"),
    FNR_RATES,
)
_BY_GROUP = TableLayout(
    "subgroup_calibration_rfw_ks_ethnicity",
    ("rfw",),
    "Calibration error by group",
    "KS of all pairs and of each group. Percent; lower is better.",
)

#: The numeric tables in the paper's order: main text, IJB-C, and the appendix, which has each
#: column of the main tables again. The paper labels the last three by FPR; they hold FNRs.
LAYOUTS = (
    _ACCURACY,
    _CALIBRATION,
    _EQUALITY,
    _BY_GROUP,
    replace(_BY_GROUP, key="subgroup_calibration_bfw_ks_att", datasets=("bfw",)),
    _OPPORTUNITY,
    replace(_CALIBRATION, key="fair_calibration_ks_ijbc", datasets=_IJBC),
    replace(_ACCURACY, key="global_performance_beta_ijbc", datasets=_IJBC),
    replace(_EQUALITY, key="predictive_equality_at_fpr_beta_ijbc", datasets=_IJBC),
    *(
        _ACCURACY.over_folds(f"global_performance_beta_{end}", column)
        for end, column in zip(("auroc", "1e-3fpr", "1e-2fpr"), ACCURACY, strict=True)
    ),
    *(
        layout.over_folds(f"{key}_{column.metric.partition('_')[2]}", column)
        for layout, key in (
            (_CALIBRATION, "fair_calibration_ks"),
            (_EQUALITY, "predictive_equality_at_fpr_beta"),
            (_OPPORTUNITY, "equal_opportunity_at_fpr_beta"),
        )
        for column in layout.columns
    ),
)


def layouts(dataset: str) -> list[TableLayout]:
    """Return the paper's numeric tables that have columns for a dataset."""
    return [layout for layout in LAYOUTS if dataset in layout.datasets]


_KINDS = {"retraining": "With retraining", "post-training": "After training"}


def properties_table(simulated: bool = False) -> Table:
    """Return the paper's table of properties: what it says of 16 methods."""
    names = (
        "Improves accuracy",
        "Fairly calibrated",
        "Predictive equality",
        "No attribute in training",
        "No attribute at test time",
        "No further training",
    )
    return Table(
        "properties_comparison",
        "Properties of the methods",
        "As the paper has them: nothing here is measured. Methods that need the network to be "
        "trained anew come first, those that take it as it is second.",
        tuple(Heading("", name, "") for name in names),
        tuple(
            Line(
                method,
                tuple(TableValue(float("nan"), says="yes" if each else "no") for each in has),
                apart=method == "Oracle",
                block=_KINDS[kind],
            )
            for kind, method, has in properties()
        ),
        spreads=False,
        simulated=simulated,
    )


def paper_tables(matched: Matched) -> dict[int, Table]:
    """Return the paper's tables for a dataset by their number; those without a value are left out.

    The table of properties is the first.
    """
    tables = [properties_table(matched.simulated)]
    tables += [layout.table(matched) for layout in layouts(matched.dataset)]
    return {number: table for number, table in enumerate(tables, 1) if table.measured}
