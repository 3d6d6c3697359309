"""Fitting on pairs that are not in memory: each pass counts scores, and can be gone on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.checkpoints import Checkpoint, State, mark_of
from faircal._base.container import prefixed
from faircal._base.jobs import Job
from faircal._version import __version__
from faircal.calibrators import Samples
from faircal.compute import Clustering
from faircal.compute.counting import ScoreCounts, fine_edges
from faircal.data import CohortVectors, Dataset, Memo, PairParts
from faircal.data.parts import TallyState
from faircal.data.summary import DataSummary
from faircal.methods.inputs import Fitting, Inputs, PairScores, PairSets, check_classes

#: What tells which pairs are there, and whether their labels can be right.
_LABELS = ("genuine", "identity")


class SetScores:
    """Labelled scores of the pairs of each set, and of all pairs as last set, counted in bins.

    Parameters
    ----------
    inputs : callable
        Makes of a part what the method may see of it.
    sets, n_sets, scores
        As of `Fitting.samples`.
    edges : ndarray of float64, shape (n_bins,)
    """

    def __init__(
        self,
        inputs: Callable[[Dataset], Inputs],
        sets: PairSets | None,
        n_sets: int,
        scores: PairScores | None,
        edges: NDArray[np.float64],
    ) -> None:
        self._inputs, self._sets, self._scores = inputs, sets, scores
        self._n_sets = n_sets
        self.counts = ScoreCounts.zeros(n_sets + 1, edges)

    def add(self, part: Dataset) -> None:
        """Count a part."""
        inputs = self._inputs(part)
        values = inputs.score if self._scores is None else self._scores(inputs)
        codes = () if self._sets is None else self._sets(inputs)
        self.counts.add(values, part.genuine, np.array(self._n_sets), *codes)

    def merge(self, other: SetScores) -> None:
        """Add what another one has counted."""
        self.counts = self.counts + other.counts

    def state(self) -> TallyState:
        """Return all as JSON and arrays."""
        return {}, self.counts.state()

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: ARG002
        """Go on from what `state` gave."""
        self.counts = ScoreCounts.from_state(arrays)


@dataclass(frozen=True, eq=False)
class CountedFitting(Fitting):
    """Pairs to be fitted on that nobody holds: each call of `samples` is a pass through them."""

    pairs: PairParts
    summary: DataSummary
    inputs: Callable[[Dataset], Inputs]
    kept: FitCheckpoint

    @classmethod
    def of(
        cls,
        pairs: PairParts,
        inputs: Callable[[Dataset], Inputs],
        *,
        by_image: bool,
        imposters: bool,
        group_names: tuple[str, ...],
        settings: Mapping[str, Any],
        job: Job,
        cohort: CohortVectors | None = None,
    ) -> CountedFitting:
        """Go through the pairs once to see which images they use, and whether they are labelled.

        Parameters
        ----------
        pairs : PairParts
        inputs : callable
            Makes of a part what the method may see of it.
        by_image : bool
            Whether the method may see embeddings, and which images occur.
        imposters : bool
            Whether there must be some.
        group_names : tuple of str
            The groups of all pairs, where it may see them.
        settings : mapping
            What the fit depends on besides the pairs.
        job : Job
        cohort : CohortVectors, optional
            Where the method may see it.
        """
        summary = DataSummary.of(pairs, "looking through the pairs", job.progress, _LABELS)
        check_classes(summary.genuine, summary.pairs, pairs.where, imposters)
        job.notes.extend(summary.wrong.check(pairs.where))
        what = {
            "version": __version__,
            "data": pairs.fingerprint(),
            "feature": pairs.feature,
            "pairs": summary.pairs,
        }
        return cls(
            score_range=pairs.score_range,
            images=summary.images if by_image else np.zeros(0, np.intp),
            embeddings=pairs.embeddings if by_image else None,
            group_names=group_names,
            share_genuine=summary.genuine / summary.pairs,
            memo=Memo({}),
            job=job,
            pairs=pairs,
            summary=summary,
            inputs=inputs,
            kept=FitCheckpoint(job, {**what, **settings}),
            cohort=cohort,
        )

    def clustering(self, n_clusters: int, n_init: int, random_state: int) -> Clustering:
        """Return K-means of the images, kept in the checkpoint."""
        compute = super().clustering
        return self.kept.clustering(lambda: compute(n_clusters, n_init, random_state))

    def samples(
        self,
        sets: PairSets | None = None,
        n_sets: int = 0,
        scores: PairScores | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Samples:
        """Count the labelled scores of each set, and of all pairs as last set, in fine bins."""
        edges = fine_edges(*(score_range or self.score_range))
        label = f"pass {self.kept.stage + 1}"
        passed = self.pairs.reduce(
            partial(SetScores, self.inputs, sets, n_sets, scores, edges),
            ("genuine",) if self.pairs.has_images else None,
            progress=lambda done, total: self.job.progress("scoring pairs", done, total, label),
            kept=self.kept,
        )
        self.kept.finish(passed)
        return Samples.from_counts(passed.counts)

    def note(self) -> str:
        """Say that scores were counted, and how finely."""
        width = np.diff(fine_edges(*self.score_range)).max()
        return (
            f"fitted on {self.summary.pairs} pairs whose scores were counted in bins of at most "
            f"{width:.1e}"
        )


class FitCheckpoint:
    """What a fit on a stream has come to, in a checkpoint: K-means, and the counts of each pass."""

    def __init__(self, job: Job, settings: Mapping[str, Any]) -> None:
        what = "data, method or parameters"
        self._file = Checkpoint(job, mark_of(settings), "fit", "fit", what)
        self._state = self._file.read() or State({}, {})
        #: Passes that are done.
        self.stage = 0

    def clustering(self, compute: Callable[[], Clustering]) -> Clustering:
        """Return the result of K-means, from before an interruption or computed now."""
        kept = self._state.part("kmeans")
        if not kept:
            made = compute()
            self._state.arrays["kmeans.centers"] = made.centers
            self._state.arrays["kmeans.figures"] = np.array([made.inertia, made.n_iter])
            return made
        inertia, n_iter = kept["figures"].tolist()
        return Clustering(np.asarray(kept["centers"], np.float32), inertia, int(n_iter))

    def restore(self, tally: SetScores) -> int:
        """Go on with the pass under way; return how many pairs it has counted."""
        state = self._state.part(f"pass {self.stage}")
        if not state:
            return 0
        tally.restore({}, state)
        return int(state["done"][0])

    def keep(self, tally: SetScores, done: int, *, now: bool = False) -> None:
        """Write down what the pass under way has counted, if it is time to."""
        if now or self._file.is_due:
            self._hold(tally, done)
            self._file.write({}, self._state.arrays)

    def finish(self, tally: SetScores) -> None:
        """Have all that a pass has counted ready for the next time that something is written."""
        self._hold(tally, int(tally.counts.genuine[-1].sum() + tally.counts.imposter[-1].sum()))
        self.stage += 1

    def _hold(self, tally: SetScores, done: int) -> None:
        state = {**tally.state()[1], "done": np.array([done])}
        self._state.arrays.update(prefixed(f"pass {self.stage}", state))
