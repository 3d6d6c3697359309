"""Work in blocks on all cores, with results that do not depend on how many there are.

The blocks of a piece of work are the same whatever the number of threads, and what they give is
put together in their order. All callers share the same threads, so that two jobs side by side do
not fight over the cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from faircal._base.errors import ParameterError

T = TypeVar("T")

#: Sets the number of threads; the cores that the process may use by default.
VARIABLE = "FAIRCAL_THREADS"


@cache
def n_threads() -> int:
    """Return how many threads work at a time."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not setting.isdecimal() or int(setting) < 1:
        raise ParameterError(
            f"{VARIABLE}: expected a whole number from 1, found {setting!r}; "
            "unset it to use all cores"
        )
    return int(setting)


#: What each thread knows of itself: `at_work` is there in those of the pool.
_this_thread = threading.local()


@cache
def _pool(pid: int) -> ThreadPoolExecutor:  # noqa: ARG001  (a forked child needs its own)
    return ThreadPoolExecutor(n_threads(), "faircal", setattr, (_this_thread, "at_work", True))


def each(work: Callable[[slice], T], n: int, block: int) -> list[T]:
    """Return ``work(slice)`` for the blocks of `n` things, in their order.

    `work` is called in several threads at a time. Where it calls `each` itself, the blocks of
    that are done one after the other: threads that wait for each other would wait for ever.

    Examples
    --------
    >>> each(lambda part: part.stop - part.start, 10, 4)
    [4, 4, 2]
    """
    parts = [slice(start, min(start + block, n)) for start in range(0, n, block)]
    # Within a worker the blocks go one by one: workers waiting for workers would never end.
    if len(parts) < 2 or n_threads() == 1 or hasattr(_this_thread, "at_work"):
        return [work(part) for part in parts]
    return list(_pool(os.getpid()).map(work, parts))


class _OneBlasThread:
    """Matrix products at one thread each, for as long as somebody asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            # Asking takes a tenth of the time of setting.
            libraries = _libraries().lib_controllers
            if not self._users and any(one.get_num_threads() != 1 for one in libraries):
                _let_anyone_set_limits()
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._limit is not None:
                    _let_anyone_set_limits()
                    self._limit.restore_original_limits()
                    _let_anyone_set_limits()
                    self._limit = None


@cache
def _libraries() -> ThreadpoolController:
    # NumPy's and SciPy's are loaded once and for all; looking for them takes a millisecond.
    import scipy.linalg  # noqa: F401

    return ThreadpoolController().select(user_api="blas")


def _let_anyone_set_limits() -> None:
    # OpenBLAS has one limit for all threads. Since threadpoolctl 3.8, what any but the first
    # thread to set it asks for is passed over: also that it be put back.
    for library in _libraries().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


#: ``with one_blas_thread():`` holds BLAS at one thread: our own threads share the work. The number
#: of threads in a product may change its last digits, and with them a cluster; blocks don't.
one_blas_thread = _OneBlasThread()


@contextmanager
def single() -> Iterator[None]:
    """Have the work of this thread done by it alone, for as long as the block lasts.

    For who shares the cores with other processes, each of which has work for one.

    Examples
    --------
    >>> with single():
    ...     threads = each(lambda part: threading.current_thread(), 10, 4)
    >>> set(threads) == {threading.current_thread()}
    True
    """
    before = hasattr(_this_thread, "at_work")
    _this_thread.at_work = True
    try:
        with one_blas_thread():
            yield
    finally:
        if not before:
            del _this_thread.at_work
