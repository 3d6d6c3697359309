"""How methods differ from the first one, on the same people: a table."""

from __future__ import annotations

import math

from faircal.evaluation.compare import Comparison
from faircal.report.figures.wording import metric_title
from faircal.report.store import REFERENCE, Store
from faircal.report.tables import Heading, Line, Table, Value, method_title, unit_of


def difference_tables(store: Store, attribute: str) -> list[Table]:
    """Return the table of differences to Baseline; none without replicates or other methods."""
    found = store.compared(attribute)
    if not found:
        return []
    columns = list(dict.fromkeys((c.feature, c.group, c.condition, c.metric) for c in found))
    by = {(c.method_b, c.feature, c.group, c.condition, c.metric): c for c in found}
    headings = tuple(
        Heading(feature, _title(group, condition, metric), "")
        for feature, group, condition, metric in columns
    )
    lines = tuple(
        Line(
            method_title(variant.method),
            tuple(_value(by.get((variant.method, *column))) for column in columns),
            variant.yardstick,
        )
        for variant in store.main_variants.values()
        if variant.method != REFERENCE
    )
    caption = (
        "Value of each method less that of Baseline, on the same people, in points of percent (NLL "
        "as it is). Bold: better, and told apart from none after correction for all "
        f"{found[0].family} comparisons (Holm); a star: worse, and told apart."
    )
    return [Table("differences", "Difference to Baseline", caption, headings, lines)]


def _title(group: str, condition: str, metric: str) -> str:
    return metric_title(metric, condition) + (" (all pairs)" if group == "global" else "")


def _value(compared: Comparison | None) -> Value:
    """Return a difference with its interval, or why there is none."""
    if compared is None:
        return Value(math.nan)
    if not compared.told:
        return Value(math.nan, says=compared.verdict)
    ends = compared.difference
    return Value(
        ends.value,
        best=compared.verdict == "better",
        worse=compared.verdict == "worse",
        low=ends.low,
        high=ends.high,
        unit=unit_of(compared.metric),
        digits=2 if unit_of(compared.metric) > 1 else 4,
    )
