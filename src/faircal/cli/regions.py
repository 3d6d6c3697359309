"""``faircal regions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part
from faircal.cli.printing import note, notes, print_json, printable, progress_bars

if TYPE_CHECKING:
    from faircal.data import PairFiles


@click.command(
    cls=Command,
    examples={
        "Of a model": "faircal regions faces/ --model faces.faircal --out regions/",
        "At the threshold in use, with pictures as examples": "faircal regions faces/ "
        "--model faces.faircal --threshold 0.9 --pictures photos/ --out regions/",
        "Of the plain cosine, stricter, into the folder of an audit": "faircal regions faces/ "
        "--false-discoveries 0.01 --out audit/",
    },
    tables={
        "Files": {
            "DIR/regions.csv": "Each region: people, pairs, rates with intervals, whether it was "
            "found, example images.",
            "DIR/regions.json": "Settings, versions, hash of the data, what is said.",
            "DIR/figures/": "A map of the regions, their FPR, their calibration. Figures need the "
            "extra figures.",
        },
    },
    see=("audit", "report", "threshold", "how-to/regions"),
)
@options.reads_data
@Part.MEASURE.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="the scores of DATA",
    help="Model file to ask; people must not be those it was fitted on.",
)
@options.out
@Part.MEASURE.option(
    "--rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    help="False-positive rate of all pairs at which to look, as a share.",
)
@Part.MEASURE.option(
    "--threshold",
    type=float,
    show_default="where --rate is met",
    help="Threshold at which to look, on the scores, instead of a rate.",
)
@Part.MEASURE.option(
    "--false-discoveries",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    help="Share of what is found that may be chance, on average.",
)
@Part.MEASURE.option(
    "--clusters",
    type=options.CommaList(int),
    default="3,10,30,100",
    help="Numbers of regions to make, with commas, as far as there are people.",
)
@options.feature
@options.fold
@Part.OUTPUT.option(
    "--pictures",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    show_default="ids alone",
    help="Where the pictures are, to show examples: FOLDER/<image id>.",
)
@options.seed
@options.as_json
def command(source: PairFiles, out: Path, as_json: bool, **how: Any) -> None:
    """Find where in embedding space it is worst, without attributes.

    Reads labelled pairs with embeddings. Images of one half of the people are clustered; the
    regions that look worst there are tested on the other half, for more false matches and for other
    calibration than the rest, and the other way round. What is found is kept to a share of false
    discoveries. Where DATA has attributes, it is said what the regions are made of; they are not
    used.

    Prints the regions that were found, and writes all of them with their figures. Look at the
    example images next: what do they have in common? In the folder of an audit of the same data,
    'faircal report' shows the regions too.
    """
    from faircal.workflows.regions import regions_folder

    with progress_bars() as update:
        written = regions_folder(source, out, **how, progress=update)
    notes(written.regions.notes)
    if written.missing:
        note(f"note: no figures: {written.missing}")
    if as_json:
        print_json({**written.run, "rows": [row._asdict() for row in written.regions.rows]})
    else:
        for line in written.regions.words:
            click.echo(printable(line))
        for path in written.paths:
            click.echo(str(path))
