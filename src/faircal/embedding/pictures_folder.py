"""From a folder of pictures to a dataset folder: the work of ``faircal embed``."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from faircal._base.errors import ParameterError
from faircal._base.files import check_folder, existing
from faircal._base.jobs import Progress, silent
from faircal.data.dataset_folder import read_about
from faircal.data.importers import read_folder
from faircal.data.importers.folders import list_pictures
from faircal.data.tables import find_table, has_table, read_table
from faircal.embedding.detectors import DETECTORS
from faircal.embedding.folder import Embedded, embed_folder, under_way
from faircal.embedding.networks import NETWORKS, open_network
from faircal.embedding.weights import require


def embed_pictures(
    images: str | Path,
    data: str | Path,
    network: str,
    *,
    detector: str | None = None,
    preset: str | None = None,
    weights: str | Path | None = None,
    name: str | None = None,
    attributes: str | Path | None = None,
    device: str = "auto",
    jobs: int | None = None,
    batch: int = 32,
    resume: bool = True,
    drop_missing: bool = False,
    note: Callable[[str], None] = lambda _: None,
    progress: Progress = silent,
) -> Embedded:
    """Detect, align and embed the faces in pictures, into a dataset folder.

    Parameters
    ----------
    images : path
        Folder of pictures: the one that was imported, or one with a sub-folder for each person.
    data : path
        Dataset folder: an imported one, or one to make.
    network : str
        A name, or an .onnx or .toml file.
    detector, preset, weights
        What finds faces, what an .onnx file takes, and where weights are.
    name : str, optional
        What the embeddings are called; the network's name unless given.
    attributes : path, optional
        As for `faircal.data.importers.read_folder`, where the folder is made.
    device, jobs, batch, drop_missing
        As for `embed_folder`.
    resume : bool
        Go on with an interrupted run, else begin anew.
    note : callable
        Called with what its user should know.
    progress : callable

    Examples
    --------
    >>> import faircal
    >>> faircal.embed_pictures("photos/", "faces/", "dlib")  # doctest: +SKIP
    """
    images, data = existing(images), Path(data)
    check_folder(data)
    data = data.resolve() if data.is_symlink() else data
    require("PIL", "embed", "'faircal embed'")
    weights = None if weights is None else Path(weights)
    opened = open_network(network, preset=preset, weights=weights, device=device)
    default = NETWORKS[network].detector if network in NETWORKS else "mtcnn"
    chosen = DETECTORS[detector or default](device)
    existed, new = data.is_dir(), not has_table(data, "images")
    if new:
        imported = read_folder(images, attributes=attributes)
        imported.save(data)
        for text in imported.notes:
            note(text)
    elif attributes is not None and not under_way(data):
        raise ParameterError(f"--attributes: {data} has its images already; leave it out")
    try:
        embedded = embed_folder(
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
    others = 0 if new else _other_pictures(images, data)
    if others:
        note(
            f"{others:,} pictures in {images} are not among the images of {data}: they are new; "
            "to take them in, choose a new folder"
        )
    return embedded


def _other_pictures(images: Path, data: Path) -> int:
    """Return how many pictures of a folder of photos are not among the dataset's images."""
    imported = read_about(data).get("imported")
    if not isinstance(imported, dict) or imported.get("layout") != "folder":
        return 0
    known = set(read_table(find_table(data, "images"))["image_id"].to_pylist())
    if (data / "dropped.csv").exists():
        known |= set(read_table(data / "dropped.csv")["image_id"].to_pylist())
    return len(set(list_pictures(images)[0]) - known)
