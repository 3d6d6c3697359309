"""``faircal methods``."""

from __future__ import annotations

import click

from faircal.cli.options import json_option, out, print_json


@click.command(epilog="Example: faircal methods")
@json_option
def command(as_json: bool) -> None:
    """List the methods with the paper's table of properties.

    The first three columns are what the paper claims for a method; the others follow from what it
    declares to need. The last names the extra to install: pip install 'faircal[EXTRA]'.
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
    out().print(table)
