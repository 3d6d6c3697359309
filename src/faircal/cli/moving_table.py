"""What ``faircal benchmark`` prints of labelled pairs of another population: how many it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import out, print_table, printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.evaluation.benchmark.restoring import Restoring


def records(folder: Path) -> list[dict[str, Any]]:
    """Return each curve for machines: KS by labelled pairs, and how many are enough."""
    return [
        {
            "feature": curve.feature,
            "method": curve.method,
            "calibrator": curve.calibrator,
            "clusters": curve.clusters,
            "attribute": curve.attribute,
            "strategy": curve.strategy,
            "metric": metric,
            "points": [
                {"labels": labels, "people": at.people, "value": at.mean, "error": at.error}
                for labels, at in curve.points.items()
            ],
            "enough": curve.enough,
            "gains": curve.gains,
        }
        for metric, curves in _curves(folder).items()
        for curve in curves
    ]


def show(folder: Path, source: str) -> None:
    """Print KS by labelled pairs, of all pairs and as mean over groups, and what follows."""
    from faircal.report.tables import method_title

    console = out()
    both = _curves(folder)
    for metric, curves in both.items():
        over = "of all pairs" if metric == "ks" else "as mean over groups"
        if curves:
            click.echo(f"Calibration error (KS, %) {over}, by labelled pairs of the new people")
            print_table(_table(curves), names=2)
    key = (
        f"0 labelled pairs: the model of {printable(source)} as it is. recalibrated: one map on "
        "top of it; fresh: fitted on the labelled pairs alone (– where that cannot be done). Means "
        "over folds ± standard error. enough: the fewest that are as good as the most, within two "
        "standard errors of the difference, 0 where none gain anything; a rough measure, for folds "
        "share labelled pairs."
    )
    console.print(key, soft_wrap=not console.is_terminal, markup=False, end="\n\n")
    for curve in both["ks"]:
        if 0 in curve.points:
            text = f"{_named(method_title(curve.method), curve, both['ks'])}: {words(curve)}"
            console.print(printable(text), soft_wrap=not console.is_terminal, markup=False)
    click.echo()


def words(curve: Restoring) -> str:
    """Say how many labelled pairs it takes, and what is left then.

    Examples
    --------
    >>> from faircal.evaluation.benchmark.restoring import Point, Restoring
    >>> points = {0: Point(0, {"1": 0.2, "2": 0.21}), 100: Point(9, {"1": 0.01, "2": 0.02})}
    >>> words(Restoring("f", "m", "", "", "", "recalibrated", points))
    'still better with all 100 labelled pairs (9 people): 20.5 % as it is, 1.5 % with 100.'
    """
    first, most, enough = min(curve.points), curve.most, curve.enough
    start, last = (_percent(curve.points[labels].mean) for labels in (first, most))
    change = f"{start} {f'with {first}' if first else 'as it is'}, {last} with {most}."
    if first == 0 and not curve.gains:
        text = f"labelled pairs gain nothing that can be told: {change}"
        least = curve.as_good
        return text + (f" If any are used, use about {least} or more." if least else "")
    people = curve.points[enough].people
    whose = "" if math.isnan(people) else f" ({people:.0f} people)"
    how = "still better with all" if enough == most > first else "restored with about"
    return f"{how} {enough} labelled pairs{whose}: {change}"


def _curves(folder: Path) -> dict[str, list[Restoring]]:
    from faircal.evaluation.benchmark.moving import read_moved
    from faircal.evaluation.benchmark.restoring import restoring
    from faircal.metrics.results import ALL, GLOBAL

    rows = read_moved(folder)
    return {"ks": restoring(rows, "ks", GLOBAL), "ks_mean": restoring(rows, "ks_mean", ALL)}


def _table(curves: list[Restoring]) -> Table:
    from rich import box
    from rich.table import Table

    from faircal.report.tables import method_title

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    steps = sorted({labels for curve in curves for labels in curve.points})
    for labels in steps:
        table.add_column(f"{labels}", justify="right", no_wrap=True)
    table.add_column("enough", justify="right", no_wrap=True)
    for curve in curves:
        name = printable(_named(method_title(curve.method), curve, curves))
        table.add_row(name, curve.strategy, *_cells(curve, steps), str(curve.enough))
    return table


def _cells(curve: Restoring, steps: list[int]) -> Iterator[str]:
    for labels in steps:
        at = curve.points.get(labels)
        yield "–" if at is None else f"{100 * at.mean:.2f} ± {100 * at.error:.2f}"


def _named(title: str, curve: Restoring, curves: list[Restoring]) -> str:
    """Return a method's title with what tells it apart from others of the table."""
    said = [title]
    for field in ("feature", "calibrator", "clusters", "attribute"):
        values = {getattr(one, field) for one in curves if one.method == curve.method}
        if len(values) > 1:
            said.append(f"{'K = ' if field == 'clusters' else ''}{getattr(curve, field)}")
    return ", ".join(said)


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
