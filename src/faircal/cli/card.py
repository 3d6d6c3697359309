"""``faircal card``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import print_json, printable


@click.command(
    cls=Command,
    examples={
        "Read it": "faircal card faces.faircal",
        "As a page to pass on": "faircal card faces.faircal --out card.html",
        "For machines": "faircal card faces.faircal --json",
    },
    see=("fit", "classify", "threshold", "tutorials/production"),
)
@argument(
    "model",
    type=click.Path(path_type=Path),
    help="Model file, as 'faircal fit' and 'faircal classify fit' write it.",
)
@Part.OUTPUT.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="Markdown on standard output",
    help="File to write: a name that ends in .md or .html.",
)
@options.as_json
def command(model: Path, out: Path | None, as_json: bool) -> None:
    """Print the model card of a model file.

    Reads MODEL and prints all that it says of itself: what it is, what it is meant for, whom it was
    calibrated on, how it decides and with what measured rates, its limits, notes of the fit, where
    it is from, and the hash of the file. Nothing in a model file is ever executed.

    Read it before anybody else does. What it is meant for and further limits are said with
    --intended-use and --limit of 'faircal fit'.
    """
    from faircal.report.card import model_card

    card = model_card(model, out)
    if as_json:
        print_json(card.facts)
    elif out is not None:
        click.echo(str(out))
    else:
        for line in card.markdown.splitlines():
            click.echo(printable(line))
