"""``faircal audit``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import (
    Source,
    check_folder,
    features_option,
    fold_named,
    json_option,
    note,
    out_option,
    print_json,
    printable,
    progress_bars,
    rates_option,
    reads_data,
    working,
)

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.auditing import Audit
    from faircal.data import Dataset, Groups
    from faircal.methods import Method
    from faircal.report.findings import Measured, Point, Rate
    from faircal.report.store import Store


@click.command(
    epilog="Example: faircal audit scores.csv --attribute ethnicity --threshold 0.4 --out audit/"
)
@reads_data
@click.option(
    "--attribute",
    default=None,
    help="Attribute that makes the groups; a+b crosses  [default: all crossed]",
)
@out_option
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    default=None,
    help="Score the pairs with this model first.",
)
@click.option(
    "--threshold",
    type=float,
    default=None,
    help="Decision threshold in use: error rates there, counted.",
)
@rates_option
@features_option
@click.option("--fold", default=None, help="Audit the pairs of this fold only.")
@json_option
def command(
    source: Source,
    attribute: str | None,
    out: Path,
    model: Path | None,
    threshold: float | None,
    rates: tuple[float, ...],
    features: tuple[str, ...],
    fold: str | None,
    as_json: bool,
) -> None:
    """Measure the scores of DATA by group: a score table or a folder, with or without a model.

    A table may carry a column probability beside its scores; it is then measured too. Intervals
    are pair-wise Wilson intervals: they take pairs as independent and are too narrow where pairs
    share people.

    Writes report.html, tables/ and figures/ for people, audit.json for machines, and the raw
    numbers behind them: results.csv, intervals.csv, curves.parquet (scores counted in bins) and
    run.json (settings, versions, data hash).

    Where a group has too few pairs, that is said instead of a number: under 100 pairs, and, where
    groups are compared at a global rate r, under 3 / r pairs (300 at 1 %, 3,000 at 0.1 %). The raw
    numbers leave nothing out.
    """
    from faircal.auditing import INTERVAL_KIND
    from faircal.methods import load_model
    from faircal.report import Store, write_all
    from faircal.report.machine import audit_record

    started = time.perf_counter()
    check_folder(out)
    fitted = None if model is None else load_model(model)
    loaded = source.load(features, measuring=fitted is None)
    notes: list[str] = []
    if fold is not None:
        notes += loaded.notes
        loaded = loaded.split(fold_named(loaded, fold))[1]
    attribute = attribute or loaded.default_attribute
    groups = {} if attribute is None else {attribute: loaded.groups(attribute)}
    if not groups:
        notes.append(f"only global figures: {loaded.why_no_groups()}")
    notes += [text for name, found in groups.items() for text in found.unknown_note(name)]
    with working("measuring"):
        audits = [
            _audit(loaded.select(name), fitted, attribute, threshold, rates)
            for name in loaded.features
        ]
        _write(
            out,
            audits,
            loaded,
            groups,
            notes,
            {
                "attribute": attribute,
                "features": list(loaded.features),
                "fold": fold,
                "threshold": threshold,
                "rates": list(rates),
                "score_range": source.score_range,
                "normalize": not source.raw,
                "model": model,
                "model_sha256": None if model is None else _sha256(model),
            },
            round(time.perf_counter() - started, 3),
        )
    store = Store.read(out)
    with progress_bars() as update:
        report = write_all(store, progress=update)
    paths = {name: str(path) for name, path in report.paths.items()}
    if report.missing:
        notes.append(report.missing)
    for text in notes:
        note(f"note: {text}")
    note(f"intervals: {INTERVAL_KIND}")
    if as_json:
        rows = [row._asdict() for each in audits for row in each.intervals()]
        where = {"report": paths["report"], "files": paths}
        print_json({**where, **audit_record(store), "audit": rows})
    else:
        _show(store)
        for name, path in paths.items():
            click.echo(f"{name}: {path}")


def _sha256(path: Path) -> str:
    from faircal.files import digest

    return digest(lambda feed: feed(path.read_bytes()))


def _audit(
    data: Dataset,
    model: Method | None,
    attribute: str | None,
    threshold: float | None,
    rates: tuple[float, ...],
) -> Audit:
    from faircal.auditing import audit

    output = None if model is None else model.apply(data)
    identity = data.images.identity
    people: dict[str, Any] = {}
    if identity is not None:
        people = {
            f"{side}_identity": identity.known(getattr(data.pairs, side))
            for side in ("left", "right")
        }
    return audit(
        genuine=data.genuine,
        score=data.scores if output is None else output.score,
        probability=data.pairs.probability if output is None else output.probability,
        groups=None if attribute is None else data.groups(attribute),
        threshold=threshold,
        rates=rates,
        score_range=data.score_range,
        dataset=data.name,
        feature=data.feature,
        attribute=attribute or "",
        method="" if model is None else model.name,
        **people,
    )


def _write(
    out: Path,
    audits: list[Audit],
    data: Dataset,
    groups: dict[str, Groups],
    notes: list[str],
    settings: dict[str, Any],
    wall_time: float,
) -> None:
    from faircal.curves import CURVES, as_table, write_curves
    from faircal.files import output_folder
    from faircal.results import (
        versions,
        write_clusters,
        write_intervals,
        write_results,
        write_run,
    )

    folder = output_folder(out)
    write_clusters(folder, [])  # of a benchmark that was here before
    write_results(folder, [row for audit in audits for row in audit.rows])
    write_intervals(folder, [row for audit in audits for row in audit.intervals()])
    write_curves(folder / CURVES, as_table(curve for audit in audits for curve in audit.curves))
    write_run(
        folder,
        {
            "kind": "audit",
            "dataset": data.name,
            "simulated": bool(data.provenance.get("simulated", False)),
            "pairs": len(data),
            "groups": {name: found.shares() for name, found in groups.items()},
            "people": audits[0].people,
            "attributes": list(groups),
            "interval_kind": audits[0].interval_kind,
            "settings": settings,
            "notes": notes,
            "data_sha256": data.hash(),
            "wall_time_s": wall_time,
            "versions": versions(),
        },
    )


def _show(store: Store) -> None:
    """Print the error rates of each feature, and then what they say in words."""
    from faircal.cli.options import out
    from faircal.report.findings import Measured, main_condition
    from faircal.report.words import summary

    results = store.results
    attribute, variant = results.attributes[0], results.variants[0]
    condition = main_condition(results, attribute)
    for feature in results.features:
        measured = Measured(store, attribute, feature, variant)
        if condition is not None:
            out().print(_table(measured, measured.point(condition)))
    for text in summary(store, attribute).who:
        click.echo(printable(text))


def _table(measured: Measured, point: Point) -> Table:
    """Return the error rates of all pairs and of each group; "too few" where they would mislead."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.report.findings import people
    from faircal.report.tables import percent
    from faircal.results import GLOBAL

    where = (
        f"at a global FPR of {percent(point.condition)}"
        if point.condition
        else f"at threshold {point.threshold:g}"
    )
    title = f"{measured.store.results.dataset}, {point.feature}: error rates {where}, percent"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(printable(title)))
    # Names come from the data: as text they can't be taken for markup.
    table.add_column(Text(printable(measured.attribute or "pairs")))
    for name in ("people", "genuine", "imposter", "FPR", "interval", "FNR", "interval", "KS"):
        table.add_column(name, justify="right")
    for group in (GLOBAL, *measured.groups):
        counts = measured.counts(group) or ("–", "–")
        cells = [str(people(measured.store).get(group, "–")), *map(str, counts)]
        for rates in point.rates.values():
            cells += _cells(rates.overall if group == GLOBAL else rates.groups[group])
        table.add_row(Text(printable(group)), *cells, _calibration(measured, group))
    return table


def _cells(rate: Rate) -> tuple[str, str]:
    if rate.enough:
        return _percent(rate.value), f"{_percent(rate.low)} to {_percent(rate.high)}"
    return "too few" if rate.too_few else "–", "–"


def _calibration(measured: Measured, group: str) -> str:
    value = measured.value("ks", group).mean
    too_few = value == value and measured.too_few("ks", group, "")
    return "too few" if too_few else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.2f}" if value == value else "–"
