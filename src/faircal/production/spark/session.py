"""Spark itself: whether it is there, sessions, errors in one line, progress, and the engine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base import errors
from faircal._base.errors import FairCalError, MissingExtraError, ParameterError
from faircal._base.jobs import Progress, silent, step
from faircal._base.registry import short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from faircal.data import PairFiles
    from faircal.production.spark import SparkPairs


#: What Spark says of an error of ours on a worker: the last line of its trace.
_OURS = re.compile(r"faircal\.(?:\w+\.)*(\w+Error): (.+)")
#: Of a session that we start, unless its owner says otherwise.
_OUR_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Spark's own default of 1 GB is little where driver and workers are one process, and a Java
    # that is out of memory may wait for ever.
    "spark.driver.memory": "3g",
}


def require() -> None:
    """Raise `MissingExtraError` where PySpark is not installed."""
    try:
        spec = find_spec("pyspark")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise MissingExtraError(
            "Spark needs pyspark, which is not installed: pip install 'faircal[spark]'"
        )


def _why(error: Exception) -> str:
    """Return what Java says of why a session can't be, as far as it is of use."""
    text = str(error)
    if "stopped SparkContext" in text:
        return "its master does not answer"
    if "JAVA_GATEWAY_EXITED" in text:
        return "Java ended at once, as it does for a master or a setting that it does not know"
    java_error = re.search(r"^: [\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    return java_error[1][:160] if java_error else short(error)


def engine_record(spark: SparkSession) -> dict[str, str]:
    """Return what ``run.json`` says of where the work was done."""
    return {"engine": f"spark {spark.version}"}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Java says while it starts off standard error: it inherits that of the process."""
    try:
        # A service may run without a standard error.
        kept = os.dup(2)
    except OSError:
        yield
        return
    try:
        with Path(os.devnull).open("wb") as devnull:
            os.dup2(devnull.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an error that a worker of Spark met into ours, of one line; others stay as they are."""
    try:
        yield
    except FairCalError:
        raise
    except Exception as error:
        messages = _OURS.findall(str(error))
        kind = getattr(errors, messages[-1][0], None) if messages else None
        if kind is None:
            raise
        raise kind(messages[-1][1].strip()) from error


#: Seconds between two looks.
_EVERY = 0.5
_WHAT = "Spark's tasks"


@contextmanager
def task_progress(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Tell `progress` of the tasks of the stages under way, while the block lasts.

    All stages of the session count: for who has it alone.
    """
    if progress is silent:
        yield
        return
    over, tracker = threading.Event(), spark.sparkContext.statusTracker()

    def watch() -> None:
        while not over.wait(_EVERY):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            active = [stage for stage in stages if stage is not None]
            total = sum(stage.numTasks for stage in active)
            if total:
                done = sum(stage.numCompletedTasks for stage in active)
                progress(_WHAT, done, total, "")

    thread = threading.Thread(target=watch, name="faircal-spark", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        progress(_WHAT, 0, 0, "")


@dataclass(frozen=True)
class SparkEngine:
    """A Spark cluster that a workflow's work is done on.

    Attributes
    ----------
    master : str, optional
        Such as ``local[4]`` or ``spark://host:7077``; what Spark is configured for by default,
        all cores of this machine where it is not.
    settings : mapping
        Of Spark, by name. They go before ours; ours go before those of ``spark-defaults.conf``.
    embeddings : str
        How workers get at vectors: "auto", "map" or "send".

    Examples
    --------
    >>> SparkEngine(master="local[2]").embeddings
    'auto'
    """

    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    embeddings: str = "auto"

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
        """Start a Spark session for the block, and stop it after; who has one uses that."""
        require()
        if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
            raise ParameterError(
                "Spark needs Java 17 or later, and there is none; install it, or set JAVA_HOME"
            )
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("faircal")
        if self.master is not None:
            builder = builder.master(self.master)
        for name, value in {**_OUR_SETTINGS, **self.settings}.items():
            builder = builder.config(name, value)
        with step(progress, "starting Spark"):
            try:
                with _quiet():
                    spark = builder.getOrCreate()
            except Exception as error:  # Spark's, Java's or py4j's, as it pleases
                which = "Spark" if self.master is None else f"Spark at {self.master}"
                raise ParameterError(
                    f"{which} does not start ({_why(error)}); check --master and --conf"
                ) from error
        try:
            with errors_in_one_line():
                yield spark
        finally:
            spark.stop()

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
            return open_pairs(spark, files.path, embeddings=self.embeddings, **how)

    @contextmanager
    def opened(
        self, files: PairFiles, feature: str | None, progress: Progress = silent
    ) -> Iterator[SparkPairs]:
        """Start Spark for the block, and open the data with one feature: that named, or the only.

        Tells `progress` of Spark's tasks.
        """
        from faircal.data.pair_files import check_one_feature

        with self.session(progress) as spark:
            pairs = self.open(spark, files, [feature] if feature else (), progress=progress)
            check_one_feature(pairs.features, files.path)
            with task_progress(spark, progress):
                yield pairs
