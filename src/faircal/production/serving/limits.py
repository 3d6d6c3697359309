"""How many requests one caller may make: a bucket of tokens for each."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

#: Callers that are remembered; the one that was quiet longest is forgotten first.
_MOST_CALLERS = 10_000


class Buckets:
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
    >>> buckets = Buckets(rate=2, burst=1, clock=lambda: now[0])
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
        tokens, seen = self._callers.pop(caller, (self._burst, now))
        tokens = min(tokens + (now - seen) * self._rate, self._burst)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._callers[caller] = (tokens if wait else tokens - 1, now)
        if len(self._callers) > _MOST_CALLERS:
            self._callers.popitem(last=False)
        return wait


def whole_seconds(wait: float) -> str:
    """Return a time to wait as a header has it."""
    return str(max(math.ceil(wait), 1))
