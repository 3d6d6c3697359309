"""``faircal score``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircal.cli.options import (
    CommaList,
    Source,
    check_file,
    feature_option,
    fold_named,
    json_option,
    note,
    print_json,
    progress_bars,
    reads_data,
)

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.jobs import Progress
    from faircal.methods import Method

#: Pairs scored and written at a time.
BATCH = 100_000


@click.command(epilog="Example: faircal score faces.faircal new-pairs/ --out scored.parquet")
@click.argument("model", type=click.Path(path_type=Path))
@reads_data
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help=".parquet or .csv file to write."
)
@feature_option
@click.option("--fold", default=None, help="Score the pairs of this fold only.")
@click.option(
    "--keep",
    type=CommaList(),
    default=(),
    help="Columns to carry over: genuine, fold, attributes (as left_NAME and right_NAME).",
)
@click.option(
    "--engine",
    type=click.Choice(["local"]),
    default="local",
    show_default=True,
    help="Where to run.",
)
@json_option
def command(
    model: Path,
    source: Source,
    out: Path,
    feature: str | None,
    fold: str | None,
    keep: tuple[str, ...],
    engine: str,  # noqa: ARG001  (one engine so far)
    as_json: bool,
) -> None:
    """Score the pairs of DATA with MODEL: columns left, right, score, probability.

    The pairs of a folder need no labels. The file appears when all pairs are scored.
    """
    from faircal.errors import ParameterError
    from faircal.files import atomic_path
    from faircal.methods import load_model

    if out.suffix not in (".parquet", ".csv"):
        raise ParameterError(
            f"--out {out}: expected a name that ends in .parquet or .csv; choose one"
        )
    check_file(out)
    fitted = load_model(model)
    loaded = source.load_one(feature)
    if fold is not None:
        loaded = loaded.split(fold_named(loaded, fold))[1]
    _check_keep(loaded, keep)
    with atomic_path(out) as temporary, progress_bars() as update:
        _write(_batches(fitted, loaded, keep, update), temporary, out.suffix)
    for text in loaded.notes if fold is not None else ():
        note(f"note: {text}")
    if as_json:
        print_json({"out": str(out), "pairs": len(loaded)})
    else:
        click.echo(str(out))


def _check_keep(data: Dataset, keep: tuple[str, ...]) -> None:
    from faircal.errors import ParameterError
    from faircal.registry import did_you_mean

    known = ["genuine", "fold", *data.images.attributes]
    for name in keep:
        if name not in known:
            raise ParameterError(f"--keep {name}: no such column; {did_you_mean(name, known)}")


def _batches(
    model: Method, data: Dataset, keep: tuple[str, ...], update: Progress
) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    from faircal.data.writers import decoded

    ids = data.images.ids
    attributes = data.images.attributes
    kept = {name: decoded(attributes[name]) for name in keep if name in attributes}
    for start in range(0, len(data), BATCH):
        part = data.subset(np.arange(start, min(start + BATCH, len(data))))
        output = model.apply(part)
        columns: dict[str, Any] = {}
        if data.has_images:
            for side in ("left", "right"):
                columns[side] = ids.take(pa.array(getattr(part.pairs, side)))
        else:
            # A score table has no image ids: its row numbers, counted from 1, say which pair it is.
            rows = part.pairs.left + 1
            columns = {"left": pa.array(rows), "right": pa.array(rows)}
        columns |= {"score": output.score, "probability": output.probability}
        if "genuine" in keep:
            columns["genuine"] = part.genuine.astype(np.int8)
        if "fold" in keep:
            columns["fold"] = pa.array(part.pairs.fold)
        for name, text in kept.items():
            columns[f"left_{name}"] = text.take(pa.array(part.pairs.left))
            columns[f"right_{name}"] = text.take(pa.array(part.pairs.right))
        yield pa.table(columns)
        update("scoring", min(start + BATCH, len(data)), len(data), "pairs")


def _write(batches: Iterator[Any], path: Path, suffix: str) -> None:
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for table in batches:
            if writer is None:
                kind = pq.ParquetWriter if suffix == ".parquet" else pacsv.CSVWriter
                writer = kind(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
