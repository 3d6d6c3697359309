"""What commands print of a folder of results: the main tables, what follows, and the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Part, option
from faircal.cli.options import note, notes, out, print_json
from faircal.cli.tables import NONE, number, print_table, say, show, text

if TYPE_CHECKING:
    from faircal.evaluation.benchmark.transfer import LabellingCurve
    from faircal.report import ResultsFolder, Table
    from faircal.report.paper import Claim
    from faircal.report.writing import WrittenReport

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
    "results.csv": "All numbers and how sure they are: a row for each value, fold and group.",
    "curves.parquet": "Scores counted in bins, which figures are drawn from.",
    "run.json": "Settings, versions, hash of the data, notes.",
}
TABLE_FILES = {
    "tables/, figures/": "The tables (Markdown, CSV) and figures (PDF, PNG, CSV) of the report. "
    "Figures need the extra figures.",
}
#: The same of pairs.
PAIR_FILES = {**REPORT_FILES, "replicates.parquet": "What 'faircal compare' needs."}


def show_run(report: WrittenReport, as_json: bool) -> None:
    """Print the notes of a run, and then its report."""
    run = report.store.run
    notes(run["notes"])
    for method, why in run.get("left_out", {}).items():
        note(f"note: {method} is left out: {why}")
    if run["kind"] == "classify":
        note(f"intervals: {run['interval_kind']}")
    show_report(report, as_json)


def show_report(report: WrittenReport, as_json: bool) -> None:
    """Print what people look for in a folder of results, or all of it for machines."""
    if report.missing:
        note(f"note: {report.missing}")
    store = report.store
    classes = store.kind == "classify"
    if as_json:
        where = {name: report.paths[name] for name in ("results", "report")}
        record = _class_record(store) if classes else _record(report)
        print_json({**where, "files": report.paths, **record})
        return
    if classes:
        _show_classes(store)
    else:
        _show_pairs(report)
    for name, path in report.paths.items():
        click.echo(f"{name}: {path}")


def _tables(store: ResultsFolder) -> dict[str, list[Table]]:
    """Return the main tables by attribute; of a reproduction with one variant of each method."""
    from faircal.report.store import LabelledResults, Variant
    from faircal.report.subject import subject_of
    from faircal.report.tables import main_tables

    if store.kind == "classify":
        tables = subject_of(store).tables
        return {attribute: tables(store, attribute) for attribute in store.results.attributes}
    results: LabelledResults = store.reportable
    if store.kind == "reproduce":
        mains = set(store.main_variants.values())
        results = LabelledResults(row for row in results.rows if Variant.of(row) in mains)
    return {attribute: main_tables(results, attribute) for attribute in results.attributes}


def _records(store: ResultsFolder) -> list[dict[str, object]]:
    return [
        {"attribute": attribute, "table": table.title, **record}
        for attribute, several in _tables(store).items()
        for table in several
        for record in table.records()
    ]


def _record(report: WrittenReport) -> dict[str, Any]:
    """Return what machines are told of pairs."""
    store, paper = report.store, report.paper
    record: dict[str, Any] = {"simulated": store.simulated, "tables": _records(store)}
    if paper is not None:
        claims = [asdict(claim) | {"holds": claim.holds} for claim in paper.claims]
        record |= {"claims": claims, "agreement": paper.counts}
    if "moving" in store.run:
        from faircal.evaluation.benchmark.transfer import curves_of

        curves = curves_of(store.folder)
        record["moving"] = [
            curve.record(metric) for metric, each in curves.items() for curve in each
        ]
    return record


def _class_record(store: ResultsFolder) -> dict[str, Any]:
    """Return what machines are told of classes: the run, every value, the main tables."""
    run = store.run
    names = ("kind", "dataset", "rows", "classes", "notes", "left_out", "interval_kind", "settings")
    return {
        **{name: run[name] for name in names if name in run},
        "audit": [row._asdict() for row in store.results if row.level == row.level],
        "differences": [row._asdict() for row in store.class_differences],
        "tables": _records(store),
    }


def _show_pairs(report: WrittenReport) -> None:
    """Print the main tables of each attribute, then the paper's claims."""
    store, console = report.store, out()
    if store.simulated:
        note("simulated data: nothing here is about real people or a real system")
    for attribute, several in _tables(store).items():
        _show_title(store, attribute)
        for table in several:
            show(table)
    if "moving" in store.run:
        _show_moving(store)
    if report.paper is not None:
        _show_claims(report.paper.claims)
        if report.paper.counts is not None:
            console.print(
                "Of {compared} numbers, {within_one} lie within one and {within_two} within two "
                "published standard deviations over folds.\n".format(**report.paper.counts)
            )


def _show_claims(claims: Sequence[Claim]) -> None:
    """Print the paper's claims: in how many cases each is true here, and in the paper."""
    compared = any(claim.published_of for claim in claims)

    def share(won: int | None, of: int | None) -> str:
        return f"{won} of {of}" if of else NONE

    rows = [
        [
            claim.text,
            share(claim.won, claim.of),
            *[share(claim.published_won, claim.published_of)] * compared,
        ]
        for claim in claims
    ]
    print_table(["", *("here", "paper")[: 1 + compared]], rows, title="The paper's claims")


def _show_classes(store: ResultsFolder) -> None:
    """Print the tables that have numbers; differences between methods are for page and files."""
    from faircal.report.subject import subject_of

    for attribute, several in _tables(store).items():
        _show_title(store, attribute)
        for table in several:
            # Else it would say over and over that data is short.
            numbers = any(value.mean == value.mean for line in table.lines for value in line.values)
            if numbers and not table.key.startswith("differences"):
                show(table)
        for words in subject_of(store).summary(store, attribute).who:
            click.echo(text(words).plain)


def _show_title(store: ResultsFolder, attribute: str) -> None:
    if attribute:
        title = f"{store.results.dataset}, groups by {attribute}"
        out().print(text(title, "bold"), end="\n\n")


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
