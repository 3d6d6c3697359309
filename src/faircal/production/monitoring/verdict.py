"""What monitoring says: one finding for each thing that is watched, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Name = Literal["clusters", "scores", "outside", "calibration"]


@dataclass(frozen=True)
class Finding:
    """One thing that is watched.

    Attributes
    ----------
    name : {"clusters", "scores", "outside", "calibration"}
    title : str
        For people: ``Cluster occupancy``.
    statistic : float
        How far pairs in use are from calibration, less what chance alone brings; NaN where not
        looked at yet. ``details["tolerance"]`` is how far they may be.
    p_value, level : float
        Of the look that counts: the first that raised the alarm, else the latest. Small where the
        distance is surely beyond the tolerance; an alarm is a `p_value` of at most `level`, the
        part of the false-alarm rate that was set aside for this look. NaN before the first look.
    alarm : bool
        Once raised it stays: begin a new watch when the model was calibrated again.
    enough : bool
        Whether there was enough to look at, at least once: pairs, and people in them.
    words : str
        All of it in a sentence or two.
    details : dict
        Numbers behind it, as JSON knows them. ``window_end``, ``window_pairs`` (of calibration
        ``window_labels``), ``tolerance``, ``share_genuine``; ``known`` (``people``, ``images``,
        ``nobody``) and a ``caveat``; of clusters ``regions`` and of scores ``bins``, shares
        ``found`` and ``expected``; of outside ``found`` and ``expected``; of calibration
        ``intercept`` and ``slope`` with errors, ``remedy``, and ``curve``: ``probability``,
        ``labels``, ``genuine``.
    """

    name: Name
    title: str
    statistic: float
    p_value: float
    level: float
    alarm: bool
    enough: bool
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it: NaN becomes None."""
        found = asdict(self)
        for key in ("statistic", "p_value", "level"):
            found[key] = None if found[key] != found[key] else found[key]
        return found


@dataclass(frozen=True)
class Verdict:
    """What all findings come to.

    Attributes
    ----------
    due : bool
        Whether recalibration is due: any alarm.
    findings : tuple of Finding
        In the order clusters, scores, outside, calibration; always all four.
    pairs, feedback : int
        Pairs seen, and labels.
    words : str
    """

    due: bool
    findings: tuple[Finding, ...]
    pairs: int
    feedback: int
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {**asdict(self), "findings": [found.as_json() for found in self.findings]}
