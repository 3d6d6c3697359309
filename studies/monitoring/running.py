"""The study of monitoring: run what is missing, keep it, write the page.

python -m studies monitoring               all settings; what is kept is not run again
python -m studies monitoring quiet         some parts: crowds, quiet, changed, limits
python -m studies monitoring --write       the page alone, from what is kept
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from studies.monitoring.crowds import CrowdSetting, crowd_settings, run_crowd
from studies.monitoring.made import World
from studies.monitoring.page import PAGE, write
from studies.monitoring.streams import Fitted, Stream

HERE = Path(__file__).parent.parent
RESULTS, DOCS = HERE / "monitoring.jsonl", HERE.parent / "docs"
Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A part of the study: `fits` models, each with `streams` streams."""

    part: str
    preset: str
    method: str
    fits: int
    streams: int
    stream: Stream = field(default_factory=Stream)
    rate: float = 0.01

    @property
    def key(self) -> str:
        """What tells it from others."""
        return json.dumps(asdict(self), sort_keys=True)


def settings() -> list[Setting]:
    """Return all that is run, in the order of the page."""
    quiet, changed, limits = [], [], []
    for preset, method, stream, fits, streams in (
        ("small", "faircal", Stream(), 20, 50),
        ("rfw-like", "faircal", Stream(genuine_share=0.001), 20, 50),
        ("bfw-like", "baseline", Stream(known="nobody"), 20, 50),
        ("small", "baseline", Stream(known="images"), 10, 10),
        ("small", "smooth", Stream(), 10, 10),
        ("rfw-like", "faircal", Stream(), 10, 20),
        ("rfw-like", "baseline", Stream(known="nobody"), 10, 10),
        ("bfw-like", "faircal", Stream(), 10, 10),
        ("bfw-like", "faircal", Stream(known="nobody", use=160), 10, 10),
        ("small", "faircal", Stream(labels=0.1), 10, 20),
        ("rfw-like", "faircal", Stream(labels=0.1), 10, 10),
        ("rfw-like", "faircal", Stream(in_order=False), 10, 10),
    ):
        quiet.append(Setting("quiet", preset, method, fits, streams, stream))
    for change in ("share_plus_20_points", "imposters_plus_0.05"):
        for preset, method, known in (
            ("rfw-like", "faircal", "people"),
            ("rfw-like", "faircal", "nobody"),
            ("rfw-like", "baseline", "people"),
            ("bfw-like", "faircal", "people"),
            ("bfw-like", "faircal", "images"),
        ):
            stream = Stream(change=change, known=known)
            changed.append(Setting("changed", preset, method, 10, 20, stream))
    for change in ("share_plus_20_points", "imposters_plus_0.05"):
        stream = Stream(change=change, quiet=1_000_000)
        changed.append(Setting("changed", "rfw-like", "faircal", 4, 50, stream))
        stream = Stream(change=change, in_order=False)
        changed.append(Setting("changed", "bfw-like", "faircal", 10, 20, stream))
        for preset, known, use in (
            ("small", "people", None),
            ("bfw-like", "nobody", None),
            ("bfw-like", "people", 160),
        ):
            stream = Stream(change=change, known=known, use=use)
            limits.append(Setting("limits", preset, "faircal", 10, 10, stream))
    limits += [
        Setting("limits", preset, "faircal", 10, 10, Stream(change="share_times_1.2"))
        for preset in ("small", "rfw-like", "bfw-like")
    ]
    return [*quiet, *changed, *limits]


def run(setting: Setting) -> Row:
    """Run a setting; return a line of ``monitoring.jsonl``."""
    world = World.of(setting.preset, seed=1)
    alarms: dict[str, list[int]] = {}
    started = time.perf_counter()
    for number in range(setting.fits):
        rng = np.random.default_rng(number)
        fitted = Fitted.of(world, setting.method, rng)
        begun = None
        for _ in range(setting.streams):
            if begun is None or not setting.stream.quiet:  # a long quiet time is gone through once
                begun = setting.stream.begin(fitted, rng, setting.rate)
            for name, at in setting.stream.run(fitted, begun, rng).items():
                alarms.setdefault(name, []).append(at)
    table = np.array(list(alarms.values()))
    raised = table != 0
    row: Row = {"setting": asdict(setting), "runs": table.shape[1]}
    row["any"] = int(raised.any(axis=0).sum())
    row["early"] = int((table < 0).any(axis=0).sum())
    row |= {name: int(np.count_nonzero(found)) for name, found in alarms.items()}
    at = np.where(table > 0, table, np.iinfo(np.int64).max).min(axis=0)[(table > 0).any(axis=0)]
    row["median_pairs"] = int(np.median(at)) if len(at) else None
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def read(path: Path) -> dict[str, Row]:
    """Return the rows that are kept, by setting; a line that was cut off is left out."""
    found: dict[str, Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[json.dumps(row["setting"], sort_keys=True)] = row
    return found


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and is not kept yet; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies monitoring", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "parts", nargs="*", metavar="part", help="crowds, quiet, changed, limits [all]"
    )
    parser.add_argument("--write", action="store_true", help="write the page, run nothing")
    options = parser.parse_args(arguments)
    known = read(RESULTS)
    every: list[CrowdSetting | Setting] = [*crowd_settings(), *settings()]
    wanted = [one for one in every if not options.parts or one.part in options.parts]
    for setting in wanted if not options.write else ():
        if setting.key in known:
            continue
        with threadpool_limits(1):
            row = run(setting) if isinstance(setting, Setting) else run_crowd(setting)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, sort_keys=True) + "\n")
        known[setting.key] = row
        sys.stderr.write(f"{setting.key}: {row}\n")
        sys.stderr.flush()
    write([known[one.key] for one in every if one.key in known], DOCS)
    sys.stdout.write(f"{DOCS / PAGE}\n")
    return 0
