"""Who may ask, and how often; a line in the log for each request, and no error that tells too much.

`Access` checks keys and rates, `RequestGate` wraps the application.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import secrets
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

from faircal._base.errors import FairCalError
from faircal.production.serving.problems import Refused, answer_to

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from faircal.production.serving.keys import Key
    from faircal.production.serving.metrics import Metrics, ServiceCounts
    from faircal.production.serving.service import Service


#: Callers that are remembered; the one that was quiet longest is forgotten first.
_MOST_CALLERS = 10_000


class RateLimits:
    """A bucket of tokens for each caller; a request takes one, and they come back with time.

    Parameters
    ----------
    rate : float
        Tokens a second; 0: no limit.
    burst : float
        Tokens of a full bucket; at least one.
    clock : callable
        Gives the time in seconds.

    Examples
    --------
    >>> now = [0.0]
    >>> buckets = RateLimits(rate=2, burst=1, clock=lambda: now[0])
    >>> buckets.take("anna"), buckets.take("anna")
    (0.0, 0.5)
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, max(burst, 1.0), clock
        self._callers: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take a token; return 0 where there was one, else in how many seconds there will be."""
        if not self._rate:
            return 0.0
        now = self._clock()
        tokens, last = self._callers.pop(caller, (self._burst, now))
        tokens = min(tokens + (now - last) * self._rate, self._burst)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._callers[caller] = (tokens if wait else tokens - 1, now)
        if len(self._callers) > _MOST_CALLERS:
            self._callers.popitem(last=False)
        return wait


def whole_seconds(wait: float) -> str:
    """Return a time to wait as a header has it."""
    return str(max(math.ceil(wait), 1))


_log = logging.getLogger("faircal.production.serving")
_access = logging.getLogger("faircal.access")

#: For whoever goes away before the answer; never sent.
_GONE = 499
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Access:
    """Says who may do what, and how often."""

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        self._buckets = RateLimits(settings.rate, settings.burst or 2 * settings.rate)

    def admit(self, request: Request, scope: str | None, presented: str | None = None) -> Key:
        """Return whose key came with a request; refuse where there is none, or not for `scope`.

        `scope` None: any key will do. `presented` is a key that came otherwise than in a header.
        """
        service = self._service
        address = request.client.host if request.client else ""
        if not service.has_keys:
            _check_host(request)
        key = service.who(presented or _presented(request))
        caller = f"key {key.name}" if key is not None and service.has_keys else f"from {address}"
        wait = self._buckets.take(caller)
        if wait:
            raise Refused(
                429,
                "rate",
                f"more than {service.settings.rate:g} requests a second; wait and try again",
                headers={"Retry-After": whole_seconds(wait)},
            )
        if key is None:
            raise Refused(
                401,
                "key",
                "expected an API key that is known here; send 'Authorization: Bearer KEY'",
                headers={"WWW-Authenticate": "Bearer"},
            )
        request.scope["faircal.key"] = key.name
        if scope is not None and not key.may(scope):
            raise Refused(
                403, "scope", f"this key is not good for this; use one with the scope {scope}"
            )
        return key


def _presented(request: Request) -> str | None:
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, key = header.partition(" ")
        return key.strip() if kind.lower() == "bearer" else None
    return request.headers.get("x-api-key")


def _check_host(request: Request) -> None:
    """Refuse names of the public net where no key is asked for.

    A page in a browser on this machine could otherwise use the service under a name of its own
    that leads here. Public names have a dot; addresses and ``localhost`` pass.
    """
    name = request.headers.get("host", "").rsplit("@", 1)[-1]
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if "." not in name:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise Refused(
            403, "host", "without keys the service answers to addresses and localhost only"
        ) from None


class RequestGate:
    """Wraps the application: answers errors, counts and logs requests.

    Neither bodies nor queries nor messages of unexpected errors go into the log, which could hold
    parts of an embedding; what stays are the kinds of errors and where in the code they were.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, counts: ServiceCounts, access_log: bool
    ) -> None:
        self._app, self._metrics, self._counts = app, metrics, counts
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, request_id = time.perf_counter(), secrets.token_hex(8)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                headers += [header for header in _HEADERS if header[0] not in names]
                message["headers"] = [*headers, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            status = status or _GONE
        except Exception as error:  # the last resort of a service
            refused = _refused(error, request_id)
            if not status:
                await _answer(refused, sending)
        finally:
            self._report(scope, status, time.perf_counter() - start, request_id)

    def _report(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        self._metrics.answered(method, route, status, seconds)
        if route.startswith("/v1/") or (method, route) == ("POST", "/"):
            self._counts.add(requests=1)  # not what only watches, such as the page's own counters
        if self._access_log:
            key = scope.get("faircal.key") or "-"
            _access.info(
                "%s %s %d %.1f ms key=%s id=%s",
                method,
                route,
                status,
                1e3 * seconds,
                key,
                request_id,
            )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _refused(error: Exception, request_id: str) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, FairCalError):
        return answer_to(error)
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in reversed(frames))
    _log.error("unexpected %s id=%s at %s", type(error).__name__, request_id, places)
    return Refused(
        500, "unexpected", f"something went wrong here; ask who runs the service about {request_id}"
    )


async def _answer(refused: Refused, send: Send) -> None:
    body = json.dumps(refused.as_json()).encode()
    headers: list[Any] = [(b"content-type", b"application/json")]
    headers += [(b"content-length", str(len(body)).encode())]
    headers += [(key.lower().encode(), value.encode()) for key, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
