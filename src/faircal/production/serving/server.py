"""One process that listens: address, signals, and an end that loses nothing."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from faircal._base.errors import ParameterError
from faircal.production.serving.app import make_app
from faircal.production.serving.protocol import LimitedProtocol
from faircal.production.serving.service import Service

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
            proxy_headers=False,
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
            handlers[signal.SIGHUP] = lambda *_: self._app.state.keeper.reload()
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
