"""``faircal embed``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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

if TYPE_CHECKING:
    from faircal.embedding import Embedded


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        _show_networks()
        context.exit()


@click.command(epilog="Example: faircal embed ~/photos --network dlib --out faces/")
@click.argument("images", type=click.Path(path_type=Path))
@click.option(
    "--network",
    required=True,
    metavar="N",
    help="A name (see --list), an .onnx file with --preset, or a .toml that describes one.",
)
@click.option(
    "--out",
    "data",
    required=True,
    type=click.Path(path_type=Path),
    help="Dataset folder: an imported one, or one to make.",
)
@click.option("--detector", default=None, help="mtcnn, dlib or none  [default: the network's]")
@click.option("--preset", default=None, help="What an .onnx file takes (see --list).")
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Weights of a network known by name  [default: the cache folder's]",
)
@click.option("--name", default=None, help="What the embeddings are called  [default: N]")
@attributes_option
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="auto (a GPU where there is one), cpu or cuda.",
)
@click.option("--jobs", type=click.IntRange(1), default=None, help="Threads  [default: cores]")
@click.option(
    "--batch", type=click.IntRange(1), default=32, show_default=True, help="Faces a network call."
)
@click.option(
    "--resume/--restart",
    default=True,
    show_default=True,
    help="Go on with an interrupted run, or begin anew and replace what is there.",
)
@click.option(
    "--drop-missing",
    is_flag=True,
    help="Drop images whose picture is gone, though other embeddings have them.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List networks, detectors and presets, and exit.",
)
@level_option
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
    """Detect, align and embed the faces in IMAGES, a folder of pictures.

    With an imported dataset folder as --out, its images are embedded, and IMAGES is the folder that
    was imported. Otherwise --out is made, with a person for each folder of pictures. An image
    without a face is dropped with its pairs, counted and listed in dropped.csv. The same command
    again goes on with an interrupted run. Nothing is downloaded.
    """
    from faircal.data.tables import has_table
    from faircal.embedding import DETECTORS, NETWORKS, embed_folder, open_network
    from faircal.embedding.folder import under_way
    from faircal.embedding.weights import require
    from faircal.errors import ParameterError
    from faircal.files import existing
    from faircal.importing import read_folder

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
    from faircal.data.readers import read_about
    from faircal.data.tables import find_table, read_table
    from faircal.importing.folders import list_pictures

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
