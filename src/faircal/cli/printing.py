"""What commands print: tables and results on standard output, notes and progress on the other.

No number and no name in a table is ever cut. Commands print their own tables with `print_table`,
those of reports with `show`, and a folder of results with `show_report`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from faircal._base.jobs import Progress, silent

if TYPE_CHECKING:
    from faircal.evaluation.benchmark.transfer import LabellingCurve
    from faircal.report import ResultsFolder, Table
    from faircal.report.paper import Reproduction
    from faircal.report.writing import WrittenReport

#: Stands for a number that there is not.
NONE = "–"
#: Widest line where the output is no terminal and has no width of its own.
_PLAIN_WIDTH = 140


def console(*, stderr: bool = False) -> Console:
    """Return the console for results (standard output), or for progress (standard error)."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=_PLAIN_WIDTH)


#: Prints a note on standard error.
note = partial(click.echo, err=True)


def notes(texts: Iterable[str]) -> None:
    """Print notes on standard error, each with the word before it; a warning is one already."""
    for words in texts:
        line = words if words.startswith("warning") else f"note: {words}"
        click.echo(printable(line), err=True)


def printable(text: str, keep: str = "") -> str:
    """Return text that cannot steer a terminal, whatever the data names its groups."""
    return "".join(each if each.isprintable() or each in keep else "?" for each in text)


def print_json(value: Any) -> None:
    """Print JSON on standard output."""
    from faircal.metrics.results import without_nan

    click.echo(json.dumps(without_nan(value), indent=2, default=str))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show bars with the time left on standard error, one for each stage that is reported.

    They vanish when all is done. Where standard error is no terminal nothing is shown: a log wants
    no bars.
    """
    terminal = console(stderr=True)
    if not terminal.is_terminal:
        yield silent
        return
    # What is too long for the terminal is cut at the end, in the label, and nowhere else.
    label = Column(ratio=1, overflow="ellipsis", no_wrap=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(12),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("left {task.fields[label]}", table_column=label),
    )
    with Bars(*columns, console=terminal, expand=True, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(what: str, done: int, total: int, label: str) -> None:
            if not total:
                if what in tasks:
                    bars.remove_task(tasks.pop(what))
                return
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, label=label)
            bars.update(tasks[what], completed=done, total=total, label=label)

        yield update


def say(words: str) -> None:
    """Print words on standard output: as one line, but broken between words in a terminal."""
    terminal = console()
    terminal.print(printable(words), soft_wrap=not terminal.is_terminal, markup=False)


# --------------------------------------------------------------------- tables


def number(value: float | None, how: str = ".3g") -> str:
    """Return a number, or a dash where there is none."""
    return NONE if value is None or value != value else f"{value:{how}}"


def percent(*values: float | None, how: str = ".2f") -> str:
    """Return a share in percent, or the ends of an interval; a dash where there is none."""
    if any(value is None or value != value for value in values):
        return NONE
    return " to ".join(f"{100 * value:{how}}" for value in values if value is not None)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str = "",
    caption: str = "",
    left: Iterable[int] = (0,),
    names: int = 1,
    blocks: Sequence[int] = (),
) -> None:
    """Print a table on standard output, below one another what does not fit side by side.

    Parameters
    ----------
    columns : sequence of str
    rows : iterable of sequence of str or Text
        Text is printed as it is, whatever the data names its groups; a `Text` may have a style.
    title, caption : str
    left : iterable of int
        Columns of words; the others are of numbers, and stand at the right.
    names : int
        How many columns, from the left, say what a row is of, and are beside each piece.
    blocks : sequence of int
        How many of the other columns, in turn, stay together, such as a rate and its interval;
        where nothing is given, each may stand alone.
    """
    terminal = console()
    pieces, _ = laid_out(columns, rows, terminal, left=left, names=names, blocks=blocks)
    pieces[0].title = Text(printable(title)) if title else None
    pieces[-1].caption = Text(printable(caption)) if caption else None
    for piece in pieces:
        terminal.print(piece)


def laid_out(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    terminal: Console,
    *,
    left: Iterable[int] = (0,),
    names: int = 1,
    blocks: Sequence[int] = (),
    rule: int = 0,
) -> tuple[list[RichTable], bool]:
    """Return a table in pieces to be printed one below the other, and whether it is in one.

    Where it is too wide, heads are broken first, then blocks of columns come below (`print_table`);
    where a single one is too wide, its cells go on in the next line. There is a line below the row
    `rule`, counted from 1.
    """
    words = set(left)
    cells = [
        [cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows
    ]
    room = terminal.options.update(width=10_000)

    def piece(
        heads: Sequence[str], shown: Sequence[int], *, fold: bool = False
    ) -> tuple[RichTable, bool]:
        """Return some of the columns, and whether nothing has to be broken to print them."""
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for i in shown:
            # Numbers are not cut; words go to the next line where there is no room.
            words_here = i in words
            table.add_column(
                Text(printable(heads[i], keep="\n")),
                justify="left" if words_here else "right",
                no_wrap=not words_here and not fold,
                overflow="fold",
            )
        for count, row in enumerate(cells, start=1):
            table.add_row(*(row[i] for i in shown), end_section=count == rule)
        return table, Measurement.get(terminal, room, table).maximum <= terminal.width

    # A head of several words goes over two lines that are about equally long.
    broken = []
    for head in columns:
        spaces = [i for i, letter in enumerate(head) if letter == " "] if "\n" not in head else []
        at = min(reversed(spaces), key=lambda i: max(i, len(head) - i - 1), default=None)
        broken.append(head if at is None else f"{head[:at]}\n{head[at + 1 :]}")
    for heads in (columns, broken):
        table, fits = piece(heads, range(len(columns)))
        if fits:
            return [table], True
    ends = accumulate(blocks or [1] * (len(columns) - names), initial=names)
    pieces: list[list[int]] = []
    for start, stop in pairwise(ends):
        wider = [*(pieces[-1] if pieces else range(names)), *range(start, stop)]
        if pieces and piece(broken, wider)[1]:
            pieces[-1] = wider
        else:
            pieces.append([*range(names), *range(start, stop)])
    tables = []
    # Where names are all there is, or a block is too wide, cells go on in the next line.
    for shown in pieces or [list(range(names))]:
        table, fits = piece(broken, shown)
        tables.append(table if fits else piece(broken, shown, fold=True)[0])
    return tables, False


def show(table: Table) -> None:
    """Print a table of a report: percent, best in bold, yardsticks set apart in italics.

    One part under the other for several features, since terminals are narrow; intervals where they
    fit, and else in the page and the files only.
    """
    terminal, parts = console(), table.parts
    for intervals in (True, False) if table.intervals else (False,):
        laid = [_part(table, columns, terminal, intervals) for _, columns in parts]
        if all(in_one for _, in_one in laid):
            break
    terminal.print(Text(table.title, style="bold"))
    terminal.print(Text(table.legend if intervals else table.caption, style="dim"))
    for (block, _), (pieces, _) in zip(parts, laid, strict=True):
        if len(parts) > 1:
            terminal.print(Text(f"\n {block}", style="bold"))
        for piece in pieces:
            terminal.print(piece)


def _part(
    table: Table, columns: Sequence[int], terminal: Console, intervals: bool
) -> tuple[list[RichTable], bool]:
    """Lay out some columns of a report's table; yardsticks come last, below a line."""
    rows = []
    for line in sorted(table.lines, key=lambda line: line.apart):
        style = "italic" if line.apart else ""
        cells = [Text(line.label, style=style)]
        for value in (line.values[i] for i in columns):
            cells.append(Text(value.text, style="bold" if value.best else style))
            if intervals and value.interval:
                cells[-1].append(f" ({value.interval})", style=f"not bold {style}")
        rows.append(cells)
    heads = ["", *(table.headings[i].name.replace(" @ ", "\n@ ") for i in columns)]
    contest = sum(not line.apart for line in table.lines)
    return laid_out(heads, rows, terminal, rule=contest if contest < len(rows) else 0)


# ---------------------------------------------------------- a folder of results


def show_report(report: WrittenReport, as_json: bool, *, of_run: bool = True) -> None:
    """Print what people look for in a folder of results, or all of it for machines.

    Where the run was made just now (`of_run`), its notes come before.
    """
    store = report.store
    classes = store.kind == "classify"
    if of_run:
        left_out = store.run.get("left_out", {})
        notes(store.run["notes"])
        notes(f"{method} is left out: {why}" for method, why in left_out.items())
        if classes:
            note(f"intervals: {store.run['interval_kind']}")
    notes(filter(None, [report.missing]))
    if as_json:
        where = {name: report.paths[name] for name in ("results", "report")}
        print_json({**where, "files": report.paths, **_record(report)})
        return
    if store.simulated and not classes:
        note("simulated data: nothing here is about real people or a real system")
    _show_tables(store)
    if "moving" in store.run:
        _show_moving(store)
    if report.paper is not None:
        _show_paper(report.paper)
    for name, path in report.paths.items():
        click.echo(f"{name}: {path}")


def _tables(store: ResultsFolder) -> dict[str, list[Table]]:
    """Return the main tables by attribute; of a reproduction with one variant of each method."""
    from faircal.report.store import LabelledResults, Variant
    from faircal.report.writing import subject_of

    subject, of = subject_of(store), store
    if store.kind == "reproduce":  # bare numbers, as the paper has them
        mains, nan = set(store.main_variants.values()), float("nan")
        rows = [row for row in store.results.rows if Variant.of(row) in mains]
        bare = [row._replace(low=nan, high=nan, withheld="") for row in rows]
        of = replace(store, results=LabelledResults(bare))
    shown = [subject.main, *([subject.differences] if store.kind == "classify" else [])]
    return {
        attribute: [table for tables in shown for table in tables(of, attribute)]
        for attribute in of.results.attributes
    }


def _record(report: WrittenReport) -> dict[str, Any]:
    """Return what machines are given: the main tables; of classes also the run and every value."""
    store, run, paper = report.store, report.store.run, report.paper
    tables = [
        {"attribute": attribute, "table": table.title, **record}
        for attribute, several in _tables(store).items()
        for table in several
        for record in table.records()
    ]
    if store.kind == "classify":
        values = store.results.by_key.values()
        names = ("kind", "dataset", "rows", "classes", "notes", "left_out")
        return {
            **{name: run[name] for name in (*names, "interval_kind", "settings") if name in run},
            "audit": [row._asdict() for row in values if row.level == row.level],
            "differences": [row._asdict() for row in store.class_differences],
            "tables": tables,
        }
    record: dict[str, Any] = {"simulated": store.simulated, "tables": tables}
    if paper is not None:
        claims = [asdict(claim) | {"holds": claim.holds} for claim in paper.claims]
        record |= {"claims": claims, "agreement": paper.counts}
    if "moving" in run:
        from faircal.evaluation.benchmark.transfer import curves_of

        curves = curves_of(store.folder)
        record["moving"] = [
            curve.record(metric) for metric, each in curves.items() for curve in each
        ]
    return record


def _show_tables(store: ResultsFolder) -> None:
    """Print the main tables of each attribute; of classifiers also who fares worse.

    Of these, differences between methods are for page and files, and a table without a number would
    say over and over that data is short.
    """
    from faircal.report.writing import subject_of

    classes = store.kind == "classify"
    for attribute, several in _tables(store).items():
        if attribute:
            title = f"{store.results.dataset}, groups by {attribute}"
            console().print(Text(printable(title), style="bold"), end="\n\n")
        for table in several:
            numbers = (value.mean == value.mean for line in table.lines for value in line.values)
            if not classes or (any(numbers) and not table.key.startswith("differences")):
                show(table)
        for words in subject_of(store).summary(store, attribute).who if classes else ():
            click.echo(printable(words))


def _show_paper(paper: Reproduction) -> None:
    """Print the paper's claims: in how many cases each is true here, and in the paper."""
    compared = any(claim.published_of for claim in paper.claims)

    def share(won: int | None, of: int | None) -> str:
        return f"{won} of {of}" if of else NONE

    rows = [
        [
            claim.text,
            share(claim.won, claim.of),
            *[share(claim.published_won, claim.published_of)] * compared,
        ]
        for claim in paper.claims
    ]
    print_table(["", *("here", "paper")[: 1 + compared]], rows, title="The paper's claims")
    if paper.counts is not None:
        console().print(
            "Of {compared} numbers, {within_one} lie within one and {within_two} within two "
            "published standard deviations over folds.\n".format(**paper.counts)
        )


def _show_moving(store: ResultsFolder) -> None:
    """Print KS by labelled pairs, of all pairs and as mean over groups, and what follows."""
    from faircal.evaluation.benchmark.transfer import curves_of

    both = curves_of(store.folder)
    for metric, curves in both.items():
        over = "of all pairs" if metric == "ks" else "as mean over groups"
        if curves:
            click.echo(f"Calibration error (KS, %) {over}, by labelled pairs of the new people")
            steps = sorted({labels for curve in curves for labels in curve.points})
            print_table(
                ["", "", *map(str, steps), "enough"],
                [
                    [_named(c, curves), c.strategy, *_points(c, steps), str(c.labels_needed)]
                    for c in curves
                ],
                left=(0, 1),
                names=2,
            )
    say(
        f"0 labelled pairs: the model of {store.run['moving']['calibrated_on']} as it is. "
        "recalibrated: one map on top of it; fresh: fitted on the labelled pairs alone (– where "
        "that cannot be done). Means over folds ± standard error. enough: the fewest that are as "
        "good as the most, within two standard errors of the difference, 0 where none gain "
        "anything; a rough measure, for folds share labelled pairs.\n"
    )
    for curve in both["ks"]:
        if 0 in curve.points:
            say(f"{_named(curve, both['ks'])}: {curve.words}")
    click.echo()


def _points(curve: LabellingCurve, steps: list[int]) -> Iterator[str]:
    for labels in steps:
        at = curve.points.get(labels)
        if at is None:
            yield NONE
        else:
            yield f"{number(100 * at.mean, '.2f')} ± {number(100 * at.error, '.2f')}"


def _named(curve: LabellingCurve, curves: list[LabellingCurve]) -> str:
    """Return a method's title with what tells it apart from others of the table."""
    from faircal.report.wording import method_title

    words = [method_title(curve.method)]
    for field in ("feature", "calibrator", "clusters", "attribute"):
        values = {getattr(one, field) for one in curves if one.method == curve.method}
        if len(values) > 1:
            words.append(f"{'K = ' if field == 'clusters' else ''}{getattr(curve, field)}")
    return ", ".join(words)
