"""Running a benchmark with a bar and showing what came out; for ``benchmark`` and ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
) -> None:
    """Run, write the report, print the main tables and the paths."""
    from faircal.benchmark import run_benchmark
    from faircal.report import write_report
    from faircal.results import RESULTS, read_run

    with progress_bars() as update:
        rows = run_benchmark(
            data, folder, settings, jobs=jobs, resume=resume, progress=update, note=note
        )
    run = read_run(folder)
    for text in run["notes"]:
        note(text if text.startswith("warning") else f"note: {text}")
    for method, why in run["left_out"].items():
        note(f"note: {method} is left out: {why}")
    page = write_report(folder)
    show_tables(rows, as_json, {"results": str(folder / RESULTS), "report": str(page)})


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
