"""Tables as Markdown, CSV and LaTeX: read back by a parser of each."""

from __future__ import annotations

import csv
import io
import math
import shutil
import subprocess
from itertools import dropwhile

import pytest
from markdown_it import MarkdownIt
from pylatexenc.latex2text import LatexNodes2Text
from pylatexenc.latexwalker import (
    LatexEnvironmentNode,
    LatexMacroNode,
    LatexWalker,
    get_default_latex_context_db,
)
from pylatexenc.macrospec import MacroSpec
from rich.console import Console

from faircal.cli.printing import show
from faircal.report.cells import SIMULATED, Heading, Line, Table, TableValue, as_csv, markdown
from faircal.report.paper.latex import escape, latex

HOSTILE = (
    r"a\b",
    "50% & more_x",
    "$#{}~^",
    "[x]*",
    "*star",
    "a|b `c` <d>",
    "--dash–and−minus",
    "Élan ñ ł ü ß",
    "two\nlines",
    "\\end{tabular}",
    "**bold** _it_ [a](b)",
    "% comment",
    "| cell |",
    "&amp; <br>",
)
RULES = ("toprule", "midrule", "bottomrule")


def parse(text):
    """Parse LaTeX strictly; cells of a macro with several arguments are kept together."""
    context = get_default_latex_context_db()
    macros = [MacroSpec(name, "{{{") for name in ("multicolumn", "multirow", "resizebox")]
    macros += [MacroSpec("addlinespace", "["), MacroSpec("caption", "{")]
    context.add_context_category("tables", macros=macros, prepend=True)
    nodes, *_ = LatexWalker(text, latex_context=context, tolerant_parsing=False).get_latex_nodes()
    return nodes


def environments(nodes, name):
    for node in nodes:
        if isinstance(node, LatexEnvironmentNode):
            if node.environmentname == name:
                yield node
            yield from environments(node.nodelist, name)
        elif isinstance(node, LatexMacroNode) and node.macroname == "resizebox":
            yield from environments(node.nodeargd.argnlist[-1].nodelist, name)


def macros(nodes, name):
    return [n for n in nodes if isinstance(n, LatexMacroNode) and n.macroname == name]


def said(nodes):
    text = " ".join(LatexNodes2Text().nodelist_to_text(nodes).split())
    return text.replace("\u02c6", "^")  # the parser's reading of \\textasciicircum


class Cell:
    """A cell of a parsed row: its words, how many columns it spans, how it is set."""

    def __init__(self, nodes):
        nodes = list(dropwhile(lambda node: not node.latex_verbatim().strip(), nodes))
        self.span, self.style = 1, ""
        if nodes and isinstance(nodes[0], LatexMacroNode):
            macro, args = nodes[0].macroname, nodes[0].nodeargd
            if macro in ("multicolumn", "multirow"):
                if macro == "multicolumn":
                    self.span = int(said([args.argnlist[0]]))
                nodes = [args.argnlist[2]]
            elif macro in ("textbf", "textit"):
                self.style = macro
                nodes = [args.argnlist[-1]]
        self.text = said(nodes)


def rows(tabular):
    """Yield the rows of a parsed tabular as lists of cells, rules left out."""
    cells, skip = [[]], 0
    for node in tabular.nodelist:
        verbatim = node.latex_verbatim()
        if skip:  # what belongs to \cmidrule: (lr) and {2-4}
            skip -= 1
        elif isinstance(node, LatexMacroNode) and node.macroname == "\\":
            assert not verbatim.strip().endswith(("]", "*")), "a cell became an argument"
            yield [Cell(cell) for cell in cells]
            cells = [[]]
        elif isinstance(node, LatexMacroNode) and node.macroname == "cmidrule":
            skip = 2
        elif isinstance(node, LatexMacroNode) and node.macroname in (*RULES, "addlinespace"):
            pass
        elif verbatim == "&":
            cells.append([])
        else:
            cells[-1].append(node)
    assert not any(Cell(cell).text for cell in cells)


def columns(tabular):
    return len(said([tabular.nodeargd.argnlist[-1]]))


def tabulars(text):
    return list(environments(parse(text), "tabular"))


@pytest.fixture
def table():
    headings = tuple(
        Heading(net, name, "higher") for net in ("net", "other") for name in ("AUROC", "TPR @ 1 %")
    )
    blank = TableValue(float("nan"))
    lines = (
        Line(
            "Baseline",
            (
                TableValue(0.9, 0.01, published=0.91, published_std=0.005),
                TableValue(0.5, 0.02, published=0.5),
                TableValue(0.123456),
                TableValue(-0.001),
            ),
            block="0.1 % FPR",
        ),
        Line(
            "Oracle",
            (TableValue(0.99, 0.02, published=0.98, published_std=0.01), blank, blank, blank),
            apart=True,
            block="0.1 % FPR",
        ),
        Line("FairCal", (TableValue(0.95, 0.01, best=True), blank, blank, blank), block="1 % FPR"),
    )
    return Table("some_key", "A title", "A caption: 5 %.", headings, lines, spreads=False)


def hostile_table(**more):
    headings = tuple(Heading(name, f"{name}!", "") for name in HOSTILE)
    values = tuple(TableValue(0.5) for _ in HOSTILE)
    lines = tuple(
        Line(name, values, apart=i % 2 == 1, block=name) for i, name in enumerate(HOSTILE)
    )
    return Table("a&b/c {x}", "% title & $", "caption_ # \\", headings, lines, **more)


def markdown_cells(text):
    """Return the rows of the one table in a Markdown text: what a reader sees in each cell."""
    found, row, inside = [], None, False
    for token in MarkdownIt().enable("table").parse(text):
        if token.type == "tr_open":
            row = []
            found.append(row)
        elif token.type in ("th_open", "td_open"):
            inside = True
        elif token.type == "inline" and inside:
            row.append("".join(_shown(child) for child in token.children))
            inside = False
    return found


def _shown(token):
    return "\n" if token.type == "html_inline" and token.content == "<br>" else token.content


def test_markdown_shows_the_published_number_and_the_difference(table):
    columns = "net<br>AUROC | net<br>TPR @ 1 % | other<br>AUROC | other<br>TPR @ 1 %"
    assert markdown(table).splitlines()[4:] == [
        f"| Block | Method | {columns} |",
        "| :--- | :--- | ---: | ---: | ---: | ---: |",
        "| 0.1 % FPR | Baseline | 90.00 (91.00, −2.0 σ) | 50.00 (50.00, +0.00) | 12.35 | −0.10 |",
        "| 0.1 % FPR | *Oracle* | *99.00* (98.00, +1.0 σ) | *–* | *–* | *–* |",
        "| 1 % FPR | FairCal | **95.00** | – | – | – |",
    ]


def test_markdown_with_spreads():
    value = TableValue(0.9, 0.01, best=True, published=0.91, published_std=0.005)
    table = Table("k", "T", "C.", (Heading("", "AUROC", ""),), (Line("m", (value,)),))
    assert "| m | **90.00 ± 1.00** (91.00 ± 0.50, −2.0 σ) |" in markdown(table)


def test_markdown_names_are_shown_as_they_are():
    found = markdown_cells(markdown(hostile_table(spreads=False)))
    flat = [" ".join(name.split()) for name in HOSTILE]
    assert found[0] == ["Block", "Method", *(f"{name}\n{name}!" for name in flat)]
    assert [row[:2] for row in found[1:]] == [[name, name] for name in flat]
    assert {len(row) for row in found} == {2 + len(HOSTILE)}


def test_csv_is_long_and_in_fractions(table):
    rows_ = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert rows_[0] == {
        "table": "some_key",
        "block": "0.1 % FPR",
        "feature": "net",
        "column": "AUROC",
        "method": "Baseline",
        "value": "0.9",
        "std": "0.01",
        "low": "",
        "high": "",
        "published": "0.91",
        "published_std": "0.005",
        "difference_in_std": repr((0.9 - 0.91) / 0.005),
        "simulated": "false",
    }
    assert [row["value"] for row in rows_[2:6]] == ["0.123456", "-0.001", "0.99", ""]
    assert (rows_[1]["published"], rows_[1]["difference_in_std"]) == ("0.5", "")
    assert len(rows_) == 12


def test_intervals_stand_in_place_of_spreads():
    value = TableValue(0.0143, 0.01, best=True, low=0.0113, high=0.0171)
    bare = TableValue(0.5, 0.02)
    lines = (Line("m", (value, bare)),)
    headings = (Heading("net", "AAD", ""), Heading("net", "MAD", ""))
    made = Table("t", "Title", "Caption.", headings, lines)
    assert made.legend == "Caption. In brackets: 95 % intervals."
    assert "| m | **1.43** (1.13–1.71) | 50.00 ± 2.00 |" in markdown(made)
    assert r"\textbf{1.43} (1.13\textendash{}1.71) & 50.00$\pm$2.00" in latex(made)
    first, second = csv.DictReader(io.StringIO(as_csv(made)))
    assert (first["low"], first["high"], first["std"]) == ("0.0113", "0.0171", "0.01")
    assert (second["low"], second["high"]) == ("", "")


def test_what_is_no_share_is_not_printed_in_percent():
    ratio = TableValue(2.5, low=1.0, high=math.inf, unit=1)
    assert (ratio.text, ratio.interval) == ("2.50", "1.00–∞")
    assert TableValue(12345.0, unit=1, digits=0).text == "12,345"
    assert TableValue(-0.02, worse=True).text == "-2.00*"


@pytest.mark.parametrize(("width", "shown"), [(80, True), (18, False)])
def test_the_terminal_has_intervals_where_they_fit(width, shown, monkeypatch):
    lines = (Line("method", (TableValue(0.0143, low=0.0113, high=0.0171),)),)
    made = Table("t", "Title", "Caption.", (Heading("net", "AAD", ""),), lines)
    console = Console(width=width, file=io.StringIO())
    monkeypatch.setattr("faircal.cli.printing.console", lambda: console)
    show(made)
    said = console.file.getvalue()
    assert "1.43" in said
    assert ("1.13–1.71" in said) is shown
    assert ("intervals" in said) is shown


def test_csv_names_come_back_as_they_were():
    rows_ = list(csv.DictReader(io.StringIO(as_csv(hostile_table()), newline="")))
    assert [row["feature"] for row in rows_[: len(HOSTILE)]] == list(HOSTILE)
    assert list(dict.fromkeys(row["method"] for row in rows_)) == list(HOSTILE)


def test_latex_has_the_cells_in_their_places(table):
    (tabular,) = tabulars(latex(table))
    head, names, *body = rows(tabular)
    assert [(cell.text, cell.span) for cell in head] == [("", 1), ("", 1), ("net", 2), ("other", 2)]
    assert [cell.text for cell in names] == ["", "Method", *["AUROC", "TPR @ 1 %"] * 2]
    assert [[cell.text for cell in row] for row in body] == [
        ["0.1 % FPR", "Baseline", "90.00", "50.00", "12.35", "-0.10"],
        ["", "Oracle", "99.00", "–", "–", "–"],
        ["1 % FPR", "FairCal", "95.00", "–", "–", "–"],
    ]
    assert [[cell.style for cell in row] for row in body] == [
        [""] * 6,
        ["", *["textit"] * 5],
        ["", "", "textbf", "", "", ""],
    ]


def test_where_each_feature_has_one_column_it_bears_its_name():
    headings = tuple(Heading(net, "AUROC", "") for net in ("net", "other"))
    value = TableValue(0.9, 0.01, published=0.91, published_std=0.005)
    table = Table("k", "T", "C.", headings, (Line("m", (value, value)),))
    (tabular,) = tabulars(latex(table))
    assert [[cell.text for cell in row] for row in rows(tabular)] == [
        ["Method", "net", "other"],
        ["m", "90.00±1.00", "90.00±1.00"],
    ]


def test_latex_rows_have_as_many_columns_as_the_table(table):
    for given in (table, hostile_table()):
        for tabular in tabulars(latex(given)):
            found = [sum(cell.span for cell in row) for row in rows(tabular)]
            assert set(found) == {columns(tabular)}


def test_latex_uses_booktabs_and_names_itself(table):
    (node,) = environments(parse(latex(table)), "table")
    (caption,) = macros(node.nodelist, "caption")
    assert said([caption.nodeargd.argnlist[-1]]) == "A title. A caption: 5 %."
    assert "\\label{table:some_key}" in latex(table)
    (tabular,) = tabulars(latex(table))
    assert [len(macros(tabular.nodelist, rule)) for rule in RULES] == [1, 2, 1]
    assert "\\label{table:a-b-c--x-}" in latex(hostile_table())


def test_latex_names_are_shown_as_they_are():
    (tabular,) = tabulars(latex(hostile_table()))
    head, names, *body = rows(tabular)
    flat = [" ".join(name.split()) for name in HOSTILE]
    shown = [name.replace("−", "-") for name in flat]  # a minus sign is one of mathematics
    assert [cell.text for cell in head][2:] == shown
    assert [cell.text for cell in names][2:] == [f"{name}!" for name in shown]
    assert [(row[0].text, row[1].text) for row in body] == [(name, name) for name in shown]


def test_a_name_at_the_start_of_a_row_is_no_argument_of_the_row_before():
    lines = tuple(Line(name, (TableValue(0.5),)) for name in HOSTILE)
    text = latex(Table("k", "T", "C.", (Heading("", "x", ""),), lines))
    assert not any(line.startswith(("[", "*")) for line in text.splitlines())
    _, *body = rows(*tabulars(text))
    shown = [" ".join(name.split()).replace("−", "-") for name in HOSTILE]
    assert [[cell.text for cell in row] for row in body] == [[name, "50.00"] for name in shown]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("é", "é"),
        ("中", r"\texttt{U+4E2D}"),
        ("e\u0301", "é"),
        ("ð", r"\texttt{U+00F0}"),
        ("\x00", r"\texttt{U+0000}"),
        ("\u00a0x ", "x"),
        ("±", r"$\pm$"),
        ("--", "-{}-"),
        ("---", "-{}-{}-"),
        ("5 %", r"5\,\%"),
        ("a %", r"a \%"),
    ],
)
def test_escape(text, written):
    assert escape(text) == written


def test_simulated_data_says_so_everywhere(table):
    given = Table("k", "T", "C.", table.headings, table.lines, simulated=True)
    assert markdown(given).startswith(f"> {SIMULATED}\n\n## T")
    assert latex(given).startswith(f"% {SIMULATED}\n")
    (node,) = environments(parse(latex(given)), "table")
    assert said(macros(node.nodelist, "caption")[0].nodeargd.argnlist).endswith(SIMULATED)
    assert {row["simulated"] for row in csv.DictReader(io.StringIO(as_csv(given)))} == {"true"}


def test_real_data_does_not(table):
    for text in (markdown(table), latex(table), as_csv(table)):
        assert "imulated data" not in text


def test_it_compiles_where_tex_is_installed(table, tmp_path):
    tables = latex(table) + latex(hostile_table())
    packages = "\\usepackage{booktabs,multirow,graphicx}"
    document = f"\\documentclass{{article}}{packages}\\begin{{document}}{tables}\\end{{document}}"
    compile_latex(document, tmp_path)


def compile_latex(text, folder):
    """Compile a document where TeX is installed."""
    if not shutil.which("pdflatex"):
        return
    (folder / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (folder / "tables.pdf").stat().st_size > 1000
