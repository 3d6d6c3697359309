"""The paper's claims, counted on a run and, by the same rules, on the paper's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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

    def contests(self, columns: Iterable[ColumnSpec]) -> Iterator[dict[str, float]]:
        """Yield each cell's numbers by method, as printed and so turned that more is better."""
        for column in columns:
            sign = 1 if column.better == "higher" else -1
            for feature in self.features:
                numbers = {method: self.number(feature, method, column) for method in self.methods}
                yield {
                    method: sign * round(100 * number, 2)
                    for method, number in numbers.items()
                    if not np.isnan(number)
                }


@dataclass(frozen=True)
class Contest:
    """A claim that FairCal is at least as good as all of `rivals`, or better, in some columns."""

    text: str
    columns: tuple[ColumnSpec, ...]
    rivals: tuple[str, ...] = _RIVALS
    ties: bool = True

    @property
    def over_groups(self) -> bool:
        """Whether it speaks of groups, so that theirs must be the same to compare."""
        return any(column.group == ALL for column in self.columns)

    def count(self, side: ClaimSide) -> tuple[int, int]:
        """Count the cells in which it is true, and those in which it can be said."""
        verdicts = [self._holds(numbers) for numbers in side.contests(self.columns)]
        known = [holds for holds in verdicts if holds is not None]
        return sum(known), len(known)

    def _holds(self, numbers: dict[str, float]) -> bool | None:
        others = [numbers[rival] for rival in self.rivals if rival in numbers]
        if FAIRCAL not in numbers or not others:
            return None
        ours, best = numbers[FAIRCAL], max(others)
        return ours >= best if self.ties else ours > best


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
    ours = ClaimSide.ours(matched)
    run = [method for method in METHODS if matched.variant(method) is not None]
    papers = None if matched.simulated else ClaimSide.papers(matched.dataset, run)
    counted = []
    for contest in CONTESTS:
        comparable = papers is not None and (matched.same_groups or not contest.over_groups)
        there = contest.count(papers) if papers is not None and comparable else (None, None)
        text = contest.text + (_among(run) if contest.rivals == _RIVALS else "")
        counted.append(Claim(text, *contest.count(ours), *_if_any(*there)))
    return counted


def _if_any(won: int | None, of: int | None) -> tuple[int | None, int | None]:
    """Return published counts; none where the paper has no such numbers."""
    return (won, of) if of else (None, None)


def _among(run: Sequence[str]) -> str:
    all_of_them = (*_RIVALS, FAIRCAL)
    there = [method for method in all_of_them if method in run]
    if len(there) == len(all_of_them):
        return ""
    return f"; among the {len(there)} of the paper's {len(all_of_them)} methods that were run"
