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
from faircal.metrics.intervals.sufficient_data import FEWEST_PEOPLE, FEWEST_TRIALS, DataNeeded
from faircal.metrics.proportions import joint_level
from faircal.metrics.results import GLOBAL, Condition
from faircal.report.findings import effective_people, main_condition
from faircal.report.store import ResultsFolder, Variant
from faircal.report.wording import method_title

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
    variants = store.results.variants
    views: dict[tuple[str, str], list[ScoreSource]] = {}
    for variant in variants:
        for source in store.curves.sources:
            if Variant.of(source) == variant:
                views.setdefault((source.feature, source.attribute), []).append(source)
    return {
        "fewest": FEWEST_TRIALS,
        "fewest_people": FEWEST_PEOPLE,
        "views": [_View(store, found).data() for found in views.values()],
    }


class _View:
    """The methods of one feature, their pairs grouped by one attribute."""

    def __init__(self, store: ResultsFolder, sources: Sequence[ScoreSource]) -> None:
        self.store, self.sources = store, sources
        self.groups = [GLOBAL, *store.curves.groups(sources[0])]
        given = store.run.get("settings", {}).get("threshold")
        self.threshold = None if given is None else float(given)
        point = main_condition(store.results, sources[0].attribute)
        self.rate = Condition.of(point).rate if point else _START

    def data(self) -> dict[str, Any]:
        results, first = self.store.results, self.sources[0]
        several = len(results.features) > 1
        names = [first.feature] if several or not first.attribute else []
        names += [f"groups by {first.attribute.replace('+', ' and ')}"] if first.attribute else []
        pairs = [self._histogram(first, group) for group in self.groups]
        kinds = ("fnr", "fpr")
        people = [effective_people(self.store, first.attribute, kind) for kind in kinds]
        return {
            "name": ", ".join(names),
            "groups": self.groups,
            "z": NormalDist().inv_cdf((1 + joint_level(len(self.groups) - 1)) / 2),
            "pairs": [[of.n_genuine, of.n_imposter] for of in pairs],
            "people": [[of.get(group) for of in people] for group in self.groups],
            "effective": [self._effective(source) for source in self.sources],
            "methods": [method_title(of.method) for of in self.sources],
            "scales": self._scales(),
        }

    def _effective(self, source: ScoreSource) -> list[list[float]]:
        """Return what share of each group's genuine and imposter pairs tells something new.

        Pairs share people; how much that matters depends on the rate: the least share counts.
        """
        least: dict[tuple[str, str], float] = {}
        for row in self.store.results:
            of = ScoreSource(*row.key[:4], attribute=row.attribute)
            if of == source._replace(fold="") and row.trials > 0 and row.effective > 0:
                key = row.group, "imposter" if row.metric == "fpr" else "genuine"
                least[key] = min(least.get(key, 1.0), row.effective / row.trials)
        return [
            [round(least.get((group, kind), 1.0), 6) for kind in ("genuine", "imposter")]
            for group in self.groups
        ]

    def _scales(self) -> dict[str, Any]:
        scales = {}
        ranked = self._histogram(self.sources[0])
        by_score = not _of_probabilities(ranked)
        if by_score and len(self.sources) == 1:
            scales["score"] = self._counted("score", self.threshold)
        if all(self.store.curves.has("probability", source) for source in self.sources):
            given = None if by_score else self.threshold
            scales["probability"] = self._counted("probability", given)
        scales |= self._by_rate()
        return scales

    def _histogram(self, source: ScoreSource, group: str = GLOBAL, of: Of = "score") -> Histogram:
        return self.store.curves.get(group, of, source)

    def _counted(self, of: Of, given: float | None) -> dict[str, Any]:
        """Return a scale of evenly spaced thresholds."""
        overall = self._histogram(self.sources[0], of=of)
        steps = _steps(overall)
        overall = _even(overall)
        edges = overall.edges[steps]
        step = float(edges[1] - edges[0])
        decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
        wanted = overall.threshold_at_fpr(self.rate) if given is None else given
        start = float(edges[len(edges) // 2 if np.isnan(wanted) else _nearest(edges, wanted)])
        note = ""
        if given is not None and start != given:
            note = (
                f"The audit's threshold, {given:g}, is not one of the slider's steps; it starts at "
                f"the nearest, {start:.{decimals}f}."
            )
        methods = [
            {
                kind: [
                    _text(getattr(_even(self._histogram(source, group, of)), kind)[steps])
                    for group in self.groups
                ]
                for kind in ("genuine", "imposter")
            }
            for source in self.sources
        ]
        return {
            "min": round(float(edges[0]), decimals),
            "max": round(float(edges[-1]), decimals),
            "step": round(step, decimals),
            "decimals": decimals,
            "start": round(start, decimals),
            "note": note,
            "methods": methods,
        }

    def _by_rate(self) -> dict[str, Any]:
        """Return a scale of global rates, each method with its own threshold; or none."""
        imposters = min(self._histogram(source).n_imposter for source in self.sources)
        rates = [rate for rate in _RATES if rate * imposters >= _RESOLVED]
        if not rates:
            return {}
        return {
            "fpr": {
                "min": 0,
                "max": len(rates) - 1,
                "step": 1,
                "decimals": 0,
                "start": _nearest(np.array(rates), self.rate),
                "note": "",
                "rates": rates,
                "people": [DataNeeded.of("fpr", rate).people for rate in rates],
                "methods": [self._at_rates(source, rates) for source in self.sources],
            }
        }

    def _at_rates(self, source: ScoreSource, rates: Sequence[float]) -> dict[str, Any]:
        overall = self._histogram(source)
        fpr = overall.fpr  # falls with the threshold: the first one that is low enough
        steps = [next(iter(np.flatnonzero(fpr <= rate)), None) for rate in rates]
        groups = [self._histogram(source, group) for group in self.groups]

        def at(values: Any) -> list[Any]:
            return [None if step is None else values[step].item() for step in steps]

        return {
            "thresholds": at(overall.edges),
            "genuine": [at(histogram.accepted_genuine) for histogram in groups],
            "imposter": [at(histogram.accepted_imposter) for histogram in groups],
        }


def _of_probabilities(histogram: Histogram) -> bool:
    """Whether it has the edges of probabilities: a method that ranks by them."""
    return np.array_equal(histogram.edges, probability_edges())


def _even(histogram: Histogram) -> Histogram:
    """Return it with evenly spaced edges: those of probabilities are finer towards 0 and 1."""
    if not _of_probabilities(histogram):
        return histogram
    edges = np.arange(1001) / 1000
    at = np.searchsorted(histogram.edges, edges)
    counts = (histogram.genuine, histogram.imposter, histogram.total)
    return Histogram(edges, *(np.add.reduceat(count, at) for count in counts))


def _steps(histogram: Histogram) -> slice:
    """Return the even edges worth walking over: from where all pairs pass to where none does.

    The lowest edge of scores is left out: some may lie below it, so its rates are not exact.
    """
    if _of_probabilities(histogram):
        return slice(None)
    # The bins with scores: where all pairs are counted there are some.
    used, last = np.flatnonzero(histogram.genuine + histogram.imposter), len(histogram.edges) - 1
    low = min(max(int(used[0]), 1), last - 1)
    return slice(low, min(max(int(used[-1]) + 1, low + 1), last) + 1)


def _nearest(values: Any, wanted: float) -> int:
    return int(np.argmin(np.abs(values - wanted)))


def _text(counts: Any) -> str:
    return ",".join(str(count) if count else "" for count in counts.tolist()).rstrip(",")
