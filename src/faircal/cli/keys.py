"""``faircal keys``."""

from __future__ import annotations

import click

from faircal.cli.options import json_option, note, out, print_json, printable


@click.group(
    epilog="Example: faircal keys add gate-4 --keys keys.json --scope verify,enrol",
)
def command() -> None:
    """Make, list and remove API keys of the service.

    The file holds names, scopes and hashes; a key is printed once, when it is made. A service that
    runs sees a change of the file by itself.
    """


_file = click.option(
    "--keys", "path", required=True, metavar="FILE", help="File of keys that the service is given."
)


@command.command(epilog="Example: faircal keys add gate-4 --keys keys.json --scope verify,enrol")
@click.argument("name")
@_file
@click.option(
    "--scope",
    default="verify",
    show_default=True,
    metavar="LIST",
    help="What the key is good for: verify, enrol, admin (everything), with commas between.",
)
@json_option
def add(name: str, path: str, scope: str, as_json: bool) -> None:
    """Make a key and print it; keep it safe, it can't be shown again."""
    from faircal.serving.keys import KeyRing

    scopes = [word.strip() for word in scope.split(",") if word.strip()]
    token = KeyRing.at(path).add(name, scopes)
    if as_json:
        print_json({"name": name, "scopes": scopes, "key": token, "file": path})
    else:
        click.echo(token)
    note(f"{printable(name)} may {', '.join(scopes)}; the key is shown this once only")


@command.command("list", epilog="Example: faircal keys list --keys keys.json")
@_file
@json_option
def list_(path: str, as_json: bool) -> None:
    """List the keys of a file: names, scopes, when they were made."""
    from rich import box
    from rich.table import Table

    from faircal.serving.keys import SCOPES, KeyRing

    rows = [
        {
            "name": key.name,
            "scopes": [scope for scope in SCOPES if scope in key.scopes],
            "created": key.created,
        }
        for key in KeyRing.load(path).keys
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("name", "scopes", "created", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(printable(str(row["name"])), ", ".join(row["scopes"]), str(row["created"]))
    out().print(table, markup=False)


@command.command(epilog="Example: faircal keys remove gate-4 --keys keys.json")
@click.argument("name")
@_file
def remove(name: str, path: str) -> None:
    """Remove a key: it stops working at once."""
    from faircal.serving.keys import KeyRing

    KeyRing.load(path).remove(name)
    note(f"{printable(name)}: removed from {path}")
