"""Where SmoothFairCal fails: read off the numbers, not chosen."""

from __future__ import annotations

import numpy as np

from studies.contenders import title
from studies.parts import FEW
from studies.sections import RANDOM
from studies.sets import NETWORKS, REAL, SIMULATED
from studies.tally import Tally
from studies.words import FAIR, TITLES, number, percent, table


def failures(tally: Tally) -> str:
    """Everything that is worse than FairCal or Baseline; random imposters, networks, groups."""
    parts = [_worse(tally, "faircal"), _worse(tally, "baseline"), _random(tally)]
    parts += [_short_of_oracle(tally), _groups(tally), _seeds(tally)]
    return "\n\n".join(part for part in parts if part)


def _worse(tally: Tally, than: str) -> str:
    datasets = dict.fromkeys(cell.dataset for cell in tally.rows)
    both = [name for name in datasets if tally.has(name, than, "smooth")]
    rows = []
    for dataset in both:
        for metric, shown in TITLES.items():
            if tally.is_worse(dataset, metric, "smooth", than):
                worse, of = tally.worse_folds(dataset, metric, "smooth", than)
                values = [number(tally.mean(dataset, m, metric)) for m in (than, "smooth")]
                rows.append([f"{dataset}: {shown}", *values, f"{worse} of {of}"])
    said = (
        f"**Worse than {title(than)}.** Of {len(both) * len(TITLES)} means ({len(both)} sets, "
        f"{len(TITLES)} metrics) {len(rows)} are worse than {title(than)}'s"
    )
    if not rows:
        return f"{said}."
    header = ["set: metric", title(than), "SmoothFairCal", "worse folds"]
    return f"{said}:\n\n{table(header, rows)}"


def _random(tally: Tally) -> str:
    if not tally.has(RANDOM, *FEW):
        return ""
    said = []
    for metric in FAIR:
        values = ", ".join(
            f"{title(name)} {number(tally.of_seed(REAL, name, metric, 0))} → "
            f"{number(tally.mean(RANDOM, name, metric))}"
            for name in FEW
        )
        said.append(f"{TITLES[metric]}: {values}")
    given, left = (components(tally, dataset) for dataset in (REAL, RANDOM))
    return (
        "**Random calibration imposters.** The mixture is looked for in imposters, which show it "
        f"where they are alike: {number(given, 1)} components on average with imposters as given, "
        f"{number(left, 1)} with random ones. From as given to all random, {said[0]}; {said[1]}. "
        "Test pairs stay within groups throughout, so that with random imposters every method is "
        "calibrated on other pairs than it is tested on."
    )


def components(tally: Tally, dataset: str) -> float:
    """Return how many components SmoothFairCal found with seed 0, mean over folds."""
    found = [
        row["figures"]["components"]
        for cell, row in tally.rows.items()
        if (cell.dataset, cell.method, cell.seed) == (dataset, "smooth", 0)
    ]
    return float(np.mean(found)) if found else float("nan")


def _short_of_oracle(tally: Tally) -> str:
    sets = [name for name in (*NETWORKS, *SIMULATED) if tally.has(name, *FEW)]
    rows = [
        [name]
        + [
            percent(tally.closed(name, method, metric))
            for metric in FAIR
            for method in ("faircal", "smooth")
        ]
        for name in sets
    ]
    if not rows:
        return ""
    header = ["set"] + [f"{TITLES[m]}, {one}" for m in FAIR for one in ("FairCal", "Smooth")]
    return (
        "**Other networks, other populations.** How much of the way to Oracle is closed (over 100: "
        "better than Oracle; below 0: worse than Baseline; –: Oracle is no better than that):\n\n"
        + table(header, rows)
    )


def _groups(tally: Tally) -> str:
    found = {name: group_values(tally, name, "ks") for name in FEW if tally.has(REAL, name)}
    if len(found) < len(FEW):
        return ""
    pairs = group_values(tally, "baseline", "pairs")
    order = sorted(pairs, key=lambda group: pairs[group])
    rows = [
        [group, number(pairs[group], 0), *(number(found[name][group]) for name in FEW)]
        for group in order
    ]
    worse = [group for group in order if found["smooth"][group] > found["baseline"][group]]
    said = (
        f"worse than Baseline's in {', '.join(worse)}" if worse else "worse than Baseline's in none"
    )
    return (
        "**Groups.** KS of each group of the real set, the smallest first (pairs: in a test fold, "
        f"mean). SmoothFairCal's is {said}. KS of few pairs is large by chance alone, for Oracle "
        "too.\n\n" + table(["group", "pairs", *map(title, FEW)], rows)
    )


def group_values(tally: Tally, method: str, what: str) -> dict[str, float]:
    """Return a number of each group of the real set, mean over folds and seeds."""
    found: dict[str, list[float]] = {}
    for cell, row in tally.rows.items():
        if (cell.dataset, cell.method) == (REAL, method):
            for group, values in row["groups"].items():
                found.setdefault(group, []).append(values[what])
    return {group: float(np.mean(values)) for group, values in found.items()}


def _seeds(tally: Tally) -> str:
    seeds = tally.seeds(REAL, "smooth")
    if len(seeds) < 2:
        return ""
    said = []
    for metric in FAIR:
        values = [tally.of_seed(REAL, "smooth", metric, seed) for seed in seeds]
        said.append(f"{TITLES[metric]} {number(min(values))} to {number(max(values))}")
    return (
        f"**Chance.** Over {len(seeds)} seeds on the real set: {', '.join(said)}; the mixture may "
        "find other components, and cross-validation may choose another number of them."
    )
