"""What monitoring reports: a finding for each thing that is watched, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import expit

from faircal.production.monitoring import calibration
from faircal.production.monitoring.comparing import TOLERANCES, Exceedance
from faircal.production.monitoring.windows import CountedWindow

if TYPE_CHECKING:
    from faircal.production.monitoring.watch import Watch

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


@dataclass(frozen=True)
class Verdict:
    """What all findings say together.

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
        """Return it as JSON knows it, but for NaN."""
        return {**asdict(self), "findings": [asdict(each) for each in self.findings]}


NAMES: tuple[Name, ...] = get_args(Name)
_TITLES = {
    "clusters": "Cluster occupancy",
    "scores": "Scores",
    "outside": "Images out of the population",
    "calibration": "Calibration on feedback",
}
_CAVEATS = {
    "people": "",
    "images": (
        "people are unknown: each is taken to have as many images as in calibration; "
        "labels count as if each were of somebody else, and of few people raise false alarms; "
        "give identities to be surer"
    ),
    "nobody": (
        "nobody tells who is in the pairs: at least a quarter as many people as in calibration are "
        "taken for granted; fewer can raise a false alarm, and so can labels of few people"
    ),
}


#: What a look at a window comes to, in numbers and words, and details.
_Look = tuple[Exceedance, str, dict[str, Any]]


def finding(name: Name, window: CountedWindow | None, watch: Watch) -> Finding:
    """Put a look in words; None stands for none yet."""
    if window is None:
        nan = float("nan")
        words = _why_nothing(name, watch)
        return Finding(name, _TITLES[name], nan, nan, nan, False, False, words, {})
    on_labels = name == "calibration"
    compared, words, details = _at_labels(window) if on_labels else _at_pairs(name, window, watch)
    unit = "labels" if on_labels else "pairs"
    beyond = compared.distance > details["tolerance"]
    span = f"{unit} {window.end - window.length + 1:,} to {window.end:,}"
    if window.alarm:
        front = f"Alarm at {span}: "
    elif not compared.sufficient:
        front = f"Too few people in {span} to tell: "
    else:
        front = f"{'Moved, not surely' if beyond else 'Quiet'}; last look at {span}: "
    chance = "; chance brings as much, with people so few" if beyond and not window.alarm else ""
    ends = {"window_end": window.end, f"window_{unit}": window.length}
    return Finding(
        name,
        _TITLES[name],
        compared.distance,
        compared.p_value,
        window.level(name, watch.false_alarms),
        window.alarm,
        compared.sufficient,
        f"{front}{words}{chance}",
        {**ends, **details},
    )


def _why_nothing(name: Name, watch: Watch) -> str:
    """Say why there was no look yet."""
    if name == "calibration" and watch.labels:
        labels, least = "label" if watch.labels == 1 else "labels", calibration.FEWEST
        return f"{watch.labels} {labels} so far: not enough; 50 are, with {least} of each class"
    if name == "calibration":
        return "no labels have come in; without them nobody can tell whether probabilities hold"
    if name != "scores" and not len(watch.population.centers):
        return "the model was calibrated on scores only: nothing is known of images"
    if watch.pairs >= 500:
        return "where the images in use lie is unknown"
    return f"{watch.pairs} pairs so far: not enough; the first look is at 500"


def _at_pairs(name: Name, window: CountedWindow, watch: Watch) -> _Look:
    """Look at clusters, scores or images outside."""
    in_use, limit = watch.use_window(window), TOLERANCES[name]
    compared = in_use.compare(name)
    distance, observed, expected = compared.distance, compared.observed, compared.expected
    details: dict[str, Any] = {
        "tolerance": limit,
        "known": in_use.identified_by,
        "caveat": _CAVEATS[in_use.identified_by],
        "share_genuine": round(in_use.share_genuine, 6),
    }
    shares = {"found": _rounded(observed), "expected": _rounded(expected)}
    if name == "clusters":
        details["regions"] = shares
        most = int(np.argmax(np.abs(observed - expected)))
        words = (
            f"regions' shares of images changed by {distance:.3f} beyond what chance brings "
            f"({limit:.3f} tolerated; half the change relative to the share), most in region "
            f"{most}, with {observed[most]:.1%} where {expected[most]:.1%} were expected"
        )
    elif name == "scores":
        details["bins"] = shares
        details["largest_gap"] = float(np.abs(np.cumsum(observed - expected)).max())
        words = (
            f"the distribution function of scores is {distance:.3f} from that of genuine and "
            f"imposter pairs of calibration ({limit:.3f} tolerated), with "
            f"{in_use.share_genuine:.2%} of pairs genuine, which fits best"
        )
    else:
        details["found"], details["expected"] = float(observed[1]), float(expected[1])
        words = (
            f"{observed[1]:.2%} of images lie further from every cluster than those of calibration "
            f"did; {expected[1]:.2%} were expected, {limit:.2%} more are tolerated"
        )
    return compared, words, details


def _at_labels(window: CountedWindow) -> _Look:
    """Look at calibration."""
    table = calibration.tabulate(window.counts)
    compared, fitted = calibration.compare_labels(table)
    by_bin = table.sum(axis=0)
    filled = np.flatnonzero(by_bin.sum(axis=1))
    errors = np.sqrt(np.diag(fitted.covariance))
    share = float(table[:, :, 1].sum() / max(table.sum(), 1))
    remedy = _remedy(fitted.intercept, fitted.slope) if window.alarm else ""
    details = {
        "tolerance": 1.0,
        "intercept": fitted.intercept,
        "slope": fitted.slope,
        "center": fitted.center,
        "intercept_error": float(errors[0]),
        "slope_error": float(errors[1]),
        "share_genuine": share,
        "remedy": remedy,
        "only_prior": abs(fitted.slope - 1) <= calibration.SLOPE,
        "curve": {
            "probability": _rounded(expit(calibration.CENTERS[filled])),
            "labels": by_bin[filled].sum(axis=1).tolist(),
            "genuine": by_bin[filled, 1].tolist(),
        },
    }
    words = (
        f"log-odds of pairs in doubt are off by {fitted.intercept:+.2f} ± {errors[0]:.2f}, and "
        f"{fitted.slope:.2f} ± {errors[1]:.2f} times those shown fit best (1 is right); "
        f"{share:.2%} of labels are genuine" + (f". {remedy}" if remedy else "")
    )
    return compared, words, details


def _remedy(intercept: float, slope: float) -> str:
    if abs(slope - 1) <= calibration.SLOPE:
        times = float(np.exp(intercept))
        return (
            f"Odds are off by a factor of {times:.2g}, alike for all, as where the share of "
            "genuine pairs is another: if it is, set --prior to it; if not, calibrate again"
        )
    direction = "too sure" if slope < 1 else "not sure enough"
    return f"Probabilities are {direction}: calibrate again on pairs as they come in use"


def summary(findings: Sequence[Finding], pairs: int) -> str:
    """Put all findings in one sentence."""
    alarms = [each.title.lower() for each in findings if each.alarm]
    after = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    if alarms:
        prior = all(each.details.get("only_prior") for each in findings if each.alarm)
        what = "Another --prior is due" if prior else "Recalibration is due"
        return f"{what}: {', '.join(alarms)} (after {after})."
    if not any(each.enough for each in findings):
        return f"Not enough to tell: {after}."
    moved = [
        each.title.lower()
        for each in findings
        if each.enough and each.statistic > each.details["tolerance"]
    ]
    if moved:
        return f"No alarm yet: {', '.join(moved)} moved, which chance may have done in {after}."
    return f"Nothing has changed beyond what is tolerated, as far as {after} tell."


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 6) for value in values]
