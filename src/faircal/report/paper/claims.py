"""The paper's claims, counted on a run and, by the same rules, on the paper's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from faircal.metrics.results import ALL
from faircal.report.paper import published
from faircal.report.paper.published import FEATURES, METHODS, Match, Matched, Quantity
from faircal.report.paper.tables import ACCURACY, FNR_RATES, FPR_RATES, KS_MEAN, deviations
from faircal.report.tables import ColumnSpec

FAIRCAL, BASELINE, FSN, ORACLE = "faircal", "baseline", "fsn", "oracle"
_RIVALS = tuple(method for method in METHODS if method not in (FAIRCAL, ORACLE))


@dataclass(frozen=True)
class Claim:
    """A claim, in how many cases it is true here (`won` of `of`), and in how many in the paper.

    The published counts are None where the paper has none, or nothing is compared.

    Examples
    --------
    >>> Claim("FairCal has the highest AUROC", 1, 2, 2, 2).holds
    False
    """

    text: str
    won: int
    of: int
    published_won: int | None = None
    published_of: int | None = None

    @property
    def holds(self) -> bool | None:
        """Whether it is true in at least the paper's share of cases.

        None where that can't be said, or the paper's own numbers never bear the claim out.
        """
        if not self.of or not self.published_of or not self.published_won:
            return None
        return self.won * self.published_of >= self.published_won * self.of


@dataclass(frozen=True)
class ClaimSide:
    """Numbers of the methods, ours or the paper's: what claims are counted on.

    Parameters
    ----------
    features : sequence
    number : callable
        Gives the number of a feature and a method in a column; NaN where there is none.
    methods : sequence of str
        Those that take part.
    """

    features: Sequence[Match]
    number: Callable[[Match, str, ColumnSpec], float]
    methods: Sequence[str] = METHODS

    @classmethod
    def ours(cls, matched: Matched) -> ClaimSide:
        """The numbers of a run."""

        def number(feature: Match, method: str, column: ColumnSpec) -> float:
            variant = matched.variant(method)
            return np.nan if variant is None else matched.value(feature, variant, column).mean

        return cls(matched.features, number)

    @classmethod
    def papers(cls, dataset: str, methods: Sequence[str] = METHODS) -> ClaimSide:
        """The numbers that the paper prints for a dataset, of some methods."""

        def number(feature: Match, method: str, column: ColumnSpec) -> float:
            place = (column.group, column.condition, column.metric)
            return published.look_up(Quantity(dataset, feature.paper, method, *place)).mean

        names = published.features(dataset)
        return cls([Match(name, FEATURES[name], name) for name in names], number, methods)


@dataclass(frozen=True)
class Contest:
    """A claim that FairCal is at least as good as all of `rivals`, or better, in some columns."""

    text: str
    columns: tuple[ColumnSpec, ...]
    rivals: tuple[str, ...] = _RIVALS
    ties: bool = True

    def count(self, side: ClaimSide) -> tuple[int, int]:
        """Count the cells in which it is true, as printed, and those in which it can be said."""
        won = of = 0
        for column, feature in product(self.columns, side.features):
            sign = 1 if column.better == "higher" else -1
            numbers = {method: side.number(feature, method, column) for method in side.methods}
            printed = {m: sign * round(100 * n, 2) for m, n in numbers.items() if not np.isnan(n)}
            others = [printed[rival] for rival in self.rivals if rival in printed]
            if FAIRCAL in printed and others:
                ours, best = printed[FAIRCAL], max(others)
                of += 1
                won += ours > best or (self.ties and ours == best)
        return won, of


def _at(rates: Iterable[str], metric: str) -> tuple[ColumnSpec, ...]:
    return tuple(replace(column, condition=rate) for rate in rates for column in deviations(metric))


_FPR, _FNR = _at(FPR_RATES, "fpr"), _at(FNR_RATES, "fnr")
CONTESTS = (
    Contest("FairCal has the highest AUROC", ACCURACY[:1]),
    Contest("FairCal has the highest TPR (at an FPR of 0.1 % and of 1 %)", ACCURACY[1:]),
    Contest("FairCal has the lowest calibration error (mean KS of the groups)", (KS_MEAN,)),
    Contest(
        "With FairCal the groups' calibration errors lie closest together (AAD, MAD, STD of KS)",
        deviations("ks"),
    ),
    Contest(
        "With FairCal the groups' FPRs lie closest together (predictive equality; AAD, MAD, STD)",
        _FPR,
    ),
    Contest(
        "With FairCal the groups' FNRs lie closest together (equal opportunity; AAD, MAD, STD), "
        "which the paper does not claim",
        _FNR,
    ),
    Contest(
        "With FairCal the groups' FNRs lie closer together than with Baseline",
        _FNR,
        (BASELINE,),
        ties=False,
    ),
    Contest(
        "FairCal is at least as good as Oracle, which is told the group (accuracy, calibration, "
        "predictive equality)",
        (*ACCURACY, KS_MEAN, *deviations("ks"), *_FPR),
        (ORACLE,),
    ),
)


def claims(matched: Matched) -> list[Claim]:
    """Count the paper's claims on a run; beside that, on the paper's numbers for the dataset.

    The best is the one that is best as printed, to two decimals, among the paper's methods but
    Oracle; so are those that print the same. Methods that were not run take part on neither side.
    """
    ours, contestants = ClaimSide.ours(matched), (*_RIVALS, FAIRCAL)
    run = [method for method in METHODS if matched.variant(method) is not None]
    present = [method for method in contestants if method in run]
    among = ""
    if len(present) < len(contestants):
        among = (
            f"; among the {len(present)} of the paper's {len(contestants)} methods that were run"
        )
    papers = None if matched.simulated else ClaimSide.papers(matched.dataset, run)
    counted = []
    for contest in CONTESTS:
        # What speaks of groups can be compared where these are the paper's.
        over_groups = any(column.group == ALL for column in contest.columns)
        won = of = None
        if papers is not None and (matched.same_groups or not over_groups):
            won, of = contest.count(papers)
        text = contest.text + (among if contest.rivals == _RIVALS else "")
        counted.append(Claim(text, *contest.count(ours), won if of else None, of or None))
    return counted
