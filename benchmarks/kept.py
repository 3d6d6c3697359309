"""Accepted figures (``results.json``), and what became of them: nothing gets slower unseen."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from benchmarks.figure import Figure

RESULTS = Path(__file__).with_name("results.json")

#: A guarded figure that is worse by a larger share fails the run.
MOST_LOSS = 0.3

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "numba", "faiss-cpu", "betacal", "torch")

Verdict = Literal["new", "kept", "better", "slower", "missing", ""]


@dataclass(frozen=True)
class Part:
    """The figures of one part, and when, where and by what command they were measured."""

    figures: tuple[Figure, ...]
    command: str = ""
    date: str = ""
    machine: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Row:
    """A figure beside the kept one.

    Attributes
    ----------
    figure : Figure
        The new one; the kept one where it is missing now.
    before : float or None
    verdict : str
        ``slower`` and ``missing`` fail the run. Empty for figures without a guard.
    """

    figure: Figure
    before: float | None
    verdict: Verdict

    @property
    def failed(self) -> bool:
        """Whether the row fails the run."""
        return self.verdict in ("slower", "missing")


def loss(figure: Figure, before: float) -> float:
    """Return by what share a figure is worse than before; negative where it is better.

    Examples
    --------
    >>> loss(Figure("a", "", 7.0, "higher"), 10.0), loss(Figure("a", "", 13.0, "lower"), 10.0)
    (0.3..., 0.3...)
    """
    change = figure.value / before - 1
    return -change if figure.better == "higher" else change


def compare(found: Sequence[Figure], before: Sequence[Figure]) -> list[Row]:
    """Set the figures of a part beside the kept ones, by name.

    A guarded figure that was kept and is no longer measured is ``missing``: it would lose its guard
    unseen.
    """
    known = {figure.name: figure for figure in before}
    rows = []
    for figure in found:
        old = known.pop(figure.name, None)
        rows.append(Row(figure, None if old is None else old.value, _verdict(figure, old)))
    return rows + [Row(old, old.value, "missing") for old in known.values() if old.guarded]


def _verdict(figure: Figure, old: Figure | None) -> Verdict:
    if not figure.guarded:
        # A guard that is taken off must be accepted too.
        return "missing" if old is not None and old.guarded else ""
    if old is None:
        return "new"
    lost = loss(figure, old.value)
    if lost > MOST_LOSS:
        return "slower"
    return "better" if lost < -MOST_LOSS else "kept"


def read(path: Path = RESULTS) -> dict[str, Part]:
    """Return the kept parts by name; none where nothing was accepted yet."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text("utf-8"))
    return {
        name: Part(
            tuple(map(Figure.from_json, part["figures"])),
            part["command"],
            part["date"],
            part["machine"],
        )
        for name, part in stored["parts"].items()
    }


def write(parts: Mapping[str, Part], path: Path = RESULTS) -> None:
    """Write the kept parts."""
    stored = {
        name: {
            "command": part.command,
            "date": part.date,
            "machine": part.machine,
            "figures": [figure.as_json() for figure in part.figures],
        }
        for name, part in parts.items()
    }
    text = json.dumps({"parts": stored}, indent=1, ensure_ascii=False)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)


def measured(name: str, figures: Iterable[Figure], others: float = 0.0) -> Part:
    """Return the figures of a part with date, machine and command.

    `others` is the share of the processors that others used meanwhile.
    """
    today = datetime.now(UTC).date().isoformat()
    where = machine() | {"others": round(others, 3)}
    return Part(tuple(figures), f"python -m benchmarks {name}", today, where)


def machine() -> dict[str, Any]:
    """Return what figures depend on besides the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory),
        "python": platform.python_version(),
        "versions": {name: v for name in _PACKAGES if (v := _version(name)) is not None},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
