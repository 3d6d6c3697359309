"""The model card's drawing: how similar genuine pairs and imposters of calibration were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

#: Size of the drawing, and of the field within it.
_WIDTH, _HEIGHT = 440, 210
_LEFT, _TOP, _RIGHT, _BOTTOM = 12, 26, 12, 42
#: Columns at most: finer bins are put together.
_MOST_BINS = 80


class Curve(NamedTuple):
    """The outline of one kind of pair, as an SVG path, and where its name stands."""

    kind: str
    path: str
    x: float
    y: float
    anchor: str


class Chart(NamedTuple):
    """All that the template draws."""

    width: int
    height: int
    base: float
    left: float
    right: float
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    words: str


def score_chart(scores: Mapping[str, Any] | None) -> Chart | None:
    """Return the drawing of the scores that `card_facts` tells of; None where there are none."""
    if scores is None:
        return None
    edges = np.array(scores["edges"], dtype=np.float64)
    counts = {kind: np.array(scores[kind], dtype=np.float64) for kind in ("imposter", "genuine")}
    if not all(of.sum() for of in counts.values()):
        return None
    edges, counts = _coarser(*_within(edges, counts))
    span = edges[-1] - edges[0]
    if not np.isfinite(span) or span <= 0:
        return None
    shares = {
        kind: of / of.sum() / np.maximum(np.diff(edges), 1e-12) for kind, of in counts.items()
    }
    most = max(float(of.max()) for of in shares.values())
    base = _HEIGHT - _BOTTOM
    heights = {kind: base - of / most * (base - _TOP) for kind, of in shares.items()}
    across = _LEFT + (edges - edges[0]) / span * (_WIDTH - _LEFT - _RIGHT)
    ticks = _ticks(float(edges[0]), float(edges[-1]))
    return Chart(
        _WIDTH,
        _HEIGHT,
        base,
        _LEFT,
        _WIDTH - _RIGHT,
        _apart(*(_curve(kind, across, up, base) for kind, up in heights.items())),
        tuple(
            (round(_LEFT + (at - edges[0]) / span * (_WIDTH - _LEFT - _RIGHT), 1), f"{at:g}")
            for at in ticks
        ),
        _words(scores),
    )


def _within(edges: Float64, counts: dict[str, Float64]) -> tuple[Float64, dict[str, Float64]]:
    """Leave out the bins at both ends in which there is nothing."""
    used = np.flatnonzero(sum(counts.values()))
    first, last = int(used[0]), int(used[-1])
    return edges[first : last + 2], {kind: of[first : last + 1] for kind, of in counts.items()}


def _coarser(edges: Float64, counts: dict[str, Float64]) -> tuple[Float64, dict[str, Float64]]:
    step = -(-(len(edges) - 1) // _MOST_BINS)
    starts = np.arange(0, len(edges) - 1, step)
    joined = {kind: np.add.reduceat(of, starts) for kind, of in counts.items()}
    return np.append(edges[starts], edges[-1]), joined


def _curve(kind: str, across: Float64, up: Float64, base: float) -> Curve:
    steps = " ".join(
        f"V{y:.1f} H{x:.1f}" for y, x in zip(up.tolist(), across[1:].tolist(), strict=True)
    )
    top = int(up.argmin())
    x = float(across[top] + across[top + 1]) / 2
    anchor = "start" if x < _WIDTH / 3 else "end" if x > _WIDTH * 2 / 3 else "middle"
    path = f"M{across[0]:.1f} {base} {steps} V{base} Z"
    return Curve(kind, path, round(x, 1), round(float(up[top]) - 7, 1), anchor)


def _apart(lower: Curve, higher: Curve) -> tuple[Curve, Curve]:
    """Set names that would stand on each other to the two sides of their tops."""
    if abs(lower.x - higher.x) > 90 or abs(lower.y - higher.y) > 16:
        return lower, higher
    turned = ("end", "start") if lower.x <= higher.x else ("start", "end")
    return lower._replace(anchor=turned[0]), higher._replace(anchor=turned[1])


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, some five of them."""
    rough = (high - low) / 5
    unit = 10 ** np.floor(np.log10(rough))
    step = float(unit * min(n for n in (1, 2, 5, 10) if n * unit >= rough))
    first = np.ceil(low / step - 1e-9)
    return [round(float(n * step), 12) for n in np.arange(first, high / step + 1e-9)]


def _words(scores: Mapping[str, Any]) -> str:
    middle = scores["quantiles"]["0.5"]
    return (
        "Similarity of calibration pairs. Half of the imposter pairs are below "
        f"{middle['imposter']:.2f}, half of the genuine pairs above {middle['genuine']:.2f}."
    )
