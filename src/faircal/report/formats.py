"""Tables as files: Markdown and CSV.

Values for people are percent with two decimals, the best in bold and yardsticks in italics; those
for machines are fractions in full.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from faircal._base.files import output_folder, write_text
from faircal.metrics.results import csv_text
from faircal.report.tables import Line, Table, Value

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
    >>> from faircal.report.tables import Heading
    >>> headings = (Heading("net", "AUROC", ""),)
    >>> value = Value(0.9012, best=True, published=0.9058, published_std=0.0042)
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


def published(value: Value, spreads: bool) -> list[str]:
    """Return the published number in percent, and its spread where it is shown and known."""
    shown = [value.published, value.published_std] if spreads else [value.published]
    return [f"{100 * number:.2f}" for number in shown if not math.isnan(number)]


def difference(value: Value) -> str:
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
