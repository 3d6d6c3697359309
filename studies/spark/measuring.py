"""What Spark itself says of a shuffle by tile: bytes that were written, and processor time."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from faircal.production.spark.blocks.tiling import arranged
from faircal.production.spark.sizing.volumes import row_bytes

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Pairs of ids below `templates`, in whole numbers or as text; `kept` are further columns."""

    templates: int
    blocks: int
    text: bool = False
    kept: tuple[str, ...] = ()
    pairs: int = 4_000_000


#: From a first run of these, with 64 partitions, the constants of the model were read off.
KNOWN = (
    Case(10**6, 16),
    Case(10**7, 153),
    Case(10**8, 1526),
    Case(10**7, 153, kept=("genuine",)),
    Case(10**7, 153, kept=("genuine", "fold")),
    Case(10**7, 153, kept=("genuine", "score")),
    Case(10**7, 153, text=True),
    Case(10**8, 1526, text=True, kept=("genuine",)),
)
#: The model had not seen these.
OTHERS = (
    Case(10**6, 16, kept=("genuine", "fold")),
    Case(3 * 10**6, 46, kept=("genuine",), pairs=1_000_000),
    Case(3 * 10**7, 100, kept=("genuine", "score")),
    Case(10**8, 400, kept=("genuine",), pairs=8_000_000),
    Case(5 * 10**7, 763, text=True, kept=("fold",), pairs=2_000_000),
)
#: Partitions of the shuffle, and seeds of the two sides.
_PARTITIONS, _LEFT, _RIGHT, _KEPT = 200, 11, 12, 13


def measure() -> Iterator[Row]:
    """Run every case in a session of its own; yield a line for each."""
    with _session() as spark:
        _measured(spark, Case(1000, 4, pairs=100_000))  # Java is slow at first
        for case in (*KNOWN, *OTHERS):
            yield {**_measured(spark, case), "known": case in KNOWN}


@contextmanager
def _session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.local.dir": folder,
            "spark.log.level": "ERROR",
            "spark.sql.shuffle.partitions": str(_PARTITIONS),
            "spark.ui.port": "0",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[2]").appName("faircal study")
        spark = builder.config(map=settings).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


def _measured(spark: Any, case: Case) -> Row:
    frame = arranged(_pairs(spark, case), "string" if case.text else "int64", case.blocks, "study")
    before = {stage["stageId"] for stage in _stages(spark)}
    frame.write.format("noop").mode("overwrite").save()
    stages = [stage for stage in _stages(spark) if stage["stageId"] not in before]
    written = sum(stage["shuffleWriteBytes"] for stage in stages)
    rows = sum(stage["shuffleWriteRecords"] for stage in stages)
    if rows != case.pairs:
        raise RuntimeError(f"expected {case.pairs} rows in the shuffle, Spark tells of {rows}")
    seconds = sum(stage["executorCpuTime"] for stage in stages) / 1e9
    digits = len(str(case.templates - 1)) if case.text else 0
    model = row_bytes(case.templates, case.blocks, text=digits, kept=case.kept)
    return {
        "part": "measured",
        "templates": case.templates,
        "blocks": case.blocks,
        "ids": "text" if case.text else "whole numbers",
        "kept": list(case.kept),
        "pairs": case.pairs,
        "bytes": round(written / rows, 2),
        "model": round(model, 2),
        "cpu_seconds": round(seconds / (case.pairs / 1e6), 3),
    }


def _pairs(spark: Any, case: Case) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    number = F.col("id")
    sides = {
        side: F.pmod(F.xxhash64(number, F.lit(seed)), F.lit(case.templates))
        for side, seed in (("left", _LEFT), ("right", _RIGHT))
    }
    if case.text:
        sides = {side: F.format_string("person/%010d.jpg", of) for side, of in sides.items()}
    any_number = F.xxhash64(number, F.lit(_KEPT))
    kept = {
        "genuine": F.pmod(any_number, F.lit(4)) == 0,
        "fold": F.pmod(any_number, F.lit(5)),
        "score": any_number / F.lit(2.0**63),
    }
    columns = {**sides, **{name: kept[name] for name in case.kept}}
    return spark.range(case.pairs).select([of.alias(name) for name, of in columns.items()])


def _stages(spark: Any) -> list[Row]:
    """Ask Spark's own status pages."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urlopen(address, timeout=60) as answer:  # noqa: S310  (an address of our own)
        found: list[Row] = json.load(answer)
    return found
