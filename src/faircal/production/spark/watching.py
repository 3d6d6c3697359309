"""How far Spark's tasks are, told while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from faircal._base.jobs import Progress, silent

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

#: Seconds between two looks.
_EVERY = 0.5
_WHAT = "Spark's tasks"


@contextmanager
def watched(spark: SparkSession, progress: Progress) -> Iterator[None]:
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
