"""Files of methods, calibrators and metrics that are not faircal's own."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from faircal.calibrators import CALIBRATORS
from faircal.methods import METHODS
from faircal.metrics import METRICS


def plugin_hashes() -> dict[str, str]:
    """Return the SHA-256 of each such file by its name: when one changes, so may every number.

    What has no file (a notebook's) can't be hashed, and is left out.
    """
    modules = {
        *_modules(METHODS.values()),
        *_modules(CALIBRATORS.values()),
        *_modules(metric.function for metric in METRICS.values()),
    }
    files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules))
    paths = (Path(file) for file in files if file is not None)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _modules(things: Iterable[object]) -> Iterable[str]:
    names = (getattr(thing, "__module__", "") for thing in things)
    return (name for name in names if name and name.partition(".")[0] != "faircal")
