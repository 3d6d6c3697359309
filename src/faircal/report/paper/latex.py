"""The paper's tables as LaTeX: booktabs, nothing else but multirow."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from faircal.report.cells import COMPARED, SIMULATED, Line, Table, difference, published

_PREAMBLE = r"""\documentclass[a4paper,landscape]{article}
\usepackage{booktabs}
\usepackage{multirow}
\ifdefined\pdfpagewidth\pdfpagewidth=\paperwidth\pdfpageheight=\paperheight\fi
\setlength{\textwidth}{260mm}\setlength{\oddsidemargin}{-10mm}
\setlength{\textheight}{170mm}\setlength{\topmargin}{-20mm}
\begin{document}
"""
_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "`": "{`}",
    "[": "{[}",  # behind the end of a row it would open an argument
    "*": "{*}",  # there it would be one
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "σ": r"$\sigma$",
    "∞": r"$\infty$",
    "’": "'",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
} | {sign: f"\\{sign}" for sign in "{}$&%#_"}
_MARKS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_ACCENTS = dict(zip(_MARKS, "`'^~=u.\"rHvc", strict=True))


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it is; a letter that its fonts lack by its number.

    Examples
    --------
    >>> print(escape("50 % & r_1é 中"))
    50\,\% \& r\_1\'{e} \texttt{U+4E2D}
    """
    line = " ".join(unicodedata.normalize("NFC", text).split())
    signs = re.sub("-(?=-)", "-{}", "".join(map(_sign, line)))  # else two would become a dash
    return re.sub(r"(?<=\d) \\%", r"\\,\\%", signs)


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isascii() and character.isprintable():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        return f"\\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return rf"\texttt{{U+{ord(character):04X}}}"


class _Column(NamedTuple):
    """A column of LaTeX: where its values are, under which heading it stands, its name."""

    place: int
    over: str
    name: str


def latex(table: Table, compared: bool = False) -> str:
    r"""Return a table as LaTeX, as the paper has it.

    Parameters
    ----------
    table : Table
    compared : bool
        Put the published numbers and the differences beside ours, the features one under another.

    Examples
    --------
    >>> from faircal.report.cells import Heading, TableValue
    >>> headings = (Heading("net", "AUROC", ""), Heading("net", "TPR", ""))
    >>> lines = (Line("Fair_Cal", (TableValue(0.9012, best=True), TableValue(0.5))),)
    >>> print(latex(Table("t", "Title", "Caption.", headings, lines)))
    \begin{table}
    \centering
    \caption{Title. Caption.}
    \label{table:t}
    \small
    \begin{tabular}{lrr}
    \toprule
     & \multicolumn{2}{c}{net} \\
    \cmidrule(lr){2-3}
    Method & AUROC & TPR \\
    \midrule
    Fair\_Cal & \textbf{90.12} & 50.00 \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    columns = _columns(table)
    parts = [columns]
    if compared:
        parts = [list(part) for _, part in groupby(columns, key=lambda column: column.over)]
    number = 19 if table.intervals else 11 if table.spreads else 5
    width = max(_characters(part, number, compared) for part in parts)
    size = next(size for most, size in _SIZES if width <= most)
    caption = f"{table.title}. {table.legend}"
    if compared:
        caption += f" Beside each number: {COMPARED}"
    if table.simulated:
        caption += f" {SIMULATED}"
    key = re.sub(r"[^\w:.=+-]", "-", table.key, flags=re.ASCII) + "-compared" * compared
    return "\n".join(
        [
            *([f"% {SIMULATED}"] if table.simulated else []),
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{table:{key}}}",
            size,
            "\n\n\\medskip\n".join(_tabular(table, part, compared) for part in parts),
            "\\end{table}\n",
        ]
    )


#: Sizes of type, and the characters in a row up to which they fit the page of `document`.
_SIZES = (
    (90, r"\small"),
    (120, r"\footnotesize"),
    (150, r"\scriptsize\setlength{\tabcolsep}{3pt}"),
    (math.inf, r"\tiny\setlength{\tabcolsep}{2pt}"),
)


def _characters(columns: list[_Column], number: int, compared: bool) -> int:
    """Return about how many characters stand in a row; so many in a `number`."""
    cell = 2 * number + 7 if compared else number
    return 25 + sum(max(len(column.name), cell) for column in columns)


def document(tables: Iterable[Table]) -> str:
    """Return a whole LaTeX article: a page a table, compared ones in both forms."""
    listed = list(tables)
    forms = [
        latex(table) + (latex(table, compared=True) if table.compared else "") for table in listed
    ]
    banner = f"% {SIMULATED}\n" if any(table.simulated for table in listed) else ""
    return banner + _PREAMBLE + "\\clearpage\n".join(forms) + "\\end{document}\n"


def _columns(table: Table) -> list[_Column]:
    """Return the columns; where each feature has one, of the same name, they bear its name."""
    if len({heading.name for heading in table.headings}) == 1 and table.headings[0].block:
        return [_Column(i, "", heading.block) for i, heading in enumerate(table.headings)]
    return [_Column(i, heading.block, heading.name) for i, heading in enumerate(table.headings)]


def _tabular(table: Table, columns: list[_Column], compared: bool) -> str:
    width = 3 if compared else 1
    lead = 2 if any(line.block for line in table.lines) else 1
    letter = "c" if any(value.says for line in table.lines for value in line.values) else "r"
    rows = [rf"\begin{{tabular}}{{{'l' * lead}{letter * width * len(columns)}}}", r"\toprule"]
    over = [(name, width * len(list(run))) for name, run in groupby(c.over for c in columns)]
    if any(name for name, _ in over):
        rows += _spanning(lead, over)
    names = [escape(column.name) for column in columns]
    if compared:
        rows += _spanning(lead, [(column.name, width) for column in columns])
        names = ["ours", "paper", r"$\Delta$"] * len(columns)
    rows.append(_row([""] * (lead - 1) + [escape(table.stub), *names]))
    for block, run in groupby(table.lines, key=lambda line: line.block):
        lines = list(run)
        rows.append(r"\midrule")
        for i, line in enumerate(lines):
            if line.apart and 0 < i == len(lines) - 1:
                rows.append(r"\addlinespace[2pt]")
            name = rf"\multirow{{{len(lines)}}}{{*}}{{{escape(block)}}}" if i == 0 else ""
            cells = _latex_cells(line, table, columns, compared)
            rows.append(_row([name] * (lead - 1) + cells))
    return "\n".join([*rows, r"\bottomrule", r"\end{tabular}"])


def _spanning(lead: int, names: list[tuple[str, int]]) -> list[str]:
    """Return a row of names over several columns each, and the rules below them."""
    cells, rules, start = [""] * lead, [], lead + 1
    for name, width in names:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(name)}}}")
        if name:
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [_row(cells), "".join(rules)]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cells(line: Line, table: Table, columns: list[_Column], compared: bool) -> list[str]:
    label = escape(line.label)
    cells = [rf"\textit{{{label}}}" if line.apart else label]
    for column in columns:
        value = line.values[column.place]
        text = "--" if value.text == "–" else escape(value.text.replace("-", "−"))
        if table.spreads and value.spread and not value.interval:
            text += rf"$\pm${value.spread}"
        style = r"\textbf" if value.best else r"\textit" if line.apart else ""
        beside = f" ({escape(value.interval.replace('-', '−'))})" if value.interval else ""
        cells.append((f"{style}{{{text}}}" if style else text) + beside)
        if compared and value.compared:
            apart = difference(value).replace(" σ", r"\,\sigma")
            cells += [r"$\pm$".join(published(value, table.spreads)), f"${apart}$"]
        elif compared:
            cells += ["--", "--"]
    return cells


def latex_files(numbered: Mapping[int, Table]) -> dict[str, str]:
    """Return each table as LaTeX by the name of its file, and ``all-tables.tex`` with all of them.

    ``NN-<key>-compared.tex`` has the published numbers beside ours.
    """
    texts = {}
    for number, table in numbered.items():
        texts[f"{number:02d}-{table.key}.tex"] = latex(table)
        if table.compared:
            texts[f"{number:02d}-{table.key}-compared.tex"] = latex(table, compared=True)
    return {**texts, "all-tables.tex": document(numbered.values())}
