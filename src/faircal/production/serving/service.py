"""The service without HTTP: one model in use, what it has decided, and what was counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, FairCalError, ModelFileError, ParameterError
from faircal.data import Embeddings, Groups
from faircal.production.serving.audit_trail import Recorder
from faircal.production.serving.keys import Key, KeyRing
from faircal.production.serving.live_monitor import LiveMonitor
from faircal.production.serving.metrics import ServiceCounts
from faircal.production.serving.model_in_use import ModelInUse, check_groups, pair_groups
from faircal.production.serving.settings import ServiceSettings
from faircal.production.serving.store import open_store
from faircal.production.serving.store.base import Store
from faircal.production.serving.store.records import Decision
from faircal.production.serving.verification import (
    BatchVerification,
    IdentificationCandidate,
    Verification,
    image_numbers,
    new_id,
    rank_candidates,
)

if TYPE_CHECKING:
    from faircal.production.serving.pictures import Embedder

Vector = NDArray[np.float32]
Rows = NDArray[np.intp]

#: Templates that identification judges: the most similar ones, at least so many.
_JUDGED = 1000

_LEFT, _RIGHT = np.array([0]), np.array([1])
_log = logging.getLogger("faircal.production.serving")


class Identification(NamedTuple):
    """Who of those enrolled a face may be of.

    `enrolled` is how many there are, `nobody` how likely it is that none of them was seen.
    """

    id: str
    enrolled: int
    candidates: list[IdentificationCandidate]
    nobody: float
    in_use: ModelInUse


class Service:
    """One model in use: it decides, records, watches, and can be given another model meanwhile.

    All methods may be called from any thread. `verify` does not wait for the database; what asks
    or changes the store does.

    Parameters
    ----------
    settings : Settings
    store : Store, optional
        In place of the one that the settings name.

    Attributes
    ----------
    store : Store or None
        None: no storage.
    counts : Counts
        What was counted since the start.
    watching : Watching
    recorder : Recorder
    """

    def __init__(self, settings: ServiceSettings, *, store: Store | None = None) -> None:
        self.settings = settings
        self._in_use = ModelInUse.read(settings)
        self._ring = None if settings.keys is None else KeyRing.load(settings.keys)
        self._embedder = _open_embedder(settings)
        _check_network(self._embedder, self._in_use)
        self._swapping = threading.Lock()
        self.store = store
        if store is None and settings.database is not None:
            self.store = open_store(settings.database, settings.encryption_key)
        self._check_templates(self._in_use)
        self.recorder = Recorder(self.store)
        self.counts = ServiceCounts()
        self.monitor = LiveMonitor(settings.false_alarms, f"{settings.host}:{settings.port}")
        self.monitor.begin(self._in_use, self.monitor.saved_state(self.store, self._in_use))
        self.started = time.time()

    # --------------------------------------------------------------- the model

    @property
    def in_use(self) -> ModelInUse:
        """The model in use: take it once a request."""
        return self._in_use

    def reload(self) -> bool:
        """Read the model file again and use it from now on; False where it is the same.

        Raises
        ------
        ModelFileError
            Where it can't be used; the model in use stays.
        """
        with self._swapping:
            try:
                in_use = ModelInUse.read(self.settings)
                if in_use.digest == self._in_use.digest:
                    return False
                _check_network(self._embedder, in_use)
                if in_use.dimension != self._in_use.dimension:
                    self._check_templates(in_use)
            except FairCalError as error:
                self.counts.add(refused_swaps=1)
                _log.warning("the model file is not taken, the old one stays: %s", error)
                raise ModelFileError(f"{error}; the model in use stays") from error
            if self.store is not None:
                self.monitor.save(self.store)
            state = self.monitor.saved_state(self.store, in_use)  # it may have been in use before
            self._in_use = in_use
            self.monitor.begin(in_use, state)
            self.counts.add(swaps=1)
            _log.info("another model is in use: %s", in_use.digest[:16])
            return True

    def _check_templates(self, in_use: ModelInUse) -> None:
        """Raise where templates are enrolled that the model can't compare."""
        if self.store is None or in_use.dimension is None:
            return
        for template in self.store.templates(None, 1):
            if template.dimension != in_use.dimension:
                raise ModelFileError(
                    f"{self.settings.model}: it takes {in_use.dimension}-d embeddings, and the "
                    f"enrolled templates are {template.dimension}-d; use another database, or "
                    "delete them and enrol anew"
                )

    # ---------------------------------------------------------------- pictures

    @property
    def takes_pictures(self) -> bool:
        """Whether `embed` works."""
        return self._embedder is not None

    def embed(self, picture: bytes) -> Vector:
        """Return the embedding of the face in a picture; nothing of it is kept.

        Raises
        ------
        DataError
            Where there is no face, or no network to see one.
        """
        if self._embedder is None:
            raise DataError("pictures are not taken here; send embeddings, or serve with --network")
        return self._embedder(picture)

    # --------------------------------------------------------------- decisions

    def verify(
        self,
        left: Vector,
        right: Vector,
        *,
        left_group: str | None = None,
        right_group: str | None = None,
        prior: float | None = None,
        key: str = "",
        left_id: str | None = None,
        right_id: str | None = None,
        in_use: ModelInUse | None = None,
    ) -> Verification:
        """Judge two embeddings, put the decision into the audit trail, let the watch see it.

        Parameters
        ----------
        left, right : ndarray of shape (d,)
        left_group, right_group : str, optional
            For a method that needs groups.
        prior : float, optional
            Share of genuine pairs that the probability is wanted for.
        key : str
            Name of the API key, for the trail.
        left_id, right_id : str, optional
            Templates that the embeddings are of, for the trail.
        in_use : Loaded, optional
            The model that the request has taken; that in use unless told.

        Raises
        ------
        DataError
            Where an embedding can't be used.
        StorageUnavailableError, StorageFullError
            Where the decision could not be recorded: it is not made.
        """
        self.recorder.check()
        in_use = (in_use or self._in_use).at(prior)
        groups = None
        if in_use.needs_groups:
            check_groups(in_use, left_group, right_group)
            groups = pair_groups([left_group], [right_group])
        pair = in_use.embeddings(_stacked(left, right))
        judged = in_use.compare(pair, _LEFT, _RIGHT, groups)
        verified = Verification.of(judged, in_use.judge.point, in_use.digest, in_use.prior)
        self.recorder.pair(verified, key=key, left=left_id, right=right_id)
        self.counts.count_pair(verified)
        self.monitor.add(verified, left_id, right_id)
        return verified

    def verify_many(
        self,
        embeddings: Embeddings,
        left: Rows,
        right: Rows,
        *,
        groups: Groups | None = None,
        prior: float | None = None,
        key: str = "",
        left_ids: Sequence[str] | None = None,
        right_ids: Sequence[str] | None = None,
        in_use: ModelInUse | None = None,
    ) -> BatchVerification:
        """Judge pairs of rows of `embeddings`; otherwise as `verify`, ids one for each pair."""
        self.recorder.check()
        in_use = (in_use or self._in_use).at(prior)
        if in_use.needs_groups and groups is None:
            check_groups(in_use, None, None)
        judged = in_use.compare(embeddings, left, right, groups)
        point = in_use.judge.point
        batch = BatchVerification(
            new_id(),
            judged,
            left,
            right,
            point,
            in_use.digest,
            in_use.prior,
            left_ids,
            right_ids,
            image_numbers(embeddings.vectors),
        )
        self.recorder.batch(batch, key=key)
        self.counts.count_batch(batch)
        self.monitor.add_batch(batch)
        return batch

    def identify(
        self,
        probe: Vector,
        *,
        limit: int = 5,
        enrolled_prior: float = 0.5,
        key: str = "",
        in_use: ModelInUse | None = None,
    ) -> Identification:
        """Say who of those enrolled a face may be of; see `identify.posteriors`."""
        self.recorder.check()
        store, in_use = self.storage(), in_use or self._in_use
        if in_use.needs_groups:
            raise DataError(f"method {in_use.model.name} needs groups: it can verify, not identify")
        enrolled = store.count()
        nearest = store.search(probe, max(_JUDGED, 20 * limit)) if enrolled else []
        vectors = store.vectors([name for name, _ in nearest])
        names = [name for name, _ in nearest if name in vectors]  # one may have been deleted
        best, nobody = rank_candidates(
            in_use, probe, names, [vectors[name] for name in names], enrolled, enrolled_prior
        )
        line = self.recorder.other("identify", in_use, key=key, best=best[0] if best else None)
        self.counts.add(identify=1)
        return Identification(line, enrolled, best[:limit], nobody, in_use)

    def enrol(self, name: str, vector: Vector, *, replace: bool = False, key: str = "") -> None:
        """Keep a template; it is durable when this returns."""
        self.recorder.check()
        store, in_use = self.storage(), self._in_use
        if in_use.dimension is None:
            for other in store.templates(None, 1):
                if other.dimension != len(vector):
                    raise DataError(
                        f"expected {other.dimension} numbers, as other templates have, found "
                        f"{len(vector)}; use one network for all"
                    )
        store.enrol(name, vector, replace=replace)
        self.recorder.other("enrol", in_use, key=key, template=name)
        self.counts.add(enrol=1)

    def delete(self, name: str, *, key: str = "") -> bool:
        """Delete a template; False where there was none."""
        self.recorder.check()
        if not self.storage().delete(name):
            return False
        self.recorder.other("delete", self._in_use, key=key, template=name)
        self.counts.add(delete=1)
        return True

    def feedback(self, decision: str, genuine: bool) -> Decision | None:
        """Keep whether the pair of a decision was genuine; None where there is no such decision.

        Monitoring takes the first label of a pair that the model in use has judged: a request that
        is sent again, or comes after another model was taken, must not count.
        """
        labelled = self.recorder.label(self.storage(), decision, genuine)
        if labelled is None:
            return None
        line, first = labelled
        if first and line.kind == "verify" and line.probability is not None:
            self.counts.add(feedback=1)
            if line.model == self._in_use.digest:
                self.monitor.feedback(line.probability, genuine, line.left or line.right)
        return line

    def storage(self) -> Store:
        """Return the store; an error where there is none."""
        if self.store is None:
            raise ParameterError("there is no storage here; serve with --database PATH")
        return self.store

    # ---------------------------------------------------------------- the rest

    @property
    def has_keys(self) -> bool:
        """Whether requests need a key."""
        return self._ring is not None

    def who(self, presented: str | None) -> Key | None:
        """Return whose key this is; None: nobody's. Without keys, everybody may do everything."""
        if self._ring is None:
            return Key("", frozenset({"admin"}))
        return self._ring.who(presented) if presented else None

    def status(self) -> dict[str, Any]:
        """Return live counters, and what monitoring said last."""
        verdict = self.monitor.verdict
        return {
            **self.counts.numbers(),
            "model": self._in_use.digest,
            "method": self._in_use.model.name,
            "dimension": self._in_use.dimension,
            "started_at": datetime.fromtimestamp(self.started, UTC).isoformat(),
            "uptime_seconds": time.time() - self.started,
            "trail_waiting": self.recorder.waiting,
            "trail_failures": self.recorder.failures,
            "monitored": self.monitor.watch is not None,
            "recalibration_due": None if verdict is None else verdict.due,
            "monitor": None if verdict is None else verdict.words,
        }

    def close(self) -> None:
        """Write what waits, keep what the watch has seen, and let go of the store."""
        store = self.store
        if store is None:
            return
        if not self.recorder.close():
            lost = self.recorder.waiting
            _log.error("%d decisions that were answered could not be recorded, and are lost", lost)
        self.monitor.save(store)
        self.store = None
        store.close()


def _open_embedder(settings: ServiceSettings) -> Embedder | None:
    if settings.network is None:
        return None
    from faircal.production.serving.pictures import Embedder

    return Embedder(settings.network, settings.detector, settings.preset, settings.max_picture)


def _check_network(embedder: Embedder | None, in_use: ModelInUse) -> None:
    if embedder is None or in_use.dimension in (None, embedder.dimension):
        return
    raise ParameterError(
        f"--network {embedder.name}: gives {embedder.dimension}-d embeddings, the model takes "
        f"{in_use.dimension}-d ones; use the network the model was made for"
    )


def _stacked(left: Vector, right: Vector) -> Vector:
    if left.shape != right.shape or left.ndim != 1:
        raise DataError("expected two embeddings of equal length; use one network for both")
    vectors = np.empty((2, len(left)), dtype=np.float32)
    with np.errstate(over="ignore"):  # becomes infinite, and is refused as such
        vectors[0], vectors[1] = left, right
    return vectors
