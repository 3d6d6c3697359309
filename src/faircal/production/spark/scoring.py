"""Scoring the pairs of a Spark frame, and writing what comes of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import atomic_path
from faircal.data import Dataset
from faircal.methods import Method
from faircal.methods.modelfile import decode, encode
from faircal.methods.prior import Shift
from faircal.production.scoring import Adding, needed_columns, score_part
from faircal.production.scoring.run import join_parts, rows_of
from faircal.production.spark.pairs import PartWork, SparkPairs
from faircal.production.spark.session import errors_in_one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What names begin with in a folder that Spark writes, points and underlines left out.
_SPARKS = ("part-", "SUCCESS", "temporary")


@dataclass(frozen=True)
class _Scoring:
    """What a worker scores with; made into a model once a process."""

    model: bytes
    keep: tuple[str, ...]
    add: tuple[str, ...]
    shift: Shift | None

    def __call__(self) -> PartWork:
        return self.of(cast("Method", decode(self.model)))

    def of(self, model: Method) -> PartWork:
        adding = Adding.of(model, self.add) if self.add else None

        def work(parts: Iterator[Dataset]) -> Iterator[pa.Table]:
            for part in parts:
                table = score_part(model, part, self.keep, self.shift, adding)
                del part  # its images are let go before there are others
                yield table

        return work


def score(
    model: Method,
    pairs: SparkPairs,
    *,
    keep: Sequence[str] = (),
    add: Sequence[str] = (),
    shift: Shift | None = None,
) -> DataFrame:
    """Return a frame with what `model` says of each pair: it is lazy, as frames are.

    Columns ``left``, ``right``, ``score``, ``probability``, then what is added and kept. The
    numbers are those of one machine: the same code works them out from the same vectors. The order
    of rows is Spark's.

    Parameters
    ----------
    model : Method
        Fitted.
    pairs : SparkPairs
    keep : sequence of str
        Columns to carry over: ``genuine``, ``fold``, ``identity``, attributes.
    add : sequence of str
        More columns, as of ``faircal score --add``.
    shift : Shift, optional
        Moves probabilities to another share of genuine pairs; scores stay.
    """
    task = _Scoring(encode(model), tuple(keep), tuple(add), shift)
    # A few pairs are scored here: it tells the columns, and whether the model fits the data.
    head = next(task.of(model)(iter([pairs.head()])))
    columns = needed_columns(model, keep, pairs.attributes) | {"row"}
    if "genuine" not in keep and pairs.has_images:
        columns.discard("genuine")  # who scores a billion pairs need not move their labels
    return pairs.map(task, pairs.spark.createDataFrame(head).schema, columns)


# ------------------------------------------------------------------ writing


def write(frame: DataFrame, out: str | Path) -> int:
    """Write a frame of scored pairs; return how many there are.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    out : path
        ``*.parquet`` or ``*.csv``: one file, put together here of what the workers wrote. Any
        other name: a folder of Parquet files, one a task. Workers write to ``OUT.spark`` first;
        nothing is at `out` until all is there, and each pair is there once, whatever tasks were
        repeated. All machines must see the place.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    target = Path(out).absolute()
    parts = target.with_name(f"{target.name}.spark")
    for folder in (parts, target):  # what is to go must hold nothing but what Spark writes
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        others = [name for name in names if not name.lstrip("._").startswith(_SPARKS)]
        if others:
            raise ParameterError(
                f"{folder}: holds {others[0]}, which is not of scored pairs; choose another path"
            )
    observation = Observation("scored")
    shutil.rmtree(parts, ignore_errors=True)
    try:
        with errors_in_one_line():
            counted = frame.observe(observation, F.count(F.lit(1)).alias("pairs"))
            counted.write.parquet(f"file://{parts}")
        pairs = int(observation.get["pairs"])
        files = sorted(parts.glob("part-*.parquet"))
        n_rows = sum(map(rows_of, files))
        if n_rows != pairs:
            raise DataError(
                f"{out}: the workers wrote {pairs} pairs, and {n_rows} of them are here; "
                "choose a place that all machines see"
            )
        if target.suffix in (".parquet", ".csv"):
            full = [file for file in files if rows_of(file)]
            with atomic_path(target) as temporary:
                join_parts(full, temporary, target.suffix)
        else:
            if target.is_dir():
                shutil.rmtree(target)
            parts.replace(target)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return pairs
