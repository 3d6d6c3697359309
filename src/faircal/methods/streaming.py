"""Fitting on pairs that come part by part: what is gathered, and what can be gone on from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.checkpoints import Checkpoint, State, mark_of, uninterrupted
from faircal._base.container import prefixed
from faircal._base.jobs import Job
from faircal._version import __version__
from faircal.calibrators import Samples
from faircal.compute.clustering import Clustering
from faircal.compute.counting import ScoreCounts, fine_edges
from faircal.data import Dataset, Memo, PairStream
from faircal.data.summary import DataSummary
from faircal.methods.inputs import Codes, Fitting, Float64, Inputs, check_classes


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What a method asks of pairs that it sees part by part.

    Parameters
    ----------
    by_image : bool
        Whether it wants embeddings, and to know which images occur.
    group_names : tuple of str
        The groups of all pairs, where it may see them.
    inputs : callable
        Makes of a part what the method may see of it.
    settings : mapping
        What a fit depends on besides the pairs.
    """

    by_image: bool
    group_names: tuple[str, ...]
    inputs: Callable[[Dataset], Inputs]
    settings: Mapping[str, Any]


class DistributedPairs(Protocol):
    """Pairs that are gone through somewhere else, such as on a cluster."""

    def head(self) -> Dataset:
        """Return a few of them, to see what they come with."""

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of all of them."""

    def fitting(self, request: FitRequest, job: Job) -> CountedFitting:
        """Return what a method is fitted on."""


@dataclass(frozen=True, eq=False)
class CountingPass:
    """What is looked at in one pass through the pairs: scores and sets, as `samples` was told."""

    inputs: Callable[[Dataset], Inputs]
    n_sets: int
    sets: Callable[[Inputs], Codes] | None
    score: Callable[[Inputs], Float64] | None
    edges: Float64

    def zeros(self) -> ScoreCounts:
        """Return the counts of nothing yet; all pairs are the last set."""
        return ScoreCounts.zeros(self.n_sets + 1, self.edges)

    def of(self, part: Dataset) -> tuple[NDArray[Any], ...]:
        """Return what `ScoreCounts.add` takes of the pairs of `part`."""
        inputs = self.inputs(part)
        values = inputs.score if self.score is None else self.score(inputs)
        codes = () if self.sets is None else self.sets(inputs)
        return (values, part.genuine, np.array(self.n_sets), *codes)


@dataclass(frozen=True, eq=False)
class CountedFitting(Fitting):
    """Pairs to be fitted on that nobody holds: each call of `samples` counts their scores."""

    inputs: Callable[[Dataset], Inputs]
    #: What each pass has counted.
    counts: list[ScoreCounts] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def count(self, what: CountingPass) -> ScoreCounts:
        """Go through all pairs once."""

    def samples(
        self,
        n_sets: int = 0,
        sets: Callable[[Inputs], Codes] | None = None,
        score: Callable[[Inputs], Float64] | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Samples:
        """Count the labelled scores of each set, and of all pairs as last set, in fine bins."""
        edges = fine_edges(*(score_range or self.score_range))
        found = self.count(CountingPass(self.inputs, n_sets, sets, score, edges))
        self.counts.append(found)
        return Samples.from_counts(found)

    @property
    def share_genuine(self) -> float:
        """The share of genuine pairs, as counted: all pairs are the last set."""
        genuine, imposter = self._counted()
        return genuine / (genuine + imposter)

    def note(self, error: float) -> str:
        """Say what counting took from the fit: `error` bounds the probabilities, where finite."""
        widths = np.diff(self.counts[0].edges)
        said = (
            f"fitted on {sum(self._counted())} pairs whose scores were counted in bins of at most "
            f"{widths.max():.1e}: "
        )
        if np.isfinite(error):
            return said + f"probabilities are within {error:.1e} of a fit on the scores themselves"
        return said + (
            "how far that takes probabilities from those of a fit on the scores themselves is not "
            "known"
        )

    def _counted(self) -> tuple[int, int]:
        of = self.counts[0]
        return int(of.genuine[-1].sum()), int(of.imposter[-1].sum())


@dataclass(frozen=True, eq=False)
class StreamedFitting(CountedFitting):
    """A stream to be fitted on: it is gone through once for each pass."""

    stream: PairStream
    kept: FitCheckpoint

    @classmethod
    def survey(cls, stream: PairStream, wanted: FitRequest, job: Job) -> StreamedFitting:
        """Go through the pairs once to see which images they use, and whether they are labelled."""
        found = DataSummary.of(stream, "looking through the pairs", job.progress, ("genuine",))
        check_classes(found.genuine, found.pairs, stream.where)
        what = {
            "version": __version__,
            "data": stream.fingerprint(),
            "feature": stream.feature,
            "pairs": found.pairs,
        }
        return cls(
            score_range=stream.score_range,
            images=found.images if wanted.by_image else np.zeros(0, np.intp),
            embeddings=stream.embeddings if wanted.by_image else None,
            group_names=wanted.group_names,
            memo=Memo({}),
            job=job,
            inputs=wanted.inputs,
            stream=stream,
            kept=FitCheckpoint(job, {**what, **wanted.settings}),
        )

    def clustering(self, n_clusters: int, n_init: int, random_state: int) -> Clustering:
        """Return K-means of the images, kept in the checkpoint."""
        found = super().clustering
        return self.kept.clustering(lambda: found(n_clusters, n_init, random_state))

    def count(self, what: CountingPass) -> ScoreCounts:
        """Go through the stream, from where an earlier fit was interrupted."""
        stage = len(self.counts)
        counts, done = self.kept.counted(stage)
        if counts is None:
            counts = what.zeros()
        try:
            with closing(self.stream.parts(start=done)) as parts:
                for part in parts:
                    found = what.of(part)
                    with uninterrupted():
                        counts.add(*found)
                        done += len(part)
                    self.job.progress("scoring pairs", done, len(self.stream), f"pass {stage + 1}")
                    self.kept.write(stage, counts, done)
        except KeyboardInterrupt:
            self.kept.write(stage, counts, done, now=True)
            raise
        self.kept.hold(stage, counts, done)
        return counts


class FitCheckpoint:
    """What a fit on a stream has come to, in a checkpoint: K-means, and the counts of each pass."""

    def __init__(self, job: Job, settings: Mapping[str, Any]) -> None:
        what = "data, method or parameters"
        self._file = Checkpoint(job, mark_of(settings), "fit", "fit", what)
        self._state = self._file.read() or State({}, {})

    def clustering(self, compute: Callable[[], Clustering]) -> Clustering:
        """Return what K-means found, before an interruption or now."""
        found = self._state.part("kmeans")
        if not found:
            made = compute()
            self._state.arrays["kmeans.centers"] = made.centers
            self._state.arrays["kmeans.figures"] = np.array([made.inertia, made.n_iter])
            return made
        inertia, n_iter = found["figures"].tolist()
        return Clustering(np.asarray(found["centers"], np.float32), inertia, int(n_iter))

    def counted(self, stage: int) -> tuple[ScoreCounts | None, int]:
        """Return what pass number `stage` has counted, and of how many pairs."""
        state = self._state.part(f"pass {stage}")
        return (ScoreCounts.from_state(state), int(state["done"][0])) if state else (None, 0)

    def write(self, stage: int, counts: ScoreCounts, done: int, *, now: bool = False) -> None:
        """Write it down, if it is time to."""
        if now or self._file.is_due:
            self.hold(stage, counts, done)
            self._file.write({}, self._state.arrays)

    def hold(self, stage: int, counts: ScoreCounts, done: int) -> None:
        """Have it ready for the next time that something is written."""
        state = {**counts.state(), "done": np.array([done])}
        self._state.arrays.update(prefixed(f"pass {stage}", state))
