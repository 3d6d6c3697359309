"""``faircal methods``."""

from __future__ import annotations

import click

from faircal.cli import options
from faircal.cli.help import Command
from faircal.cli.printing import print_json, print_table


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
            "cohort": "Whether it compares with a cohort (--cohort): required or optional.",
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
@options.as_json
def command(as_json: bool) -> None:
    """List the methods and their properties.

    The paper's table of properties: name and title of each method, what the paper claims for it,
    and what it declares to need. The name is what --method and --methods take. Reads and writes
    nothing.
    """
    from faircal.methods import properties

    rows = properties()
    if as_json:
        print_json(rows)
        return
    words = [i for i, value in enumerate(rows[0].values()) if isinstance(value, str)]
    print_table(
        [name.replace("_", " ") for name in rows[0]],
        [[v if isinstance(v, str) else "yes" if v else "no" for v in row.values()] for row in rows],
        left=words,
    )
