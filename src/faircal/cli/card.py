"""``faircal card``."""

from __future__ import annotations

from pathlib import Path

import click

from faircal.cli.options import check_file, json_option, print_json, printable


@click.command(epilog="Example: faircal card faces.faircal --out card.html")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help=".md or .html file to write  [default: Markdown on standard output]",
)
@json_option
def command(model: Path, out: Path | None, as_json: bool) -> None:
    """Print the model card of MODEL: all that the file says of itself.

    What it is, what it is meant for, whom it was calibrated on, how it decides and with what
    measured rates, its limits, notes of the fit, where it is from, and the hash of the file. For
    models of 'faircal fit' and of 'faircal classify fit'.
    """
    from faircal.errors import ParameterError
    from faircal.files import write_text
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
