"""From a folder of pictures to a dataset folder with vectors: the work of ``faircal embed``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import check_output, existing, settle, staged
from faircal._base.jobs import Progress, silent
from faircal._version import __version__
from faircal.data.dataset_folder import (
    picture_home,
    read_about,
    read_images,
    write_about,
    write_dropped,
)
from faircal.data.importers import read_folder
from faircal.data.tables import (
    count_rows,
    filter_table,
    find_table,
    first_rows,
    has_table,
    read_table,
    require_columns,
    rows_without,
)
from faircal.embedding.detectors import DETECTORS, Detector
from faircal.embedding.networks import NETWORKS, Network, open_network
from faircal.embedding.run import (
    BATCH,
    PictureFiles,
    PictureStatus,
    VectorStore,
    fill_store,
)
from faircal.embedding.weights import require

#: Vectors that are copied at a time.
_ROWS = 65_536


@dataclass(frozen=True)
class Embedded:
    """What came of embedding a dataset folder as ``embeddings/<name>.npy``.

    `images` have a vector of length `dimension`; `dropped` says why others have none, and
    `dropped_pairs` were dropped with them.
    """

    name: str
    images: int
    dimension: int
    pairs: int = 0
    dropped_pairs: int = 0
    dropped: Mapping[str, str] = field(default_factory=dict)

    def reasons(self) -> dict[str, int]:
        """Count the dropped images by reason."""
        reasons = list(self.dropped.values())
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


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
    device, jobs, batch
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
    check_output(data, folder=True)
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
    return embedded


def embed_folder(
    data: Path,
    root: Path,
    network: Network,
    detector: Detector,
    *,
    name: str | None = None,
    jobs: int | None = None,
    batch: int = BATCH,
    restart: bool = False,
    progress: Progress = silent,
) -> Embedded:
    """Embed the pictures of the dataset folder `data`, which lie below `root`.

    Images without a vector (no face, no picture) are dropped with their pairs, and listed in
    ``dropped.csv``. Interrupted, it goes on where it was when called again, unless it is to
    `restart`: to forget an interrupted run, and to replace embeddings of that name. `name` is the
    network's unless given, `jobs` the number of cores; `batch` pictures go to the network at once.
    """
    name = name or network.name
    plain = Path(name).name == name and name.isprintable() and not name.startswith(".")
    if not name or not plain or len(name) > 100:
        raise ParameterError(f"name: expected a plain file name, found {name!r}")
    settle(data)
    target = data / "embeddings" / f"{name}.npy"
    _check_free(data, target, restart)
    gallery = read_images(data)
    ids = gallery.images.ids
    if has_table(data, "pairs"):  # which may lose rows, so they have to say what they are of
        path = find_table(data, "pairs")
        require_columns(first_rows(path), ("left", "right"), str(path))
    pictures = _pictures(data, ids.cast(pa.string()), root, gallery.about)
    record = _record(network, detector)
    settings = {
        **record,
        "root": str(pictures.root.resolve()),
        "paths": list(pictures.paths),
    }
    if pictures.boxes is not None:
        settings["boxes"] = np.nan_to_num(pictures.boxes).tolist()
    store = VectorStore(
        data / "embeddings" / f".{name}.partial", settings, len(pictures), restart=restart
    )
    fill_store(pictures, network, detector, store, jobs=jobs, batch=batch, progress=progress)
    vectors, state = store.result()
    _check_losses(data, name, state)
    if not read_images(data).images.ids.equals(ids):
        raise DataError(f"{data}: its images changed while they were embedded; use --restart")
    embedded = _write(data, name, ids.cast(pa.string()), vectors, state, record)
    store.remove()
    return embedded


def _check_free(data: Path, target: Path, restart: bool) -> None:
    """Raise where there are embeddings that ours would replace, or stand beside."""
    other = data / "embeddings.npy"
    if other.exists():
        raise DataError(
            f"{other} is there already, without a name; move it to embeddings/<name>.npy, or "
            "choose another folder"
        )
    if target.exists() and not restart:
        raise DataError(
            f"{target} is there already; give the embeddings another --name, or embed again with "
            "--restart"
        )


def _check_losses(data: Path, name: str, state: NDArray[np.uint8]) -> None:
    """Raise where a missing picture would take vectors away that other embeddings have."""
    missing = int(np.isin(state, (PictureStatus.ABSENT, PictureStatus.UNREADABLE)).sum())
    others = [path.stem for path in (data / "embeddings").glob("*.npy") if path.stem != name]
    if missing and others:
        raise DataError(
            f"{missing:,} pictures are missing or can't be read, and {', '.join(others)} would "
            "lose their images, too: give the folder they lie in, or embed into a new folder"
        )


def _record(network: Network, detector: Detector) -> dict[str, Any]:
    """Return what decides the vectors of given pictures."""
    used = sorted({"PIL", network.module, detector.module or "PIL"})
    versions = {name: str(getattr(import_module(name), "__version__", "")) for name in used}
    return {
        "network": network.name,
        "weights_sha256": network.sha256,
        "preprocessing": asdict(network.preprocessing),
        "detector": detector.settings(),
        "versions": {"faircal": __version__, **versions},
    }


# ------------------------------------------------------------------ reading


def _pictures(data: Path, ids: pa.Array, root: Path, about: Mapping[str, Any]) -> PictureFiles:
    """Return the picture of each image: its id, or what a table ``pictures`` says."""
    if not has_table(data, "pictures"):
        paths = ids.to_pylist()
        return PictureFiles(_home(root, paths, about), paths)
    where = find_table(data, "pictures")
    table = read_table(where)
    require_columns(table, ("image_id", "path"), str(where))
    row = pc.index_in(ids, value_set=table["image_id"].cast(pa.string()).combine_chunks())
    if row.null_count:
        raise DataError(f"{where}: an image of the images table has no picture; import again")
    table = table.take(row)
    paths = table["path"].cast(pa.string()).to_pylist()
    boxes = None
    if {"x", "y", "width", "height"} <= set(table.column_names):
        x, y, width, height = (
            np.asarray(table[name].cast(pa.float64()).fill_null(np.nan))
            for name in ("x", "y", "width", "height")
        )
        boxes = np.stack([x, y, x + width, y + height], axis=1)
    return PictureFiles(_home(root, paths, about), paths, boxes)


def _home(root: Path, paths: list[str], about: Mapping[str, Any]) -> Path:
    """Return the folder that `paths` are below: `root`, or the one inside it found on importing."""
    place = picture_home(root, paths, about)
    if place is not None:
        return place
    imported = about.get("imported")
    origin = imported.get("from") if isinstance(imported, dict) else None
    source = f"; they were imported from {origin}" if origin else ""
    raise DataError(
        f"{root}: found no picture such as {paths[0]}{source}; give the folder they lie in"
    )


# ------------------------------------------------------------------ writing


def _write(
    data: Path,
    name: str,
    ids: pa.Array,
    vectors: NDArray[np.float32],
    state: NDArray[np.uint8],
    record: Mapping[str, Any],
) -> Embedded:
    """Write the embeddings, and all that is there without the images that have none."""
    keep = state == PictureStatus.DONE
    images = ids.filter(pa.array(~keep))
    why = [PictureStatus(code).reason for code in state[~keep].tolist()]
    dropped = dict(zip(images.to_pylist(), why, strict=True))

    def without(*columns: str) -> Callable[[pa.Table], pa.Array]:
        """Return what tells which rows of a table name no image that is dropped."""
        return lambda table: rows_without(table, columns, images)

    pairs = lost = 0
    about = read_about(data)
    earlier = about.get("embeddings")
    about["embeddings"] = {**(earlier if isinstance(earlier, dict) else {}), name: record}
    with staged(data) as folder:
        (folder / "embeddings").mkdir()
        _save(folder / "embeddings" / f"{name}.npy", vectors, keep)
        if dropped:
            for other in (data / "embeddings").glob("*.npy"):
                if other.stem != name:
                    _save(folder / "embeddings" / other.name, np.load(other, mmap_mode="r"), keep)
            filter_table(find_table(data, "images"), folder, without("image_id"))
            listed = data / "dropped.csv"
            reasons = {image: f"{reason} ({name})" for image, reason in dropped.items()}
            write_dropped(folder, reasons, read_table(listed) if listed.exists() else None)
        if has_table(data, "pairs"):
            table = find_table(data, "pairs")
            pairs, lost = (
                filter_table(table, folder, without("left", "right"))
                if dropped
                else (count_rows(table), 0)
            )
        write_about(folder, about)
    return Embedded(name, int(keep.sum()), vectors.shape[1], pairs, lost, dropped)


def _save(path: Path, vectors: NDArray[Any], keep: NDArray[np.bool_]) -> None:
    """Write the rows to keep, some at a time, so that the matrix need not fit into memory."""
    rows = np.flatnonzero(keep)
    shape = (len(rows), vectors.shape[1])
    out = np.lib.format.open_memmap(path, mode="w+", dtype=vectors.dtype, shape=shape)
    for start in range(0, len(rows), _ROWS):
        out[start : start + _ROWS] = vectors[rows[start : start + _ROWS]]
    out.flush()


def under_way(data: Path) -> bool:
    """Whether an embedding of the folder was interrupted, and can be gone on with."""
    return any(data.glob("embeddings/.*.partial"))
