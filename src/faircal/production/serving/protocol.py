"""HTTP with limits that uvicorn leaves to others: how long a head may be, and how long it takes."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Bytes of a request line and its headers.
MAX_HEAD = 64 * 1024
#: Seconds within which they must have come.
PATIENCE = 20.0


class LimitedProtocol(HttpToolsProtocol):
    """A connection; one that dawdles over its head, or never ends it, is closed."""

    _in_head, _head_bytes = True, 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD:
            self.send_400_response("Headers too large.")
        elif self._timer is None:
            self._wait()

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End a head."""
        self._in_head, self._head_bytes = False, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        self._head_bytes = 0
        super().on_message_complete()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(PATIENCE, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
