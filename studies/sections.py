"""The sections of the document that are one table, or two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from studies.contenders import ABLATIONS, title
from studies.parts import ALL, FEW
from studies.sets import NETWORKS, PROTOCOLS, REAL, SHUFFLES, SIMULATED
from studies.tally import Tally
from studies.words import FAIR, TITLES, between, number, percent, table

_SHORT = ("auroc", "tpr@0.01", "nll", "ks", "ks_mean", "fpr_aad@0.01")
_OF_PEOPLE = ("ks", "ks_mean", "fpr_aad@0.001", "fpr_aad@0.01")


def real(tally: Tally) -> str:
    """The real set, all methods, all metrics."""
    rows = [
        [title(name), *(number(tally.mean(REAL, name, metric)) for metric in TITLES)]
        + [percent(tally.closed(REAL, name, metric)) for metric in FAIR]
        for name in ALL
        if tally.has(REAL, name)
    ]
    header = ["method", *TITLES.values(), "closed, KS mean", "closed, FPR AAD@1%"]
    seeds = max((len(tally.seeds(REAL, name)) for name in ALL), default=0)
    return (
        f"{tally.folds(REAL)} folds; FairCal and SmoothFairCal: mean of {seeds} seeds. *Closed* is "
        "the share of the way from Baseline to Oracle.\n\n" + table(header, rows)
    )


def people(tally: Tally) -> str:
    """Intervals over people."""
    methods = [name for name in ALL if len(tally.replicates(REAL, name, "ks"))]
    rows = [
        [title(name)]
        + [between(tally.interval(REAL, name, metric)) for metric in _OF_PEOPLE]
        + [_closed_between(tally, name, metric) for metric in FAIR]
        for name in methods
    ]
    if {"faircal", "smooth"} <= set(methods):
        gaps = [
            between(tally.interval_of_difference(REAL, metric, "smooth", "faircal"))
            for metric in _OF_PEOPLE
        ]
        rows.append(["**SmoothFairCal − FairCal**", *(f"**{gap}**" for gap in gaps), "", ""])
    closed = (f"closed over people, {TITLES[metric]}" for metric in FAIR)
    return table(["method", *(TITLES[m] for m in _OF_PEOPLE), *closed], rows)


def _closed_between(tally: Tally, name: str, metric: str) -> str:
    if name in ("baseline", "oracle"):
        return ""
    found = between(tally.interval_of_closed(REAL, name, metric), 0)
    return found if found == "–" else f"{found} %"


def shuffles(tally: Tally) -> str:
    """Folds dealt anew."""
    return _sets(tally, SHUFFLES, ALL)


def networks(tally: Tally) -> str:
    """The real set through disturbed networks."""
    return _sets(tally, NETWORKS, FEW)


def simulated(tally: Tally) -> str:
    """Simulated sets."""
    return _sets(tally, SIMULATED, ("baseline", "fsn", "faircal", "smooth", "oracle"))


def _sets(tally: Tally, datasets: Iterable[str], methods: Sequence[str]) -> str:
    rows = [
        [f"{dataset} ({tally.folds(dataset)} folds)", title(name)]
        + [number(tally.mean(dataset, name, metric)) for metric in _SHORT]
        + [percent(tally.closed(dataset, name, metric)) for metric in FAIR]
        for dataset in datasets
        for name in methods
        if tally.has(dataset, name)
    ]
    header = ["set", "method", *(TITLES[metric] for metric in _SHORT)]
    return table([*header, "closed, KS mean", "closed, FPR AAD@1%"], rows, text=2)


def protocol(tally: Tally) -> str:
    """Calibration imposters of other kinds."""
    rows = [
        _protocol_row(tally, dataset, name)
        for dataset in (REAL, *PROTOCOLS)
        for name in FEW
        if tally.has(dataset, name)
    ]
    header = ["calibration imposters", "pairs", "method", "KS global", "KS mean", "FPR AAD@1%"]
    return table([*header, "KS global, × as given", "gain in KS mean that is back"], rows, text=3)


def _protocol_row(tally: Tally, dataset: str, name: str) -> list[str]:
    # On the real set several seeds were run; all else is of seed 0, so this is too.
    values = {
        (of, metric): tally.of_seed(of, name, metric, 0)
        for of in (REAL, dataset, RANDOM)
        for metric in ("ks", "ks_mean", "fpr_aad@0.01")
    }
    said = "as given: 0 % random" if dataset == REAL else dataset.removeprefix("lfw, ")
    pairs = [row["imposters"] for cell, row in tally.rows.items() if cell.dataset == dataset]
    return [
        said,
        f"{sum(pairs) / len(pairs):,.0f}",
        title(name),
        *(number(values[dataset, metric]) for metric in ("ks", "ks_mean", "fpr_aad@0.01")),
        number(values[dataset, "ks"] / values[REAL, "ks"], 1),
        percent(back(tally, dataset, name)) if dataset in REPAIRED else "",
    ]


#: Everything was paired at random, and what was paired anew without attributes.
RANDOM = "lfw, 100 % random"
REPAIRED = ("lfw, matched", "lfw, cluster")


def back(tally: Tally, dataset: str, method: str) -> float:
    """Return how much of what pairing within groups gained in mean KS is back, percent.

    NaN where random imposters cost the method nothing.
    """
    given, lost, now = (tally.of_seed(of, method, "ks_mean", 0) for of in (REAL, RANDOM, dataset))
    return 100 * (lost - now) / (lost - given) if lost > given else float("nan")


def ablations(tally: Tally) -> str:
    """SmoothFairCal with parts left out or fixed."""
    rows = []
    for name in ("smooth", *ABLATIONS):
        if tally.has(REAL, name):
            values = {metric: tally.of_seed(REAL, name, metric, 0) for metric in _SHORT}
            seconds = [
                row["cpu_seconds"]
                for cell, row in tally.rows.items()
                if (cell.dataset, cell.method, cell.seed) == (REAL, name, 0)
            ]
            shown = (
                "**SmoothFairCal**" if name == "smooth" else title(name).removeprefix("smooth, ")
            )
            spent = number(sum(seconds) / len(seconds), 0)
            rows.append([shown, *(number(value) for value in values.values()), spent])
    return table(["variant", *(TITLES[m] for m in _SHORT), "CPU s a fit"], rows)


def cost(tally: Tally) -> str:
    """Time of fits and predictions."""
    rows = []
    for cell, row in tally.rows.items():
        if cell.method == "both":
            found = row["values"]
            rows.append(
                [cell.dataset.removeprefix("cost, ")]
                + [number(found[f"{m}_fit_s"], 1) for m in ("faircal", "smooth")]
                + [number(found["smooth_fit_s"] / found["faircal_fit_s"], 0)]
                + [number(found[f"{m}_ns"], 0) for m in ("faircal", "smooth")]
                + [number(found["smooth_ns"] / found["faircal_ns"], 1)]
            )
    header = ["set", "FairCal fit, s", "Smooth fit, s", "×", "FairCal, ns a pair"]
    return table([*header, "Smooth, ns a pair", "×"], rows) if rows else "Not run yet."
