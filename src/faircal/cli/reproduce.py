"""``faircal reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import note, progress_bars, show_report

if TYPE_CHECKING:
    from faircal.data import PairFiles


@click.command(
    cls=Command,
    examples={
        "RFW, without the methods that train networks": "faircal reproduce rfw rfw/ --no-training "
        "--out paper-rfw/",
        "All of it; hours without a GPU": "faircal reproduce bfw bfw/ --out paper-bfw/",
        "Embeddings that are called otherwise": "faircal reproduce rfw rfw/ "
        "--as webface=facenet-webface --as zoo=arcface --out paper-rfw/",
        "A quick look, on data that 'faircal simulate rfw-like' wrote": "faircal reproduce rfw "
        "simulated/ --no-training --clusters 20,100 --n-init 1 --out look/",
        "Go on with a run that was interrupted": "faircal reproduce rfw rfw/ --no-training "
        "--out paper-rfw/ --resume",
    },
    tables={
        "Files": {
            **options.PAIR_FILES,
            **options.TABLE_FILES,
            "agreement.md": "Each number beside the published one, and which of the paper's claims "
            "hold here.",
            "parts/": "Cells that are done; --resume goes on from them.",
        },
    },
    see=("import", "embed", "benchmark", "report", "how-to/reproduce", "how-to/trained-methods"),
)
@argument(
    "paper",
    metavar="{rfw|bfw|ijbc}",
    type=click.Choice(["rfw", "bfw", "ijbc"]),
    help="Which experiment of the paper: its features, folds, attribute and published numbers.",
)
@options.reads_data
@options.out
@Part.METHOD.option(
    "--methods",
    type=options.CommaList(),
    default=(),
    show_default="the paper's",
    help="Methods to run, with commas; 'faircal methods' lists them.",
)
@Part.METHOD.option(
    "--no-training",
    is_flag=True,
    help="Leave out the methods that train networks: hours without a GPU.",
)
@Part.METHOD.option(
    "--clusters",
    type=options.CommaList(int),
    default=(),
    show_default="the paper's twelve, 1 to 500",
    help="Numbers of clusters (K) of FairCal and FSN, with commas: each is run.",
)
@Part.METHOD.option(
    "--calibrators",
    type=options.CommaList(),
    default=(),
    show_default="beta,histogram,isotonic",
    help="Calibrators of FairCal, with commas: beta, histogram, isotonic, platt, temperature, "
    "spline.",
)
@Part.METHOD.option(
    "--n-init",
    type=click.IntRange(1),
    default=10,
    help="Starts of K-means, of which the best is taken.",
)
@options.features
@Part.MEASURE.option(
    "--attribute",
    show_default="the paper's",
    help="Attribute that makes the groups; a+b crosses two.",
)
@Part.DATA.option(
    "--as",
    "names",
    type=options.Assignment(text=True),
    multiple=True,
    metavar="FEATURE=NETWORK",
    show_default="by its name",
    help="Which of the paper's networks made a feature: facenet-vggface2, facenet-webface or "
    "arcface. May be repeated.",
)
@Part.OUTPUT.option(
    "--pictures",
    type=click.Path(),
    metavar="FOLDER|none",
    show_default="where they were imported from",
    help="Folder of the pictures, to show faces of some clusters; none shows no faces.",
)
@options.parameters
@options.jobs
@options.resume
@options.seed
@options.as_json
def command(
    paper: str,
    source: PairFiles,
    out: Path,
    no_training: bool,
    names: tuple[tuple[str, str], ...],
    parameters: tuple[tuple[str, str, Any], ...],
    pictures: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Repeat the paper's experiment, with every table and figure.

    Reads DATA, which 'faircal import' and 'faircal embed' made of RFW, BFW or IJB-C. Features,
    methods, calibrators, numbers of clusters and folds are the paper's. Every table and figure is
    written in its order, each number beside the published one, and which of the paper's claims hold
    here. Thresholds and rates are interpolated between scores, as the paper's are. On simulated
    data nothing is compared.

    Prints the main tables and the claims. Open report.html next. An interrupted run goes on with
    --resume.
    """
    from faircal.workflows.reproduce import reproduce

    settings = {
        of: {name: value for method, name, value in parameters if method == of}
        for of, _, _ in parameters
    }
    with progress_bars() as update:
        report = reproduce(
            paper,
            source,
            out,
            training=not no_training,
            networks=dict(names),
            parameters=settings,
            pictures=False if pictures == "none" else pictures,
            **how,
            progress=update,
            note=note,
        )
    show_report(report, as_json)
    if report.store.run["pictures"] is not None:
        note("note: the report shows faces of some clusters; --pictures none leaves them out")
    elif pictures != "none":
        note("note: the pictures are not at hand: no montages of clusters")
