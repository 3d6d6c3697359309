"""Numbers in prose are those of the tables that they come from.

A marker is an HTML comment directly after a word. The numbers that follow it are cells of a table::

    KS mean<!-- = study-cohort#intervals-over-people; lfw-dlib; random: KS mean --> −14.0 to −9.9

The table is in that section of a page of ``docs``, which a study or benchmark writes and a test
holds against what is kept, or in the output ``above``; ``above#section`` is an earlier one. Then
come cells of its row, and its columns; ``a & b`` stands for one after the other, ``max X`` and
``min X`` for the largest and the least of a column, ``rows`` for how many rows have these cells.
``<!-- with PAGE; cells: columns -->`` is what markers ``<!-- = cells -->`` below it have in common.

What a marker names is the condition of its claim, and the paragraph must state it: a table in the
row, its header and its caption, a list in the point and what leads to it, a picture in its words
and its caption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from itertools import chain, pairwise, product

from pages.parsing import ROOT, Page, PageError

HOW_TO = ("big-data", "choose", "cohort", "monitoring", "pairs", "threshold")
#: Pages on which every number that looks measured has a marker or is in `NO_MEASUREMENT`.
WATCHED = ("README.md", "docs/index.md", *(f"docs/how-to/{x}.md" for x in HOW_TO))
#: Wanted rates, levels of confidence, definitions, settings of an example.
NO_MEASUREMENT = (
    r"where 1 % of (?:all )?(?:strangers|imposters|do)",
    r"95 % (?:confidence|intervals?)",
    r"(?:not|exactly|promises of|above|below|keeps) 1 %",
    r"(?:the|chance is) 5 %",
    r"more than 5 % of the cohort's people",
    r"Python 3\.11",
    r"a gap of 2 %|1 % unless told",
    r"a rate of 0\.005 %",
    r"more than 1\.1 times",
    r"16,000 × 512|told about 50 %|0\.6 times as wide",
    r"1 to 5\.5 in a hundred",  # goes with the next study of promises
)
#: How prose states what tables name otherwise; else by the same words.
STATED = {
    "lfw-mobilefacenet": "MobileFaceNet",
    "lfw-dlib": "dlib",
    "given": "within groups|as given|promised",
    "CohortFairCal": "cohort",
    "SmoothFairCal": "smooth",
    "Oracle (knows groups)": "Oracle.* (?:knows|sees)",
    "KS mean": "mean KS|KS mean",
    "FPR AAD@1%": "AAD|deviation|rates lie from their mean",
    "global": "all pairs|of (?:imposter|genuine) pairs",
    "TPR": "recognise",
    "nobody taken out": "nobody (?:is )?taken out",
    "highest FPR, Baseline": "Baseline: up to",
    "closed": "of the way from Baseline to Oracle",
    "closed over people": "95 % interval.*of the way from Baseline to Oracle",
    "turned": "decisions",
    "as given: 0 % random": "as given",
    "100 % random": "all random",
    "gain in KS mean that is back": "gave back .*KS",
    "any": "something was found",
    "100,000,000 pairs": "two cores score 100 million pairs",
    "score 100,000,000 pairs of 1,000,000 × 128: peak memory": "128 numbers each.* GB",
    "K-means, bfw-like, 16,000 × 512, K = 100, 1 start(s): ms": "H200.* 16,000 × 512 .*ms",
    "figure": "",
    "rows": "settings",
    "covers too little": "intervals cover too little",
    "wolves, 5 %": "one person in twenty is a .wolf",
    "broken of given": "promises (?:was|were) broken",
    "normal, people 50 %": "half of the variance between people",
    "300 × 3": "300 people",
    "100 × 4": "100 people",
    "rate covered": "intervals held",
    "the right one": "found",
    "highest FPR": "strangers .*pass",
    "FPR": "FPR|false-positive|imposter pairs",
}
#: Patterns of what claims of a section must state though no cell names it.
ALSO = {
    "study-cohort#both-protocols-side-by-side": ("36 |nobody", "real"),
    "study-cohort#intervals-over-people": ("36 ", "95 % interval"),
}

_MARKER = re.compile(r"<!-- (?P<kind>=|with) (?P<text>.*?) -->(?P<alone>\n\n)?", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`|(?<=\]\()[^)\s]+(?=\))")
_NUMBER = re.compile(r"(?<![\w.@#-])[−+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)")
_UNIT = re.compile(r"\s?(?:%|×|times\b)")
_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)")

Row = Mapping[str, str]

#: Line, numbers of the page, those of the source as the page prints them, what is not stated.
Claim = tuple[int, list[re.Match[str]], list[str], list[str]]


def problems(page: Page) -> Iterator[str]:
    """Say which numbers are not their source's, have no condition or, where watched, no source."""
    tied, prose = set(), _prose(page)
    for line, numbers, expected, unstated in _claims(page, prose):
        tied |= {number.start() for number in numbers}
        shown = [number[0] for number in numbers]
        if shown != expected:
            yield f"line {line}: shows {shown}, its source {expected}: use --claims --write"
        for condition in unstated:
            yield f"line {line}: the claim does not state its condition: {condition!r}"
    if page.path in {ROOT / name for name in WATCHED}:
        for number in _NUMBER.finditer(prose):
            measured = "." in number[0] or _UNIT.match(prose, number.end())
            if measured and number.start() not in tied:
                yield f"line {_line(prose, number.start())}: {number[0]} has no source"


def written(page: Page) -> str:
    """Return the page with the numbers of its sources."""
    text = page.text
    for _, numbers, expected, _ in reversed([*_claims(page, _prose(page))]):
        for number, value in reversed([*zip(numbers, expected, strict=True)]):
            text = text[: number.start()] + value + text[number.end() :]
    return text


def _claims(page: Page, prose: str) -> Iterator[Claim]:
    common = ""
    for marker in _MARKER.finditer(page.text):
        text = " ".join(marker["text"].split())
        if marker["kind"] == "with":
            common = text
            continue
        if ": " not in text:
            text = f"; {text}: ".join(common.rsplit(": ", 1))
        try:
            yield _claim(page, prose, marker, text)
        except ValueError as error:
            place = f"{page.path}:{_line(prose, marker.start())}"
            raise PageError(f"{place}: {text}: {error}") from None


def _claim(page: Page, prose: str, marker: re.Match[str], text: str) -> Claim:
    line, (left, _, right) = _line(prose, marker.start()), text.rpartition(": ")
    where, *cells = left.split("; ")
    keys, columns = [cell.split(" & ") for cell in cells], right.split(" & ")
    rows = _rows_above(page, where, line) if where.startswith("above") else _rows(where)
    every = product(*keys, columns)
    source = [value for *key, column in every for value in _values(rows, key, column)]
    numbers = [n for n in _NUMBER.finditer(prose) if n.start() > marker.start()][: len(source)]
    if len(numbers) < len(source) or not (marker["alone"] or page.text[marker.start() - 1].strip()):
        raise ValueError("expected a word directly before, and the numbers after")
    names = [_extreme(name)[1] for name in chain(*keys, columns)]
    parts = [part for name in names for part in ([name] if name in STATED else name.split(", "))]
    wanted = [*(STATED.get(part, re.escape(part)) for part in parts), *ALSO.get(where, ())]
    said = _scope(page, numbers[0].start())
    expected = [_printed(value, n[0]) for value, n in zip(source, numbers, strict=True)]
    lacking = [each for each in wanted if not re.search(each, said, re.IGNORECASE)]
    return line, numbers, expected, lacking


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _words(page: Page) -> str:
    """Return the page without blocks of code and comments; everything stays at its place."""
    lines = page.text.splitlines()
    for number in chain.from_iterable(range(block.first, block.end) for block in page.blocks):
        lines[number] = " " * len(lines[number])
    return _COMMENT.sub(_blank, "\n".join(lines))


def _prose(page: Page) -> str:
    """Return the same without code, addresses and what is no measurement."""
    text = _CODE.sub(_blank, _words(page))
    for phrase in NO_MEASUREMENT:
        text = re.sub(phrase.replace(" ", r"\s+"), _blank, text)
    return text


def _scope(page: Page, at: int) -> str:
    """Return the words in which a claim must state its condition."""
    text = _words(page)
    cuts = [0, *(end.end() for end in _END.finditer(text)), len(text)]
    parts = [(b, text[a:b]) for a, b in pairwise(cuts) if text[a:b].strip()]
    here = next(n for n, (end, _) in enumerate(parts) if at < end)
    said = [part.strip() for _, part in parts]
    words = said[here]
    kind = words[0] if words[0] in "|-*" else ""
    if kind:
        first = max((n for n in range(here) if said[n][0] != kind), default=here)
        words = " ".join([said[first], said[first + 1] if kind == "|" else "", words])
    elif words.startswith("!["):
        words += said[here + 1]
    return " ".join(words.split())


@cache
def _rows(where: str) -> list[Row]:
    """Return the rows of the tables in a section of a page of ``docs``."""
    name, _, anchor = where.partition("#")
    path = ROOT / "docs" / f"{name}.md"
    text = _section(path.read_text("utf-8") if path.exists() else "", anchor)
    return _tables(re.sub("[*`]", "", text), r"^(\|.+)\n\|[-| :]+\n((?:\|.+\n)+)", r"\s*\|\s*")


def _rows_above(page: Page, where: str, line: int) -> list[Row]:
    """Return the rows of the tables in the last output above a line, or of a section."""
    section = _section(page.text, where.partition("#")[2])
    shown = [b.text for b in page.blocks if b.is_output and b.end < line and b.text in section]
    return _tables(shown[-1] if shown else "", r"^(.+)\n ?─+\n((?:.+\n?)+)", r"\s{2,}")


def _tables(text: str, table: str, between: str) -> list[Row]:
    """Return rows; a table's pattern has its header and its rows, another is between cells."""
    return [
        dict(zip(*(re.split(between, line.strip()) for line in (head, row)), strict=False))
        for head, rows in re.findall(table, text, re.MULTILINE)
        for row in rows.splitlines()
    ]


def _section(text: str, anchor: str) -> str:
    """Return the text from a heading to the next; without an anchor, everything."""
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE) if anchor else ():
        heading = part.partition("\n")[0].lower().replace(" ", "-")
        if re.sub(r"[^\w-]", "", heading) == anchor:
            return part
    return "" if anchor else text


def _values(rows: Sequence[Row], key: Sequence[str], column: str) -> list[str]:
    """Return a column's numbers in the row with all these cells, or how many rows have them."""
    if column == "rows":
        parts = [{p for cell in row.values() for p in (cell, *cell.split(", "))} for row in rows]
        return [str(sum(set(key) <= each for each in parts))]
    extreme, name = _extreme(column)
    there = [row for row in rows if set(key) <= set(row.values())]
    cells = {cell for row in there for cell in _cell(row, name)}
    if not cells or (len(cells) > 1 and not extreme):
        raise ValueError(f"expected one row with a column {name}, found {len(cells)}")
    values = [_NUMBER.findall(cell) for cell in cells]
    return [extreme(chain.from_iterable(values), key=_decimal)] if extreme else values[0]


def _extreme(column: str) -> tuple[Callable[..., str] | None, str]:
    first, _, rest = column.partition(" ")
    return (max if first == "max" else min, rest) if first in ("max", "min") else (None, column)


def _cell(row: Row, name: str) -> Iterator[str]:
    """Find a cell; of ``FPR (interval)`` each part has its name, too."""
    for column, cell in row.items():
        names, parts = column.rstrip(")").split(" ("), cell.rstrip(")").split(" (")
        if name == column:
            yield cell
        elif len(names) == 2 and name in names and len(parts) == 2:
            yield parts[names.index(name)]


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))


def _printed(value: str, like: str) -> str:
    """Print a number with the digits and the sign that another has."""
    last = Decimal(1).scaleb(-len(like.partition(".")[2]))
    sign = "+" if like.startswith("+") else ""
    return f"{_decimal(value).quantize(last, ROUND_HALF_UP):{sign},f}".replace("-", "−")
