"""The picture of the study of classifiers; it needs the extra ``figures``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.classes.tally import UNCLEAR, Tally
from studies.classes.words import SETS

_PANELS = (
    ("dirichlet/faircal", "uncalibrated", "FairCal − uncalibrated"),
    ("dirichlet/faircal", "dirichlet/global", "FairCal − global"),
    ("dirichlet/oracle", "dirichlet/global", "Oracle − global"),
)
_METRICS = (("top_ks_mean", 100.0, "KS mean over groups, %"), ("nll", 1000.0, "NLL, 10⁻³"))
_CLEAR, _GREY = "#1f77b4", "#9a9a9a"


def draw(tally: Tally, folder: Path) -> list[str]:
    """Draw differences with intervals, one picture a measure; return the files' names."""
    if not tally.rows:
        return []
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for metric, factor, title in _METRICS:
        figure = _differences(tally, plt, metric, factor, title)
        name = f"study-classes-{metric.replace('_', '-')}.png"
        figure.savefig(folder / name, dpi=120, metadata={"Software": None})
        plt.close(figure)
        drawn.append(name)
    return drawn


def _differences(tally: Tally, plt: Any, metric: str, factor: float, title: str) -> Any:
    keys = tally.keys(tuple(SETS))[::-1]
    height = 1.0 + 0.22 * len(keys)
    figure, axes = plt.subplots(1, len(_PANELS), figsize=(10, height), sharey=True)
    for ax, (a, b, name) in zip(axes, _PANELS, strict=True):
        for y, key in enumerate(keys):
            found = tally.difference(key, a, b, metric)
            colour = _GREY if found.verdict == UNCLEAR else _CLEAR
            ax.plot([factor * found.low, factor * found.high], [y, y], color=colour, lw=2)
            ax.plot(factor * found.mean, y, "o", color=colour, ms=4)
        ax.axvline(0, color="black", lw=0.8)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(title, fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(keys)), [f"{name}, {base}" for name, base in keys])
    figure.tight_layout()
    return figure
