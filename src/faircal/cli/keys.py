"""``faircal keys``."""

from __future__ import annotations

import click

from faircal.cli import options
from faircal.cli.help import Group, Part, argument
from faircal.cli.printing import note, print_json, print_table, printable

_SEE = ("serve", "how-to/service")
_SCOPES = {
    "verify": "Verify, identify, tell what turned out of a pair.",
    "enrol": "Enrol, list and delete templates.",
    "admin": "Everything; alone reads the audit trail and has the model read again.",
}


@click.group(
    cls=Group,
    examples={
        "A key that may verify and enrol": "faircal keys add gate-4 --keys keys.json "
        "--scope verify,enrol",
        "Whose keys there are": "faircal keys list --keys keys.json",
        "Take one away": "faircal keys remove gate-4 --keys keys.json",
    },
    tables={"Scopes": _SCOPES},
    see=_SEE,
)
def command() -> None:
    """Make, list and remove API keys of the service.

    The file holds names, scopes and hashes of keys; a key itself is printed once, when it is made.
    'faircal serve --keys FILE' reads it, and sees a change by itself while it runs.
    """


_file = Part.KEYS.option(
    "--keys",
    "path",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="File of keys that the service is given.",
)
_name = argument("name", help="Name of the key, for lists and the audit trail, such as gate-4.")


@command.command(
    examples={
        "A key that may only verify": "faircal keys add gate-4 --keys keys.json",
        "One that may also enrol, into a variable": "DESK=$(faircal keys add desk "
        "--keys keys.json --scope verify,enrol)",
        "One for everything": "faircal keys add owner --keys keys.json --scope admin",
    },
    tables={"Scopes": _SCOPES},
    see=_SEE,
)
@_name
@_file
@Part.KEYS.option(
    "--scope",
    default="verify",
    metavar="LIST",
    help="What the key is good for, with commas: verify, enrol, admin (see Scopes).",
)
@options.as_json
def add(name: str, path: str, scope: str, as_json: bool) -> None:
    """Make a key and print it.

    Writes the key's name, scopes and hash to the file, which is made where it is not there. The key
    goes to standard output, this once only: keep it safe. A request carries it in the header
    'Authorization: Bearer KEY'.
    """
    from faircal.production.serving.access import KeyRing

    scopes = [word.strip() for word in scope.split(",") if word.strip()]
    token = KeyRing.at(path).add(name, scopes)
    if as_json:
        print_json({"name": name, "scopes": scopes, "key": token, "file": path})
    else:
        click.echo(token)
    note(f"{printable(name)} may {', '.join(scopes)}; the key is shown this once only")


@command.command(
    "list",
    examples={
        "As a table": "faircal keys list --keys keys.json",
        "For machines": "faircal keys list --keys keys.json --json",
    },
    see=_SEE,
)
@_file
@options.as_json
def list_(path: str, as_json: bool) -> None:
    """List the keys of a file.

    Reads the file and prints names, scopes, and when keys were made. The keys themselves are not in
    it. Writes nothing.
    """
    from faircal.production.serving.access import SCOPES, KeyRing

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
    print_table(
        ["name", "scopes", "created"],
        [(str(row["name"]), ", ".join(row["scopes"]), str(row["created"])) for row in rows],
        left=range(3),
    )


@command.command(
    examples={
        "It stops working at once": "faircal keys remove gate-4 --keys keys.json",
    },
    see=_SEE,
)
@_name
@_file
def remove(name: str, path: str) -> None:
    """Remove a key.

    Takes the key out of the file. A service that runs with the file refuses it from then on.
    """
    from faircal.production.serving.access import KeyRing

    KeyRing.load(path).remove(name)
    note(f"{printable(name)}: removed from {path}")
