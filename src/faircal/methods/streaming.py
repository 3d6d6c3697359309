"""Fitting on pairs that come part by part: what is gathered, and what can be gone on from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from faircal._version import __version__
from faircal.calibrators import Samples
from faircal.checkpoints import Checkpoint, State, mark_of, uninterrupted
from faircal.clustering import Clustering
from faircal.counting import Counts, fine_edges
from faircal.data import Dataset, Memo, PairStream
from faircal.jobs import Job
from faircal.methods.inputs import Codes, Fitting, Float64, Inputs, check_classes


@dataclass(frozen=True, eq=False)
class Streamed(Fitting):
    """A stream to be fitted on: each call of `samples` goes through it once, counting scores."""

    stream: PairStream
    inputs: Callable[[Dataset], Inputs]
    kept: Kept
    counts: list[Counts] = field(default_factory=list)

    @classmethod
    def survey(
        cls,
        stream: PairStream,
        by_image: bool,
        group_names: tuple[str, ...],
        inputs: Callable[[Dataset], Inputs],
        settings: Mapping[str, Any],
        job: Job,
    ) -> Streamed:
        """Go through the pairs once to find which images they use, and whether they are labelled.

        `inputs` makes of a part what the method may see of it.
        """
        embeddings = stream.embeddings if by_image else None
        used = np.zeros(0 if embeddings is None else len(embeddings), dtype=bool)
        genuine = pairs = 0
        for part in stream.parts(columns=("genuine",)):
            genuine += int(part.genuine.sum())
            pairs += len(part)
            if len(used):
                used[part.pairs.left] = used[part.pairs.right] = True
            job.progress("looking through the pairs", pairs, len(stream), "")
        job.progress("looking through the pairs", 0, 0, "")
        check_classes(genuine, pairs, stream.where)
        what = {
            "version": __version__,
            "data": stream.fingerprint(),
            "feature": stream.feature,
            "pairs": pairs,
        }
        return cls(
            score_range=stream.score_range,
            images=np.flatnonzero(used),
            embeddings=embeddings,
            group_names=group_names,
            memo=Memo({}),
            job=job,
            stream=stream,
            inputs=inputs,
            kept=Kept(job, {**what, **settings}),
        )

    def clustering(self, n_clusters: int, n_init: int, random_state: int) -> Clustering:
        """Return K-means of the images, kept in the checkpoint."""
        found = super().clustering
        return self.kept.clustering(lambda: found(n_clusters, n_init, random_state))

    def samples(
        self,
        n_sets: int = 0,
        sets: Callable[[Inputs], Codes] | None = None,
        score: Callable[[Inputs], Float64] | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Samples:
        """Count the labelled scores of each set, and of all pairs as last set, in fine bins."""
        stage = len(self.counts)
        counts, done = self.kept.counted(stage)
        if counts is None:
            counts = Counts.zeros(n_sets + 1, fine_edges(*(score_range or self.score_range)))
        try:
            with closing(self.stream.parts(start=done)) as parts:
                for part in parts:
                    inputs = self.inputs(part)
                    values = inputs.score if score is None else score(inputs)
                    codes = () if sets is None else sets(inputs)
                    with uninterrupted():
                        counts.add(values, part.genuine, np.int64(n_sets), *codes)
                        done += len(part)
                    self.job.progress("scoring pairs", done, len(self.stream), f"pass {stage + 1}")
                    self.kept.write(stage, counts, done)
        except KeyboardInterrupt:
            self.kept.write(stage, counts, done, now=True)
            raise
        self.kept.hold(stage, counts, done)
        self.counts.append(counts)
        return Samples.from_counts(counts)

    @property
    def share_genuine(self) -> float:
        """The share of genuine pairs, as counted: all pairs are the last set."""
        genuine, imposter = self.counts[0].genuine[-1].sum(), self.counts[0].imposter[-1].sum()
        return float(genuine / (genuine + imposter))

    def note(self, error: float) -> str:
        """Say what counting took from the fit: `error` bounds the probabilities, where finite."""
        widths = np.diff(self.counts[0].edges)
        said = (
            f"fitted on {len(self.stream)} pairs whose scores were counted in bins of at most "
            f"{widths.max():.1e}: "
        )
        if np.isfinite(error):
            return said + f"probabilities are within {error:.1e} of a fit on the scores themselves"
        return said + (
            "how far that takes probabilities from those of a fit on the scores themselves is not "
            "known"
        )


class Kept:
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

    def counted(self, stage: int) -> tuple[Counts | None, int]:
        """Return what pass number `stage` has counted, and of how many pairs."""
        state = self._state.part(f"pass {stage}")
        return (Counts.from_state(state), int(state["done"][0])) if state else (None, 0)

    def write(self, stage: int, counts: Counts, done: int, *, now: bool = False) -> None:
        """Write it down, if it is time to."""
        if now or self._file.is_due:
            self.hold(stage, counts, done)
            self._file.write({}, self._state.arrays)

    def hold(self, stage: int, counts: Counts, done: int) -> None:
        """Have it ready for the next time that something is written."""
        state = {**counts.state(), "done": np.array([done])}
        self._state.arrays.update({f"pass {stage}.{k}": array for k, array in state.items()})
