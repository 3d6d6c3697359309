"""``faircal audit --label-noise``: the option, the file it leaves, and what is printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Part, option
from faircal.cli.options import print_table, printable

if TYPE_CHECKING:
    from rich.table import Table

    from faircal.evaluation.audit.label_noise import LabelNoise, NoiseRow

label_noise_option = option(
    "--label-noise",
    part=Part.MEASURE,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    show_default="labels are taken as right",
    help="Show how far groups' figures move when this share of the labels of groups is wrong, such "
    "as 0.05.",
)


def check_in_memory(rate: float | None, streamed: bool) -> None:
    """Raise where labels are to be mixed up of pairs that are only counted."""
    from faircal._base.errors import ParameterError

    if rate is not None and streamed:
        raise ParameterError(
            "--label-noise: needs all pairs in memory, and these are counted part by part; "
            "leave --stream and --resume out, or audit a part of the pairs (--fold)"
        )


def write(folder: Path, found: Sequence[LabelNoise]) -> None:
    """Write ``label_noise.csv``; remove that of an earlier audit where there is nothing to say."""
    from faircal.evaluation.audit.label_noise import write_noise

    write_noise(folder, [row for each in found for row in each.rows])


def record(found: Sequence[LabelNoise]) -> dict[str, Any]:
    """Return what ``--json`` prints of it."""
    rows = [row._asdict() for each in found for row in each.rows]
    return {"label_noise": rows} if rows else {}


def show(found: Sequence[LabelNoise]) -> None:
    """Print, for each feature, how far deviations over groups move, and how to read that."""
    from faircal.evaluation.audit.label_noise import LABEL_NOISE

    for each in found:
        print_table(_table(each), names=2, blocks=[1, 2, 1])
        click.echo(
            "'as labelled' would show as the next two columns say if so many labels were made "
            "wrong; 'if so now' is what the true groups show if so many are wrong already."
        )
        click.echo(f"All values are in {LABEL_NOISE}.")


def _table(found: LabelNoise) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from faircal.evaluation.audit.label_noise import over_groups

    shown = over_groups(found.rows)
    first = shown[0] if shown else None
    where = ", ".join(filter(None, (first.feature, first.attribute))) if first else ""
    title = f"{where}: with {100 * found.rate:g} % of labels wrong, percent"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(printable(title)))
    table.add_column("over groups")
    table.add_column("at")
    for name in ("as labelled", "would show as", "range of 95 %", "if so now"):
        table.add_column(name, justify="right")
    for row in shown:
        table.add_row(
            row.name,
            row.condition or ("threshold" if row.of_rate else ""),
            _percent(row.value),
            _percent(row.median),
            f"{_percent(row.low)} to {_percent(row.high)}",
            _taken_back(row),
        )
    if any(row.corrected == row.corrected and not row.reliable for row in shown):
        table.caption = "? not to be relied on: so much noise can't be taken back from these data"
    return table


def _taken_back(row: NoiseRow) -> str:
    """Return what the true groups would show: a range where it can't be known exactly."""
    doubt = row.corrected == row.corrected and not row.reliable
    return row.taken_back(_percent) + (" ?" if doubt else "")


def _percent(value: float) -> str:
    return f"{100 * value:.3f}" if value == value else "–"
