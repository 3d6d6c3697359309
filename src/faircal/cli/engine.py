"""The options ``--engine`` and what goes with it: where a command does its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from faircal._base.errors import ParameterError
from faircal.cli.help import Part, option
from faircal.cli.options import parse_assignments, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from faircal.cli.source import Source
    from faircal.production.spark import SparkPairs


@dataclass(frozen=True)
class Engine:
    """Where the work is done, as the options have it."""

    name: str = "local"
    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    embeddings: str = "auto"
    blocks: str | None = None

    @property
    def is_spark(self) -> bool:
        """Whether Spark does it."""
        return self.name == "spark"

    def check(self, source: Source, **refused: Any) -> None:
        """Raise where options don't go together; `refused` are those that Spark does not take."""
        if not self.is_spark:
            given = {
                "--master": self.master,
                "--conf": self.settings,
                "--blocks": self.blocks,
                "--embeddings": self.embeddings != "auto",
            }
            for option, value in given.items():
                if value:
                    raise ParameterError(f"{option}: goes with --engine spark; add it")
            return
        if source.device not in (None, "cpu"):
            raise ParameterError("--device: Spark's workers use processors; leave it out")
        for name, value in refused.items():
            if value:
                option = f"--{name.replace('_', '-')}"
                raise ParameterError(f"{option}: does not go with --engine spark; leave it out")

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Start Spark for the block."""
        from faircal.production.spark.session import session

        with ExitStack() as stack:
            with working("starting Spark"):
                spark = stack.enter_context(session(self.master, self.settings))
            yield spark

    def open(
        self, spark: Any, source: Source, features: Sequence[str] = (), *, measuring: bool = False
    ) -> SparkPairs:
        """Open the data of a command."""
        from faircal.production.spark import open_pairs

        how = source.how(features, measuring)
        how.pop("device")
        with working(f"reading {source.path}"):
            return open_pairs(
                spark, source.path, embeddings=self.embeddings, blocks=self.blocks, **how
            )

    def open_one(self, spark: Any, source: Source, feature: str | None) -> SparkPairs:
        """Open the data with one feature: the one named, or the only one."""
        from faircal.cli.source import check_one_feature

        pairs = self.open(spark, source, [feature] if feature else ())
        check_one_feature(pairs.features, source.path)
        return pairs


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--engine`` and Spark's options; gives ``engine``."""

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
        type=click.Choice(["auto", "map", "send", "tiles"]),
        default="auto",
        help="How workers get at vectors: map them from shared files, send them over the network, "
        "or tiles: hold two blocks of them at a time. auto finds out.",
    )
    @option(
        "--blocks",
        part=Part.SPARK,
        type=click.Path(),
        metavar="DIR",
        show_default="none",
        help="Folder for block files, which all workers see, or an address that Arrow knows "
        "(s3://…); with it auto is tiles.",
    )
    @wraps(function)
    def running(
        where: str,
        master: str | None,
        conf: tuple[str, ...],
        embeddings: str,
        blocks: str | None,
        **rest: Any,
    ) -> Any:
        settings = parse_assignments(conf, "--conf")
        return function(engine=Engine(where, master, settings, embeddings, blocks), **rest)

    return running
