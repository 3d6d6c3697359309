"""``faircal embed``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli import options
from faircal.cli.help import Command, Part, argument
from faircal.cli.printing import note, print_json, progress_bars

if TYPE_CHECKING:
    from faircal.embedding import Embedded


@click.command(
    cls=Command,
    examples={
        "Photos of your own, a sub-folder for each person": "faircal embed ~/photos --network dlib "
        "--attributes people.csv --out faces/",
        "Pictures of a dataset that was imported": "faircal embed ~/RFW --network facenet-webface "
        "--out rfw/",
        "A network of your own, and faces that are cut already": "faircal embed crops/ "
        "--network mine.onnx --preset insightface --detector none --out faces/",
        "On a GPU, in larger batches": "faircal embed ~/photos --network facenet-webface "
        "--device cuda --batch 256 --out faces/",
    },
    tables={
        "Presets": {
            "arcface": "The ONNX zoo's ArcFace, OpenCV's SFace: 112 pixels, RGB, 0 to 255.",
            "insightface": "InsightFace's models: 112 pixels, RGB, (x - 127.5) / 127.5.",
            "mobilefacenet": "MobileFaceNets: 112 pixels, RGB, (x - 127.5) / 128.",
            "adaface": "AdaFace: 112 pixels, BGR, (x - 127.5) / 127.5.",
            "facenet": "Inception-ResNet v1 of PyTorch: 160 pixels, the box, (x - 127.5) / 128.",
        },
        "Files": {
            "DIR/embeddings/NAME.npy": "The vectors, a row for each image.",
            "DIR/images.*": "Made from IMAGES where DIR is new; images without a face are taken "
            "out.",
            "DIR/pairs.*": "Pairs of images that were dropped are taken out.",
            "DIR/dropped.csv": "Images that were dropped, with the reason.",
            "DIR/dataset.json": "Network, checksum of its weights, preprocessing, detector.",
            "~/.cache/faircal/weights": "Where weights are looked for; $FAIRCAL_WEIGHTS names "
            "another folder.",
        },
    },
    see=("import", "pairs", "tutorials/photos", "how-to/real-data", "how-to/own-network"),
)
@argument(
    "images",
    type=click.Path(path_type=Path),
    help="Folder of pictures: the one that was imported, or one with a sub-folder for each person.",
)
@Part.NETWORK.option(
    "--network",
    required=True,
    help="dlib, facenet-vggface2, facenet-webface, arcface; an .onnx file, with "
    "--preset; or a .toml file that describes one.",
)
@Part.NETWORK.option(
    "--preset",
    show_default="none",
    help="What an .onnx file takes: arcface, insightface, mobilefacenet, adaface or facenet (see "
    "Presets).",
)
@Part.NETWORK.option(
    "--weights",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="those of the cache folder",
    help="Weights of a network that is known by name; checked by SHA-256.",
)
@Part.PICTURES.option(
    "--detector",
    show_default="the network's; mtcnn for files",
    help="What finds faces: mtcnn (extra torch), dlib, or none where pictures are faces that are "
    "cut and aligned.",
)
@options.attributes
@Part.OUTPUT.option(
    "--out",
    "data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Dataset folder: an imported one, to which vectors are added, or one to make.",
)
@Part.OUTPUT.option(
    "--name",
    show_default="the network's",
    help="What the embeddings are called, and --feature then takes.",
)
@Part.WORK.option(
    "--device",
    default="auto",
    help="Where the network runs: auto (a GPU where there is one), cpu or cuda.",
)
@Part.WORK.option(
    "--jobs",
    type=click.IntRange(1),
    show_default="the number of cores",
    help="Threads, each with a batch of its own.",
)
@Part.WORK.option(
    "--batch",
    type=click.IntRange(1),
    default=32,
    help="Faces that a network is given at a time.",
)
@Part.WORK.option(
    "--resume/--restart",
    default=True,
    help="Go on with an interrupted run, or begin anew and replace what is there.",
)
@options.as_json
def command(images: Path, data: Path, as_json: bool, **how: Any) -> None:
    """Detect, align and embed the faces in pictures.

    With an imported dataset folder as --out, its images are embedded, and IMAGES is the folder that
    was imported. Otherwise --out is made, with a person for each folder of pictures. In each
    picture the face is found, turned to where the network expects it, and made a vector.

    An image without a face is dropped with its pairs, for every network of the folder; it is
    counted and listed in dropped.csv. Interrupted, the same command goes on. Nothing is downloaded:
    where weights are missing it is said what to get, under which licence, and where to put it.

    Needs the extra embed. Next: 'faircal pairs DIR' where there are no pairs, else 'faircal check
    DIR'.
    """
    from faircal.embedding.folder import embed_pictures

    with progress_bars() as update:
        made = embed_pictures(images, data, **how, note=note, progress=update)
    _show(made, data, as_json)


def _show(made: Embedded, data: Path, as_json: bool) -> None:
    reasons = made.reasons()
    if as_json:
        print_json(
            {
                "folder": str(data),
                "embeddings": str(data / "embeddings" / f"{made.name}.npy"),
                "images": made.images,
                "dimension": made.dimension,
                "dropped": dict(made.dropped),
                "pairs": made.pairs,
                "dropped_pairs": made.dropped_pairs,
            }
        )
        return
    if reasons:
        total = made.images + len(made.dropped)
        counted = ", ".join(f"{count:,} × {reason}" for reason, count in reasons.items())
        with_pairs = f"; with them {made.dropped_pairs:,} pairs" if made.dropped_pairs else ""
        note(f"{len(made.dropped):,} of {total:,} images dropped ({counted}){with_pairs}:")
        for image in list(made.dropped)[:5]:
            note(f"  {image}: {made.dropped[image]}")
        note(f"all are listed in {data / 'dropped.csv'}; to try them again, choose a new folder")
    pairs = f", {made.pairs:,} pairs" if made.pairs else "; make pairs with 'faircal pairs'"
    note(f"{made.name}: {made.images:,} images, {made.dimension}-d{pairs}")
    click.echo(str(data))
