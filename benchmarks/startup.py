"""What a command costs before it does anything: seconds of CPU, beside a bare Python's."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figure import Figure, ratio
from benchmarks.timing import command

#: Each is started this often, in turn; the least CPU counts.
TIMES = 7


def figures(quick: bool) -> list[Figure]:
    python = sys.executable
    works: dict[str, list[str | Path]] = {
        "bare": [python, "-c", "pass"],
        "help": [Path(python).with_name("faircal"), "--help"],
        "import": [python, "-c", "import faircal"],
    }
    cpu: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(2 if quick else TIMES):
        for name, words in works.items():
            cpu[name].append(command(words).cpu)
    least = {name: min(times) for name, times in cpu.items()}
    made = []
    for name, what, goal in (("help", "faircal --help", 0.3), ("import", "import faircal", 0.5)):
        made += [
            Figure(name, f"{what}: CPU", least[name], "lower", goal=goal, unit="s"),
            ratio(
                f"{name} ratio",
                f"    {what}: CPU / that of a bare Python",
                least[name] / least["bare"],
                "lower",
            ),
        ]
    return made
