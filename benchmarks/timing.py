"""How things are timed: in turn, so that noise hits all; the shortest of several runs counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

#: Threads of BLAS and OpenMP keep a core busy for a while after their work; the next is not to pay.
_PAUSE = 0.05

Work = Callable[[], object]


def race(
    works: Mapping[str, Work],
    rounds: int = 3,
    warm_up: bool = True,
    also_alone: Collection[str] = (),
) -> dict[str, float]:
    """Return the shortest seconds of each work: all in turn, `rounds` times.

    Parameters
    ----------
    warm_up : bool
        Call each once before; compilers and caches then have done their part.
    also_alone : names of works
        Those that run with one thread of OpenMP and BLAS besides; the shorter time counts.
    """
    runs = list(works.items())
    runs += [(name, one_thread(works[name])) for name in also_alone]
    if warm_up:
        for _, work in runs:
            work()
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in runs:
            time.sleep(_PAUSE)
            best[name] = min(best[name], once(work))
    return best


def one_thread(work: Work) -> Work:
    """Return `work` with OpenMP and BLAS at one thread, which at times is the faster way."""

    def alone() -> None:
        with threadpool_limits(1):
            work()

    return alone


def once(work: Work) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cores() -> int:
    """Return how many threads "all threads" are."""
    return len(os.sched_getaffinity(0))


@contextmanager
def our_threads(n: int) -> Iterator[None]:
    """Let faircal work with `n` threads."""
    from faircal.compute import threads

    def tell(number: str | None) -> None:
        if number is None:
            os.environ.pop(threads.VARIABLE, None)
        else:
            os.environ[threads.VARIABLE] = number
        # Both are asked for once a process.
        threads.n_threads.cache_clear()
        threads._pool.cache_clear()

    before = os.environ.get(threads.VARIABLE)
    tell(str(n))
    try:
        yield
    finally:
        tell(before)


class Used(NamedTuple):
    """What a command used: seconds on the clock, seconds of CPU, bytes of memory at its peak."""

    seconds: float
    cpu: float
    peak: float


def command(words: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Used:
    """Run a command and return what it used; raise with its last words where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "used.json"
        runner = [sys.executable, "-S", Path(__file__).with_name("child.py"), found]
        done = subprocess.run(
            [str(word) for word in (*runner, *words)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            told = " ".join(map(str, words))
            raise RuntimeError(f"{told}: ended with {done.returncode}: {done.stderr[-2000:]}")
        return Used(**json.loads(found.read_text("utf-8")))


def faircal_command(*words: str | Path) -> Used:
    """Run ``faircal …`` and return what it used."""
    return command([sys.executable, "-m", "faircal", *words])
