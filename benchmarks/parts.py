"""The parts of the suite; each runs in a process of its own.

python -m benchmarks.parts NAME OUT [--quick]      run one part, write its figures to OUT as JSON
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.disturbance import Watch
from benchmarks.figure import Figure


class Listed(NamedTuple):
    """A part: title, ``module:function`` that takes `quick` and gives figures, whether it is long.

    A long part runs only when it is asked for by its whole name.
    """

    about: str
    where: str
    long: bool = False


PARTS = {
    "machine": Listed("The machine", "machine:figures"),
    "fit": Listed("FairCal on one fold of BFW's size, arrays to saved model", "fit:figures"),
    "beside": Listed("Methods beside FairCal", "beside:figures"),
    "kmeans": Listed("K-means", "kmeans:figures"),
    "pairs": Listed("Pair scores", "pairs:figures"),
    "calibration": Listed("Calibrators of all clusters", "calibration:figures"),
    "metrics": Listed("Metrics", "metrics:figures"),
    "classes": Listed("Calibration of classifiers", "classes:figures"),
    "whole": Listed("A whole benchmark", "whole:figures"),
    "reproduce": Listed("The paper's whole experiment", "whole:reproduction", long=True),
    "stream": Listed("Scoring a stream of pairs", "stream:figures"),
    "stream-long": Listed("Scoring a long stream of pairs", "stream:long_figures", long=True),
    "serving": Listed("The service, on loopback", "serving:figures"),
    "spark": Listed("Spark against one machine", "spark:figures", long=True),
    "spark-growth": Listed("Growth on Spark", "spark:growth_figures", long=True),
    "spark-rates": Listed("Rates on Spark", "spark:rate_figures", long=True),
    "growth": Listed("Growth", "growth:figures"),
    "startup": Listed("Start-up", "startup:figures"),
    "embed": Listed("Embedding pictures", "embedding:figures"),
    "training_limit": Listed("Training against matrix products", "trained:limit_figures"),
    "training_ftc": Listed("Training FTC", "trained:ftc_figures"),
    "training_agenda": Listed("Training AGENDA", "trained:agenda_figures"),
}


def chosen(words: Iterable[str]) -> list[str]:
    """Return the parts that are meant: those whose name contains a word; all without one.

    Examples
    --------
    >>> chosen(["stream"]), chosen(["stream-long"])
    (['stream'], ['stream-long'])
    """
    wanted = list(words) or [""]
    for word in wanted:
        if not any(word in name for name in PARTS):
            raise ValueError(f"no part {word!r}; expected part of one of: {', '.join(PARTS)}")
    return [
        name
        for name, part in PARTS.items()
        if name in wanted or (not part.long and any(word in name for word in wanted))
    ]


class Measured(NamedTuple):
    """What a part gave, and the share of the processors that others used meanwhile."""

    figures: list[Figure]
    others: float


def run(name: str, quick: bool) -> Measured:
    """Run a part in a new process; `RuntimeError` where it fails."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        words = [sys.executable, "-m", "benchmarks.parts", name, str(out)]
        done = subprocess.run([*words, *(["--quick"] if quick else [])], check=False)
        if done.returncode:
            raise RuntimeError(f"{name}: ended with {done.returncode}")
        others = watch.others()
        found = json.loads(out.read_text("utf-8"))
        return Measured([Figure.from_json(one) for one in found], others)


def main() -> None:
    name, out, *options = sys.argv[1:]
    module, function = PARTS[name].where.split(":")
    found = getattr(importlib.import_module(f"benchmarks.{module}"), function)("--quick" in options)
    names = [figure.name for figure in found]
    if len(set(names)) < len(names):
        raise RuntimeError(f"{name}: two figures of one name among {names}")
    Path(out).write_text(json.dumps([figure.as_json() for figure in found]), encoding="utf-8")


if __name__ == "__main__":
    main()
