"""Running a benchmark with a bar and showing what came out; for ``benchmark`` and ``demo``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from faircal.cli.help import Part, option
from faircal.cli.options import note, out, print_json, printable, progress_bars

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.evaluation.benchmark import Moving, Settings
    from faircal.evaluation.benchmark.run import Runner
    from faircal.report import ResultsFolder, Table
    from faircal.report.page import Report
    from faircal.report.paper import Reproduction

#: The option of audits, and of `report`, by which tables and figures become files.
all_files_option = option(
    "--all-files",
    part=Part.OUTPUT,
    is_flag=True,
    help="Write the tables of the report (Markdown, CSV) and its figures (PDF, PNG, CSV) as files, "
    "too: tables/ and figures/. Without it they are in report.html alone.",
)
#: What benchmarks and audits leave in their folder, for the help of commands.
REPORT_FILES = {
    "report.html": "For people: one file that opens anywhere, offline.",
    "results.csv": "All numbers: a row for each value, by method, fold and group.",
    "intervals.csv": "How sure they are: intervals that know who is in the pairs.",
    "curves.parquet": "Scores counted in bins, which figures are drawn from.",
    "run.json": "Settings, versions, hash of the data, notes.",
}
TABLE_FILES = {
    "tables/, figures/": "The tables (Markdown, CSV) and figures (PDF, PNG, CSV) of the report. "
    "Figures need the extra figures.",
}
#: The same of pairs.
PAIR_FILES = {**REPORT_FILES, "replicates.parquet": "What 'faircal compare' needs."}


def benchmark_and_show(
    data: Dataset,
    folder: Path,
    settings: Settings,
    *,
    jobs: int | None,
    resume: bool = False,
    as_json: bool = False,
    more: Mapping[str, Any] | None = None,
    moving: Moving | None = None,
    runner: Runner | None = None,
) -> None:
    """Run, write the report, print the main tables and the paths.

    `more` is what ``run.json`` says besides; `moving` has the data to fit on, where it is not that
    of the other folds; `runner` runs cells elsewhere.
    """
    from faircal.evaluation.benchmark import run_benchmark
    from faircal.metrics.results import read_run

    with progress_bars() as update:
        run_benchmark(
            data,
            folder,
            settings,
            jobs=jobs,
            resume=resume,
            progress=update,
            note=note,
            more=more,
            moving=moving,
            runner=runner,
        )
    run = read_run(folder)
    for text in run["notes"]:
        note(text if text.startswith("warning") else f"note: {text}")
    for method, why in run["left_out"].items():
        note(f"note: {method} is left out: {why}")
    report_and_show(folder, as_json)


@contextmanager
def goes_on(what: str) -> Iterator[None]:
    """Say how to go on where the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"what is written stays, and {what} goes on with --resume"
        ) from error


def written_report(
    folder: Path, all_files: bool = False
) -> tuple[ResultsFolder, Report, dict[str, str]]:
    """Write the report of the results in `folder`; return the files by name."""
    from faircal.metrics.results import RESULTS
    from faircal.report import ResultsFolder, write_all

    store = ResultsFolder.read(folder)
    with progress_bars() as update:
        report = write_all(store, all_files=all_files, progress=update)
    if report.missing:
        note(f"note: {report.missing}")
    paths = {name: str(path) for name, path in report.paths.items()}
    return store, report, {"results": str(folder / RESULTS), **paths}


def report_and_show(folder: Path, as_json: bool, all_files: bool = False) -> None:
    """Write the report of the results in `folder`; print what people look for."""
    from faircal.cli import moving_table

    store, report, paths = written_report(folder, all_files)
    claims = report.paper.claims if report.paper is not None else []
    if as_json:
        listed = [asdict(claim) | {"holds": claim.holds} for claim in claims]
        where = {name: paths[name] for name in ("results", "report")}
        record = {**where, "simulated": store.simulated, "files": paths, "tables": _records(store)}
        if report.paper is not None:
            record |= {"claims": listed, "agreement": report.paper.counts}
        if "moving" in store.run:
            record |= {"moving": moving_table.records(folder)}
        print_json(record)
    else:
        if store.simulated:
            note("simulated data: nothing here is about real people or a real system")
        _show(store, report.paper, paths)


def _tables(store: ResultsFolder) -> dict[str, list[Table]]:
    """Return the main tables by attribute; of a reproduction with one variant of each method."""
    from faircal.report.findings import ReportableResults
    from faircal.report.tables import Results, Variant, main_tables

    results: Results = ReportableResults(store)
    if store.kind == "reproduce":
        mains = set(store.main_variants.values())
        results = Results(row for row in results.rows if Variant.of(row) in mains)
    return {attribute: main_tables(results, attribute) for attribute in results.attributes}


def _records(store: ResultsFolder) -> list[dict[str, object]]:
    return [
        {"attribute": attribute, "table": table.title, **record}
        for attribute, several in _tables(store).items()
        for table in several
        for record in table.records()
    ]


def _show(store: ResultsFolder, paper: Reproduction | None, paths: dict[str, str]) -> None:
    """Print the main tables of each attribute, the paper's claims, then the paths."""
    from faircal.cli import moving_table
    from faircal.report.terminal import show, show_claims

    console = out()
    for attribute, several in _tables(store).items():
        if attribute:
            title = f"{store.results.dataset}, groups by {attribute}"
            console.print(Text(printable(title), style="bold"), end="\n\n")
        for table in several:
            show(table, console)
    if "moving" in store.run:
        moving_table.show(store.folder, str(store.run["moving"]["calibrated_on"]))
    if paper is not None:
        show_claims(paper.claims, console)
        if paper.counts is not None:
            console.print(
                "Of {compared} numbers, {within_one} lie within one and {within_two} within two "
                "published standard deviations over folds.\n".format(**paper.counts)
            )
    for name, path in paths.items():
        console.print(f"{name}: {path}", soft_wrap=True, markup=False)
