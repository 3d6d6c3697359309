"""Settings of a service."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from faircal._base.errors import ParameterError
from faircal.calibrators.prior import check_share
from faircal.model import OperatingPoint
from faircal.model.operating_point import On

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


@dataclass(frozen=True)
class ServiceSettings:
    """How a model is served.

    Attributes
    ----------
    model : Path
        The model file; it is read again when it changes.
    database : str, optional
        Path of an SQLite file, or a URL; None: no storage, hence no templates and no audit trail.
    encryption_key : bytes, optional
        32 bytes; templates are encrypted with it.
    keys : Path, optional
        File of API keys; None: anybody who reaches the service may use it.
    host, port
        Where it listens; port 0 is any that is free.
    threshold, on
        Decide there, in place of the model's own operating point.
    prior : float, optional
        Share of genuine pairs that probabilities are given for.
    max_pairs, max_body, max_picture : int
        Pairs of a batch, bytes of a request, bytes of a picture.
    rate, burst : float
        Requests a second of one key, or of one address where there are no keys, and how many at
        once after a pause; a rate of 0 is no limit.
    false_alarms : float
        Rate of false alarms of the monitoring.
    keep_days : float, optional
        Decisions that are older are deleted; None: none are.
    network, detector : str, optional
        Which take pictures, as in ``faircal embed``; None: pictures are not taken.
    preset : str, optional
        What an ``.onnx`` network takes.
    page : bool
        Whether there is a page at ``/``.
    access_log : bool
        Whether each request is a line in the log.

    Examples
    --------
    >>> ServiceSettings(Path("m.faircal"), threshold=0.4).point
    OperatingPoint(threshold=0.4, on='score', source='told', ...)
    """

    model: Path
    database: str | None = None
    encryption_key: bytes | None = None
    keys: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    threshold: float | None = None
    on: On = "score"
    prior: float | None = None
    max_pairs: int = MAX_PAIRS
    max_body: int = MAX_BODY
    max_picture: int = MAX_PICTURE
    rate: float = 0.0
    burst: float = 0.0
    false_alarms: float = 0.01
    keep_days: float | None = None
    network: str | None = None
    detector: str | None = None
    preset: str | None = None
    page: bool = True
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
        """The operating point that is told; None: the model's own."""
        return None if self.threshold is None else OperatingPoint(self.threshold, self.on)
