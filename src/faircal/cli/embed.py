"""``faircal embed``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import (
    attributes_option,
    check_folder,
    json_option,
    level_option,
    note,
    out,
    print_json,
    progress_bars,
)
from faircal.cli.values import among, registered

if TYPE_CHECKING:
    from faircal.embedding import Embedded


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        _show_networks()
        context.exit()


@click.command(
    cls=Command,
    examples={
        "What is there, and what must be got": "faircal embed --list",
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
@option(
    "--network",
    part=Part.NETWORK,
    required=True,
    shell_complete=registered("faircal.embedding", "NETWORKS"),
    help="dlib, facenet-vggface2, facenet-webface, arcface (see --list); an .onnx file, with "
    "--preset; or a .toml file that describes one.",
)
@option(
    "--preset",
    part=Part.NETWORK,
    shell_complete=registered("faircal.embedding", "PRESETS"),
    show_default="none",
    help="What an .onnx file takes: arcface, insightface, mobilefacenet, adaface or facenet (see "
    "Presets).",
)
@option(
    "--weights",
    part=Part.NETWORK,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="those of the cache folder",
    help="Weights of a network that is known by name; checked by SHA-256.",
)
@option(
    "--list",
    part=Part.NETWORK,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List networks, detectors and presets, with licences and what is missing, and exit.",
)
@option(
    "--detector",
    part=Part.PICTURES,
    shell_complete=registered("faircal.embedding", "DETECTORS"),
    show_default="the network's; mtcnn for files",
    help="What finds faces: mtcnn (extra torch), dlib, or none where pictures are faces that are "
    "cut and aligned.",
)
@attributes_option
@level_option
@option(
    "--drop-missing",
    part=Part.PICTURES,
    is_flag=True,
    help="Drop images whose picture is gone, though other embeddings have them. Without it that "
    "is an error: perhaps a disk is not there.",
)
@option(
    "--out",
    "data",
    part=Part.OUTPUT,
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Dataset folder: an imported one, to which vectors are added, or one to make.",
)
@option(
    "--name",
    part=Part.OUTPUT,
    show_default="the network's",
    help="What the embeddings are called, and --feature then takes.",
)
@option(
    "--device",
    part=Part.WORK,
    default="auto",
    shell_complete=among("auto", "cpu", "cuda"),
    help="Where the network runs: auto (a GPU where there is one), cpu or cuda.",
)
@option(
    "--jobs",
    part=Part.WORK,
    type=click.IntRange(1),
    show_default="the number of cores",
    help="Threads, each with a batch of its own.",
)
@option(
    "--batch",
    part=Part.WORK,
    type=click.IntRange(1),
    default=32,
    help="Faces that a network is given at a time.",
)
@option(
    "--resume/--restart",
    part=Part.WORK,
    default=True,
    help="Go on with an interrupted run, or begin anew and replace what is there.",
)
@json_option
def command(
    images: Path,
    network: str,
    data: Path,
    detector: str | None,
    preset: str | None,
    weights: Path | None,
    name: str | None,
    attributes: Path | None,
    device: str,
    jobs: int | None,
    batch: int,
    resume: bool,
    drop_missing: bool,
    level: int | None,
    as_json: bool,
) -> None:
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
    from faircal._base.errors import ParameterError
    from faircal._base.files import existing
    from faircal.data.importers import read_folder
    from faircal.data.tables import has_table
    from faircal.embedding import DETECTORS, NETWORKS, embed_folder, open_network
    from faircal.embedding.folder import under_way
    from faircal.embedding.weights import require

    existing(images)
    check_folder(data)
    data = data.resolve() if data.is_symlink() else data
    require("PIL", "embed", "'faircal embed'")
    opened = open_network(network, preset=preset, weights=weights, device=device)
    finds = detector or (NETWORKS[network].detector if network in NETWORKS else "mtcnn")
    chosen = DETECTORS[finds](device)
    existed, new = data.is_dir(), not has_table(data, "images")
    if new:
        found = read_folder(images, attributes=attributes, level=level)
        found.save(data)
        for text in found.notes:
            note(text)
    elif attributes is not None and not under_way(data):
        raise ParameterError(f"--attributes: {data} has its images already; leave it out")
    try:
        with progress_bars() as progress:
            made = embed_folder(
                data,
                images,
                opened,
                chosen,
                name=name,
                jobs=jobs,
                batch=batch,
                restart=not resume,
                drop_missing=drop_missing,
                progress=progress,
            )
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("the same command again goes on from here") from error
    except Exception:
        if new and not under_way(data):
            shutil.rmtree(data)  # made a moment ago, and of no use
            if existed:
                data.mkdir()
        raise
    if not new:
        _tell_of_others(images, data)
    _show(made, data, as_json)


def _tell_of_others(images: Path, data: Path) -> None:
    """Say how many pictures of a folder of photos are not among the dataset's images."""
    from faircal.data.dataset_folder import read_about
    from faircal.data.importers.folders import list_pictures
    from faircal.data.tables import find_table, read_table

    imported = read_about(data).get("imported")
    if not isinstance(imported, dict) or imported.get("layout") != "folder":
        return
    known = set(read_table(find_table(data, "images"))["image_id"].to_pylist())
    if (data / "dropped.csv").exists():
        known |= set(read_table(data / "dropped.csv")["image_id"].to_pylist())
    others = len(set(list_pictures(images)[0]) - known)
    if others:
        note(
            f"{others:,} pictures in {images} are not among the images of {data}: they are new; "
            "to take them in, choose a new folder"
        )


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
        said = ", ".join(f"{count:,} × {reason}" for reason, count in reasons.items())
        with_pairs = f"; with them {made.dropped_pairs:,} pairs" if made.dropped_pairs else ""
        note(f"{len(made.dropped):,} of {total:,} images dropped ({said}){with_pairs}:")
        for image in list(made.dropped)[:5]:
            note(f"  {image}: {made.dropped[image]}")
        note(f"all are listed in {data / 'dropped.csv'}; to try them again, choose a new folder")
    pairs = f", {made.pairs:,} pairs" if made.pairs else "; make pairs with 'faircal pairs'"
    note(f"{made.name}: {made.images:,} images, {made.dimension}-d{pairs}")
    click.echo(str(data))


def _show_networks() -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from faircal.embedding import DETECTORS, NETWORKS, PRESETS
    from faircal.embedding.weights import Weights, cache_folder

    def status(weights: tuple[Weights, ...]) -> str:
        if not weights:
            return "none needed"
        if all(each.here for each in weights):
            return "here"
        return f"get {', '.join(each.file for each in weights)} from {weights[0].origin}"

    def table(title: str, rows: list[tuple[Any, ...]]) -> None:
        made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("name", "what", "weights", "licence"):
            made.add_column(name, overflow="fold")
        for row in rows:
            made.add_row(*map(escape, row))
        console.print(made)

    console = out()
    table(
        "Networks",
        [
            (name, known.what, status((known.weights,)), known.weights.licence)
            for name, known in NETWORKS.items()
        ],
    )
    table(
        "Detectors",
        [
            (name, kind.what, status(kind.weights), ", ".join({w.licence for w in kind.weights}))
            for name, kind in DETECTORS.items()
        ],
    )
    console.print(f"Presets of .onnx files: {', '.join(PRESETS)}")
    console.print(
        f"Weights are looked for in {escape(str(cache_folder()))} ($FAIRCAL_WEIGHTS changes it)"
    )
