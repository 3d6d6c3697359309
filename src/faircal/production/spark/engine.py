"""Where Spark does the work of a workflow, and how its workers get at the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faircal._base.errors import ParameterError
from faircal._base.jobs import Progress, silent, step

if TYPE_CHECKING:
    from faircal.data import PairFiles
    from faircal.production.spark import SparkPairs


@dataclass(frozen=True)
class SparkEngine:
    """A Spark cluster that a workflow's work is done on.

    Attributes
    ----------
    master : str, optional
        Spark's master; Spark's own setting unless given, else all cores here.
    settings : mapping
        Settings of the session.
    embeddings : str
        How workers get at vectors: "auto", "map", "send" or "tiles".
    blocks : str, optional
        Folder for block files.

    Examples
    --------
    >>> SparkEngine(master="local[2]").embeddings
    'auto'
    """

    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    embeddings: str = "auto"
    blocks: str | None = None

    def check(self, files: PairFiles, **refused: Any) -> None:
        """Raise where options don't go together; `refused` are those that Spark does not take."""
        if files.device not in (None, "cpu"):
            raise ParameterError("--device: Spark's workers use processors; leave it out")
        for name, value in refused.items():
            if value:
                option = f"--{name.replace('_', '-')}"
                raise ParameterError(f"{option}: does not go with --engine spark; leave it out")

    @contextmanager
    def session(self, progress: Progress = silent) -> Iterator[Any]:
        """Start Spark for the block."""
        from faircal.production.spark.session import session

        with ExitStack() as stack:
            with step(progress, "starting Spark"):
                spark = stack.enter_context(session(self.master, self.settings))
            yield spark

    def open(
        self,
        spark: Any,
        files: PairFiles,
        features: Sequence[str] = (),
        *,
        measuring: bool = False,
        progress: Progress = silent,
    ) -> SparkPairs:
        """Open the data of a workflow."""
        from faircal.production.spark.opening import open_pairs

        how = files.how(features, measuring)
        how.pop("device")
        with step(progress, f"reading {files.path}"):
            return open_pairs(
                spark, files.path, embeddings=self.embeddings, blocks=self.blocks, **how
            )

    def open_one(
        self, spark: Any, files: PairFiles, feature: str | None, progress: Progress = silent
    ) -> SparkPairs:
        """Open the data with one feature: the one named, or the only one."""
        from faircal.data.pair_files import check_one_feature

        pairs = self.open(spark, files, [feature] if feature else (), progress=progress)
        check_one_feature(pairs.features, files.path)
        return pairs
