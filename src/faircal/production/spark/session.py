"""Spark itself: whether it is there, a session for commands, errors in one line, progress."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircal._base import errors
from faircal._base.errors import FairCalError, MissingExtraError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import short

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


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
        found = find_spec("pyspark")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingExtraError(
            "Spark needs pyspark, which is not installed: pip install 'faircal[spark]'"
        )


@contextmanager
def session(master: str | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Start a Spark session for the block, and stop it after.

    For commands; who has a session uses that.

    Parameters
    ----------
    master : str, optional
        Such as ``local[4]`` or ``spark://host:7077``; what Spark is configured for unless told,
        all cores of this machine where it is not.
    settings : mapping, optional
        Of Spark, by name. They go before ours; ours go before those of ``spark-defaults.conf``.
    """
    require()
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise ParameterError(
            "Spark needs Java 17 or later, and there is none; install it, or set JAVA_HOME"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    found = _start(master, {**_OUR_SETTINGS, **(settings or {})})
    try:
        with errors_in_one_line():
            yield found
    finally:
        found.stop()


def _start(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("faircal")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _quiet():
            return builder.getOrCreate()
    except Exception as error:  # Spark's, Java's or py4j's, as it pleases
        which = "Spark" if master is None else f"Spark at {master}"
        raise ParameterError(
            f"{which} does not start ({_why(error)}); check --master and --conf"
        ) from error


def _why(error: Exception) -> str:
    """Return what Java says of why a session can't be, as far as it is of use."""
    text = str(error)
    if "stopped SparkContext" in text:
        return "its master does not answer"
    if "JAVA_GATEWAY_EXITED" in text:
        return "Java ended at once, as it does for a master or a setting that it does not know"
    thrown = re.search(r"^: [\w.$]+(?:Exception|Error): (.+)$", text, re.MULTILINE)
    return thrown[1][:160] if thrown else short(error)


def engine_record(spark: SparkSession) -> dict[str, str]:
    """Return what ``run.json`` says of where the work was done."""
    return {"engine": f"spark {spark.version}"}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Java says while it starts off standard error: it inherits that of the process."""
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
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
        found = _OURS.findall(str(error))
        kind = getattr(errors, found[-1][0], None) if found else None
        if kind is None:
            raise
        raise kind(found[-1][1].strip()) from error


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
    over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(spark.sparkContext, progress, over), name="faircal-spark", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        progress(_WHAT, 0, 0, "")


def _watch(context: SparkContext, progress: Progress, over: threading.Event) -> None:
    tracker = context.statusTracker()
    while not over.wait(_EVERY):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        found = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in found)
        if total:
            done = sum(stage.numCompletedTasks for stage in found)
            progress(_WHAT, done, total, "")
