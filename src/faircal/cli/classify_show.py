"""What ``faircal classify`` prints of results: the main tables, what they say, and the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircal.cli.options import out, print_json, printable
from faircal.cli.running import written_report

if TYPE_CHECKING:
    from faircal.report import ResultsFolder, Table


def report_and_show(folder: Path, as_json: bool, all_files: bool = False) -> None:
    """Write the report of the results in `folder`; print what people look for."""
    store, _, paths = written_report(folder, all_files)
    if as_json:
        where = {name: paths[name] for name in ("results", "report")}
        print_json({**where, "files": paths, **_record(store)})
        return
    _show(store)
    for name, path in paths.items():
        click.echo(f"{name}: {path}")


def _tables(store: ResultsFolder) -> dict[str, list[Table]]:
    from faircal.report.subject import subject_of

    tables = subject_of(store).tables
    return {attribute: tables(store, attribute) for attribute in store.results.attributes}


def _record(store: ResultsFolder) -> dict[str, object]:
    """Return what machines are told: the run, every value with its interval, the main tables."""
    run = store.run
    known = ("kind", "dataset", "rows", "classes", "notes", "left_out", "interval_kind", "settings")
    return {
        **{name: run[name] for name in known if name in run},
        "audit": [row._asdict() for row in store.intervals],
        "differences": [row._asdict() for row in store.class_differences],
        "tables": [
            {"attribute": attribute, "table": table.title, **record}
            for attribute, several in _tables(store).items()
            for table in several
            for record in table.records()
        ],
    }


def _numbers(table: Table) -> bool:
    """Whether there is a number in a table; else it would say over and over that data is short."""
    return any(value.mean == value.mean for line in table.lines for value in line.values)


def _show(store: ResultsFolder) -> None:
    """Print the tables that have numbers; differences between methods are for page and files."""
    from rich.text import Text

    from faircal.report.subject import subject_of
    from faircal.report.terminal import show

    console = out()
    for attribute, several in _tables(store).items():
        if attribute:
            title = f"{store.results.dataset}, groups by {attribute}"
            console.print(Text(printable(title), style="bold"), end="\n\n")
        for table in several:
            if _numbers(table) and not table.key.startswith("differences"):
                show(table, console)
        for text in subject_of(store).summary(store, attribute).who:
            click.echo(printable(text))
