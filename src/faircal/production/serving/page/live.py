"""Live counters in words: rendered with the page, then fetched as texts every two seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from faircal._base.errors import StorageError
from faircal.production.serving.service import Service


class Counter(NamedTuple):
    """A number of the service that changes."""

    name: str
    title: str
    text: str
    wide: bool = False


def live(service: Service) -> list[Counter]:
    """Return what the service counts now."""
    templates: int | str | None = None
    if service.store is not None:
        try:
            templates = service.store.count()
        except StorageError:
            templates = "–"  # it is away, and nobody can tell
    return counters({**service.status(), "templates": templates})


def counters(status: Mapping[str, Any]) -> list[Counter]:
    """Return the counters of a service's status; what it does not count is left out.

    Examples
    --------
    >>> status = {"pairs": 1600, "same": 400, "outside": 2, "placed": 400}
    >>> for one in counters(status):
    ...     print(f"{one.title}: {one.text}")
    Pairs compared: 1,600
    Decided same: 25 %
    Unlike calibration: 0.5 %
    Monitoring: Off: the model file has no population to hold pairs against.
    """
    pairs, placed = status.get("pairs"), status.get("placed")
    found = [
        Counter("requests", "Requests", _count(status.get("requests"))),
        Counter("pairs", "Pairs compared", _count(pairs)),
        Counter("same", "Decided same", _share(status.get("same"), pairs)),
        Counter("outside", "Unlike calibration", _share(status.get("outside"), placed)),
        Counter("templates", "Templates", _count(status.get("templates"))),
        Counter("monitor", "Monitoring", _monitoring(status), wide=True),
    ]
    return [one for one in found if one.text]


def _count(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}"


def _share(part: Any, whole: Any) -> str:
    if part is None or whole is None:
        return ""
    return f"{100 * part / whole:.3g} %" if whole else "–"


def _monitoring(status: Mapping[str, Any]) -> str:
    if not status.get("monitored"):
        return "Off: the model file has no population to hold pairs against."
    return str(status.get("monitor") or "On. It has not looked yet.")
