"""The section on coverage: which settings are run, its tables, its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from studies.uncertainty.coverage import DRAWS, SEEDS, cell
from studies.uncertainty.part import Kept, Part, Spec
from studies.uncertainty.tallies import added
from studies.words import number, table

#: Between these a nominal 95 % interval is to cover, in percent; the upper one from so many errors.
LEAST, MOST, ENOUGH = 93.0, 97.5, 10

#: People of a group, images of each (0: 1 to 6 by turns), imposter pairs (0: all); populations of
#: which some groups differ, and those of which all are alike.
_NAMES = ("medium", "strong", "mild", "couples only")
_ALL = (
    *(f"normal, {name}" for name in _NAMES),
    "wolves, 10 %",
    "wolves, 5 %",
    "embeddings, 64",
    "embeddings, 16",
    "faircal.simulate",
)
_GRID: tuple[tuple[int, int, int, tuple[str, ...], tuple[str, ...]], ...] = (
    (30, 4, 0, _ALL, ("normal, mild", "normal, medium", "normal, strong", "embeddings, 64")),
    (30, 1, 0, ("normal, medium", "embeddings, 16"), ()),
    (30, 0, 0, ("normal, strong", "embeddings, 64"), ()),
    (50, 3, 0, ("wolves, 5 %",), ("normal, medium",)),
    (
        100,
        4,
        10_000,
        ("normal, medium", "wolves, 10 %", "embeddings, 64", "faircal.simulate"),
        ("normal, strong",),
    ),
    (100, 3, 0, (), ("normal, medium",)),
    (300, 2, 20_000, ("normal, strong",), ("wolves, 5 %", "faircal.simulate")),
)

#: Titles by key of a tally.
_TITLES = {
    "plain/0.01/fpr": "FPR 1 %",
    "plain/0.001/fpr": "FPR 0.1 %",
    "plain/global_fpr=0.01/fpr": "FPR at global 1 %",
    "plain/global_fpr=0.001/fpr": "FPR at global 0.1 %",
    "plain/0.01/fnr": "FNR at FPR 1 %",
    "plain/0.001/fnr": "FNR at FPR 0.1 %",
    "global/fpr=0.01/tpr": "TPR at FPR 1 %",
    "global/fpr=0.001/tpr": "TPR at FPR 0.1 %",
    "all/0.01/fpr_gap": "FPR gap, 1 %",
    "all/0.01/fpr_aad": "FPR AAD, 1 %",
    "all/0.01/fpr_mad": "FPR MAD, 1 %",
    "all/0.01/fpr_std": "FPR STD, 1 %",
    "all/0.001/fpr_gap": "FPR gap, 0.1 %",
    "all/0.001/fpr_aad": "FPR AAD, 0.1 %",
    "all/0.001/fpr_mad": "FPR MAD, 0.1 %",
    "all/0.001/fpr_std": "FPR STD, 0.1 %",
    "plain//auroc": "AUROC",
    "plain//ks": "KS",
    "plain//ece": "ECE",
    "all//ks_aad": "KS AAD",
    "plain//brier": "Brier",
    "plain//nll": "NLL",
}
_ABOUT = f"""\
Nominal 95 % intervals, as `faircal.audit` gives them where people are known. Four groups; A and B
are plain in every setting and the thresholds are those at which their true FPR is 1 % and 0.1 %.
Where groups *differ*, C and D are set apart and probabilities are off by 2 in log-odds; where
they are *alike*, true deviations are 0, and so are KS and ECE if the scores are normal. A true 0
counts as covered where the interval begins at 0.

Populations: *normal* scores with effects of both people, both images and the couple (variance
shares: mild 2 × 0.02, 0, 0.1; medium 2 × 0.1, 2 × 0.05, 0.3; strong 2 × 0.2, 2 × 0.04, 0.3; couples
only 0.5); *wolves*, a tenth of people all of whose imposter pairs score a standard deviation
higher, or a twentieth and 1.5 (among 30 people there is then none in every fifth draw, and nothing
in such a draw says that there could be any); *embeddings*, cosines of a person's own direction, a
common one and noise in 64 or 16 dimensions; *faircal.simulate*, the population model of that name,
its sub-clusters fixed. Truth is exact for normal scores and wolves; of the others it is counted
over 18,000 people a group (240,000 for genuine pairs).

The bar: at least {LEAST:g} % everywhere, at most {MOST:g} % where {ENOUGH} or more errors are
expected (of deviations: in the group with the fewest; genuine pairs for AUROC and calibration) and
the truth is not 0. *Above* and *below* are misses: the whole interval above or below the truth.
*Pair-wise*: Wilson for rates, DeLong for AUROC, mean ± 1.96 standard errors for losses, a bootstrap
of pairs for KS, ECE and deviations.
"""


def cells(quick: bool) -> list[tuple[Spec, int]]:
    """Return the cells: settings of one population after another, for its law is made once."""
    specs = [
        {"population": name, "people": n, "images": images, "imposters": pairs, "differ": differ}
        for n, images, pairs, apart, alike in _GRID
        for names, differ in ((apart, True), (alike, False))
        for name in names
    ]
    if quick:
        small = [spec for spec in specs if spec["people"] == 30 and spec["images"]]
        return [({**spec, "draws": 4}, 0) for spec in small[:6:2]]
    specs.sort(key=lambda spec: _ALL.index(str(spec["population"])))
    return [({**spec, "draws": DRAWS}, seed) for spec in specs for seed in range(SEEDS)]


class Line(NamedTuple):
    """One thing in one setting; shares are percent, widths are means."""

    setting: str
    what: str
    truth: float
    errors: float
    draws: int
    undefined: int
    coverage: float
    above: float
    below: float
    width: float
    pair_coverage: float
    pair_width: float

    @property
    def judged_above(self) -> bool:
        """Whether it can cover too often."""
        return self.errors >= ENOUGH and self.truth > 0

    @property
    def verdict(self) -> str:
        """Whether it is within the bar."""
        if not self.draws:
            return "undefined"
        if self.coverage < LEAST:
            return "too low"
        return "too high" if self.judged_above and self.coverage > MOST else "ok"


def lines(kept: Sequence[Kept]) -> list[Line]:
    """Add up the cells of each setting; in the order of the page."""
    found: dict[tuple[str, str], list[Any]] = {}
    for spec, _, values in kept:
        for what, tally in values.items():
            found.setdefault((_setting(spec), what), []).append(tally)
    return [
        _line(setting, what, added(found[setting, what]))
        for what in _TITLES
        for setting in dict.fromkeys(name for name, _ in found)
        if (setting, what) in found
    ]


def _setting(spec: Spec) -> str:
    images = f"× {spec['images']}" if spec["images"] else "× 1–6"
    pairs = f", {spec['imposters']:,} imposters" if spec["imposters"] else ""
    differ = "differ" if spec["differ"] else "alike"
    return f"{spec['population']}; {spec['people']} {images}{pairs}; {differ}"


def _line(setting: str, what: str, of: dict[str, float]) -> Line:
    n, pairs = max(of["draws"], 1), of["pair_draws"] or float("nan")
    covered, above = 100 * of["covered"] / n, 100 * of["above"] / n
    return Line(
        setting,
        _TITLES[what],
        of["truth"],
        of["errors"],
        int(of["draws"]),
        int(of["undefined"]),
        covered,
        above,
        100 * of["draws"] / n - covered - above,
        of["width"] / n,
        100 * of["pair_covered"] / pairs,
        of["pair_width"] / pairs,
    )


def section(kept: Sequence[Kept]) -> str:
    """Return a summary, what is outside the bar, and all lines."""
    all_lines = lines(kept)
    texts = [_ABOUT, "### All settings at a glance\n", _summary(all_lines)]
    outside = [line for line in all_lines if line.verdict != "ok"]
    verdicts = [line.verdict for line in outside]
    counts = [len(all_lines), len(outside), *map(verdicts.count, ("too high", "too low"))]
    header = ["settings", "outside the bar", "too high", "too low"]
    texts += ["\n### Outside the bar\n", table(header, [[f"{n:,}" for n in counts]], 0), ""]
    texts.append(_table(outside, named=True) if outside else "Nothing.")
    for what in dict.fromkeys(line.what for line in all_lines):
        texts.append(f"\n### {what}\n")
        texts.append(_table([line for line in all_lines if line.what == what]))
    return "\n".join(texts)


def _summary(all_lines: Sequence[Line]) -> str:
    header = ["", "settings", "within", "lowest", "median", "highest", "pair-wise", "its lowest"]
    rows = []
    for what in dict.fromkeys(line.what for line in all_lines):
        some = [line for line in all_lines if line.what == what]
        within = sum(line.verdict == "ok" for line in some)
        ours = [line.coverage for line in some if line.draws]
        theirs = [line.pair_coverage for line in some if not np.isnan(line.pair_coverage)]
        shown = [np.min(ours), np.median(ours), np.max(ours)] if ours else [np.nan] * 3
        shown += [np.median(theirs), np.min(theirs)] if theirs else [np.nan] * 2
        counts = [str(len(some)), str(within)]
        rows.append([what, *counts, *(number(float(value), 1) for value in shown)])
    return table(header, rows)


def _table(some: Iterable[Line], named: bool = False) -> str:
    header = ["truth", "errors", "draws", "coverage", "above", "below", "width"]
    header += ["pair-wise", "its width", "bar"]
    rows = []
    for line in some:
        covered = (line.coverage, line.above, line.below)
        rows.append(
            [
                *([line.what] if named else []),
                line.setting,
                f"{line.truth:.3g}",
                number(line.errors, 1),
                f"{line.draws:,}",
                *(number(value, 1) for value in covered),
                _short(line.width),
                number(line.pair_coverage, 1),
                _short(line.pair_width),
                line.verdict,
            ]
        )
    texts = ["what", "setting"] if named else ["setting"]
    return table([*texts, *header], rows, text=len(texts))


def _short(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2g}"


def picture(kept: Sequence[Kept], plt: Any) -> Any:
    """Draw a dot for each setting: ours and pair-wise, and ours alone from 85 % (◂: less)."""
    all_lines = [line for line in lines(kept) if line.draws]
    names = list(dict.fromkeys(line.what for line in all_lines))
    if not names:
        return None
    size = (10.5, 1.6 + 0.27 * len(names))
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, width_ratios=(1.2, 1))
    for ax, start in zip(axes, (0, 85), strict=True):
        ax.axvspan(LEAST, MOST, color="#2ca02c", alpha=0.18, linewidth=0)
        for row, name in enumerate(names):
            some = [line for line in all_lines if line.what == name]
            at = row + np.linspace(-0.28, 0.28, len(some)) if len(some) > 1 else [row]
            for y, line in zip(at, some, strict=True):
                face = "#1f77b4" if line.judged_above else "white"
                if not start:
                    ax.plot(line.pair_coverage, y, "x", color="#d95f02", markersize=4)
                shown, marker = (start, "<") if line.coverage < start else (line.coverage, "o")
                ax.plot(shown, y, marker, markeredgecolor="#1f77b4", color=face, markersize=4)
        ax.set(xlim=(start - (2 if not start else 0.5), 100.7), ylim=(len(names) - 0.4, -0.6))
        ax.set(yticks=range(len(names)), xlabel="covered, % of draws")
        ax.grid(visible=True, axis="x", alpha=0.3)
    axes[0].set_yticklabels(names)
    axes[0].set_title("ours (dots) and pair-wise (crosses)", fontsize=10)
    axes[1].set_title("ours alone; hollow: under ten errors, or truth 0", fontsize=10)
    figure.tight_layout()
    return figure


COVERAGE = Part("coverage", "Do 95 % intervals cover?", cells, cell, section, picture)
