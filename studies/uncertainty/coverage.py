"""Do 95 % intervals cover? People are drawn again and again from populations that are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from faircal.metrics.intervals import Uncertainty
from faircal.metrics.measures import Rankings, at_threshold, measure
from faircal.metrics.results import ALL, Result
from studies.uncertainty import pairwise
from studies.uncertainty.laws import Float64
from studies.uncertainty.settings import (
    NAMES,
    PLAIN,
    RATES,
    Draw,
    Key,
    Setting,
    make_setting,
)
from studies.uncertainty.tallies import Ends, Tally

#: Draws of a cell, and how many cells (seeds) each setting has.
DRAWS, SEEDS = 50, 10
#: Bootstraps of pairs are slow: they are made of one draw in so many.
_ONE_IN = 5
Spec = Mapping[str, Any]


def cell(spec: Spec, seed: int) -> dict[str, Any]:
    """Draw people `draws` times; return tallies by group, condition and metric."""
    kind = (spec["population"], spec["people"], spec["images"], spec["imposters"], spec["differ"])
    setting = make_setting(*kind)
    tallies = {key: Tally(*truth) for key, truth in setting.truths().items()}
    for number in range(spec["draws"]):
        rng = np.random.default_rng([seed, number, *"/".join(map(str, kind)).encode()])
        drawn = Draw.of(setting, rng)
        said = setting.said(drawn.score) if setting.counts[1] else None
        beside = _Beside(drawn, said, rng, slow=number % _ONE_IN == 0)
        for (group, under, metric), value, ends in _intervals(drawn, said, setting, tallies, rng):
            pairs = beside.of(group, under, metric, value)
            tally = tallies.get(("plain" if group in PLAIN else group, under, metric))
            if tally is not None:
                tally.add(ends, pairs)
    return {"/".join(key): tally.row() for key, tally in tallies.items()}


def _intervals(
    drawn: Draw,
    said: Float64 | None,
    setting: Setting,
    wanted: Iterable[Key],
    rng: np.random.Generator,
) -> Iterator[tuple[Key, float, Ends]]:
    """Give what was found, with our intervals; rates of groups before deviations of them."""
    rankings = Rankings.of(drawn.score, said, drawn.genuine, drawn.groups, np.inf)
    seed = int(rng.integers(2**31))

    def unsure(found: Sequence[Result]) -> Uncertainty:
        return Uncertainty(
            found,
            genuine=drawn.genuine,
            people=drawn.people,
            score=drawn.score,
            probability=said,
            groups=drawn.groups,
            seed=seed,
        )

    whole = unsure(measure(rankings, rates=RATES))
    for key in _keys(wanted):
        if key in whole.values:
            yield key, whole.values[key], whole.interval(*key)
    for rate, threshold in setting.thresholds.items():
        fixed = unsure(list(at_threshold(rankings, threshold)))
        fixed.sets = whole.sets  # the same pairs: what is worked out of them is not made twice
        for group, under, metric in _keys(wanted):
            if under == f"{rate:g}":
                key = group, "", metric
                yield (group, under, metric), fixed.values[key], fixed.interval(*key)


def _keys(truths: Iterable[Key]) -> Iterator[Key]:
    """Give what is to be found: each plain group's, where a truth is that of a plain group.

    All groups' rates are given, for deviations are made of them.
    """
    for group, under, metric in truths:
        rates = metric == "fpr" and not under.startswith("global")
        for name in (NAMES if rates else PLAIN) if group == "plain" else (group,):
            yield name, under, metric


class _Beside:
    """The pair-wise interval beside ours; None where it is not made of this draw."""

    def __init__(
        self, drawn: Draw, said: Float64 | None, rng: np.random.Generator, slow: bool
    ) -> None:
        self.drawn, self.said, self.rng, self.slow = drawn, said, rng, slow
        self._rates: dict[str, dict[str, float]] = {}

    def of(self, group: str, under: str, metric: str, value: float) -> Ends | None:
        rows = self.drawn.rows(group)
        genuine = self.drawn.genuine[rows]
        if metric in ("fpr", "fnr", "tpr"):
            if metric == "fpr":
                self._rates.setdefault(under, {})[group] = value
            return pairwise.of_rate(value, int((genuine == (metric != "fpr")).sum()))
        if not self.slow:
            return None
        if group == ALL:
            return self._over_groups(under, metric)
        if metric == "auroc":
            score = self.drawn.score[rows]
            return pairwise.of_auroc(score[~genuine], score[genuine])
        if self.said is None:
            return None
        if metric in ("brier", "nll"):
            return pairwise.of_loss(metric, self.said[rows], genuine)
        return pairwise.of_calibration(self.said[rows], genuine, self.rng)[metric]

    def _over_groups(self, under: str, metric: str) -> Ends | None:
        if metric == "ks_aad":
            return None
        rates = np.array([self._rates[under][name] for name in NAMES])
        trials = np.full(len(rates), (~self.drawn.genuine).sum() / len(rates))
        return pairwise.of_deviation(metric.removeprefix("fpr_"), rates, trials, self.rng)
