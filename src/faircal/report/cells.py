"""A table with everything needed to show it anywhere, as Markdown and as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faircal._base.files import output_folder, write_text
from faircal.metrics.intervals import LEVEL
from faircal.metrics.results import csv_text


@dataclass(frozen=True)
class TableValue:
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
    values: tuple[TableValue, ...]
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


TABLES = "tables"

#: Stands at the head of everything that is made of simulated data.
SIMULATED = (
    "Simulated data: no faces of real people are behind these numbers; "
    "nothing is compared with the paper."
)
#: What stands beside our numbers where the paper has some.
COMPARED = (
    "what the paper has, and the difference in its standard deviations over folds (σ) or, where it "
    "prints none, in percentage points."
)
_CSV_COLUMNS = (
    "table",
    "block",
    "feature",
    "column",
    "method",
    "value",
    "std",
    "low",
    "high",
    "published",
    "published_std",
    "difference_in_std",
    "simulated",
)


def as_csv(table: Table) -> str:
    """Return a table as long CSV, a value a row: fractions, empty where undefined."""
    return csv_text(_CSV_COLUMNS, _records(table))


def _records(table: Table) -> Iterator[list[str | float]]:
    for line in table.lines:
        for heading, value in zip(table.headings, line.values, strict=True):
            ours = (value.mean, value.std, value.low, value.high)
            numbers = (*ours, value.published, value.published_std)
            said = ["" if math.isnan(n) else n for n in (*numbers, value.difference)]
            where = [table.key, line.block, heading.block, heading.name, line.label]
            yield [*where, value.says or said[0], *said[1:], str(table.simulated).lower()]


def markdown(table: Table) -> str:
    """Return a table as Markdown, GitHub's kind; a published number stands behind ours.

    Examples
    --------
    >>> from faircal.report.cells import Heading
    >>> headings = (Heading("net", "AUROC", ""),)
    >>> value = TableValue(0.9012, best=True, published=0.9058, published_std=0.0042)
    >>> lines = (Line("FairCal", (value,)),)
    >>> print(markdown(Table("t", "Title", "Caption.", headings, lines, spreads=False)))
    ## Title
    <BLANKLINE>
    Caption. In brackets: what the paper has, and the difference in its standard deviations over
    folds (σ) or, where it prints none, in percentage points.
    <BLANKLINE>
    | Method | net<br>AUROC |
    | :--- | ---: |
    | FairCal | **90.12** (90.58, −1.1 σ) |
    <BLANKLINE>
    """
    blocks = any(line.block for line in table.lines)
    names = [
        "<br>".join(filter(None, (plain(heading.block), plain(heading.name))))
        for heading in table.headings
    ]
    rows = [
        ["Block"] * blocks + [plain(table.stub), *names],
        [":---"] * blocks + [":---"] + ["---:"] * len(names),
        *([plain(line.block)] * blocks + _markdown_cells(line, table) for line in table.lines),
    ]
    caption = plain(table.legend) + (f" In brackets: {COMPARED}" if table.compared else "")
    banner = f"> {SIMULATED}\n\n" if table.simulated else ""
    return f"{banner}## {plain(table.title)}\n\n{caption}\n\n{markdown_rows(rows)}"


def markdown_rows(rows: Iterable[Iterable[str]]) -> str:
    """Return rows of cells as lines of a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def plain(text: str) -> str:
    """Return text on one line with nothing in it that Markdown takes for a sign of its own."""
    return re.sub(r"([\\`*_\[\]<>|~&$#])", r"\\\1", " ".join(text.split()))


def _markdown_cells(line: Line, table: Table) -> list[str]:
    cells = [f"*{plain(line.label)}*" if line.apart else plain(line.label)]
    for value in line.values:
        text = plain(value.text).replace("-", "−")
        if table.spreads and value.spread and not value.interval:
            text += f" ± {value.spread}"
        mark = "**" if value.best else "*" if line.apart else ""
        beside = ""
        if value.compared:
            there = " ± ".join(published(value, table.spreads))
            beside = f" ({there}, {difference(value).replace('-', '−')})"
        if value.interval:
            beside = f" ({value.interval.replace('-', '−')}){beside}"
        cells.append(f"{mark}{text}{mark}{beside}")
    return cells


def published(value: TableValue, spreads: bool) -> list[str]:
    """Return the published number in percent, and its spread where it is shown and known."""
    shown = [value.published, value.published_std] if spreads else [value.published]
    return [f"{100 * number:.2f}" for number in shown if not math.isnan(number)]


def difference(value: TableValue) -> str:
    """Return how far a value is from the published one: in standard deviations, else in points."""
    if math.isnan(value.difference):
        return f"{100 * (value.mean - value.published):+.2f}"
    return f"{value.difference:+.1f} σ"


def write_tables(
    numbered: Mapping[int, Table], folder: Path, more: Mapping[str, str] | None = None
) -> list[Path]:
    """Write tables to ``folder/tables`` as ``NN-<key>.md`` and ``.csv``; return the paths.

    `more` has further files of that folder by name. What an earlier run left there goes.
    """
    home = output_folder(folder / TABLES)
    texts = {home / name: text for name, text in (more or {}).items()}
    for number, table in numbered.items():
        texts[home / f"{number:02d}-{table.key}.md"] = markdown(table)
        texts[home / f"{number:02d}-{table.key}.csv"] = as_csv(table)
    for path, text in texts.items():
        write_text(path, text)
    remove_tables(folder, keep=texts)
    return list(texts)


def remove_tables(folder: Path, keep: Iterable[Path] = ()) -> None:
    """Remove the tables that an earlier run wrote; the user's own files stay."""
    home, kept = folder / TABLES, set(keep)
    for path in (*home.glob("[0-9][0-9]-*"), home / "all-tables.tex"):
        if path not in kept and path.is_file():
            path.unlink()
    if home.is_dir() and not any(home.iterdir()):
        home.rmdir()
