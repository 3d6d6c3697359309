"""Who may do what, and how often: API keys, their scopes, and a limit of requests a second.

The file of keys holds hashes. A key is 256 random bits, so nobody can guess one from its hash: a
plain SHA-256 is right here, where a password would need a salt and a slow hash. The key itself is
shown once and never kept.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import math
import os
import secrets
import stat
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import existing
from faircal._base.registry import did_you_mean
from faircal.production.serving.bodies import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from faircal.production.serving.service import Service

#: What a key can be good for. `admin` may do everything.
SCOPES = ("verify", "enrol", "admin")

_FORMAT, _VERSION = "faircal-keys", 1
_PREFIX = "fck_"
_LONGEST_NAME = 100
#: Permission to write for group and others: who can write the file can make keys.
_WRITABLE = 0o022


@dataclass(frozen=True)
class Key:
    """Who presented a key, and what it is good for."""

    name: str
    scopes: frozenset[str]
    sha256: str = field(default="", repr=False)
    created: str = ""

    def may(self, scope: str) -> bool:
        """Tell whether this key is good for `scope`."""
        return scope in self.scopes or "admin" in self.scopes


class KeyRing:
    """The keys of a file, read again when the file changes.

    A file that is gone, damaged or open to others while the service runs lets nobody in; `fault`
    says why.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ring = KeyRing.at(f"{folder}/keys.json")
    ...     presented = ring.add("gate 4", ["verify"])
    ...     ring.who(presented).name, ring.who("guess")
    ('gate 4', None)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        self._keys: tuple[Key, ...] = ()
        self._stamp: tuple[int, ...] | None = None

    @classmethod
    def load(cls, path: str | Path) -> KeyRing:
        """Read a file of keys; one line of error where it can't be used."""
        ring = cls(existing(path))
        ring._stamp = ring._look()
        ring._keys = _read(ring.path)
        return ring

    @classmethod
    def at(cls, path: str | Path) -> KeyRing:
        """Read a file of keys, or start one that the first `add` writes."""
        return cls.load(path) if Path(path).exists() else cls(Path(path))

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys as the file now has them; none where it can't be read or trusted."""
        stamp = self._look()
        if stamp != self._stamp:
            try:
                self._keys, self.fault = _read(self.path), None
            except DataError as error:
                # The keys from before must not live on: one may have been taken out.
                self._keys, self.fault = (), str(error)
            self._stamp = stamp
        return self._keys

    def who(self, presented: str) -> Key | None:
        """Return whose key was presented, None where it is nobody's.

        All keys are compared, each in constant time: how long it takes tells nothing.
        """
        owner = None
        sha256 = _hash(presented)
        for key in self.keys:
            if hmac.compare_digest(key.sha256, sha256):
                owner = key
        return owner

    def add(self, name: str, scopes: Sequence[str]) -> str:
        """Make a key, write the file, and return the key: it can't be had again."""
        _check_name(name)
        if any(key.name == name for key in self.keys):
            raise ParameterError(f"there is a key {name!r} already; remove it or take another name")
        token = _PREFIX + secrets.token_urlsafe(32)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self._write((*self._keys, Key(name, _scopes(scopes), _hash(token), created)))
        return token

    def remove(self, name: str) -> None:
        """Take a key out of the file: it stops working at once, also in services that run."""
        left = tuple(key for key in self.keys if key.name != name)
        if len(left) == len(self._keys):
            names = [key.name for key in left]
            raise ParameterError(
                f"{self.path}: no key {name!r}; "
                + (did_you_mean(name, names) if names else "there are none")
            )
        self._write(left)

    def _look(self) -> tuple[int, ...] | None:
        """Return what changes when the file does, None where it is gone."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        # The time of the last change of its mode, too: it may have been opened to others.
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def _write(self, keys: tuple[Key, ...]) -> None:
        """Put a new file in place of the old one: a reader never sees half of it.

        A new file is its owner's alone; one that a service of another account may read stays so.
        """
        lines = [
            {
                "name": key.name,
                "scopes": [scope for scope in SCOPES if scope in key.scopes],
                "sha256": key.sha256,
                "created": key.created,
            }
            for key in keys
        ]
        content = {"format": _FORMAT, "version": _VERSION, "keys": lines}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Mode 0600 from the start: there is no moment in which others could open it.
            handle, temporary = tempfile.mkstemp(".tmp", f".{self.path.name}.", self.path.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    if os.name == "posix" and self.path.exists():
                        before = stat.S_IMODE(self.path.stat().st_mode)
                        os.fchmod(file.fileno(), before & ~_WRITABLE)
                    json.dump(content, file, indent=2, ensure_ascii=False)
                    file.write("\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self.path)
            finally:
                Path(temporary).unlink(missing_ok=True)
        except OSError as error:
            raise ParameterError(
                f"cannot write {self.path}: {error.strerror}; choose a folder you may write to"
            ) from error
        self._keys, self._stamp, self.fault = keys, self._look(), None


def _hash(presented: str) -> str:
    return hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ParameterError(
            f"name of a key: expected printable text of 1 to {_LONGEST_NAME} characters"
        )


def _scopes(names: Sequence[str]) -> frozenset[str]:
    for name in names:
        if name not in SCOPES:
            raise ParameterError(f"no scope {name!r}; {did_you_mean(name, SCOPES)}")
    if not names:
        raise ParameterError(f"a key needs a scope: one or more of {', '.join(SCOPES)}")
    return frozenset(names)


def _read(path: Path) -> tuple[Key, ...]:
    """Read the keys of a file that only its owner can write."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: not readable ({error.strerror}); check permissions") from error
    if os.name == "posix" and mode & _WRITABLE:
        raise DataError(f"{path}: others may write it, and so make keys; run chmod 600 {path}")
    keys: list[Key] = []
    try:
        content = json.loads(text)
        valid = (content["format"], content["version"]) == (_FORMAT, _VERSION)
        for line in content["keys"]:  # anything odd is an error, not a key
            name, scopes, sha256 = str(line["name"]), _scopes(line["scopes"]), line["sha256"]
            _check_name(name)
            valid &= len(bytes.fromhex(sha256)) == hashlib.sha256().digest_size
            keys.append(Key(name, scopes, sha256.lower(), str(line.get("created", ""))))
    except (ValueError, KeyError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise DataError(f"{path}: expected a file that 'faircal keys add' wrote; make one")
    return tuple(keys)


#: Callers that are remembered, or many addresses would fill the memory; the one that was quiet
#: longest is forgotten first.
_MOST_CALLERS = 10_000


class RateLimits:
    """A bucket of tokens for each caller; a request takes one, and they come back with time.

    `rate` are tokens a second (0: no limit), `burst` those of a full bucket, at least one.

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
            # The one that has been silent longest: its bucket is the likeliest to be full again.
            self._callers.popitem(last=False)
        return wait


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
        if not presented and "authorization" in request.headers:
            kind, _, token = request.headers["authorization"].partition(" ")
            presented = token.strip() if kind.lower() == "bearer" else None
        elif not presented:
            presented = request.headers.get("x-api-key")
        key = service.who(presented)
        caller = f"key {key.name}" if key is not None and service.has_keys else f"from {address}"
        wait = self._buckets.take(caller)  # before wrong keys are refused: guesses count, too
        if wait:
            raise Refused(
                429,
                "rate",
                f"more than {service.settings.rate:g} requests a second; wait and try again",
                Retry_After=str(max(math.ceil(wait), 1)),
            )
        if key is None:
            raise Refused(
                401,
                "key",
                "expected an API key that is known here; send 'Authorization: Bearer KEY'",
                WWW_Authenticate="Bearer",
            )
        request.scope["faircal.key"] = key.name  # for the log, also where the scope is refused
        if scope is not None and not key.may(scope):
            raise Refused(
                403, "scope", f"this key is not good for this; use one with the scope {scope}"
            )
        return key


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
