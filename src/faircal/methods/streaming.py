"""Fitting on pairs that come part by part: what is gathered, and what can be gone on from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal.calibrators import Samples
from faircal.clustering import Clustering
from faircal.container import cut, pack, unpack
from faircal.counting import Counts, fine_edges
from faircal.data import Dataset, Memo, PairStream
from faircal.errors import DataError, FairCalError, ParameterError
from faircal.files import atomic_path, digest
from faircal.jobs import Job
from faircal.methods.inputs import Codes, Fitting, Float64, Inputs
from faircal.registry import short


@dataclass(frozen=True, eq=False)
class Streamed(Fitting):
    """A stream to be fitted on: each call of `samples` goes through it once, counting scores."""

    stream: PairStream
    inputs: Callable[[Dataset], Inputs]
    checkpoint: Checkpoint
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
        if genuine in (0, pairs):
            raise DataError(
                f"{stream.where}: expected genuine and imposter pairs, found one class only "
                f"({pairs} pairs); add the other class"
            )
        what = {"data": stream.fingerprint(), "feature": stream.feature, "pairs": pairs}
        checkpoint = Checkpoint.open(job, {**what, **settings})
        return cls(
            score_range=stream.score_range,
            images=np.flatnonzero(used),
            embeddings=embeddings,
            group_names=group_names,
            memo=Memo({}),
            job=job,
            stream=stream,
            inputs=inputs,
            checkpoint=checkpoint,
        )

    def clustering(self, n_clusters: int, n_init: int, random_state: int) -> Clustering:
        """Return K-means of the images, kept in the checkpoint."""
        found = super().clustering
        return self.checkpoint.clustering(lambda: found(n_clusters, n_init, random_state))

    def samples(
        self,
        n_sets: int = 0,
        sets: Callable[[Inputs], Codes] | None = None,
        score: Callable[[Inputs], Float64] | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Samples:
        """Count the labelled scores of each set, and of all pairs as last set, in fine bins."""
        stage = len(self.counts)
        counts, done = self.checkpoint.counted(stage)
        if counts is None:
            counts = Counts.zeros(n_sets + 1, fine_edges(*(score_range or self.score_range)))
        for part in self.stream.parts(start=done):
            inputs = self.inputs(part)
            values = inputs.score if score is None else score(inputs)
            counts.add(values, part.genuine, *(sets(inputs) if sets else ()), np.int64(n_sets))
            done += len(part)
            self.job.progress("scoring pairs", done, len(self.stream), f"pass {stage + 1}")
            self.checkpoint.keep(stage, counts, done)
        self.counts.append(counts)
        return Samples.from_counts(counts)

    def note(self, error: float) -> str:
        """Say what counting took from the fit: `error` bounds the probabilities; NaN: unknown."""
        widths = np.diff(self.counts[0].edges)
        said = (
            f"fitted on {len(self.stream)} pairs whose scores were counted in bins of at most "
            f"{widths.max():.1e}: "
        )
        if np.isfinite(error):
            return said + f"probabilities are within {error:.1e} of a fit on the scores themselves"
        return said + "thresholds and probabilities are as exact as that"


class Checkpoint:
    """What a fit on a stream has come to: K-means, and the counts of each pass so far.

    Without a path it keeps nothing.
    """

    def __init__(self, job: Job, fingerprint: str, arrays: dict[str, NDArray[Any]]) -> None:
        self._job, self._fingerprint, self._arrays = job, fingerprint, arrays
        self._written = time.monotonic()

    @classmethod
    def open(cls, job: Job, settings: Mapping[str, Any]) -> Checkpoint:
        """Go on from the job's checkpoint, where there is one and it is of the same fit."""
        text = json.dumps(settings, sort_keys=True, default=str).encode()
        made = cls(job, digest(lambda feed: feed(text)), {})
        path = job.checkpoint
        if path is None or job.resume is False or not path.exists():
            return made
        try:
            header, body = unpack(path.read_bytes())
            made._arrays = cut(header["arrays"], body)
            same = header.get("fit") == made._fingerprint
        except (OSError, FairCalError, KeyError, TypeError, ValueError) as error:
            raise ParameterError(
                f"{path}: not a checkpoint, or damaged; delete it and fit from the start"
            ) from error
        if not same and job.resume:
            raise ParameterError(
                f"{path}: the checkpoint is of another fit (data, method or parameters); "
                "delete it, or give the same as then"
            )
        return made if same else cls(job, made._fingerprint, {})

    def clustering(self, compute: Callable[[], Clustering]) -> Clustering:
        """Return what K-means found, before an interruption or now."""
        found = {key: self._arrays.get(f"kmeans.{key}") for key in ("centers", "figures")}
        if found["centers"] is None or found["figures"] is None:
            made = compute()
            self._arrays["kmeans.centers"] = made.centers
            self._arrays["kmeans.figures"] = np.array([made.inertia, made.n_iter])
            return made
        inertia, n_iter = found["figures"].tolist()
        return Clustering(found["centers"], inertia, int(n_iter))

    def counted(self, stage: int) -> tuple[Counts | None, int]:
        """Return what pass number `stage` has counted, and of how many pairs."""
        prefix = f"{stage}."
        state = {
            key.removeprefix(prefix): array
            for key, array in self._arrays.items()
            if key.startswith(prefix)
        }
        if not state:
            return None, 0
        return Counts.from_state(state), int(state["done"][0])

    def keep(self, stage: int, counts: Counts, done: int) -> None:
        """Write it down, if it is time to."""
        if self._job.checkpoint is None or time.monotonic() - self._written < self._job.every:
            return
        state = {**counts.state(), "done": np.array([done])}
        self._arrays.update({f"{stage}.{key}": array for key, array in state.items()})
        try:
            with atomic_path(self._job.checkpoint) as temporary:
                temporary.write_bytes(pack({"fit": self._fingerprint}, self._arrays))
        except OSError as error:  # a full disk should not end a long fit
            self._job.notes.append(f"no checkpoint could be written ({short(error)})")
        self._written = time.monotonic()
