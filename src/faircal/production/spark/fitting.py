"""Fitting on pairs of a Spark frame: what is counted by the workers, and fitted here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.jobs import Job
from faircal.compute.counting import ScoreCounts
from faircal.data import Dataset, Memo
from faircal.data.summary import DataSummary
from faircal.methods.inputs import check_classes
from faircal.methods.streaming import CountedFitting, CountingPass, FitRequest
from faircal.production.spark.running import reduce_parts

if TYPE_CHECKING:
    from faircal.production.spark.pairs import SparkPairs


def summarise(pairs: SparkPairs) -> DataSummary:
    """Count, by a job, how many pairs there are, and who is in them."""
    start = partial(DataSummary, None if pairs.images is None else len(pairs.images))
    return reduce_parts(pairs, start, _columns(pairs))


def _columns(pairs: SparkPairs) -> tuple[str, ...] | None:
    """Return what is read of the pairs: who is in them, a score table's columns tell, too."""
    return ("genuine",) if pairs.has_images else None


def distributed(pairs: SparkPairs, request: FitRequest, job: Job) -> Distributed:
    """Return what a method is fitted on; pairs without labels or of one class are an error."""
    job.progress("looking through the pairs", 0, 1, "")
    summary = pairs.summary
    job.progress("looking through the pairs", 0, 0, "")
    check_classes(summary.genuine, summary.pairs, pairs.where)
    return Distributed(
        score_range=pairs.score_range,
        images=summary.images if request.by_image else np.zeros(0, np.intp),
        embeddings=pairs.embeddings if request.by_image else None,
        group_names=request.group_names,
        memo=Memo({}),
        job=job,
        inputs=request.inputs,
        pairs=pairs,
    )


@dataclass(frozen=True, eq=False)
class Distributed(CountedFitting):
    """Pairs of Spark to be fitted on: each pass through them is one job.

    There is no checkpoint: what a lost worker had counted is counted again by another.
    """

    pairs: SparkPairs

    def count(self, what: CountingPass) -> ScoreCounts:
        """Have the workers score all pairs and count the scores."""
        self.job.progress("scoring pairs", 0, 1, f"pass {len(self.counts) + 1}")
        # Tasks share what travels: a model remembers the clusters of images from one to the next.
        scored = reduce_parts(self.pairs, partial(_Scored, what), _columns(self.pairs))
        return what.zeros() if scored.counts is None else scored.counts


class _Scored:
    """Scores of pairs, counted by set."""

    def __init__(self, what: CountingPass) -> None:
        self.what = what
        self.counts: ScoreCounts | None = None

    def add(self, part: Dataset) -> None:
        """Count a part."""
        if self.counts is None:
            self.counts = self.what.zeros()
        self.counts.add(*self.what.of(part))

    def merge(self, other: _Scored) -> None:
        """Add what another one has counted."""
        if self.counts is None:
            self.counts = other.counts
        elif other.counts is not None:
            self.counts = self.counts + other.counts

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all as JSON and arrays."""
        return {}, {} if self.counts is None else self.counts.state()

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: ARG002
        """Go on from what `state` gave."""
        self.counts = ScoreCounts.from_state(arrays) if arrays else None
