"""What ``faircal monitor`` keeps between calls: counts, the timeline, and which files were seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from faircal._base.container import cut, divided, pack, unpack
from faircal._base.errors import DataError, FairCalError, ModelFileError
from faircal._base.files import atomic_path
from faircal.production.monitoring import Watch
from faircal.production.monitoring.report_figures import Stretch, shortened

if TYPE_CHECKING:
    from faircal.methods import Method
    from faircal.model import Population
    from faircal.production.monitoring.reading import WatchedPairs

_KIND, _VERSION = "faircal monitor", 1
_ANEW = "give another --state, or delete it to begin anew"
#: The most files whose fingerprints are kept.
_FILES = 10_000


@dataclass
class MonitorState:
    """A watch, and what the report shows besides.

    Attributes
    ----------
    population : Population
    watch : Watch
    model_sha256 : str
        Of the model file: a state is of one model.
    false_alarms : float
    timeline : list of Stretch
    files : list of str
        Fingerprints of what was counted, so that nothing is counted twice.
    """

    population: Population
    watch: Watch
    model_sha256: str
    false_alarms: float
    timeline: list[Stretch] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @classmethod
    def begin(
        cls, model: Method, population: Population, model_sha256: str, false_alarms: float
    ) -> Self:
        """Begin to watch a model."""
        watch = Watch.of(model, false_alarms=false_alarms)
        return cls(population, watch, model_sha256, false_alarms)

    def look_once(self, model: Method) -> None:
        """Look at all pairs together, when all are there; for pairs in no order of time."""
        self.watch = Watch.of(model, false_alarms=self.false_alarms, in_order=False)

    def add(self, chunk: WatchedPairs, source: str, *, joins: bool = False) -> None:
        """Count pairs, and feedback where there is some; `joins` the latest stretch of time."""
        told = chunk.told[chunk.labelled]
        self.watch.add(chunk.seen)
        if len(told):
            who = chunk.seen.left_person
            person = None if who is None else who[chunk.labelled]
            self.watch.feedback(told, chunk.genuine, person)
        stretch = Stretch.of(chunk.seen, told, chunk.genuine, source)
        if joins:
            stretch = Stretch.joined(self.timeline.pop(), stretch)
        self.timeline = shortened([*self.timeline, stretch])

    def save(self, path: Path) -> None:
        """Write everything to one checksummed file, atomically."""
        values, arrays = divided(self.watch.get_state())
        header = {
            "kind": _KIND,
            "version": _VERSION,
            "model_sha256": self.model_sha256,
            "false_alarms": self.false_alarms,
            "watch": values,
            "timeline": [stretch._asdict() for stretch in self.timeline],
            "files": self.files[-_FILES:],
        }
        with atomic_path(path) as temporary:
            temporary.write_bytes(pack(header, arrays))

    @classmethod
    def load(
        cls,
        path: Path,
        model: Method,
        population: Population,
        model_sha256: str,
        false_alarms: float | None,
    ) -> Self:
        """Read what `save` wrote; one of another kind, model or false-alarm rate is refused."""
        header, body = _read(path)
        if header.get("model_sha256") != model_sha256:
            raise DataError(
                f"{path}: is of another model; give the model it was begun with, or {_ANEW}"
            )
        rate = header.get("false_alarms")
        if false_alarms not in (None, rate):
            raise DataError(
                f"{path}: was begun with --false-alarms {rate}; give the same, or {_ANEW}"
            )
        try:
            state = {**header["watch"], **cut(header["arrays"], body)}
            return cls(
                population,
                Watch.restore(model, state),
                model_sha256,
                float(header["false_alarms"]),
                [Stretch(**stretch) for stretch in header["timeline"]],
                [str(name) for name in header["files"]],
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, FairCalError):
                raise DataError(f"{path}: {error}") from error
            raise DataError(f"{path}: does not hold together; {_ANEW}") from error


def _read(path: Path) -> tuple[dict[str, Any], memoryview]:
    """Return header and arrays of a state file."""
    try:
        header, body = unpack(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except ModelFileError as error:
        raise DataError(f"{path}: not a state of 'faircal monitor', or damaged; {_ANEW}") from error
    if header.get("kind") != _KIND or header.get("version") != _VERSION:
        raise DataError(
            f"{path}: expected a state that this version of 'faircal monitor' wrote; {_ANEW}"
        )
    return header, body
