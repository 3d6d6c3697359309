"""What InsightFace does, run."""

from __future__ import annotations

from typing import Any

from insightface.gui.core.evaluation import recommend_threshold, tar_at_far

_SCORES = ((0.1, 0), (0.2, 0), (0.3, 1), (0.35, 0), (0.38, 0), (0.4, 1), (0.6, 1))
_ROWS: list[dict[str, Any]] = [{"similarity": score, "label": label} for score, label in _SCORES]


def recommends_the_most_accurate() -> float | None:
    """At 0.4 one genuine pair of seven is wrong; any other threshold has more errors."""
    return recommend_threshold(_ROWS)


def says_when_there_are_too_few() -> Any:
    """A rate that so few imposters can't show."""
    return tar_at_far(_ROWS, 0.001)
