"""One process that listens: logs, limits on the head of a request, address, signals, a clean end.

Logs have a line each, and nothing of what was sent. At the end nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from faircal._base.errors import ParameterError
from faircal.production.serving.app import make_app
from faircal.production.serving.service import Service

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def start_logging(level: str) -> None:
    """Send what the service and its server say to standard error."""

    def to_standard_error(only: Callable[[logging.LogRecord], bool]) -> logging.Handler:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_FORMAT))
        handler.addFilter(only)
        return handler

    ours = to_standard_error(_one_line)
    for name in ("faircal", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [ours], False
        logger.setLevel(level.upper())
    # They tell of every start, odd client and failed connection; what counts we tell ourselves.
    for name in ("uvicorn.error", "psycopg.pool"):
        logging.getLogger(name).setLevel("CRITICAL" if level != "debug" else "DEBUG")
    logging.getLogger().handlers = [to_standard_error(_withheld)]


def _withheld(record: logging.LogRecord) -> bool:
    """Say who of all others said something, not what: it could quote what was sent."""
    kind = record.exc_info[0] if record.exc_info else None
    record.msg = f"{record.name} says something" + (f" ({kind.__name__})" if kind else "")
    record.args = None
    return _one_line(record)


def _one_line(record: logging.LogRecord) -> bool:
    """Keep messages to one line, and leave traces out: they could quote what was sent."""
    record.msg, record.args = " ".join(record.getMessage().split()), None
    record.exc_info = record.exc_text = record.stack_info = None
    return True


#: Bytes of a request line and its headers.
MAX_HEAD = 64 * 1024
#: Seconds within which they must have come.
HEAD_PATIENCE = 20.0


class LimitedProtocol(HttpToolsProtocol):
    """A connection; one that dawdles over its head, or never ends it, is closed.

    uvicorn waits for ever: some hundred clients that send a byte a minute would take all file
    descriptors, and a head without an end all memory.
    """

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
        self._timer = self.loop.call_later(HEAD_PATIENCE, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


#: Seconds that requests under way have to end, after SIGTERM.
DRAIN = 20
#: Seconds that a thread may keep the others waiting: batches must not hold up single requests.
_TURN = 0.001

_log = logging.getLogger("faircal.production.serving")


def run(service: Service, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called with the address once requests are taken.

    SIGHUP reads the model file again. At the end requests under way are answered, the audit trail
    is written and what monitoring has seen is kept.
    """
    listening = bind(service.settings.host, service.settings.port)
    try:
        app = make_app(service)
        config = uvicorn.Config(
            app,
            loop="auto",  # uvloop where it is installed
            http=LimitedProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # anybody can write them, and choose an address for the rate limit
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN,
        )
        server = _Server(config, lambda: ready(address(listening)), app)
        server.run(sockets=[listening])
    finally:
        listening.close()


class _Server(uvicorn.Server):
    """Tells when it is ready, minds SIGHUP, and ends with 0 when it was asked to end."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], app: Any) -> None:
        super().__init__(config)
        self._ready, self._app = ready, app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests."""
        await super().startup(sockets)
        if not self.started:
            return
        gc.collect()
        gc.freeze()  # what is here now stays: collections need not look at it again
        sys.setswitchinterval(_TURN)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT; uvicorn's own would raise them again, and exit with 143."""
        handlers: dict[int, Any] = {
            signal.SIGTERM: self.handle_exit,
            signal.SIGINT: self.handle_exit,
        }
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = lambda *_: self._app.state.jobs.reload()
        before = {number: signal.signal(number, how) for number, how in handlers.items()}
        try:
            yield
        finally:
            for number, how in before.items():
                signal.signal(number, how)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an address that can't be had is one clear line."""
    listening = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        # Else a restart fails for as long as old connections linger in TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(2048)
    except (OSError, UnicodeError, OverflowError) as error:
        if listening is not None:
            listening.close()
        why = getattr(error, "strerror", None) or type(error).__name__
        raise ParameterError(
            f"cannot listen on {host}:{port} ({why}); choose another --port, or 0 for a free one"
        ) from error
    listening.setblocking(False)
    return listening


def address(listening: socket.socket) -> str:
    """Return where a socket can be reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
