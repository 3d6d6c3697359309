"""``faircal methods``."""

from __future__ import annotations

import click

from faircal.cli.help import Command
from faircal.cli.options import json_option, print_json, print_table


@click.command(
    cls=Command,
    examples={
        "The table": "faircal methods",
        "For machines": "faircal methods --json",
        "With a method of your own": "faircal --plugin mine.py methods",
    },
    tables={
        "Columns": {
            "improves accuracy": "Whether the paper claims that it gives better accuracy than the "
            "raw score.",
            "fairly calibrated": "Whether it claims probabilities that hold in every group.",
            "predictive equality": "Whether it claims more equal false-positive rates.",
            "no attribute to fit": "Whether it is fitted without knowing groups.",
            "no attribute to apply": "Whether it is used without knowing groups.",
            "no training": "Whether it trains no network.",
            "extra": "What to install for it: pip install 'faircal[EXTRA]'. Empty: nothing.",
        },
    },
    see=(
        "fit",
        "benchmark",
        "choose",
        "how-to/choose",
        "explanation/rivals",
        "how-to/trained-methods",
        "tutorials/own-method",
    ),
)
@json_option
def command(as_json: bool) -> None:
    """List the methods and their properties.

    The paper's table of properties: name and title of each method, what the paper claims for it,
    and what it declares to need. The name is what --method and --methods take. Reads and writes
    nothing.
    """
    from rich import box
    from rich.table import Table

    from faircal.methods import properties

    rows = properties()
    if as_json:
        print_json(rows)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0]:
        table.add_column(
            name.replace("_", " "),
            justify="left" if isinstance(rows[0][name], str) else "center",
            no_wrap=name == "method",
        )
    for row in rows:
        table.add_row(
            *(
                value if isinstance(value, str) else "yes" if value else "no"
                for value in row.values()
            )
        )
    print_table(table)
