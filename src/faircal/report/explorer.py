"""What the page's explorer runs on: counts of accepted pairs at every step of its slider.

``page.js`` reads them as JSON. All test folds are counted together: each pair was scored by the
model that did not see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from faircal.evaluation.curves import Of, ScoreSource
from faircal.metrics import Histogram, probability_edges
from faircal.metrics.intervals.sufficient_data import (
    FEWEST_PEOPLE,
    FEWEST_TRIALS,
    DataNeeded,
    PeopleByGroup,
)
from faircal.metrics.proportions import joint_level
from faircal.metrics.results import GLOBAL, Condition
from faircal.report.store import ResultsFolder, Variant, VariantResults, main_condition
from faircal.report.wording import exact, method_title

#: The global false-match rate at which the explorer opens where the summary speaks of none.
_START = 0.01
#: The global false-match rates to choose from: one to nine of each power of ten, to a half.
_RATES = [m / 10**k for k in (4, 3, 2) for m in range(1, 10)] + [0.1, 0.2, 0.3, 0.4, 0.5]
#: A global rate is offered where it means so many false matches at least.
_RESOLVED = 10


def explorer(store: ResultsFolder) -> dict[str, Any]:
    """Return the explorer's data, ready for JSON.

    A view is a feature and an attribute. It opens where the summary speaks of: at the threshold
    given to an audit, or at a global rate. Its scales are what the slider can walk over: thresholds
    on the ``score`` (of a single method), on the ``probability``, or global rates (``fpr``). A
    scale has, for each of the view's methods, its thresholds where they differ, and counts of
    genuine and of imposter pairs for each of the view's groups: in a text between one step and the
    next, nothing for 0; in a list those accepted at each step, None where no threshold gives the
    rate.

    Parameters
    ----------
    store : ResultsFolder

    Returns
    -------
    dict
        ``fewest`` and ``fewest_people``, the numbers of pairs and of effective people below which
        no rate is shown, and ``views``; none of them without ``curves.parquet``.
    """
    views: dict[tuple[str, str], list[ScoreSource]] = {}
    for variant in store.results.variants:
        for source in store.curves.sources:
            if Variant.of(source) == variant:
                views.setdefault((source.feature, source.attribute), []).append(source)
    return {
        "fewest": FEWEST_TRIALS,
        "fewest_people": FEWEST_PEOPLE,
        "views": [_view(store, sources) for sources in views.values()],
    }


def _view(store: ResultsFolder, sources: Sequence[ScoreSource]) -> dict[str, Any]:
    """Return the methods of one feature, their pairs grouped by one attribute."""
    curves, first = store.curves, sources[0]
    feature, attribute = first.feature, first.attribute
    groups = [GLOBAL, *curves.groups(first)]
    names = [feature] if len(store.results.features) > 1 or not attribute else []
    names += [f"groups by {attribute.replace('+', ' and ')}"] if attribute else []
    pairs = [curves.get(group, source=first) for group in groups]
    people = PeopleByGroup.of(store.run, attribute).effective
    given = store.run.get("settings", {}).get("threshold")
    given = None if given is None else float(given)
    point = main_condition(store.results, attribute)
    rate = Condition.of(point).rate if point else _START
    if store.kind == "audit" and point:
        at = VariantResults(store, attribute, feature, Variant.of(first)).point(point).threshold
        given = None if math.isnan(at) else at
    by_score = _even(pairs[0]) is pairs[0]  # else methods rank by their probabilities
    thresholds: dict[Of, float | None] = {}
    if by_score and len(sources) == 1:
        thresholds["score"] = given
    if all(curves.has("probability", source) for source in sources):
        thresholds["probability"] = None if by_score else given
    counted = {
        of: [[curves.get(group, of, source) for group in groups] for source in sources]
        for of in ("score", *thresholds)
    }
    scales = {of: _thresholds(counted[of], at, rate) for of, at in thresholds.items()}
    return {
        "name": ", ".join(names),
        "groups": groups,
        "z": NormalDist().inv_cdf((1 + joint_level(len(groups) - 1)) / 2),
        "pairs": [[of.n_genuine, of.n_imposter] for of in pairs],
        "people": [[people[rate].get(group) for rate in ("fnr", "fpr")] for group in groups],
        "effective": [_effective(store, source, groups) for source in sources],
        "methods": [method_title(of.method) for of in sources],
        "scales": {**scales, **_global_rates(counted["score"], rate)},
    }


def _effective(store: ResultsFolder, source: ScoreSource, groups: list[str]) -> list[list[float]]:
    """Return what share of each group's genuine and imposter pairs tells something new.

    Pairs share people; how much that matters depends on the rate: the least share counts.
    """
    least: dict[tuple[str, str], float] = {}
    for row in store.results.by_key.values():
        of = (row.feature, row.method, row.calibrator, row.clusters, "", row.attribute)
        if of == source and row.trials > 0 and row.effective > 0:
            key = row.group, "imposter" if row.metric == "fpr" else "genuine"
            least[key] = min(least.get(key, 1.0), row.effective / row.trials)
    return [
        [round(least.get((group, kind), 1.0), 6) for kind in ("genuine", "imposter")]
        for group in groups
    ]


def _thresholds(methods: list[list[Histogram]], given: float | None, rate: float) -> dict[str, Any]:
    """Return a scale of evenly spaced thresholds, from histograms by method and group."""
    overall = _even(methods[0][0])
    steps = slice(None)
    if overall is methods[0][0]:
        # From where all pairs pass to where none does. The lowest edge of scores is left out: some
        # may lie below it, so its rates are not exact.
        used, last = np.flatnonzero(overall.genuine + overall.imposter), len(overall.edges) - 1
        low = min(max(int(used[0]), 1), last - 1)
        steps = slice(low, min(max(int(used[-1]) + 1, low + 1), last) + 1)
    edges = overall.edges[steps]
    step = float(edges[1] - edges[0])
    decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
    wanted = overall.threshold_at_fpr(rate) if given is None else given
    nearest = len(edges) // 2 if np.isnan(wanted) else int(np.argmin(np.abs(edges - wanted)))
    start = float(edges[nearest])
    note = ""
    if given is not None and start != given:
        note = (
            f"The audit's threshold, {exact(given)}, is not one of the slider's steps; it starts "
            f"at the nearest, {start:.{decimals}f}."
        )
    texts = []
    for histograms in methods:
        counts = [_even(histogram) for histogram in histograms]
        of_kinds = {
            "genuine": [each.genuine[steps].tolist() for each in counts],
            "imposter": [each.imposter[steps].tolist() for each in counts],
        }
        texts.append(
            {
                # Zeros are left out, and commas at the end: most steps of most groups hold no pair.
                kind: [",".join(str(n) if n else "" for n in row).rstrip(",") for row in rows]
                for kind, rows in of_kinds.items()
            }
        )
    return {
        "min": round(float(edges[0]), decimals),
        "max": round(float(edges[-1]), decimals),
        "step": round(step, decimals),
        "decimals": decimals,
        "start": round(start, decimals),
        "note": note,
        "methods": texts,
    }


def _global_rates(methods: list[list[Histogram]], rate: float) -> dict[str, Any]:
    """Return a scale of global rates, each method with its own threshold; or none."""
    imposters = min(histograms[0].n_imposter for histograms in methods)
    rates = [rate for rate in _RATES if rate * imposters >= _RESOLVED]
    if not rates:
        return {}
    counts = []
    for histograms in methods:
        fpr = histograms[0].fpr  # falls with the threshold: the first one that is low enough
        steps = [next(iter(np.flatnonzero(fpr <= rate)), None) for rate in rates]
        thresholds, *accepted = (
            [None if step is None else values[step].item() for step in steps]
            for values in (
                histograms[0].edges,
                *(each.accepted_genuine for each in histograms),
                *(each.accepted_imposter for each in histograms),
            )
        )
        half = len(histograms)
        counts.append(
            {"thresholds": thresholds, "genuine": accepted[:half], "imposter": accepted[half:]}
        )
    return {
        "fpr": {
            "min": 0,
            "max": len(rates) - 1,
            "step": 1,
            "decimals": 0,
            "start": int(np.argmin(np.abs(np.array(rates) - rate))),
            "note": "",
            "rates": rates,
            "people": [DataNeeded.of("fpr", rate).people for rate in rates],
            "methods": counts,
        }
    }


def _even(histogram: Histogram) -> Histogram:
    """Return it with evenly spaced edges: as it is, but of probabilities.

    Their edges are finer towards 0 and 1; a method with them ranks by its probabilities.
    """
    if not np.array_equal(histogram.edges, probability_edges()):
        return histogram
    edges = np.arange(1001) / 1000
    at = np.searchsorted(histogram.edges, edges)
    counts = (histogram.genuine, histogram.imposter, histogram.total)
    return Histogram(edges, *(np.add.reduceat(count, at) for count in counts))
