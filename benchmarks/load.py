"""A bounded load on loopback: requests at a fixed pace, and what became of them.

Requests are due at fixed times whether earlier ones were answered or not, and the time of one
counts from when it was due: a server that stalls can't hide it by making its client wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Load:
    """What a load gave: seconds of each request from when it was due, and counts by status."""

    seconds: NDArray[np.float64]
    statuses: Counter[int]
    took: float

    @property
    def failed(self) -> int:
        """Requests that were not answered with 200; 0 stands for no answer."""
        return self.statuses.total() - self.statuses[200]

    def ms(self, share: float) -> float:
        """Return the time, in milliseconds, within which that share of requests was answered."""
        return float(np.quantile(self.seconds, share) * 1e3)


def request(path: str, body: bytes, kind: str = "application/json", key: str = "") -> bytes:
    """Return the bytes of a POST request."""
    secret = f"authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{secret}"
        f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def pace(
    address: str, requests: Sequence[bytes], *, rate: float, seconds: float, lines: int = 64
) -> Load:
    """Send requests, over and over, `rate` a second, over `lines` connections."""
    return asyncio.run(_pace(address, requests, rate, seconds, lines))


async def _pace(
    address: str, requests: Sequence[bytes], rate: float, seconds: float, lines: int
) -> Load:
    place = urlsplit(address)
    free: asyncio.LifoQueue[_Line] = asyncio.LifoQueue()
    for _ in range(lines):
        free.put_nowait(_Line(str(place.hostname), int(place.port or 80)))
    took, statuses = list[float](), Counter[int]()

    async def one(number: int, due: float) -> None:
        line = await free.get()
        try:
            status = await line.ask(requests[number % len(requests)])
        except (OSError, asyncio.IncompleteReadError, ValueError):
            status = 0
            line.drop()
        free.put_nowait(line)
        took.append(time.perf_counter() - due)
        statuses[status] += 1

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(round(rate * seconds)):
            due = started + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            tasks.create_task(one(number, due))
    return Load(np.array(took), statuses, time.perf_counter() - started)


class _Line:
    """One connection, opened when it is needed and kept; a server closes those that are silent."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def drop(self) -> None:
        if self._open is not None:
            self._open[1].close()
        self._open = None

    async def ask(self, request: bytes) -> int:
        if self._open is None or self._open[0].at_eof():
            self._open = await asyncio.open_connection(*self._place)
        reader, writer = self._open
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        await reader.readexactly(length)
        return status
