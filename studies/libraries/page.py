"""The generated parts of docs/explanation/comparison.md, from what is kept alone.

The page is written by hand but for what stands between ``<!-- libraries: NAME -->`` and
``<!-- end -->``: the overview, what was measured, and the statements about each library.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.libraries.claims import COLUMNS, LIBRARIES
from studies.libraries.figures import measured_parts, wrapped
from studies.words import table

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "comparison.md"
#: The tables of the overview; a phone shows four columns.
OVERVIEW = {
    "probabilities": ("map", "by", "classes"),
    "sureness": ("pairs", "interval", "promise"),
    "measuring": ("rates", "cllr", "report"),
    "models": ("networks", "training", "onnx"),
    "running": ("service", "watch", "large"),
}
Row = Mapping[str, Any]
_PART = re.compile(
    r"(?P<open><!-- libraries: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL
)


def write(rows: Sequence[Row], path: Path = PAGE) -> None:
    """Put the generated parts into the page."""
    path.write_text(filled(path.read_text("utf-8"), rows), encoding="utf-8")


def filled(text: str, rows: Sequence[Row]) -> str:
    """Return the page with its generated parts as `rows` have them."""
    made = parts(rows)

    def put(found: re.Match[str]) -> str:
        text = made.get(found["name"])  # none where nothing was measured yet
        return found[0] if text is None else f"{found['open']}\n{text}\n\n{found['close']}"

    return _PART.sub(put, text)


def by_hand(text: str) -> str:
    """Return the page without its generated parts."""
    return _PART.sub("", text)


def parts(rows: Sequence[Row]) -> dict[str, str]:
    """Return the generated parts by name."""
    made = {name: _overview(columns, rows) for name, columns in OVERVIEW.items()}
    made["dashes"] = _dashes()
    made["versions"] = _versions(rows)
    made |= {name: _statements(name, rows) for name in LIBRARIES}
    return made | measured_parts([row for row in rows if row["kind"] == "measured"])


def _versions(rows: Sequence[Row]) -> str:
    lines = [
        (row["title"], _all_versions(row), row["licence"])
        for row in rows
        if row["kind"] == "version"
    ]
    return table(("Library", "Version", "Licence"), lines, text=3)


def _all_versions(row: Row) -> str:
    """The version; of each package where a library is several."""
    several = row.get("versions", {})
    named = [f"{name} {version}" for name, version in several.items()]
    return ", ".join(named) if len(named) > 1 else str(row["version"])


def _claims(name: str, rows: Sequence[Row]) -> list[Row]:
    return [
        row for row in rows if row["kind"] == "claim" and row["library"] == name and row["passed"]
    ]


def _overview(columns: Sequence[str], rows: Sequence[Row]) -> str:
    lines = []
    for name in LIBRARIES:
        claims = _claims(name, rows)
        cells = {key: value for row in claims for key, value in row["cell"].items()}
        if claims:
            lines.append([claims[0]["title"], *(cells.get(column, "") for column in columns)])
    titles = [COLUMNS[column].title for column in columns]
    return table(("Library", *titles), lines, text=1 + len(titles))


def _dashes() -> str:
    return "\n".join(f"- *{column.title}*: `{column.pattern}`" for column in COLUMNS.values())


def _statements(name: str, rows: Sequence[Row]) -> str:
    """What is said of a library, and, folded, how each is checked."""
    said = [row for row in _claims(name, rows) if row["says"]]
    if not said:
        return ""
    told = "\n".join(
        wrapped(row["says"], f"{number}. ", "    ") for number, row in enumerate(said, start=1)
    )
    checks = "\n".join(
        wrapped(row["check"], f"{number}. ", "    ") for number, row in enumerate(said, start=1)
    )
    where = "{title} {version}, Python {python}, {date}".format(**said[0])
    return (
        f'{told}\n\n??? note "How each was checked ({where})"\n\n{textwrap.indent(checks, "    ")}'
    )
