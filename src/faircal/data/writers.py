"""Writing a dataset folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from faircal.data.columns import Column
from faircal.data.dataset import DEFAULT_FEATURE, Dataset
from faircal.errors import DataError
from faircal.files import atomic_path, output_folder, write_text


def save_dataset(data: Dataset, path: str | Path) -> Path:
    """Write `data` as a dataset folder; each file appears whole or not at all.

    Folds that faircal drew are not written: they are drawn again, and reported, on reading.
    """
    if not data.has_images:
        raise DataError(f"{data.where}: only datasets with images can be written as a folder")
    folder = output_folder(path)
    _check_free(folder, several=DEFAULT_FEATURE not in data.features)
    images = {"image_id": data.images.ids}
    if data.images.identity is not None:
        images["identity"] = decoded(data.images.identity)
    images |= {name: decoded(column) for name, column in data.images.attributes.items()}
    _write_csv(folder / "images.csv", images)

    ids = data.images.ids
    pairs: dict[str, Any] = {
        "left": ids.take(pa.array(data.pairs.left)),
        "right": ids.take(pa.array(data.pairs.right)),
    }
    if data.pairs.genuine is not None:
        pairs["genuine"] = data.pairs.genuine.astype(np.int8)
    if data.pairs.fold is not None and not data.drawn_folds:
        pairs["fold"] = pa.array(data.pairs.fold)
    for feature in data.features.values():
        if feature.scores is not None:
            pairs["score"] = feature.scores
    _write_csv(folder / "pairs.csv", pairs)

    for name, feature in data.features.items():
        if feature.embeddings is None:
            continue
        single = name == DEFAULT_FEATURE
        target = folder / ("embeddings.npy" if single else f"embeddings/{name}.npy")
        with atomic_path(target) as temporary, temporary.open("wb") as file:
            np.save(file, np.asarray(feature.embeddings.vectors), allow_pickle=False)
    about = {"name": data.name, **data.provenance}
    write_text(folder / "dataset.json", json.dumps(about, indent=2) + "\n")
    return folder


def _check_free(folder: Path, several: bool) -> None:
    """Raise where a file of another format would stand beside ours and make two of one thing."""
    embeddings = "embeddings.npy" if several else "embeddings"
    for name in ("images.parquet", "pairs.parquet", "embeddings.npz", embeddings):
        if (folder / name).exists():
            raise DataError(
                f"{folder}: {name} is there already, and a dataset has one of each; "
                "remove it or choose another folder"
            )


def decoded(column: Column) -> pa.Array:
    """Return a categorical column as text, null where unknown."""
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(
        codes, pa.array(column.names, pa.string())
    ).dictionary_decode()


def _write_csv(path: Path, columns: dict[str, Any]) -> None:
    with atomic_path(path) as temporary:
        pacsv.write_csv(
            pa.table(columns),
            temporary,
            pacsv.WriteOptions(quoting_style="needed", quoting_header="needed"),
        )
