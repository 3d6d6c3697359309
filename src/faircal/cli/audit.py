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
    print_json,
    rates_option,
    reads_data,
    working,
)

if TYPE_CHECKING:
    from faircal.auditing import Audit
    from faircal.data import Dataset, Groups
    from faircal.methods import Method


@click.command(
    epilog="Example: faircal audit scores.csv --attribute ethnicity --threshold 0.4 --out audit/"
)
@reads_data
@click.option(
    "--attribute",
    default=None,
    help="Attribute that makes the groups; a+b crosses  [default: all crossed]",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
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

    A table may carry a column probability beside its scores; it is then measured too. Writes
    results.csv, intervals.csv, run.json and report.html. Intervals are pair-wise Wilson intervals:
    they take pairs as independent and are too narrow where pairs share people.
    """
    from faircal.auditing import INTERVAL_KIND
    from faircal.methods import load_model
    from faircal.report import write_report

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
            {"threshold": threshold, "rates": list(rates), "model": model},
            round(time.perf_counter() - started, 3),
        )
    page = write_report(out)
    for text in notes:
        note(f"note: {text}")
    note(f"intervals: {INTERVAL_KIND}")
    if as_json:
        print_json(
            {
                "report": str(page),
                "audit": [a._asdict() for each in audits for a in each.intervals()],
            }
        )
    else:
        for each in audits:
            _show(each, threshold, rates)
        click.echo(f"report: {page}")


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
    from faircal.results import versions, write_intervals, write_results, write_run

    folder = output_folder(out)
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


def _show(audit: Audit, threshold: float | None, rates: tuple[float, ...]) -> None:
    from rich import box
    from rich.table import Table

    from faircal.cli.options import out
    from faircal.results import GLOBAL

    under = "" if threshold is not None else f"global_fpr={rates[-1]:g}"
    where = (
        f"at threshold {threshold:g}"
        if threshold is not None
        else f"at a global FPR of {100 * rates[-1]:g} %"
    )
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=f"{audit.dataset}, {audit.feature}: error rates {where}, percent",
    )
    for name in (
        audit.attribute or "pairs",
        "people",
        "genuine",
        "imposter",
        "FPR",
        "interval",
        "FNR",
        "interval",
        "KS",
    ):
        table.add_column(name, justify="right" if name != (audit.attribute or "pairs") else "left")
    measured = {found.metric for found in audit.measures}
    for group in (GLOBAL, *audit.groups):
        genuine, imposter = audit.trials[group]
        cells = [
            "–" if audit.people is None else str(audit.people[group]),
            str(genuine),
            str(imposter),
        ]
        for metric in ("fpr", "fnr"):
            low, high = audit.interval(metric, group=group, condition=under)
            value = audit.value(metric, group=group, condition=under)
            cells += [
                _percent(value),
                f"{_percent(low)} to {_percent(high)}" if low == low else "–",
            ]
        cells.append(_percent(audit.value("ks", group=group)) if "ks" in measured else "–")
        table.add_row(group, *cells)
    out().print(table)


def _percent(value: float) -> str:
    return f"{100 * value:.2f}" if value == value else "–"
