"""The argument DATA of commands, its options, and those of where work is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from faircal._base.errors import ParameterError
from faircal.cli.help import Part, argument, option
from faircal.cli.options import parse_assignments

#: What the argument DATA may be.
DATA_HELP = (
    "A dataset folder (images, pairs, embeddings), as 'faircal import', 'embed', 'pairs' and "
    "'simulate' write it; or a table of scores (.csv, .parquet)."
)


class ScoreRange(click.ParamType[Any]):
    """``LOW,HIGH``."""

    name = "low,high"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Split into two numbers."""
        if isinstance(value, tuple):
            return value
        try:
            low, high = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"expected LOW,HIGH such as 0,100, found {value!r}", param, ctx)
        return low, high


def reads_data(
    function: Callable[..., Any] | None = None, *, required: bool = True
) -> Callable[..., Any]:
    """Add the argument DATA and the options that say how to read it; gives ``source``.

    Where DATA is not `required` and left out, the path of ``source`` is None.
    """
    if function is None:
        return partial(reads_data, required=required)

    @argument("data", type=click.Path(path_type=Path), required=required, help=DATA_HELP)
    @option(
        "--score-range",
        part=Part.DATA,
        type=ScoreRange(),
        show_default="-1,1; any where scores are only measured",
        help="Lowest and highest value that ready-made scores can have, such as 0,100.",
    )
    @option(
        "--raw",
        part=Part.DATA,
        is_flag=True,
        help="Keep embeddings as stored. Otherwise each is scaled to unit length.",
    )
    @option(
        "--device",
        part=Part.WORK,
        show_default="cpu; to train a network, cuda where there is one",
        help="Where heavy work is done: cpu, or cuda (a GPU; extra torch).",
    )
    @wraps(function)
    def reading(
        data: Path,
        score_range: tuple[float, float] | None,
        raw: bool,
        device: str | None,
        **rest: Any,
    ) -> Any:
        from faircal.data import PairFiles

        return function(source=PairFiles(data, score_range, not raw, device), **rest)

    return reading


stream_option = option(
    "--stream",
    part=Part.WORK,
    is_flag=True,
    help="Read the pairs part by part; of many their scores are counted in fine bins, in bounded "
    "memory. Done by itself above 10,000,000 pairs.",
)


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--engine`` and Spark's options; gives ``engine``: a `SparkEngine`, or None."""

    @option(
        "--engine",
        "where",
        part=Part.SPARK,
        type=click.Choice(["local", "spark"]),
        default="local",
        help="Where to run: on this machine, or on a Spark cluster (extra spark). The options "
        "below go with spark.",
    )
    @option(
        "--master",
        part=Part.SPARK,
        metavar="URL",
        show_default="Spark's own setting, else all cores here",
        help="Spark's master, such as local[4] or spark://host:7077.",
    )
    @option(
        "--conf",
        part=Part.SPARK,
        multiple=True,
        metavar="KEY=VALUE",
        show_default="none",
        help="Setting of the Spark session, such as spark.executor.memory=8g. May be repeated.",
    )
    @option(
        "--embeddings",
        part=Part.SPARK,
        type=click.Choice(["auto", "map", "send"]),
        default="auto",
        help="How workers get at vectors: map them from shared files, or send them over the "
        "network. auto finds out.",
    )
    @wraps(function)
    def running(
        where: str,
        master: str | None,
        conf: tuple[str, ...],
        embeddings: str,
        **rest: Any,
    ) -> Any:
        settings = parse_assignments(conf, "--conf")
        if where == "spark":
            from faircal.production.spark.session import SparkEngine

            engine = SparkEngine(master, settings, embeddings)
            return function(engine=engine, **rest)
        given = {
            "--master": master,
            "--conf": settings,
            "--embeddings": embeddings != "auto",
        }
        for name, value in given.items():
            if value:
                raise ParameterError(f"{name}: goes with --engine spark; add it")
        return function(engine=None, **rest)

    return running
