"""What monitoring reports: a finding for each thing that is watched, in numbers and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, get_args

import numpy as np

from faircal.model import Population
from faircal.production.monitoring.calibration import FEWEST, Labels
from faircal.production.monitoring.comparing import CalibrationShares, Window, WindowComparison
from faircal.production.monitoring.distance import Tolerance
from faircal.production.monitoring.windows import WindowRecord

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
        values = asdict(self)
        for key in ("statistic", "p_value", "level"):
            values[key] = None if values[key] != values[key] else values[key]
        return values


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
        return {**asdict(self), "findings": [each.as_json() for each in self.findings]}


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
        "give identities to be surer"
    ),
    "nobody": (
        "nobody tells who is in the pairs: at least a quarter as many people as in calibration are "
        "taken for granted; fewer can raise a false alarm"
    ),
}


_CHANCE = "; chance brings as much, with people so few"


class _WatchState(Protocol):
    """What is needed of a watch."""

    population: Population
    reference: CalibrationShares
    tolerance: Tolerance
    false_alarms: float
    pairs: int
    labels: int


def finding(name: Name, record: WindowRecord | None, rates: _WatchState) -> Finding:
    """Put a look in words; None stands for none yet."""
    population, tolerance = rates.population, rates.tolerance
    if record is None:
        return _nothing(name, population, rates)
    if name == "calibration":
        return _calibration(record, tolerance, rates)
    window = Window.of(rates.reference, record.counts, tolerance)
    compared: WindowComparison = getattr(window, name)()
    limit = float(getattr(tolerance, name))
    details: dict[str, Any] = {
        "tolerance": limit,
        "window_end": record.end,
        "window_pairs": record.length,
        "known": window.known,
        "caveat": _CAVEATS[window.known],
        "share_genuine": round(window.share_genuine, 6),
    }
    say = {"clusters": _clusters, "scores": _scores, "outside": _outside}[name]
    moved = compared.beyond.distance > limit
    words = _front(record, "pairs", compared.enough, moved) + say(compared, limit, window, details)
    if not record.alarm and moved:
        words += _CHANCE
    return Finding(
        name,
        _TITLES[name],
        compared.beyond.distance,
        compared.beyond.p_value,
        record.level(name, rates.false_alarms),
        record.alarm,
        compared.enough,
        words,
        details,
    )


def _nothing(name: Name, population: Population, rates: _WatchState) -> Finding:
    if name == "calibration":
        labels = "label" if rates.labels == 1 else "labels"
        words = (
            f"{rates.labels} {labels} so far: not enough; 50 are, with {FEWEST} of each class"
            if rates.labels
            else "no labels have come in; without them nobody can tell whether probabilities hold"
        )
    elif name != "scores" and not len(population.centers):
        words = "the model was calibrated on scores only: nothing is known of images"
    elif rates.pairs >= 500:
        words = "clusters of the images in use were not told"
    else:
        words = f"{rates.pairs} pairs so far: not enough; the first look is at 500"
    nan = float("nan")
    return Finding(name, _TITLES[name], nan, nan, nan, False, False, words, {})


def _front(record: WindowRecord, what: str, enough: bool, moved: bool) -> str:
    span = f"{what} {record.end - record.length + 1:,} to {record.end:,}"
    if record.alarm:
        return f"Alarm at {span}: "
    if not enough:
        return f"Too few people in {span} to tell: "
    return f"{'Moved, not surely' if moved else 'Quiet'}; last look at {span}: "


def _clusters(compared: WindowComparison, limit: float, _: Window, details: dict[str, Any]) -> str:
    details["regions"] = {"found": _list(compared.found), "expected": _list(compared.expected)}
    most = int(np.argmax(np.abs(compared.found - compared.expected)))
    return (
        f"regions' shares of images changed by {compared.beyond.distance:.3f} beyond what chance "
        f"brings ({limit:.3f} tolerated; half the change relative to the share), most in region "
        f"{most}, with {compared.found[most]:.1%} where {compared.expected[most]:.1%} were expected"
    )


def _scores(
    compared: WindowComparison, limit: float, window: Window, details: dict[str, Any]
) -> str:
    details["bins"] = {"found": _list(compared.found), "expected": _list(compared.expected)}
    details["largest_gap"] = float(np.abs(np.cumsum(compared.found - compared.expected)).max())
    return (
        "the distribution function of scores is "
        f"{compared.beyond.distance:.3f} from that of genuine and imposter pairs of calibration "
        f"({limit:.3f} tolerated), with {window.share_genuine:.2%} of pairs genuine, which fits "
        "best"
    )


def _outside(compared: WindowComparison, limit: float, _: Window, details: dict[str, Any]) -> str:
    details["found"], details["expected"] = float(compared.found[1]), float(compared.expected[1])
    return (
        f"{compared.found[1]:.2%} of images lie further from every cluster than those of "
        f"calibration did; {compared.expected[1]:.2%} were expected, {limit:.2%} more are tolerated"
    )


def _calibration(record: WindowRecord, tolerance: Tolerance, rates: _WatchState) -> Finding:
    labels = Labels.of(record.counts, tolerance)
    exceedance, fitted = labels.compare()
    probability, count, genuine = labels.curve()
    errors = np.sqrt(np.diag(fitted.covariance))
    share = labels.classes[1] / max(sum(labels.classes), 1)
    details = {
        "tolerance": 1.0,
        "window_end": record.end,
        "window_labels": record.length,
        "intercept": fitted.intercept,
        "slope": fitted.slope,
        "center": fitted.center,
        "intercept_error": float(errors[0]),
        "slope_error": float(errors[1]),
        "share_genuine": share,
        "remedy": _remedy(fitted.intercept, fitted.slope, tolerance) if record.alarm else "",
        "only_prior": abs(fitted.slope - 1) <= tolerance.slope,
        "curve": {
            "probability": _list(probability),
            "labels": count.tolist(),
            "genuine": genuine.tolist(),
        },
    }
    words = _front(record, "labels", True, exceedance.distance > 1) + (
        f"log-odds of pairs in doubt are off by {fitted.intercept:+.2f} ± {errors[0]:.2f}, and "
        f"{fitted.slope:.2f} ± {errors[1]:.2f} times those told fit best (1 is right); "
        f"{share:.2%} of labels are genuine"
    )
    if record.alarm:
        words += f". {details['remedy']}"
    elif exceedance.distance > 1:
        words += _CHANCE
    return Finding(
        "calibration",
        _TITLES["calibration"],
        exceedance.distance,
        exceedance.p_value,
        record.level("calibration", rates.false_alarms),
        record.alarm,
        True,
        words,
        details,
    )


def _remedy(intercept: float, slope: float, tolerance: Tolerance) -> str:
    if abs(slope - 1) <= tolerance.slope:
        times = float(np.exp(intercept))
        return (
            f"Odds are off by a factor of {times:.2g}, alike for all, as where the share of "
            "genuine pairs is another: if it is, set --prior to it; if not, calibrate again"
        )
    sure = "too sure" if slope < 1 else "not sure enough"
    return f"Probabilities are {sure}: calibrate again on pairs as they come in use"


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


def _list(values: Any, digits: int = 6) -> list[float]:
    return [round(float(value), digits) for value in values]
