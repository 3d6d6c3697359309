"""Running a benchmark with a bar and showing what came out; for ``benchmark`` and ``demo``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal.cli.options import note, out, print_json, progress_bars

if TYPE_CHECKING:
    from faircal.benchmark import Settings
    from faircal.data import Dataset
    from faircal.results import Row


def benchmark_and_show(
    data: Dataset,
    folder: Path,
    settings: Settings,
    *,
    jobs: int | None,
    resume: bool = False,
    as_json: bool = False,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Run, write the report, print the main tables and the paths.

    `more` is what ``run.json`` says besides.
    """
    from faircal.benchmark import run_benchmark
    from faircal.results import read_run

    with progress_bars() as update:
        rows = run_benchmark(
            data,
            folder,
            settings,
            jobs=jobs,
            resume=resume,
            progress=update,
            note=note,
            more=more,
        )
    run = read_run(folder)
    for text in run["notes"]:
        note(text if text.startswith("warning") else f"note: {text}")
    for method, why in run["left_out"].items():
        note(f"note: {method} is left out: {why}")
    report_and_show(folder, rows, as_json)


@contextmanager
def goes_on(what: str) -> Iterator[None]:
    """Say how to go on where the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"what is written stays, and {what} goes on with --resume"
        ) from error


def report_and_show(folder: Path, rows: list[Row], as_json: bool) -> None:
    """Write tables, figures and the page of the results in `folder`; print what people look for."""
    from faircal.report import write_all
    from faircal.results import RESULTS

    with progress_bars() as update:
        paths = write_all(folder, progress=update)
    if "figures" not in paths:
        note("note: figures need matplotlib: pip install 'faircal[figures]'")
    said = {name: str(path) for name, path in paths.items()}
    show_tables(rows, as_json, {"results": str(folder / RESULTS), **said})


def show_tables(rows: list[Row], as_json: bool, paths: dict[str, str]) -> None:
    """Print the main tables of each attribute, then the paths."""
    from faircal.report import Results, main_tables
    from faircal.report.terminal import show

    results = Results(rows)
    tables = {attribute: main_tables(results, attribute) for attribute in results.attributes}
    if as_json:
        listed = [
            {"attribute": attribute, "table": table.title, **record}
            for attribute, several in tables.items()
            for table in several
            for record in table.records()
        ]
        print_json({**paths, "tables": listed})
        return
    console = out()
    for attribute, several in tables.items():
        if attribute:
            console.print(f"[bold]{results.dataset}[/], groups by {attribute}\n")
        for table in several:
            show(table, console)
    for name, path in paths.items():
        console.print(f"{name}: {path}", soft_wrap=True)
