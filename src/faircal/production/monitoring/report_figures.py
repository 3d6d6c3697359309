"""What monitoring shows: clusters, scores, images outside, calibration; each with its table.

Of each thing that is watched it shows the look that counts: the one that raised the alarm, else the
latest of the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from faircal.metrics.proportions import wilson
from faircal.model import Population
from faircal.production.monitoring import Finding, PairsInUse, Verdict
from faircal.report.svg import CHANGE_LOOKS, bars, histogram, number, points

Float64 = NDArray[np.float64]

#: The most stretches of time that are kept.
MOST = 120


class Stretch(NamedTuple):
    """A stretch of the stream of pairs: means and counts.

    Attributes
    ----------
    source : str
        The file or folder.
    pairs : int
    score, probability : float
        Means.
    images, outside : int
        Images (two a pair) whose place is known, and how many of them lie outside.
    feedback, genuine : int
        Labelled pairs, and the genuine ones.
    expected : float
        How many genuine ones their probabilities promise.
    """

    source: str
    pairs: int
    score: float
    probability: float
    images: int
    outside: int
    feedback: int
    genuine: int
    expected: float

    @classmethod
    def of(cls, pairs: PairsInUse, shown: Float64, genuine: NDArray[np.bool_], source: str) -> Self:
        """Count pairs; `shown` are the probabilities of the labelled ones."""
        sides = [side for side in (pairs.left_outside, pairs.right_outside) if side is not None]
        return cls(
            source=source,
            pairs=len(pairs),
            score=float(np.mean(pairs.score)),
            probability=float(np.mean(pairs.probability)),
            images=sum(map(len, sides)),
            outside=int(sum(np.count_nonzero(side) for side in sides)),
            feedback=len(shown),
            genuine=int(np.count_nonzero(genuine)),
            expected=float(shown.sum()),
        )

    @classmethod
    def joined(cls, first: Stretch, second: Stretch) -> Stretch:
        """Return two neighbours as one.

        >>> day = Stretch("a.csv", 10, 0.5, 0.2, 20, 1, 0, 0, 0.0)
        >>> night = Stretch("b.csv", 30, 0.1, 0.2, 60, 3, 0, 0, 0.0)
        >>> both = Stretch.joined(day, night)
        >>> both.source, both.pairs, round(both.score, 3)
        ('a.csv … b.csv', 40, 0.2)
        """
        pairs = first.pairs + second.pairs
        ends = first.source.split(" … ")[0], second.source.split(" … ")[-1]
        added = {
            name: getattr(first, name) + getattr(second, name)
            for name in ("images", "outside", "feedback", "genuine", "expected")
        }
        means = {
            name: (first.pairs * getattr(first, name) + second.pairs * getattr(second, name))
            / pairs
            for name in ("score", "probability")
        }
        source = ends[0] if ends[0] == ends[1] else " … ".join(ends)
        return cls(source=source, pairs=pairs, **means, **added)


def shortened(timeline: Sequence[Stretch]) -> list[Stretch]:
    """Return a timeline that has grown too long with every two neighbours joined."""
    if len(timeline) <= MOST:
        return list(timeline)
    twos: list[Any] = [timeline[i : i + 2] for i in range(0, len(timeline), 2)]
    return [both[0] if len(both) == 1 else Stretch.joined(*both) for both in twos]


THEN, NOW = "calibration", "in use"
#: Regions that are drawn (the table has all), and their clusters that are named.
_DRAWN, _NAMED = 12, 8
#: Narrow enough that text can be read on a phone.
_WIDTH = 420
#: Bins of scores that are drawn, at most.
_SCORE_BINS = 20
#: With fewer labelled pairs a bin of the reliability diagram tells next to nothing.
_LEAST = 10

TITLES = {
    "clusters": "Cluster occupancy",
    "scores": "Scores",
    "outside": "Images outside",
    "calibration": "Calibration on feedback",
    "time": "Over time",
}


class MonitoringChart(NamedTuple):
    """A figure with the table behind it; `drawing` is an ``<svg>`` element."""

    title: str
    caption: str
    drawing: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def pictures(
    verdict: Verdict, population: Population, timeline: Sequence[Stretch]
) -> dict[str, MonitoringChart]:
    """Return what there is to see, by section."""
    of = {finding.name: finding for finding in verdict.findings if finding.enough}
    charts: dict[str, MonitoringChart] = {}
    if "clusters" in of:
        charts["clusters"] = clusters(of["clusters"], population)
    if "scores" in of:
        charts["scores"] = scores(of["scores"])
    if any(stretch.images for stretch in timeline):
        charts["outside"] = outside(of.get("outside"), timeline)
    if "calibration" in of:
        charts["calibration"] = reliability(of["calibration"])
    if timeline:
        charts["time"] = over_time(timeline)
    return charts


def clusters(finding: Finding, population: Population) -> MonitoringChart:
    """Show the share of images in each region of clusters, the biggest changes first."""
    then, now = _both(finding, "regions")
    order = np.argsort(-np.abs(now - then), kind="stable").tolist()
    members = [np.flatnonzero(population.region == region).tolist() for region in range(len(now))]
    drawn = order[:_DRAWN]
    more = f" The {_DRAWN} that changed most are drawn." if len(order) > _DRAWN else ""
    return MonitoringChart(
        "Who is seen: images by region of clusters",
        "Clusters that lie next to each other are taken together, so that each region has many "
        f"people. Biggest change first.{more} {_window(finding)}",
        bars(
            [f"region {region}" for region in drawn],
            {THEN: then[drawn].tolist(), NOW: now[drawn].tolist()},
            title="Share of images in each region, in calibration and in use",
            width=_WIDTH,
        ),
        ("region", THEN, NOW, "change", "clusters"),
        tuple(
            (f"region {region}", *_change(then[region], now[region]), _listed(members[region]))
            for region in order
        ),
    )


def scores(finding: Finding) -> MonitoringChart:
    """Show how what the model ranks by is spread, in bins that calibration fills alike."""
    then, now = _alike(*_both(finding, "bins"))
    ends = [round(100 * float(end)) for end in (0.0, *np.cumsum(then))]
    at = np.unique(np.linspace(0, len(then), 6).astype(int)).tolist()
    share = number(finding.details["share_genuine"], True)
    among = (
        " Each pair is ranked among calibration pairs of such regions, so that who is seen makes "
        "no difference here."
        if finding.details.get("by_stratum")
        else ""
    )
    return MonitoringChart(
        "Scores then and now",
        "The share of pairs in each bin of what the model ranks by, from low to high. Bins are "
        "made so that calibration fills them about alike: where the blue line leaves the dashed "
        f"one, scores have changed.{among} Calibration is shown with {share} genuine pairs, which "
        f"fits what is in use best: another share alone is no alarm. {_window(finding)}",
        histogram(
            np.arange(len(now) + 1),
            {THEN: then, NOW: now},
            title="Pairs by score, in calibration and in use",
            looks=CHANGE_LOOKS,
            x_label="score, as percentile of calibration",
            x_ticks={float(i): f"{ends[i]} %" for i in at},
            width=_WIDTH,
        ),
        ("score, percentile of calibration", THEN, NOW, "change"),
        tuple(
            (f"{low} to {high} %", *_change(then[i], now[i]))
            for i, (low, high) in enumerate(pairwise(ends))
        ),
    )


def _alike(then: Float64, now: Float64) -> tuple[Float64, Float64]:
    """Join bins until calibration has about as many pairs in each."""
    quantiles = np.arange(1, _SCORE_BINS) / _SCORE_BINS
    grown = np.cumsum(then)[:-1]
    if not len(grown):
        return then, now
    ends = np.unique(np.abs(grown[:, None] - quantiles).argmin(axis=0))
    starts = np.concatenate([[0], ends + 1])
    return np.add.reduceat(then, starts), np.add.reduceat(now, starts)


def outside(finding: Finding | None, timeline: Sequence[Stretch]) -> MonitoringChart:
    """Show the share of images outside, stretch by stretch."""
    there = [(i, stretch) for i, stretch in enumerate(timeline, start=1) if stretch.images]
    ends = wilson([part.outside for _, part in there], [part.images for _, part in there])
    low, high = (end.tolist() for end in ends)
    share = [part.outside / part.images for _, part in there]
    usual = None if finding is None else float(finding.details["expected"])
    return MonitoringChart(
        "Images outside of the calibration population",
        "Stretch by stretch in the order of time, with 95 % intervals as if images were "
        "independent: they are wider in truth, since people come more than once. Dashed: in "
        "calibration.",
        points(
            [float(i) for i, _ in there],
            share,
            low=low,
            high=high,
            level=usual,
            title="Share of images outside, over time",
            x_label="stretch",
            y_label="images outside",
            x_whole=True,
            width=_WIDTH,
        ),
        ("stretch", "images", "outside", "share", "95 % interval"),
        tuple(
            (
                f"{i}: {part.source}",
                f"{part.images:,}",
                f"{part.outside:,}",
                number(share[k], True),
                _interval(low[k], high[k]),
            )
            for k, (i, part) in enumerate(there)
        ),
    )


def reliability(finding: Finding) -> MonitoringChart:
    """Show what share of pairs with about the same probability turned out to be genuine."""
    curve = finding.details["curve"]
    said, pairs, genuine = (np.array(curve[key]) for key in ("probability", "labels", "genuine"))
    bins = np.flatnonzero(pairs)
    low, high = (end.tolist() for end in wilson(genuine[bins], pairs[bins]))
    drawn = [k for k, b in enumerate(bins) if pairs[b] >= _LEAST]
    few = f" Bins with fewer than {_LEAST} pairs are in the table only."
    share = genuine[bins] / pairs[bins]
    return MonitoringChart(
        "Do probabilities mean what they say?",
        "Pairs with feedback, by the probability that was told: on the dashed line they are "
        "genuine as often as was said. 95 % intervals as if pairs were independent."
        + few
        * (len(drawn) < len(bins)),
        points(
            said[bins][drawn].tolist(),
            share[drawn].tolist(),
            low=[low[k] for k in drawn],
            high=[high[k] for k in drawn],
            diagonal=True,
            x_percent=True,
            title="Share of genuine pairs against probability, of pairs with feedback",
            x_label="probability",
            y_label="genuine",
            width=_WIDTH,
            height=300,
        ),
        ("probability", "pairs", "genuine", "share", "95 % interval"),
        tuple(
            (
                number(float(said[b]), True),
                f"{int(pairs[b]):,}",
                f"{int(genuine[b]):,}",
                number(float(share[k]), True),
                _interval(low[k], high[k]),
            )
            for k, b in enumerate(bins)
        ),
    )


def over_time(timeline: Sequence[Stretch]) -> MonitoringChart:
    """Show all stretches: how many pairs, and what they were like."""
    return MonitoringChart(
        "The stream, stretch by stretch",
        "In the order in which files were given. The mean probability is the share of genuine "
        "pairs that the model sees; where there is feedback, the table has what turned out beside "
        "what was promised.",
        points(
            [float(i) for i in range(1, len(timeline) + 1)],
            [part.probability for part in timeline],
            title="Mean probability over time",
            x_label="stretch",
            y_label="mean probability",
            x_whole=True,
            width=_WIDTH,
        ),
        ("stretch", "pairs", "mean score", "mean probability", "feedback", "genuine", "promised"),
        tuple(
            (
                f"{i}: {part.source}",
                f"{part.pairs:,}",
                number(part.score),
                number(part.probability, True),
                f"{part.feedback:,}",
                f"{part.genuine:,}" if part.feedback else "–",
                f"{part.expected:,.1f}" if part.feedback else "–",
            )
            for i, part in enumerate(timeline, start=1)
        ),
    )


def _both(finding: Finding, key: str) -> tuple[Float64, Float64]:
    of = finding.details[key]
    return np.array(of["expected"], np.float64), np.array(of["found"], np.float64)


def _window(finding: Finding) -> str:
    """Say which pairs are shown."""
    end, count = finding.details["window_end"], finding.details["window_pairs"]
    return f"In use: pairs {end - count + 1:,} to {end:,}."


def _change(then: float, now: float) -> tuple[str, str, str]:
    """Return two shares, and their difference in percentage points."""
    change = f"{100 * (now - then):+.2f} pp".replace("-", "−")
    return number(float(then), True), number(float(now), True), change


def _interval(low: float, high: float) -> str:
    return f"{number(low, True)} to {number(high, True)}"


def _listed(members: Sequence[int]) -> str:
    named = ", ".join(map(str, members[:_NAMED]))
    return named + (f" and {len(members) - _NAMED} more" if len(members) > _NAMED else "")
