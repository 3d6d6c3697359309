"""How near a run comes to the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from faircal.report.paper.matching import Matched
from faircal.report.paper.tables import Layout, layouts
from faircal.report.tables import Value

#: A difference of one standard deviation counts as within one, whatever its last bit.
_ROUNDING = 1e-9


class AgreementLine(NamedTuple):
    """How many numbers are compared, and how many lie within one and two published fold std."""

    title: str
    cells: int
    within_one: int
    within_two: int


class DifferenceLine(NamedTuple):
    """How far numbers lie from published ones that have no std: fractions, absolute."""

    title: str
    cells: int
    median: float
    largest: float


class Agreement(NamedTuple):
    """What is compared, by table and in all; apart, what the paper prints no std of."""

    lines: list[AgreementLine]
    differences: list[DifferenceLine]


def agreement(matched: Matched) -> Agreement:
    """Compare a run with the paper; each published number counts once, in its first table."""
    seen: set[tuple[str, ...]] = set()
    lines, differences = [], []
    for layout in layouts(matched.dataset):
        values = list(_compared(layout, matched, seen))
        told = [abs(value.difference) for value in values if value.published_std > 0]
        apart = [abs(v.mean - v.published) for v in values if not v.published_std > 0]
        title = f"{layout.title} on {matched.title}"
        if told:
            lines.append(_count(title, told))
        if apart:
            differences.append(DifferenceLine(title, len(apart), median(apart), max(apart)))
    if lines:
        sums = (sum(column) for column in list(zip(*lines, strict=True))[1:])
        lines.append(AgreementLine("In all", *sums))
    return Agreement(lines, differences)


def _compared(layout: Layout, matched: Matched, seen: set[tuple[str, ...]]) -> Iterator[Value]:
    """Yield the values of a table that have a published one, but those that were seen before."""
    for _, wanted in layout.blocks(matched):
        for feature in matched.features:
            for variant in matched.variants:
                for want in wanted:
                    key = (feature.name, variant.method, want.group, want.condition, want.metric)
                    value = matched.value(feature, variant, want)
                    if value.compared and key not in seen:
                        seen.add(key)
                        yield value


def _count(title: str, differences: list[float]) -> AgreementLine:
    one, two = (
        sum(difference <= most + _ROUNDING for difference in differences) for most in (1, 2)
    )
    return AgreementLine(title, len(differences), one, two)
