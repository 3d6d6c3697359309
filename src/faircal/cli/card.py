"""``faircal card``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import check_file, json_option, print_json, printable


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
@option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="Markdown on standard output",
    help="File to write: a name that ends in .md or .html.",
)
@json_option
def command(model: Path, out: Path | None, as_json: bool) -> None:
    """Print the model card of a model file.

    Reads MODEL and prints all that it says of itself: what it is, what it is meant for, whom it was
    calibrated on, how it decides and with what measured rates, its limits, notes of the fit, where
    it is from, and the hash of the file. Nothing in a model file is ever executed.

    Read it before anybody else does. What it is meant for and further limits are said with
    --intended-use and --limit of 'faircal fit'.
    """
    from faircal._base.errors import ParameterError
    from faircal._base.files import write_text
    from faircal.methods import load_model
    from faircal.report.card import card_facts, card_html, card_markdown

    kinds = {".md": card_markdown, ".html": card_html}
    if out is not None:
        if out.suffix not in kinds:
            raise ParameterError(
                f"--out {out}: expected a name that ends in .md or .html; choose one"
            )
        if out.resolve() == model.resolve():
            raise ParameterError(f"--out {out}: is read by this command; choose another path")
        check_file(out)
    found = load_model(model)
    if out is not None:
        write_text(out, kinds[out.suffix](found, file=model))
    if as_json:
        print_json(card_facts(found, file=model))
    elif out is not None:
        click.echo(str(out))
    else:
        for line in card_markdown(found, file=model).splitlines():
            click.echo(printable(line))
