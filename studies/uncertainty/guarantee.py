"""Do promised thresholds hold? How often FPR(threshold) is above the rate that was promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from faircal.evaluation.thresholds import ImposterSet, guarantee
from studies.uncertainty.crowds import CROWDS, Crowd, Known
from studies.uncertainty.part import Kept, Part, Spec
from studies.words import number, table

RATES, RISK = (0.01, 0.001, 0.0001), 0.05
DRAWS, SEEDS = 50, 8
#: People, and how many seeds: the fewer the people, the more is at stake.
_SIZES = {30: 4, 60: SEEDS, 120: SEEDS, 200: SEEDS, 400: 2, 800: 2}
#: What intervals are to cover, in percent, and the lowest rate of which they are asked.
LEAST, _LOWEST = 92.0, 0.001
#: How unlikely a verdict may be if promises do hold, or intervals cover.
_BY_CHANCE = 0.01
_HEADER = ["given", "extrapolated", "broken of given", "at most", "of all", "× α then", "true / α"]
_ABOUT = f"""\
A threshold is promised with P(FPR ≤ α) ≥ 95 %, from pairs that share people (`faircal threshold`).
*Given*: the share of draws from which it was promised at all; the rest was refused. *Broken of
given*: of these, the share whose true FPR is above α; *at most*: 5 % and what chance adds (one in a
hundred studies would exceed it). *Of all*: broken of all draws. *× α then*: how many times α the
true rate is where the promise is broken, on average. *True / α*: how careful promises are on
average. *Covered*: how often the 95 % interval of the FPR at a fixed threshold, of the true rate α,
holds it; {LEAST:g} % are wanted, less what chance takes off.

The crowds were chosen to break promises, and written apart from the rule. Unless it says otherwise
a score is the effects of both people (normal, variance 0.15 each), of the couple (0.2) and chance
(0.6); the numbers of images are uneven, and there are two pairs a couple, 40,000 at most. *Strong*,
*mild*: effects of variance 0.25, 0.03. *Multiplying*: people have no effects but widths, which
multiply. *Wolves*: a share of people whose pairs score 1.5 higher, or whose effects or scores are
1.8 times as wide. *Siblings*: one pair in a hundred is of two who score 1.5 higher. *Images with
the effect*: whoever scores higher has more images (correlation 0.9). *One dominating*: a fifth of
pairs is with one person. *Two sites*: pairs are within sites, at one they score 0.8 higher. *Ties*:
scores have steps of 0.2. The last three are those of the next section.
"""
_WHY = """
What crowds with broken promises have in common is that some draws look as if all people were alike,
since the few who are not are missing. No rule that still promises something to normal people can
tell. With every promise the command prints how rare a kind of people may be and be missing.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells: one crowd after another, for its law is made once."""
    specs = [
        ({"crowd": name, "people": people, "draws": DRAWS}, seed)
        for name in CROWDS
        for people, seeds in _SIZES.items()
        for seed in range(seeds)
    ]
    return [({**spec, "draws": 3}, seed) for spec, seed in specs[4:5]] if quick else list(specs)


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Return sums over draws, by rate."""
    crowd, people = CROWDS[spec["crowd"]], spec["people"]
    found: dict[str, dict[str, float]] = {}
    for draw in range(spec["draws"]):
        rng = np.random.default_rng([seed, draw, people, *spec["crowd"].encode()])
        imposters = ImposterSet(*crowd.draw(rng, people))
        for rate in RATES:
            add(found.setdefault(f"{rate:g}", {}), **_judged(crowd, imposters, rate))
    return found


def _judged(crowd: Crowd | Known, imposters: ImposterSet, rate: float) -> dict[str, Any]:
    """Return what came of one draw at one rate: the true rate is in units of the wanted one."""
    made = guarantee(imposters, fpr=rate, confidence=1 - RISK, upper=np.inf)
    at = crowd.threshold(rate)
    low, high = imposters.dependence.interval(imposters.errors(at) / len(imposters.scores), 0.95)
    return {
        "true": crowd.fpr(made.threshold) / rate,
        "extrapolated": len(made.extrapolated),
        "covered": low <= crowd.fpr(at) <= high,
        "width": (high - low) / rate,
    }


def add(
    tally: dict[str, float],
    true: float,
    extrapolated: int,
    covered: bool,
    width: float,
) -> None:
    """Count a draw; a true rate of NaN is no promise."""
    given, broken = bool(np.isfinite(true)), bool(true > 1)
    for name, value in (
        ("draws", 1),
        ("given", given),
        ("extrapolated", given and extrapolated),
        ("broken", broken),
        ("times", true if broken else 0.0),
        ("of_rate", true if given else 0.0),
        ("covered", covered),
        ("width", width),
    ):
        tally[name] = round(tally.get(name, 0) + float(value), 6)


class Line(NamedTuple):
    """One crowd, so many people, one rate; `of` are sums over draws."""

    crowd: str
    people: int
    rate: float
    of: dict[str, float]

    def share(self, what: str, whole: str = "draws") -> float:
        """Return a sum over another, NaN where that is 0."""
        return self.of[what] / self.of[whole] if self.of[whole] else float("nan")

    @property
    def most(self) -> float:
        """The share of promises that may be broken, with what chance adds."""
        given = self.of["given"]
        return float(binom.ppf(1 - _BY_CHANCE, given, RISK)) / given if given else float("nan")

    @property
    def verdicts(self) -> list[str]:
        """What is wrong; nothing if all is well."""
        wrong = ["broken too often"] if self.share("broken", "given") > self.most else []
        draws = self.of["draws"]
        fewest = binom.ppf(_BY_CHANCE, draws, LEAST / 100)
        if self.rate >= _LOWEST and self.of["covered"] < fewest:
            wrong.append("covers too little")
        return wrong


def lines(kept: Sequence[Kept]) -> list[Line]:
    """Add up the cells of each crowd, size and rate."""
    sums: dict[tuple[str, int, float], dict[str, float]] = {}
    for spec, _, values in kept:
        for rate, tally in values.items():
            total = sums.setdefault((spec["crowd"], spec["people"], float(rate)), {})
            for key, value in tally.items():
                total[key] = total.get(key, 0) + value
    return [Line(*where, of) for where, of in sums.items()]


def section(kept: Sequence[Kept]) -> str:
    """Return where it fails, then one line for each crowd, size and rate."""
    every = lines(kept)
    failing = [line for line in every if line.verdicts]
    given = int(sum(line.of["given"] for line in every))
    broken = int(sum(line.of["broken"] for line in every))
    summary = (
        f"In {len(failing)} of {len(every)} settings. Of all {given:,} promises given {broken:,} "
        f"were broken ({number(100 * broken / max(given, 1), 1)} %). Too often in:\n"
    )
    texts = [
        "### Where it fails\n",
        summary,
        _table(failing) if failing else "Nothing.",
        _WHY,
        "### What is judged\n",
        _ABOUT,
        "### All of it\n",
        _table(every),
    ]
    return "\n".join(texts)


def _table(some: Iterable[Line]) -> str:
    header = ["crowd", "people", "α", "draws", *_HEADER, "covered", "bar"]
    return table(header, _rows(some))


def _rows(some: Iterable[Line]) -> Iterator[list[str]]:
    for line in some:
        shares = [line.share("given"), line.share("extrapolated"), line.share("broken", "given")]
        shares += [line.most, line.share("broken")]
        covered = line.share("covered") if line.rate >= _LOWEST else float("nan")
        yield [
            line.crowd,
            f"{line.people}",
            f"{100 * line.rate:g} %",
            f"{int(line.of['draws']):,}",
            *(number(100 * share, 1) for share in shares),
            number(line.share("times", "broken"), 1),
            number(line.share("of_rate", "given")),
            number(100 * covered, 1),
            ", ".join(line.verdicts) or "ok",
        ]


def picture(kept: Sequence[Kept], plt: Any) -> Any:
    """Draw how often promises that were given are broken, beside what is allowed."""
    every = [line for line in lines(kept) if line.people >= 60]
    names = list(dict.fromkeys(line.crowd for line in every))
    if not names:
        return None
    figure, axes = plt.subplots(1, 3, figsize=(10, 1.4 + 0.25 * len(names)), sharey=True)
    for ax, rate in zip(axes, RATES, strict=True):
        ax.axvline(100 * RISK, color="black", linestyle="--")
        for people in sorted({line.people for line in every}):
            there = [x for x in every if (x.people, x.rate) == (people, rate) and x.of["given"]]
            ax.scatter(
                [100 * x.share("broken", "given") for x in there],
                [names.index(x.crowd) for x in there],
                s=[6 + 40 * x.share("given") for x in there],
                alpha=0.7,
                label=f"{people}",
            )
        ax.set(title=f"α = {100 * rate:g} %", xlabel="broken, % of given", xlim=(-3, 103))
        ax.grid(visible=True, axis="x", alpha=0.3)
    axes[0].set(yticks=range(len(names)), ylim=(len(names) - 0.4, -0.6))
    axes[0].set_yticklabels(names, fontsize=8)
    axes[-1].legend(fontsize=7, title="people\n(size: share given)", title_fontsize=7)
    figure.tight_layout()
    return figure


GUARANTEE = Part("guarantee", "Do promised thresholds hold?", cells, cell, section, picture)
