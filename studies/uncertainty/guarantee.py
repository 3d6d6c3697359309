"""Do promised thresholds hold? How often FPR(threshold) is above the rate that was promised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from faircal.evaluation.thresholds.imposters import ImposterSet
from studies.uncertainty.design import make_design
from studies.uncertainty.part import Kept, Part, Spec
from studies.uncertainty.populations import POPULATIONS
from studies.words import number, table

RATES, RISKS = (0.01, 0.001), (0.05, 0.1)
DRAWS, SEEDS = 200, 10
_SIZES = ((30, 5), (50, 4), (100, 3))
_ALONE = (
    "normal, medium",
    "normal, strong",
    "normal, mild",
    "wolves, 5 %",
    "embeddings, 64",
    "embeddings, 16",
    "faircal.simulate",
)
#: Four groups of one kind of score: population, people, how far apart.
_GROUPS = (
    ("normal, strong", 30, 0.0),
    ("normal, medium", 40, 0.3),
    ("wolves, 10 %", 60, 0.0),
    ("wolves, 5 %", 80, -0.2),
)
_ABOUT = """\
A threshold is promised with P(FPR ≤ α) ≥ 1 − δ, from calibration pairs that share people
(`faircal threshold`). *Broken*: of all calibrations, those after which the true FPR at the
threshold is above α; *at most*: δ and what chance adds (one in a hundred studies would exceed it).
*Told*: calibrations from which something was promised at all; of the others nothing is claimed.
*True / α*: mean of the true rate there, so that it can be seen how careful the promise is. Here
errors are counted, never extrapolated. *Four groups*, of 30 to 80 people each and of different
populations (as above; among 30 people drawn with 5 % wolves there is none in every fifth draw, and
no threshold knows of them): one threshold for all groups is broken where any group's FPR is above
α; with a threshold for each group, one broken is enough to count.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells; `groups` is the setting with four groups."""
    specs: list[Spec] = [
        {"population": name, "people": people, "images": images}
        for name in _ALONE
        for people, images in _SIZES
        if people != 50 or name == "normal, medium"
    ]
    specs.append({"population": "four groups", "people": 0, "images": 3})
    if quick:
        return [({**spec, "draws": 5}, 0) for spec in (specs[0], specs[-1])]
    return [({**spec, "draws": DRAWS}, seed) for spec in specs for seed in range(SEEDS)]


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Return sums over calibrations, by rate and risk."""
    many = spec["population"] == "four groups"
    groups = _GROUPS if many else ((spec["population"], spec["people"], 0.0),)
    designs = [make_design(people, spec["images"]) for _, people, _ in groups]
    laws = [POPULATIONS[name].law(apart) for name, _, apart in groups]
    found: dict[str, dict[str, float]] = {}
    for draw in range(spec["draws"]):
        rng = np.random.default_rng([seed, draw, spec["people"], *spec["population"].encode()])
        sets = []
        for (name, _, apart), design in zip(groups, designs, strict=True):
            scores = POPULATIONS[name].draw(rng, design, apart)[0]
            sets.append(ImposterSet(scores, *design.owner[design.imposter]))
        for rate in RATES:
            for risk in RISKS:
                # NaN where a group is promised nothing: then there is none for all.
                at = float(np.max([each.threshold(rate, risk) for each in sets]))
                true = [law.fpr(at) for law in laws]
                _count(found, f"one/{rate:g}/{risk:g}", true, rate)
                if many:
                    own = [each.threshold(rate, risk / len(sets)) for each in sets]
                    true = [law.fpr(at) for law, at in zip(laws, own, strict=True)]
                    _count(found, f"each/{rate:g}/{risk:g}", true, rate)
    return found


def _count(
    found: dict[str, dict[str, float]], name: str, true: Sequence[float], rate: float
) -> None:
    """Count a promise; a true rate of NaN is none, but what other groups were promised counts."""
    tally = found.setdefault(name, {"draws": 0, "told": 0, "broken": 0, "of_rate": 0.0})
    told = bool(np.isfinite(true).all())
    tally["draws"] += 1
    tally["told"] += told
    tally["broken"] += any(rate < value for value in true)
    tally["of_rate"] = round(tally["of_rate"] + (max(true) / rate if told else 0.0), 6)


def section(kept: Sequence[Kept]) -> str:
    """Return one line for each setting, rate and risk."""
    sums: dict[tuple[str, str], dict[str, float]] = {}
    for spec, _, values in kept:
        size = f"{spec['people']} × {spec['images']}" if spec["people"] else "30–80 × 3"
        for name, tally in values.items():
            total = sums.setdefault((f"{spec['population']}; {size}", name), {})
            for key, value in tally.items():
                total[key] = total.get(key, 0) + value
    rows = []
    for (setting, name), of in sums.items():
        whose, rate, risk = name.split("/")
        if setting.startswith("four"):
            setting += f"; {'one for all' if whose == 'one' else 'one for each'}"
        draws, told = int(of["draws"]), of["told"]
        most = float(binom.ppf(0.99, draws, float(risk))) / draws
        broken = of["broken"] / draws
        verdict = "ok" if broken <= most else "broken too often"
        shown = [number(100 * share, 1) for share in (broken, most, told / draws)]
        ratio = number(of["of_rate"] / told if told else float("nan"))
        rates = [f"{100 * float(rate):g} %", f"{float(risk):g}"]
        rows.append([setting, *rates, f"{draws:,}", *shown, ratio, verdict])
    header = ["setting", "α", "δ", "calibrations", "broken", "at most", "told", "true / α", "bar"]
    return f"{_ABOUT}\n{table(header, rows)}"


def picture(kept: Sequence[Kept], plt: Any) -> Any:
    """Draw how often promises are broken beside what is allowed."""
    shares: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for spec, _, values in kept:
        for name, tally in values.items():
            whose, rate, risk = name.split("/")
            kind = f"{spec['population']}{', one each' if whose == 'each' else ''}"
            label = f"{kind}; {spec['people'] or '30–80'}; {100 * float(rate):g} %"
            shares.setdefault((label, risk), []).append((tally["broken"], tally["draws"]))
    names = list(dict.fromkeys(label for label, _ in shares))
    figure, ax = plt.subplots(figsize=(7.5, 1.2 + 0.2 * len(names)))
    looks = (("#1f77b4", -0.17), ("#d95f02", 0.17))
    for risk, (colour, off) in zip(map("{:g}".format, RISKS), looks, strict=True):
        ax.axvline(100 * float(risk), color=colour, linestyle="--", label=f"allowed, δ = {risk}")
        there = [name for name in names if (name, risk) in shares]
        sums = [np.sum(shares[name, risk], axis=0) for name in there]
        at = [names.index(name) + off for name in there]
        ax.plot([100 * b / n for b, n in sums], at, "o", color=colour, markersize=4)
    ax.set(yticks=range(len(names)), ylim=(len(names) - 0.4, -0.6), xlim=(-0.4, None))
    ax.set_yticklabels(names, fontsize=7)
    ax.set(xlabel="promises broken, % of calibrations")
    ax.grid(visible=True, axis="x", alpha=0.3)
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.4, 1.08), ncols=2, frameon=False)
    figure.tight_layout()
    return figure


GUARANTEE = Part("guarantee", "Do promised thresholds hold?", cells, cell, section, picture)
