"""``faircal simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import print_json, progress_bars


@click.command(
    cls=Command,
    examples={
        "A small dataset to try commands on": "faircal simulate small faces/",
        "Another population of the same kind": "faircal simulate small faces-3/ --seed 3",
        "As large as the paper's BFW dataset": "faircal simulate bfw-like bfw/",
        "Larger groups: 1,000 people in 40,000 pairs": "faircal simulate small many/ --people 1000 "
        "--images 6000 --pairs 40000",
    },
    tables={
        "Presets": {
            "small": "8,000 pairs of 200 people, 128 numbers an embedding, eight groups "
            "(ethnicity × gender).",
            "rfw-like": "24,000 pairs of 12,000 people, 512 numbers an embedding, four groups "
            "(ethnicity).",
            "bfw-like": "890,000 pairs of 800 people, 512 numbers an embedding, eight groups "
            "(ethnicity × gender).",
        },
        "Files": {
            "DIR/images.csv": "Images: image_id, identity, attributes.",
            "DIR/pairs.csv": "Pairs: left, right, genuine, fold; five folds that share no person.",
            "DIR/embeddings.npy": "A row for each image.",
            "DIR/dataset.json": "Name, and that it is simulated.",
        },
    },
    see=("check", "fit", "benchmark", "explanation/simulation"),
)
@argument(
    "preset",
    help="What to imitate: small, rfw-like or bfw-like (see Presets).",
)
@argument(
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Dataset folder to write. Files of a dataset that is there are replaced.",
)
@Part.POPULATION.option(
    "--people",
    type=click.IntRange(1),
    show_default="the preset's",
    help="Number of people.",
)
@Part.POPULATION.option(
    "--images",
    type=click.IntRange(1),
    show_default="the preset's, in proportion to people",
    help="Number of images, dealt evenly to people.",
)
@Part.POPULATION.option(
    "--pairs",
    type=click.IntRange(1),
    show_default="the preset's, in proportion to images",
    help="Number of pairs.",
)
@Part.POPULATION.option(
    "--dimension",
    type=click.IntRange(2),
    show_default="the preset's",
    help="Length of embeddings, in numbers.",
)
@options.seed
@options.as_json
def command(preset: str, folder: Path, seed: int, as_json: bool, **sizes: Any) -> None:
    """Write a simulated dataset folder.

    The people in it do not exist. The folder has the form of real data (images with identities and
    attributes, labelled pairs in folds, embeddings), so that every command can be tried without
    anyone's photographs. The same seed gives the same bytes.

    What comes of it says how methods behave on such data, and nothing about real people; reports
    say so. Look at it next with 'faircal check DIR'.
    """
    from faircal._base.files import check_output
    from faircal._base.jobs import step
    from faircal.data import save_dataset
    from faircal.data.simulation import simulate

    check_output(folder, folder=True)
    with progress_bars() as progress, step(progress, f"simulating {preset}"):
        data = simulate(preset, seed=seed, **sizes)
        save_dataset(data, folder)
    if as_json:
        print_json(
            {"folder": str(folder), "pairs": len(data), "images": len(data.images), "seed": seed}
        )
    else:
        click.echo(str(folder))
