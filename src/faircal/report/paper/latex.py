"""The paper's tables as LaTeX: booktabs, multirow, graphicx."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

from faircal.report.cells import SIMULATED, Line, Table

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
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "σ": r"$\sigma$",
    "∞": r"$\infty$",
} | {sign: f"\\{sign}" for sign in "{}$&%#_"}
#: Wider tables are made as narrow as the text, narrow ones stay as they are.
_FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it is; a letter that its fonts lack by its number.

    Examples
    --------
    >>> print(escape("50 % & r_1é 中"))
    50\,\% \& r\_1é \texttt{U+4E2D}
    """
    line = " ".join(unicodedata.normalize("NFC", text).split())
    signs = re.sub("-(?=-)", "-{}", "".join(map(_sign, line)))  # else two would become a dash
    return re.sub(r"(?<=\d) \\%", r"\\,\\%", signs)


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    # LaTeX reads UTF-8 since 2018; its oldest fonts make the accented letters of these alphabets.
    base = unicodedata.normalize("NFD", character)[0]
    latin = character in "ßøØæÆœŒłŁ" or (base.isascii() and base.isalpha())
    if (latin and ord(character) < 0x180) or (character.isascii() and character.isprintable()):
        return character
    return rf"\texttt{{U+{ord(character):04X}}}"


def latex(table: Table) -> str:
    r"""Return a table as LaTeX, as the paper has it.

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
    \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
    \begin{tabular}{lrr}
    \toprule
     & \multicolumn{2}{c}{net} \\
    \cmidrule(lr){2-3}
    Method & AUROC & TPR \\
    \midrule
    Fair\_Cal & \textbf{90.12} & 50.00 \\
    \bottomrule
    \end{tabular}}
    \end{table}
    <BLANKLINE>
    """
    caption = f"{table.title}. {table.legend}" + (f" {SIMULATED}" if table.simulated else "")
    key = re.sub(r"[^\w:.=+-]", "-", table.key, flags=re.ASCII)
    letter = "c" if any(value.says for line in table.lines for value in line.values) else "r"
    lead = 2 if any(line.block for line in table.lines) else 1
    return "\n".join(
        [
            *([f"% {SIMULATED}"] if table.simulated else []),
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{table:{key}}}",
            _FIT,
            rf"\begin{{tabular}}{{{'l' * lead}{letter * len(table.headings)}}}",
            r"\toprule",
            *_head(table, lead),
            *_body(table, lead),
            r"\bottomrule",
            r"\end{tabular}}",
            "\\end{table}\n",
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _head(table: Table, lead: int) -> Iterator[str]:
    """Give the names of the columns, under those of the features."""
    names = [heading.name for heading in table.headings]
    blocks = [(name, len(list(run))) for name, run in groupby(h.block for h in table.headings)]
    if len(set(names)) == 1 and blocks[0][0]:
        names = [heading.block for heading in table.headings]  # one column a feature: its name
    elif any(name for name, _ in blocks):
        cells, rules, start = [""] * lead, [], lead + 1
        for name, width in blocks:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(name)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            start += width
        yield from (_row(cells), "".join(rules))
    yield _row([""] * (lead - 1) + [escape(table.stub), *map(escape, names)])


def _body(table: Table, lead: int) -> Iterator[str]:
    """Give the rows, each block of them below a rule."""
    for block, run in groupby(table.lines, key=lambda line: line.block):
        lines = list(run)
        yield r"\midrule"
        for i, line in enumerate(lines):
            if line.apart and 0 < i == len(lines) - 1:
                yield r"\addlinespace[2pt]"
            name = rf"\multirow{{{len(lines)}}}{{*}}{{{escape(block)}}}" if i == 0 else ""
            yield _row([name] * (lead - 1) + _cells(line, table.spreads))


def _cells(line: Line, spreads: bool) -> list[str]:
    label = escape(line.label)
    cells = [rf"\textit{{{label}}}" if line.apart else label]
    for value in line.values:
        text = "--" if value.text == "–" else escape(value.text.replace("-", "−"))
        if spreads and value.spread and not value.interval:
            text += rf"$\pm${value.spread}"
        style = r"\textbf" if value.best else r"\textit" if line.apart else ""
        beside = f" ({escape(value.interval.replace('-', '−'))})" if value.interval else ""
        cells.append((f"{style}{{{text}}}" if style else text) + beside)
    return cells
