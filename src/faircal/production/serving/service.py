"""The service without HTTP: its settings, the model in use, what it decides and counts."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from faircal._base.errors import DataError, FairCalError, ModelFileError, ParameterError
from faircal.calibrators.prior import check_share
from faircal.data import Embeddings, Groups
from faircal.model import OperatingPoint
from faircal.model.operating_point import On
from faircal.production.scoring.judging import Judged
from faircal.production.serving.access import Key, KeyRing
from faircal.production.serving.audit_trail import Recorder
from faircal.production.serving.live_monitor import LiveMonitor
from faircal.production.serving.store import Store, open_store
from faircal.production.serving.store.records import Decision
from faircal.production.serving.verification import (
    IdentificationCandidate,
    ModelInUse,
    Rows,
    Vector,
    Verdicts,
    Verification,
    image_numbers,
    new_id,
    pair_groups,
    rank_candidates,
)

if TYPE_CHECKING:
    from faircal.production.serving.pictures import Embedder

#: Bytes of one request. A batch of 10,000 pairs of 512-d float32 vectors has 41 MB.
MAX_BODY = 64 * 1024 * 1024
#: Pairs of one batch.
MAX_PAIRS = 10_000
#: Bytes of one picture, before base64.
MAX_PICTURE = 8 * 1024 * 1024
#: Days that decisions may be kept for, a century.
_MOST_DAYS = 36_525
#: Hosts that only this machine reaches.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: Templates that identification judges: the most similar ones, at least so many.
_JUDGED = 1000

#: Bins of equal width that probabilities are counted in.
BINS = 10

_LEFT, _RIGHT = np.array([0]), np.array([1])
#: What is given of the left and the right image of a pair.
Sides = tuple[str | None, str | None]
_log = logging.getLogger("faircal.production.serving")


@dataclass(frozen=True)
class ServiceSettings:
    """How a model is served.

    Examples
    --------
    >>> ServiceSettings(Path("m.faircal"), threshold=0.4).point
    OperatingPoint(threshold=0.4, on='score', source='told', ...)
    """

    #: The model file; it is read again when it changes.
    model: Path
    #: Path of an SQLite file, or a URL; None: no storage, hence no templates and no audit trail.
    database: str | None = None
    #: 32 bytes that templates are encrypted with.
    encryption_key: bytes | None = None
    #: File of API keys; None: anybody who reaches the service may use it.
    keys: Path | None = None
    #: Where it listens; port 0 is any that is free.
    host: str = "127.0.0.1"
    port: int = 8000
    #: Decide there, in place of the model's own operating point.
    threshold: float | None = None
    on: On = "score"
    #: Share of genuine pairs that probabilities are given for.
    prior: float | None = None
    max_pairs: int = MAX_PAIRS
    max_body: int = MAX_BODY
    max_picture: int = MAX_PICTURE
    #: Requests a second of one key, or of one address without keys, and how many at once after a
    #: pause (0: twice as many); a rate of 0 is no limit.
    rate: float = 0.0
    burst: float = 0.0
    #: Rate of false alarms of the monitoring.
    false_alarms: float = 0.01
    #: Decisions that are older are deleted; None: none are.
    keep_days: float | None = None
    #: Which take pictures, as in ``faircal embed``; None: pictures are not taken.
    network: str | None = None
    detector: str | None = None
    #: What an ``.onnx`` network takes.
    preset: str | None = None
    #: Whether there is a page at ``/``.
    page: bool = True
    #: Whether each request is a line in the log.
    access_log: bool = True

    def __post_init__(self) -> None:
        if self.prior is not None:
            check_share(self.prior, "--prior")
        if not 0 < self.false_alarms < 1:
            raise ParameterError(
                f"--false-alarms: expected a rate between 0 and 1, found {self.false_alarms:g}"
            )
        for name in ("rate", "burst"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise ParameterError(f"--{name}: expected a number from 0, found {value:g}")
        if self.keep_days is not None and not 0 < self.keep_days <= _MOST_DAYS:
            raise ParameterError(
                f"--keep-decisions: expected days, more than 0, found {self.keep_days:g}"
            )
        if self.encryption_key is not None and self.database is None:
            raise ParameterError("--encryption-key-file: there is no database to encrypt; drop it")
        if self.keys is None and self.host not in LOOPBACK:
            raise ParameterError(
                f"--host {self.host}: without keys only this machine may use the service; "
                "make keys with 'faircal keys add' and give --keys FILE, or listen on 127.0.0.1"
            )

    @property
    def point(self) -> OperatingPoint | None:
        """The operating point that is given; None: the model's own."""
        return None if self.threshold is None else OperatingPoint(self.threshold, self.on)


def _counted(name: str, words: str) -> int:
    """Return a field of `ServiceCounts` that Prometheus has under this name."""
    counted: int = field(default=0, metadata={"name": f"faircal_{name}", "words": words})
    return counted


@dataclass
class ServiceCounts:
    """Whole numbers; pairs of verifications only, unless their names say otherwise."""

    #: Of the API and of the page's form, whatever was answered.
    requests: int = 0
    #: Pairs that were taken for genuine, and by probability, in bins of equal width.
    same: int = 0
    probabilities: list[int] = field(default_factory=lambda: [0] * BINS)
    pairs: int = _counted("pairs", "Pairs judged.")
    batches: int = _counted("batches", "Batches judged.")
    identify: int = _counted("identifications", "Identifications.")
    enrol: int = _counted("enrolments", "Templates enrolled since the start.")
    delete: int = _counted("deletions", "Templates deleted since the start.")
    feedback: int = _counted("feedback", "Labels told afterwards.")
    swaps: int = _counted("model_swaps", "Models taken while running.")
    refused_swaps: int = _counted("model_swaps_refused", "Model files that were not taken.")
    outside: int = _counted("pairs_out_of_population", "Pairs with an image outside.")
    placed: int = _counted("pairs_placed", "Pairs of which it is known whether they are outside.")

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, **more: int) -> None:
        """Add to numbers by name."""
        with self._lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)

    def count(self, verdicts: Verdicts) -> None:
        """Count the pairs of a request."""
        judged = verdicts.judged
        place = np.minimum((judged.probability * BINS).astype(np.int64), BINS - 1)
        by_bin = np.bincount(place, minlength=BINS).tolist()
        with self._lock:
            self.batches += verdicts.images is not None
            self.pairs += len(verdicts)
            self.same += int(judged.same.sum())
            if judged.places is not None:
                outside = judged.places.outside
                self.placed += len(verdicts)
                self.outside += int((outside[verdicts.left] | outside[verdicts.right]).sum())
            self.probabilities = [a + b for a, b in zip(self.probabilities, by_bin, strict=True)]


class Identification(NamedTuple):
    """Who of those enrolled a face may be of.

    `enrolled` is how many there are, `nobody` how likely it is that none of them was seen, and
    `nobody_at_bound` whether that rests on evidence at a bound; None where there are no bounds.
    """

    id: str
    enrolled: int
    candidates: list[IdentificationCandidate]
    nobody: float
    nobody_at_bound: bool | None


class Service:
    """One model in use: it decides, records, watches, and can be given another model meanwhile.

    All methods may be called from any thread. `verify` does not wait for the database; what asks
    or changes the store does. `store` is in place of the one that the settings name.
    """

    def __init__(self, settings: ServiceSettings, *, store: Store | None = None) -> None:
        self.settings = settings
        self._in_use = self._read()
        self._ring = None if settings.keys is None else KeyRing.load(settings.keys)
        self._embedder: Embedder | None = None
        if settings.network is not None:
            from faircal.production.serving.pictures import Embedder

            self._embedder = Embedder(
                settings.network, settings.detector, settings.preset, settings.max_picture
            )
        self._check_network(self._in_use)
        self._swapping = threading.Lock()
        self.store = store
        if store is None and settings.database is not None:
            self.store = open_store(settings.database, settings.encryption_key)
        self._check_templates(self._in_use)
        self.recorder = Recorder(self.store)
        self.counts = ServiceCounts()
        where = f"{settings.host}:{settings.port}"
        self.monitor = LiveMonitor(settings.false_alarms, where, self.store)
        self.monitor.begin(self._in_use)
        self.started = time.time()

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
                in_use = self._read()
                if in_use.digest == self._in_use.digest:
                    return False
                self._check_network(in_use)
                if in_use.dimension != self._in_use.dimension:
                    self._check_templates(in_use)
            except FairCalError as error:
                self.counts.add(refused_swaps=1)
                _log.warning("the model file is not taken, the old one stays: %s", error)
                raise ModelFileError(f"{error}; the model in use stays") from error
            self.monitor.save()
            # Before the model is in use: what it judges must not come before the watch of it.
            self.monitor.begin(in_use)
            self._in_use = in_use
            self.counts.add(swaps=1)
            _log.info("another model is in use: %s", in_use.digest[:16])
            return True

    def _read(self) -> ModelInUse:
        return ModelInUse.read(self.settings.model, self.settings.point, self.settings.prior)

    def _check_network(self, in_use: ModelInUse) -> None:
        """Raise where the network that takes pictures gives what the model does not take."""
        embedder = self._embedder
        if embedder is None or in_use.dimension in (None, embedder.dimension):
            return
        raise ParameterError(
            f"--network {embedder.name}: gives {embedder.dimension}-d embeddings, the model takes "
            f"{in_use.dimension}-d ones; use the network the model was made for"
        )

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

    def verify(
        self,
        left: Vector,
        right: Vector,
        *,
        groups: Sides = (None, None),
        prior: float | None = None,
        key: str = "",
        ids: Sides = (None, None),
        in_use: ModelInUse | None = None,
    ) -> Verification:
        """Judge two embeddings (d,), put the decision into the audit trail, let the watch see it.

        `groups` are those of the two images. `prior` is the share of genuine pairs that the
        probability is for. The trail has the name of the `key`, and the `ids` of the templates that
        the embeddings are of. `in_use` is the model that the request has taken; that in use now
        unless given.

        Raises
        ------
        DataError
            Where an embedding can't be used.
        StorageUnavailableError, StorageFullError
            Where the decision could not be recorded: it is not made.
        """
        self.recorder.check()
        in_use = (in_use or self._in_use).at(prior)
        if left.shape != right.shape or left.ndim != 1:
            raise DataError("expected two embeddings of equal length; use one network for both")
        with np.errstate(over="ignore"):  # becomes infinite, and is refused as such
            embeddings = in_use.embeddings(np.stack([left, right]).astype(np.float32))
        named = None if None in groups else pair_groups(groups[:1], groups[1:])
        judged = in_use.compare(embeddings, _LEFT, _RIGHT, named)
        return self._keep(in_use, key, judged, _LEFT, _RIGHT, ids[:1], ids[1:]).pair()

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
    ) -> Verdicts:
        """Judge pairs of rows of `embeddings`; otherwise as `verify`, ids one for each pair."""
        self.recorder.check()
        in_use = (in_use or self._in_use).at(prior)
        judged = in_use.compare(embeddings, left, right, groups)
        numbers = image_numbers(embeddings.vectors)
        return self._keep(in_use, key, judged, left, right, left_ids, right_ids, numbers)

    def _keep(
        self, in_use: ModelInUse, key: str, judged: Judged, left: Rows, right: Rows, *more: Any
    ) -> Verdicts:
        """Record, count and watch what was said of pairs; `more` as in `Verdicts`."""
        point, digest, prior = in_use.judge.point, in_use.digest, in_use.judge.prior
        verdicts = Verdicts(new_id(), judged, left, right, point, digest, prior, *more)
        self.recorder.verdicts(verdicts, key=key)  # first: what can't be recorded is not decided
        self.counts.count(verdicts)
        self.monitor.add(verdicts)
        return verdicts

    def identify(
        self,
        probe: Vector,
        *,
        limit: int = 5,
        enrolled_prior: float = 0.5,
        key: str = "",
        in_use: ModelInUse | None = None,
    ) -> Identification:
        """Say who of those enrolled a face may be of; see `verification.posteriors`."""
        self.recorder.check()
        store, in_use = self.storage(), in_use or self._in_use
        if in_use.needs_groups:
            raise DataError(f"method {in_use.model.name} needs groups: it can verify, not identify")
        enrolled = store.count()
        nearest = store.search(probe, max(_JUDGED, 20 * limit)) if enrolled else []
        vectors = store.vectors([name for name, _ in nearest])
        # In order of their likeness; one may have been deleted meanwhile.
        templates = {name: vectors[name] for name, _ in nearest if name in vectors}
        best, nobody = rank_candidates(in_use, probe, templates, enrolled, enrolled_prior)
        line = self.recorder.identification(in_use, best[0] if best else None, key=key)
        self.counts.add(identify=1)
        return Identification(line, enrolled, best[:limit], *nobody)

    def enrol(self, name: str, vector: Vector, *, replace: bool = False, key: str = "") -> None:
        """Keep a template; it is durable when this returns."""
        self.recorder.check()
        self.storage().enrol(name, vector, replace=replace)
        self.recorder.template("enrol", self._in_use, name, key=key)
        self.counts.add(enrol=1)

    def delete(self, name: str, *, key: str = "") -> bool:
        """Delete a template; False where there was none."""
        self.recorder.check()
        if not self.storage().delete(name):
            return False
        self.recorder.template("delete", self._in_use, name, key=key)
        self.counts.add(delete=1)
        return True

    def feedback(self, decision: str, genuine: bool) -> Decision | None:
        """Keep whether the pair of a decision was genuine; None where there is no such decision.

        Monitoring takes the first label of a pair that the model in use has judged: a request that
        is sent again, or comes after another model was taken, must not count. Nor does that of a
        pair whose evidence is at a bound: it may be far stronger than was said.
        """
        labelled = self.recorder.label(self.storage(), decision, genuine)
        if labelled is None:
            return None
        line, first = labelled
        if first and line.kind == "verify" and line.probability is not None:
            self.counts.add(feedback=1)
            if line.model == self._in_use.digest and not self._in_use.is_at_bound(line):
                self.monitor.feedback(line.probability, genuine, line.left or line.right)
        return line

    def storage(self) -> Store:
        """Return the store; an error where there is none."""
        if self.store is None:
            raise ParameterError("there is no storage here; serve with --database PATH")
        return self.store

    @property
    def has_keys(self) -> bool:
        """Whether requests need a key."""
        return self._ring is not None

    def who(self, presented: str | None) -> Key | None:
        """Return whose key this is; None: nobody's. Without keys, everybody may do everything."""
        if self._ring is None:
            return Key("", frozenset({"admin"}))
        return self._ring.who(presented) if presented else None

    def close(self) -> None:
        """Write what waits, keep what the watch has seen, and let go of the store."""
        if not self.recorder.close():
            lost = len(self.recorder)
            _log.error("%d decisions that were answered could not be recorded, and are lost", lost)
        store, self.store = self.store, None
        if store is not None:
            self.monitor.save()
            store.close()
