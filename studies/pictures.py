"""The pictures of the study; they need the extra ``figures``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from studies.contenders import title
from studies.failures import group_values
from studies.parts import ALL, FEW
from studies.sections import RANDOM, REPAIRED
from studies.sets import REAL
from studies.tally import Tally
from studies.words import FAIR, TITLES

_COLOURS = {
    "baseline": "#555555",
    "gst": "#9467bd",
    "fsn": "#8c564b",
    "faircal": "#1f77b4",
    "smooth": "#d62728",
    "oracle": "#2ca02c",
}


def draw(tally: Tally, folder: Path) -> dict[str, str]:
    """Draw what the rows allow; return the files' names by part."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    drawn: dict[str, str] = {}
    makers: dict[str, Callable[[Tally, Any], Any]] = {
        "real": _people,
        "protocol": _protocol,
        "groups": _groups,
    }
    for name, maker in makers.items():
        figure = maker(tally, plt)
        if figure is not None:
            folder.mkdir(parents=True, exist_ok=True)
            drawn[name] = f"study-smooth-{name}.png"
            figure.savefig(folder / drawn[name], dpi=120, metadata={"Software": None})
            plt.close(figure)
    return drawn


def _people(tally: Tally, plt: Any) -> Any:
    """Differences to FairCal with intervals over people."""
    methods = [m for m in ALL if m != "faircal" and len(tally.replicates(REAL, m, "ks"))]
    if not methods or not tally.has(REAL, "faircal"):
        return None
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 2.8), sharey=True)
    at = np.arange(len(methods))[::-1]
    for ax, metric in zip(axes, FAIR, strict=True):
        for y, name in zip(at, methods, strict=True):
            ends = tally.interval_of_difference(REAL, metric, name, "faircal")
            gap = tally.mean(REAL, name, metric) - tally.mean(REAL, "faircal", metric)
            ax.plot(ends, (y, y), "-|", color=_COLOURS[name])
            ax.plot(gap, y, "o", color=_COLOURS[name])
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set(xlabel=f"{TITLES[metric]}: difference to FairCal, points")
        ax.set(yticks=at, ylim=(-0.6, len(methods) - 0.4))
        ax.set_yticklabels([title(name) for name in methods])
        ax.grid(visible=True, axis="x", alpha=0.3)
    figure.tight_layout()
    return figure


def _protocol(tally: Tally, plt: Any) -> Any:
    """Metrics over the share of random imposters, and where pairing anew gets to."""
    steps = {REAL: "as given", "lfw, 50 % random": "50 % random", RANDOM: "100 % random"}
    steps |= {name: name.removeprefix("lfw, ") for name in REPAIRED}
    there = [name for name in steps if tally.has(name, *FEW)]
    if RANDOM not in there:
        return None
    line = [name for name in there if name not in REPAIRED]
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4))
    for ax, metric in zip(axes, FAIR, strict=True):
        # Oracle is at a loss with pairs across groups, so it is shown as given only.
        for name in FEW[:-1]:
            values = [tally.of_seed(of, name, metric, 0) for of in there]
            colour = _COLOURS[name]
            ax.plot(values[: len(line)], marker="o", color=colour, label=title(name))
            apart = range(len(line), len(there))
            ax.plot(apart, values[len(line) :], "D", color=colour)
        given = tally.mean(REAL, "oracle", metric)
        ax.axhline(given, color=_COLOURS["oracle"], linestyle="--", label="Oracle, as given")
        ax.axvline(len(line) - 0.5, color="#bbbbbb", linestyle=":")
        ax.set(ylabel=f"{TITLES[metric]}, %", xticks=range(len(there)))
        ax.set_xticklabels([steps[name] for name in there], rotation=20, ha="right")
        ax.set_ylim(bottom=0)
        ax.grid(visible=True, axis="y", alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(FEW))
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    return figure


def _groups(tally: Tally, plt: Any) -> Any:
    """KS of each group of the real set, the smallest group first."""
    if not tally.has(REAL, *FEW):
        return None
    pairs = group_values(tally, "baseline", "pairs")
    order = sorted(pairs, key=lambda group: pairs[group])
    figure, ax = plt.subplots(figsize=(8.5, 3.2))
    width = 0.8 / len(FEW)
    for i, name in enumerate(FEW):
        values = group_values(tally, name, "ks")
        at = np.arange(len(order)) + (i - (len(FEW) - 1) / 2) * width
        heights = [values[group] for group in order]
        ax.bar(at, heights, width, color=_COLOURS[name], label=title(name))
    ax.set(ylabel="KS, %", xticks=range(len(order)))
    ax.set_xticklabels([f"{group}\n{pairs[group]:,.0f} pairs" for group in order], fontsize=8)
    ax.legend(ncols=len(FEW), loc="upper center", bbox_to_anchor=(0.5, 1.18), frameon=False)
    ax.grid(visible=True, axis="y", alpha=0.3)
    figure.tight_layout()
    return figure
