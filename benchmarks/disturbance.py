"""How much of the processors others used meanwhile.

Where others work too, OpenMP's threads wait for each other: the plain version of a small fit was
seen to take 4 s in place of 0.6 s (with one thread 0.3 s), while ours took as long as ever. A ratio
that is measured then says nothing.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

#: Others may use this share of the processors; beyond, figures are neither kept nor judged.
MOST = 0.1

_STAT = Path("/proc/stat")
#: Fields of its first line: what is not idle, nor waiting for a disk. "steal" is another machine's.
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def busy_seconds(stat: str, ticks: int) -> float:
    """Return the seconds that all processors have been busy, from the text of ``/proc/stat``.

    Examples
    --------
    >>> busy_seconds("cpu  100 0 50 9999 70 0 0 50 0 0", ticks=100)
    2.0
    """
    words = stat.split("\n", 1)[0].split()[1:]
    found = dict(zip(_FIELDS, map(int, words), strict=False))
    return sum(found[name] for name in _BUSY) / ticks


def share(busy: float, own: float, seconds: float, cores: int) -> float:
    """Return the share of the processors that others used.

    Examples
    --------
    >>> share(busy=15.0, own=10.0, seconds=10.0, cores=2)
    0.25
    """
    return max(0.0, busy - own) / (seconds * cores)


class Watch:
    """Begins when it is made; children that have ended count as our own."""

    def __init__(self) -> None:
        self._start = self._now()

    def others(self) -> float:
        """Return the share of the processors that others used so far; 0 where nobody can tell."""
        (busy, own, clock), (busy_0, own_0, clock_0) = self._now(), self._start
        return share(busy - busy_0, own - own_0, clock - clock_0, os.cpu_count() or 1)

    @staticmethod
    def _now() -> tuple[float, float, float]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(one.ru_utime + one.ru_stime for one in used)
        stat = _STAT.read_text("utf-8") if _STAT.exists() else None
        busy = own if stat is None else busy_seconds(stat, os.sysconf("SC_CLK_TCK"))
        return busy, own, time.perf_counter()
