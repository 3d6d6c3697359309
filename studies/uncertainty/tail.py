"""Does the extrapolated tail cover? Thresholds and rates at 1e-5 from data that resolve 1e-3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from faircal.evaluation.thresholds.tail import fit_tail
from studies.uncertainty.design import make_design
from studies.uncertainty.part import Kept, Part, Spec
from studies.uncertainty.tail_models import MODELS, RATE
from studies.words import number, table

#: Pairs by people and images: 10,000 of them make ten errors at 1e-3.
_SIZES = ((100, 4, 0), (300, 3, 10_000), (300, 3, 0))
DRAWS, SEEDS = 25, 1
LEAST = 93.0
_ABOUT = """\
The threshold at which the true FPR is 1e-5 is known. Each draw of people says whether the 95 %
interval of the extrapolated threshold holds it, whether that of the rate at the true threshold
holds 1e-5, and whether the threshold promised with a confidence of 90 % is high enough. *Refused*:
draws of which nothing is said, with a reason; shares of covered ones are of the others, *wrong* is
of all. *Width* is the median, in units of the score; *decades*: by how much the rate at the
extrapolated threshold could be higher, median. 10,000 imposter pairs show ten errors at 1e-3; all
pairs of 300 people with 3 images are 404,000, and 200 times fewer than ten errors are then 1e-7.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells; those of one size after another."""
    specs: list[Spec] = [
        {"model": name, "people": people, "images": images, "imposters": pairs}
        for people, images, pairs in _SIZES
        for name in MODELS
    ]
    if quick:
        return [({**spec, "draws": 3}, 0) for spec in specs[11:22:5]]
    return [({**spec, "draws": DRAWS}, seed) for spec in specs for seed in range(SEEDS)]


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Return what came of each draw that was not refused."""
    model = MODELS[spec["model"]]
    design = make_design(spec["people"], spec["images"], spec["imposters"])
    left, right = design.owner[design.imposter]
    found: dict[str, Any] = {"draws": spec["draws"], "bounds": [], "threshold": [], "rate": []}
    found |= {"width": [], "decades": [], "truth": round(model.truth, 4)}
    for draw in range(spec["draws"]):
        rng = np.random.default_rng([seed, draw, *spec["model"].encode()])
        tail = fit_tail(model.draw(rng, design), left, right, upper=model.upper)
        if not tail.fits:
            continue
        bound = tail.threshold_for(RATE, 0.9)
        if not np.isnan(bound):
            found["bounds"].append(int(bound >= model.truth))
        if tail.why_not(RATE):
            continue
        value, low, high = tail.threshold(RATE)
        rates = tail.fpr(max(model.truth, tail.threshold(tail.highest).value))
        found["threshold"].append(int(low <= model.truth <= high))
        found["rate"].append(int(not (rates.low > RATE or rates.high < RATE)))
        found["width"].append(round(high - low, 4))
        above = tail.upper_bound(value, 0.975) / RATE
        found["decades"].append(round(float(np.log10(above)), 3))
    return found


def _sums(kept: Sequence[Kept]) -> dict[tuple[str, str], dict[str, Any]]:
    """Put the draws of all seeds together, by size and model."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for spec, _, values in kept:
        pairs = f", {spec['imposters']:,} pairs" if spec["imposters"] else ""
        size = f"{spec['people']} × {spec['images']}{pairs}"
        total = sums.setdefault((size, spec["model"]), {})
        for name, value in values.items():
            once = name == "truth" or name not in total
            total[name] = value if once else total[name] + value
    return sums


def section(kept: Sequence[Kept]) -> str:
    """Return one line for each model and size."""
    rows = []
    for (size, model), of in _sums(kept).items():
        told, draws = len(of["threshold"]), of["draws"]
        wrong = told - sum(of["threshold"])
        covered = [100 * float(np.mean(of[k])) if of[k] else np.nan for k in ("threshold", "rate")]
        bound = 100 * float(np.mean(of["bounds"])) if of["bounds"] else np.nan
        medians = [float(np.median(of[k])) if of[k] else np.nan for k in ("width", "decades")]
        shown = [100 * (1 - told / draws), 100 * wrong / draws, *covered, bound]
        verdict = "refused" if not told else "ok" if min(covered) >= LEAST else "too low"
        numbers = [number(value, 1) for value in shown] + [number(value) for value in medians]
        rows.append([model, size, f"{of['truth']:.3f}", f"{draws}", *numbers, verdict])
    header = ["model", "people × images", "true threshold", "draws", "refused", "wrong"]
    header += ["threshold covered", "rate covered", "90 % bound holds", "width", "decades", "bar"]
    return f"{_ABOUT}\n{table(header, rows, text=2)}"


def picture(kept: Sequence[Kept], plt: Any) -> Any:
    """Draw coverage of the threshold, and the share refused."""
    sums = _sums(kept)
    sizes = list(dict.fromkeys(size for size, _ in sums))
    models = [name for name in MODELS if any(model == name for _, model in sums)]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 1.6 + 0.27 * len(models)), sharey=True)
    for k, size in enumerate(sizes):
        there = [(i, sums[size, m]) for i, m in enumerate(models) if (size, m) in sums]
        at = [i + 0.2 * (k - (len(sizes) - 1) / 2) for i, _ in there]
        covered = [100 * np.mean(of["threshold"] or [np.nan]) for _, of in there]
        refused = [100 * (1 - len(of["threshold"]) / of["draws"]) for _, of in there]
        for ax, values in zip(axes, (covered, refused), strict=True):
            ax.plot(values, at, "o", markersize=4, label=size)
    axes[0].axvline(LEAST, color="#2ca02c")
    axes[0].axvline(95, color="black", linestyle=":")
    axes[0].set(yticks=range(len(models)), xlabel="threshold covered, % of those told")
    axes[0].set(ylim=(len(models) - 0.4, -0.6))
    axes[0].set_yticklabels(models)
    axes[1].set(xlabel="refused, % of draws", xlim=(-3, 103))
    axes[1].legend(fontsize=8, title="people × images")
    for ax in axes:
        ax.grid(visible=True, axis="x", alpha=0.3)
    figure.tight_layout()
    return figure


TAIL = Part("tail", "Does the extrapolated tail cover at 1e-5?", cells, cell, section, picture)
