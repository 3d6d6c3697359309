"""A table with everything needed to show it anywhere; `faircal.report.tables` fills them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faircal.metrics.intervals import LEVEL


@dataclass(frozen=True)
class Value:
    """A number in a table: a fraction, its spread over folds (NaN without), whether it's best.

    `published` is what the paper prints in its place, with its spread; NaN where it has none.
    `says` are words in place of a number. `low` and `high` are the ends of its interval (NaN
    without). What is no fraction (a ratio, a count) is printed times another `unit` than 100;
    `worse` gives it a star.
    """

    mean: float
    std: float = float("nan")
    best: bool = False
    published: float = float("nan")
    published_std: float = float("nan")
    says: str = ""
    low: float = float("nan")
    high: float = float("nan")
    unit: float = 100.0
    digits: int = 2
    worse: bool = False

    @property
    def text(self) -> str:
        """Percent with two decimals; a dash where undefined, a star where `worse`."""
        if self.says or np.isnan(self.mean):
            return self.says or "–"
        return self._print(self.mean) + "*" * self.worse

    @property
    def interval(self) -> str:
        """The interval as ``1.13–1.71``, or nothing."""
        if self.says or np.isnan([self.mean, self.low, self.high]).any():
            return ""
        return f"{self._print(self.low)}–{self._print(self.high)}"

    def _print(self, number: float) -> str:
        return f"{self.unit * number:,.{self.digits}f}" if np.isfinite(number) else "∞"

    @property
    def compared(self) -> bool:
        """Whether there is a number here and a published one."""
        return not np.isnan(self.mean) and not np.isnan(self.published)

    @property
    def difference(self) -> float:
        """By how many published spreads it lies above the published one; NaN without a spread."""
        if not self.published_std > 0:
            return float("nan")
        return (self.mean - self.published) / self.published_std

    @property
    def spread(self) -> str:
        """The spread in percent, or nothing."""
        return "" if np.isnan(self.std) else f"{100 * self.std:.2f}"


@dataclass(frozen=True)
class Line:
    """A row of a table; consecutive rows of the same `block` stand together under its name."""

    label: str
    values: tuple[Value, ...]
    apart: bool = False
    block: str = ""


@dataclass(frozen=True)
class Heading:
    """A column: under which block it stands, its name, and which way is better ("" for neither)."""

    block: str
    name: str
    better: str


@dataclass(frozen=True)
class Table:
    """A table with everything needed to show it anywhere; values are fractions.

    `spreads` says whether the spread over folds is shown beside each value, `simulated` whether the
    data was; `stub` is what the rows are, `brackets` what stands in brackets.
    """

    key: str
    title: str
    caption: str
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]
    spreads: bool = True
    simulated: bool = False
    stub: str = "Method"
    brackets: str = f"{100 * LEVEL:g} % intervals"

    def parts(self) -> list[tuple[str, list[int]]]:
        """Return the blocks with their columns: one is shown under the other."""
        blocks: dict[str, list[int]] = {}
        for i, heading in enumerate(self.headings):
            blocks.setdefault(heading.block, []).append(i)
        return list(blocks.items())

    @property
    def measured(self) -> bool:
        """Whether there is anything to show."""
        return any(value.text != "–" for line in self.lines for value in line.values)

    @property
    def intervals(self) -> bool:
        """Whether any value has an interval."""
        return any(value.interval for line in self.lines for value in line.values)

    @property
    def legend(self) -> str:
        """The caption, and what stands in brackets."""
        return self.caption + (f" In brackets: {self.brackets}." if self.intervals else "")

    @property
    def compared(self) -> bool:
        """Whether a published number stands beside any."""
        return any(value.compared for line in self.lines for value in line.values)

    def records(self) -> list[dict[str, object]]:
        """Return the table as plain records, for ``--json``."""
        return [
            {
                "label": line.label,
                "block": heading.block,
                "column": heading.name,
                "value": None if np.isnan(value.mean) else value.mean,
                "std": None if np.isnan(value.std) else value.std,
                "low": None if np.isnan(value.low) else value.low,
                "high": None if np.isnan(value.high) else value.high,
                "best": value.best,
            }
            for line in self.lines
            for heading, value in zip(self.headings, line.values, strict=True)
        ]
