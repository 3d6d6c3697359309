"""Work ahead in a background thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterable[T], depth: int = 2) -> Generator[T, None, None]:
    """Yield what `items` yields, made by a thread that is up to `depth` items ahead.

    An error in `items` comes out here. Closing the generator early ends the thread, and closes
    `items` where that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    made: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(depth)
    stop = threading.Event()

    def make() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                if stop.is_set():
                    break
                made.put((item,))
        except BaseException as error:  # raised where the items are taken
            end = error
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()
        if not stop.is_set():
            made.put(end)

    thread = threading.Thread(target=make, name="faircal-ahead", daemon=True)
    thread.start()
    try:
        while isinstance(got := made.get(), tuple):
            yield got[0]
            del got  # an item may be large, and the next is waited for
        if got is not None:
            raise got
    finally:
        stop.set()
        while not made.empty():  # room for what the thread is just putting there
            made.get_nowait()
        thread.join()
