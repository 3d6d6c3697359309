"""``faircal import``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import (
    attributes_option,
    check_folder,
    json_option,
    level_option,
    note,
    print_json,
    progress_bars,
    seed_option,
)

if TYPE_CHECKING:
    from faircal.importing import Import

_no_pictures = click.option(
    "--no-pictures",
    is_flag=True,
    help="Import the pairs alone: don't look for the pictures.",
)
_name = click.option("--name", default=None, help="The dataset's name  [default: the source's]")
_drop_known_faults = click.option(
    "--drop-known-faults", is_flag=True, help="Drop what is known to be faulty."
)


@click.group(epilog="Example: faircal import rfw ~/RFW --out rfw/", no_args_is_help=False)
def command() -> None:
    """Make a dataset folder from data in its owners' layout.

    What can't be used (a picture that is not there, a failure) is dropped, counted and listed; what
    is malformed is an error. Then run 'faircal embed', unless the data brings scores.
    """


def _layout(example: str, *options: Callable[..., Any]) -> Callable[..., click.Command]:
    """Make a command of a function that takes SOURCE and options and gives an `Import`."""

    def decorate(read: Callable[..., Import]) -> click.Command:
        def run(source: Path, folder: Path, as_json: bool, **rest: Any) -> None:
            from faircal.files import require_new

            check_folder(folder)
            require_new(folder)
            with progress_bars() as progress:
                found = read(source, progress=progress, **rest)
                found.save(folder)
            _show(found, folder, as_json)

        decorated: Any = run
        for option in reversed(options):
            decorated = option(decorated)
        decorated = json_option(decorated)
        decorated = click.option(
            "--out",
            "folder",
            required=True,
            type=click.Path(path_type=Path),
            help="Folder to make.",
        )(decorated)
        decorated = click.argument("source", type=click.Path(path_type=Path))(decorated)
        return command.command(
            read.__name__, help=read.__doc__, epilog=f"Example: faircal import {example}"
        )(decorated)

    return decorate


def _show(found: Import, folder: Path, as_json: bool) -> None:
    for text in found.notes:
        note(text)
    if as_json:
        print_json({"folder": str(folder), **found.counts, "notes": found.notes})
        return
    images = f"{found.counts['images']:,} images"
    pairs = "no pairs: make them with 'faircal pairs'"
    if "pairs" in found.counts:
        pairs = f"{found.counts['pairs']:,} pairs ({found.counts['genuine']:,} genuine)"
    note(f"{found.name}: {images}, {pairs}")
    click.echo(str(folder))


@_layout(
    "rfw ~/RFW --out rfw/",
    click.option(
        "--folds",
        type=click.Choice(["5", "10"]),
        default="5",
        show_default=True,
        help="5: consecutive splits joined in twos, as in the paper; 10: as shipped.",
    ),
    _no_pictures,
    _drop_known_faults,
)
def rfw(source: Path, folds: str, no_pictures: bool, **rest: Any) -> Import:
    """RFW, as shipped.

    SOURCE is the folder with test/txts/{E}/{E}_pairs.txt and test/data/{E}/{id}/{id}_0001.jpg.
    Images are keyed by ethnicity, person and number: person ids repeat over ethnicities.
    """
    from faircal.importing import read_rfw

    return read_rfw(source, native=folds == "10", pictures=not no_pictures, **rest)


@_layout(
    "bfw ~/BFW --out bfw/",
    click.option(
        "--score",
        default=None,
        metavar="COLUMN",
        help="Take over ready-made scores (vgg16, resnet50, senet50); needs no pictures.",
    ),
    _no_pictures,
    _drop_known_faults,
)
def bfw(source: Path, no_pictures: bool, **rest: Any) -> Import:
    """BFW, as shipped.

    SOURCE is bfw-v0.1.5-datatable.csv (or .parquet), or the folder with it and the pictures.
    Attributes are the owners': att (eight groups, the default), e (B, A, W, I) and g (F, M).
    """
    from faircal.importing import read_bfw

    return read_bfw(source, pictures=not no_pictures, **rest)


@_layout(
    "ijbc ~/IJB-C --protocol covariate --out ijbc/",
    click.option(
        "--protocol",
        default="covariate",
        show_default=True,
        help="covariate (one picture a template) or 1:1 (templates of several).",
    ),
    _no_pictures,
    seed_option,
)
def ijbc(source: Path, no_pictures: bool, **rest: Any) -> Import:
    """IJB-C, its 1:1 protocols.

    SOURCE is the folder with protocols/ and images/. Attributes are skin_tone and gender.
    Subjects are dealt to five folds, stratified by both; a
    pair of two folds is dropped. Any number of pairs is read in bounded memory.
    """
    from faircal.importing import read_ijbc

    return read_ijbc(source, pictures=not no_pictures, **rest)


@_layout("lfw ~/LFW --attributes people.csv --out lfw/", attributes_option, _no_pictures)
def lfw(source: Path, no_pictures: bool, **rest: Any) -> Import:
    """LFW, View 2's ten folds.

    SOURCE is the folder with pairs.txt, people.txt (optional) and lfw/. With people.txt all
    images are listed with their person's fold, for 'faircal pairs'.
    """
    from faircal.importing import read_lfw

    return read_lfw(source, pictures=not no_pictures, **rest)


@_layout(
    "folder ~/photos --attributes people.csv --out faces/", attributes_option, level_option, _name
)
def folder(source: Path, **rest: Any) -> Import:
    """A folder of photos, a sub-folder each person.

    There are no pairs yet: 'faircal pairs' makes them.
    """
    from faircal.importing import read_folder

    return read_folder(source, **rest)


@_layout("bob scores-dev --attributes people.csv --out scores/", attributes_option, _name)
def bob(source: Path, **rest: Any) -> Import:
    """A score file of bob, four columns or five.

    The scores are taken over; pictures are not needed.
    """
    from faircal.importing import read_bob

    return read_bob(source, **rest)
