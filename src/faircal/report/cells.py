"""A table with everything needed to show it anywhere, as Markdown and as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

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

    Attributes
    ----------
    text : str
        Percent with two decimals; a dash where undefined.
    interval, spread : str
        The interval as ``1.13–1.71`` and the spread in percent, or nothing.
    compared : bool
        Whether there is a number here and a published one.
    difference : float
        By how many published spreads it lies above the published one; NaN without a spread.
    """

    mean: float
    std: float = math.nan
    best: bool = False
    published: float = math.nan
    published_std: float = math.nan
    says: str = ""
    low: float = math.nan
    high: float = math.nan
    unit: float = 100.0
    digits: int = 2
    worse: bool = False
    text: str = field(init=False)
    interval: str = field(init=False)
    spread: str = field(init=False)
    compared: bool = field(init=False)
    difference: float = field(init=False)

    def __post_init__(self) -> None:
        mean, low, high = (
            f"{self.unit * number:,.{self.digits}f}" if math.isfinite(number) else "∞"
            for number in (self.mean, self.low, self.high)
        )
        shown = not self.says and not math.isnan(self.mean)
        bounded = shown and not math.isnan(self.low) and not math.isnan(self.high)
        apart = self.mean - self.published
        vars(self).update(
            text=mean + "*" * self.worse if shown else self.says or "–",
            interval=f"{low}–{high}" if bounded else "",
            spread="" if math.isnan(self.std) else f"{100 * self.std:.2f}",
            compared=not math.isnan(apart),
            difference=apart / self.published_std if self.published_std > 0 else math.nan,
        )


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

    Attributes
    ----------
    parts : list of (str, list of int)
        The blocks with their columns: one is shown under the other.
    measured, intervals, compared : bool
        Whether there is anything to show, any interval, and any published number beside ours.
    legend : str
        The caption, and what stands in brackets.
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
    parts: list[tuple[str, list[int]]] = field(init=False)
    measured: bool = field(init=False)
    intervals: bool = field(init=False)
    compared: bool = field(init=False)
    legend: str = field(init=False)

    def __post_init__(self) -> None:
        values = [value for line in self.lines for value in line.values]
        intervals = any(value.interval for value in values)
        blocks: dict[str, list[int]] = {}
        for i, heading in enumerate(self.headings):
            blocks.setdefault(heading.block, []).append(i)
        vars(self).update(
            parts=list(blocks.items()),
            measured=any(value.text != "–" for value in values),
            intervals=intervals,
            compared=any(value.compared for value in values),
            legend=self.caption + (f" In brackets: {self.brackets}." if intervals else ""),
        )

    def records(self) -> list[dict[str, object]]:
        """Return the table as plain records, for ``--json``."""
        return [
            {
                "label": line.label,
                "block": heading.block,
                "column": heading.name,
                "value": None if math.isnan(value.mean) else value.mean,
                "std": None if math.isnan(value.std) else value.std,
                "low": None if math.isnan(value.low) else value.low,
                "high": None if math.isnan(value.high) else value.high,
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
    rows = []
    for line in table.lines:
        for heading, value in zip(table.headings, line.values, strict=True):
            ours = (value.mean, value.std, value.low, value.high)
            numbers = (*ours, value.published, value.published_std, value.difference)
            texts: list[str | float] = ["" if math.isnan(n) else n for n in numbers]
            where = [table.key, line.block, heading.block, heading.name, line.label]
            rows.append([*where, value.says or texts[0], *texts[1:], str(table.simulated).lower()])
    return csv_text(_CSV_COLUMNS, rows)


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
        text = plain(value.text)
        if table.spreads and value.spread and not value.interval:
            text += f" ± {value.spread}"
        mark = "**" if value.best else "*" if line.apart else ""
        beside = f" ({value.interval})" if value.interval else ""
        if value.compared:
            published = (value.published, value.published_std)[: 1 + table.spreads]
            reported = " ± ".join(f"{100 * number:.2f}" for number in published if number == number)
            apart = f"{100 * (value.mean - value.published):+.2f}"  # in points, without a spread
            if value.published_std > 0:
                apart = f"{value.difference:+.1f} σ"
            beside += f" ({reported}, {apart})"
        cells.append(f"{mark}{text}{mark}{beside}".replace("-", "−"))
    return cells


def write_tables(
    numbered: Mapping[int, Table], folder: Path, more: Mapping[str, str] | None = None
) -> list[Path]:
    """Write tables to ``folder/tables`` as ``NN-<key>.md`` and ``.csv``; return the paths.

    `more` has further files of that folder by name. What an earlier run left there goes, also
    where there are no tables now; the user's own files stay.
    """
    home = folder / TABLES
    texts = {home / name: text for name, text in (more or {}).items()}
    for number, table in numbered.items():
        texts[home / f"{number:02d}-{table.key}.md"] = markdown(table)
        texts[home / f"{number:02d}-{table.key}.csv"] = as_csv(table)
    if texts:
        output_folder(home)
    for path, text in texts.items():
        write_text(path, text)
    for path in list(home.glob("[0-9][0-9]-*")):
        if path not in texts and path.is_file():
            path.unlink()
    if home.is_dir() and not any(home.iterdir()):
        home.rmdir()
    return list(texts)
