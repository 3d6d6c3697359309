"""What InsightFace does, run."""

from __future__ import annotations

from typing import Any

from insightface.gui.core.evaluation import _tar_far_from_scores, recommend_threshold, tar_at_far

_SCORES = ((0.1, 0), (0.2, 0), (0.3, 1), (0.35, 0), (0.38, 0), (0.4, 1), (0.6, 1))
_ROWS: list[dict[str, Any]] = [{"similarity": score, "label": label} for score, label in _SCORES]


def recommends() -> dict[str, Any]:
    """The most accurate threshold, and that of an FAR.

    At 0.4 one genuine pair of seven is wrong; any other threshold has more errors. An FAR of 0.1
    allows one of ten imposters, so that all genuine pairs pass.
    """
    told = _tar_far_from_scores([0.5, 0.7], 2, [*(k / 100 for k in range(9)), 0.6], [0.1])
    wanted = ("TAR@FAR=1e-1", "Threshold@FAR=1e-1")
    return {"accuracy": recommend_threshold(_ROWS), **{name: told[name] for name in wanted}}


def says_when_there_are_too_few() -> Any:
    """A rate that so few imposters can't show."""
    return tar_at_far(_ROWS, 0.001)
