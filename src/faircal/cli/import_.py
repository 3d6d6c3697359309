"""``faircal import``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Group, Part, argument
from faircal.cli.printing import note, print_json, progress_bars

if TYPE_CHECKING:
    from faircal.data.importers import Import

_no_pictures = Part.DATA.option(
    "--no-pictures",
    "pictures",
    flag_value=False,
    default=True,
    show_default=False,
    help="Import the pairs alone: don't look for the pictures. Without it pairs whose picture is "
    "not there are dropped.",
)
_name = Part.OUTPUT.option(
    "--name",
    show_default="that of SOURCE",
    help="What the dataset is called in reports.",
)
_FILES = {
    "DIR/images.*": "Images: image_id, identity, attributes (.csv, or .parquet where there are "
    "many).",
    "DIR/pairs.*": "Pairs: left, right, genuine, fold, and score where the data brings scores. Not "
    "of layout folder.",
    "DIR/dataset.json": "Name, where it is from, notes, the default attribute.",
    "DIR/dropped.csv": "Images that were dropped, with the reason, where there are any.",
}
_SEE = ("embed", "pairs", "check", "how-to/real-data", "reference/formats")


@click.group(
    cls=Group,
    examples={
        "RFW: pairs, folds and groups": "faircal import rfw ~/RFW --out rfw/",
        "Scores that BFW's owners ship": "faircal import bfw ~/BFW --score vgg16 --out bfw/",
        "Photos of your own, a sub-folder for each person": "faircal import folder ~/photos "
        "--attributes people.csv --out faces/",
    },
    tables={"Files": _FILES},
    see=_SEE,
)
def command() -> None:
    """Make a dataset folder from data in its owners' layout.

    Pairs, folds, identities and attributes are read and written in one form, which all other
    commands take. Pictures stay where they are. What can't be used (a picture that is not there, a
    failure) is dropped, counted and listed; what is malformed is an error that names the line. The
    folder appears whole or not at all.

    Next, 'faircal embed' makes vectors of the pictures, unless the data brings scores; then
    'faircal check' says what is in the folder.
    """


def _layout(
    source: str, examples: Mapping[str, str], *more: Callable[..., Any]
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a command that reads SOURCE by the function of a layout: of ``rfw``, ``read_rfw``.

    The function that is decorated gives the name and the help.
    """
    of_all = (
        argument("source", type=click.Path(path_type=Path), help=source),
        Part.OUTPUT.option(
            "--out",
            "folder",
            required=True,
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Dataset folder to make. One that is there and not empty is an error.",
        ),
    )

    def decorate(layout: Callable[[], None]) -> click.Command:
        def run(source: Path, folder: Path, as_json: bool, **how: Any) -> None:
            from faircal._base.files import check_output, require_new
            from faircal.data import importers

            check_output(folder, folder=True)
            require_new(folder)
            read = getattr(importers, f"read_{layout.__name__}")
            with progress_bars() as progress:
                dataset = read(source, progress=progress, **how)
                dataset.save(folder)
            _show(dataset, folder, as_json)

        decorated = options.combined(*of_all, *more, options.as_json)(run)
        page = {"examples": examples, "tables": {"Files": _FILES}, "see": _SEE}
        return command.command(layout.__name__, help=layout.__doc__, **page)(decorated)

    return decorate


def _show(dataset: Import, folder: Path, as_json: bool) -> None:
    for text in dataset.notes:
        note(text)
    if as_json:
        print_json({"folder": str(folder), **dataset.counts, "notes": dataset.notes})
        return
    images = f"{dataset.counts['images']:,} images"
    pairs = "no pairs: make them with 'faircal pairs'"
    if "pairs" in dataset.counts:
        pairs = f"{dataset.counts['pairs']:,} pairs ({dataset.counts['genuine']:,} genuine)"
    note(f"{dataset.name}: {images}, {pairs}")
    click.echo(str(folder))


@_layout(
    "Folder with test/txts/{E}/{E}_pairs.txt and test/data/{E}/{id}/{id}_0001.jpg, {E} being "
    "African, Asian, Caucasian, Indian.",
    {
        "With the paper's five folds": "faircal import rfw ~/RFW --out rfw/",
        "With the ten splits as shipped, without looking for pictures": "faircal import rfw ~/RFW "
        "--folds 10 --no-pictures --out rfw10/",
    },
    Part.DATA.option(
        "--folds",
        type=click.Choice([5, 10]),
        default=5,
        help="5: consecutive splits joined in twos, as in the paper; 10: as shipped.",
    ),
    _no_pictures,
)
def rfw() -> None:
    """Import RFW, as shipped.

    Reads the pair lists of four ethnicities and looks for the pictures. An image is keyed by
    ethnicity, person and number, since person ids repeat over ethnicities. The attribute is
    ethnicity. Next: 'faircal embed SOURCE --network N --out DIR'.
    """


@_layout(
    "bfw-v0.1.5-datatable.csv (or .parquet), or the folder with it and the pictures.",
    {
        "Pairs and pictures": "faircal import bfw ~/BFW --out bfw/",
        "Scores that the owners ship, without pictures": "faircal import bfw ~/BFW --score vgg16 "
        "--out bfw-vgg16/",
    },
    Part.DATA.option(
        "--score",
        metavar="COLUMN",
        show_default="no scores",
        help="Column of ready-made scores to take over: vgg16, resnet50 or senet50. Then no "
        "pictures are needed.",
    ),
    _no_pictures,
)
def bfw() -> None:
    """Import BFW, as shipped.

    Reads the owners' table of pairs and looks for the pictures it names. Attributes are the
    owners': att (eight groups, the default), e (B, A, W, I) and g (F, M). The folds are theirs. A
    pickle is refused, since it can run code. Next: 'faircal embed', or with --score at once
    'faircal audit' and 'faircal benchmark'.
    """


@_layout(
    "Folder with protocols/ and images/.",
    {
        "Pairs, folds and groups": "faircal import ijbc ~/IJB-C --out ijbc/",
        "The pairs alone": "faircal import ijbc ~/IJB-C --no-pictures --out ijbc/",
    },
    _no_pictures,
    options.seed,
)
def ijbc() -> None:
    """Import IJB-C, its 1:1 covariate protocol.

    Any number of pairs is read in bounded memory. Attributes are skin_tone and gender. IJB-C has no
    folds: subjects are dealt to five, stratified by both attributes; a pair of two folds is
    dropped, about four in five of the imposters. Next: 'faircal embed SOURCE --network N
    --out DIR'.
    """


@_layout(
    "Folder with pairs.txt, people.txt (optional) and the pictures in lfw/.",
    {
        "View 2, with attributes from a table": "faircal import lfw ~/LFW --attributes people.csv "
        "--out lfw/",
        "The pairs alone": "faircal import lfw ~/LFW --no-pictures --out lfw/",
    },
    options.attributes,
    _no_pictures,
)
def lfw() -> None:
    """Import LFW, View 2's ten folds.

    Reads the 6,000 pairs of View 2. With people.txt all images are listed with their person's fold,
    so that 'faircal pairs' can make more pairs in the same folds. LFW brings no attributes:
    --attributes adds them. Next: 'faircal embed SOURCE --network N --out DIR'.
    """


@_layout(
    "Folder with a sub-folder of pictures for each person.",
    {
        "With attributes from a table": "faircal import folder ~/photos --attributes people.csv "
        "--out faces/",
        "Where each person's folder has folders of its own (ann/2019/1.jpg)": "faircal import "
        "folder ~/photos --level 1 --out faces/",
    },
    options.attributes,
    options.level,
    _name,
)
def folder() -> None:
    """Import a folder of photos, a sub-folder each person.

    An image's id is its path, its person the folder it lies in. There are no pairs yet: 'faircal
    embed' makes vectors, then 'faircal pairs' makes pairs. 'faircal embed' can also be given the
    photos at once, without an import.
    """


@_layout(
    "Score file: lines of claimed id, model label (where there are five columns), real id, probe "
    "label, score; or the CSV that 'bob bio pipeline simple' writes.",
    {
        "With attributes from a table": "faircal import bob scores-dev --attributes people.csv "
        "--out scores/",
        "Under another name": "faircal import bob scores-dev --name vendor-7 --out scores/",
    },
    options.attributes,
    _name,
)
def bob() -> None:
    """Import a score file of bob: four columns, five, or CSV.

    The scores are taken over; pictures are not needed. A score that is no number (a failure) drops
    the pair. Of a CSV, columns that both sides have (probe_gender and bio_ref_gender) become
    attributes, and presentation attacks are dropped. Next: 'faircal audit DIR', with --score-range
    where scores leave -1 to 1.
    """
