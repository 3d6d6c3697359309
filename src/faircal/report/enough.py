"""Is there enough data? What a report knows of the people behind its numbers.

The rule by which a number is told is that of `faircal.metrics.intervals.enough`.
"""

from __future__ import annotations

from faircal.metrics.intervals import enough
from faircal.metrics.intervals.enough import NOT_ENOUGH, lacking, least_people
from faircal.metrics.proportions import CAUTION_PEOPLE
from faircal.report.store import Store

__all__ = ["NOT_ENOUGH", "caution", "effective_people", "lacking", "least_people", "people"]


def people(store: Store, attribute: str) -> dict[str, int]:
    """Return the number of people of all pairs and of each group; empty where it is not known."""
    return enough.people(store.run, attribute)


def effective_people(store: Store, attribute: str, metric: str = "fpr") -> dict[str, float]:
    """Return how many people, each in equally many pairs, would tell as much; as far as known."""
    return enough.effective_people(store.run, attribute, metric)


def caution(store: Store, attribute: str, group: str) -> str | None:
    """Say that a group's numbers rest on few people, or None."""
    n = people(store, attribute).get(group)
    if n is None or n >= CAUTION_PEOPLE:
        return None
    return (
        f"only {n} {'person' if n == 1 else 'people'} (fewer than {CAUTION_PEOPLE}): "
        "the numbers may say more about them than about the group"
    )
