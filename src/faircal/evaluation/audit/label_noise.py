"""How far groups' figures move when some labels of groups are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import check_whole
from faircal.data import Groups
from faircal.data.columns import UNKNOWN
from faircal.evaluation.audit.pairs import ScoredPairs, check_rates, check_threshold
from faircal.evaluation.audit.wrong_labels import (
    CorrectedRates,
    LabelledPeople,
    LabelMixing,
    RelabelledCounts,
    Values,
)
from faircal.metrics import DEVIATIONS, Ranking, threshold_at_fnr, threshold_at_fpr
from faircal.metrics.fairness import gap
from faircal.metrics.measures import RATES, condition
from faircal.metrics.results import ALL, read_rows, write_rows

Float64 = NDArray[np.float64]

#: In the output folder: every value as labelled, with wrong labels, and with them taken back.
LABEL_NOISE = "label_noise.csv"
#: What tables show of the deviations over groups.
_SHOWN = ("gap", "aad")
#: Half a range of draws: 2.5 % on each side.
_TAIL = 0.025


class LabelNoiseRow(NamedTuple):
    """One value: as labelled, with more labels wrong, and with the wrong ones taken back.

    `median`, `low` and `high` are over the draws. `corrected` and `corrected_never` are NaN where
    they can't be told; they differ where nobody knows how often strangers of two groups match, as
    there are no such pairs: as often as those of one group, or never. `reliable` is 1 where both
    may be relied on.
    """

    feature: str
    attribute: str
    group: str
    condition: str
    metric: str
    noise: float
    value: float = float("nan")
    median: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    corrected: float = float("nan")
    corrected_never: float = float("nan")
    reliable: float = 0.0

    @property
    def name(self) -> str:
        """What a deviation over groups is called, ``FPR gap`` or ``KS AAD``."""
        metric, _, over = self.metric.partition("_")
        return f"{metric.upper()} {over if over == 'gap' else over.upper()}"

    @property
    def of_rate(self) -> bool:
        """Whether it is of an error rate, which has a threshold; calibration has none."""
        return self.metric.startswith(("fpr", "fnr"))

    def taken_back(self, printed: Callable[[float], str]) -> str:
        """Return what the true groups would show, `printed`: a range where it can't be known."""
        ends = sorted((self.corrected, self.corrected_never))
        return " to ".join(dict.fromkeys(map(printed, ends)))


def over_groups(rows: Iterable[LabelNoiseRow]) -> list[LabelNoiseRow]:
    """Return what tables show: deviations over groups that are defined."""
    return [
        row
        for row in rows
        if row.group == ALL and row.metric.rpartition("_")[2] in _SHOWN and row.value == row.value
    ]


def write_noise(folder: Path, rows: Iterable[LabelNoiseRow]) -> None:
    """Write ``label_noise.csv``; without rows that of an earlier audit is removed."""
    write_rows(folder / LABEL_NOISE, LabelNoiseRow, rows)


def read_noise(folder: str | Path) -> list[LabelNoiseRow]:
    """Read ``label_noise.csv``; none where there is no such file."""
    return read_rows(Path(folder) / LABEL_NOISE, LabelNoiseRow)


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """What wrong labels do to the figures of groups; `label_noise` makes it.

    Attributes
    ----------
    rate : float
        The share of labels that are wrong.
    draws : int
    rows : list of LabelNoiseRow
    by : str
        Whose labels were drawn wrong: people, or pairs where people are unknown.
    notes : list of str
        How to read it.
    """

    rate: float
    draws: int
    rows: list[LabelNoiseRow]
    by: str
    notes: list[str]

    def row(self, metric: str, *, group: str = ALL, condition: str = "") -> LabelNoiseRow:
        """Return one row, e.g. ``row("fpr_gap", condition="global_fpr=0.01")``."""
        for row in self.rows:
            if (row.metric, row.group, row.condition) == (metric, group, condition):
                return row
        raise ParameterError(
            f"label noise: there is no {metric!r} of group {group!r} under {condition!r}; "
            "look at rows"
        )

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return pa.table(dict(zip(LabelNoiseRow._fields, zip(*self.rows, strict=True), strict=True)))


def label_noise(
    pairs: ScoredPairs,
    rate: float,
    *,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
    draws: int = 200,
    seed: int = 0,
    upper: float = 1.0,
    feature: str = "",
    attribute: str = "",
) -> LabelNoise:
    """Say how far groups' error rates, KS and deviations move when labels of groups are wrong.

    Forwards: labels are made wrong by chance, `draws` times, and all is measured again. With
    probability `rate` a person gets the label of another group, drawn in proportion to the number
    of people in each; all images of a person move together. Where people are unknown, each pair
    has its own: one label if it is genuine or within a group, else two. Unknown labels stay
    unknown, and a pair whose two people come to be of two groups counts in none.

    Backwards: error rates of the true groups, if the labels given are already so often wrong. KS
    does not mix linearly and is not taken back.

    Rates are counted at the thresholds of all pairs, which do not depend on labels; those of an
    audit are interpolated there, and differ by less than a pair.

    Parameters
    ----------
    pairs : ScoredPairs
        With `groups`.
    rate : float
        The share of labels that are wrong, between 0 and 1.
    threshold, rates
        As for `faircal.audit`.
    draws : int, default 200
    seed : int, default 0
    upper : float, default 1.0
        Upper end of the score range.
    feature, attribute : str
        For the table.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["A", "B"], 2000)
    >>> score = rng.normal(np.where(group == "A", 0.0, 0.3), 0.2)
    >>> pairs = ScoredPairs.of(np.zeros(4000), score, groups=group)
    >>> result = label_noise(pairs, 0.1, threshold=0.3, draws=50).row("fpr_gap")
    >>> round(result.value, 2), round(result.median, 2), round(result.corrected, 2)
    (0.43, 0.34, 0.53)
    """
    groups = pairs.groups
    if groups is None or _populated(groups) < 2:
        raise DataError(
            "label noise: expected two or more groups with people in them to mix up; found fewer; "
            "name another attribute, or leave label noise out"
        )
    if not 0 < rate < 1:
        raise ParameterError(
            f"label noise: expected a share between 0 and 1, found {rate:g}; write 5 % as 0.05"
        )
    check_whole("draws", draws, 1)
    points = _points(pairs, check_threshold(threshold), check_rates(rates), upper)
    people = LabelledPeople.of(pairs, groups)
    counted = RelabelledCounts(pairs, groups, points)
    given = counted.values(people.pair)
    moved: dict[tuple[str, str], list[Float64]] = {key: [] for key in given}
    random = np.random.default_rng(seed)
    for _ in range(draws):
        for key, values in counted.values(people.mislabelled(rate, random)).items():
            moved[key].append(values)
    mixing = LabelMixing.of(people.sizes, rate)
    taken_back = _taken_back(counted, mixing, given, alone=pairs.people is None)
    rows: list[LabelNoiseRow] = []
    for (under, metric), values in given.items():
        of = LabelNoiseRow(feature, attribute, "", under, metric, rate)
        drawn, back = np.array(moved[under, metric]), taken_back.get((under, metric))
        rows += _rows(of, groups.names, values, drawn, back)
    by = "pairs" if pairs.people is None else "people"
    return LabelNoise(rate, draws, rows, by, _notes(pairs, groups, rate, draws, by))


def _populated(groups: Groups) -> int:
    """Return how many groups there are that anybody is in."""
    codes = np.unique(np.concatenate([groups.left, groups.right]))
    return int((codes != UNKNOWN).sum())


def _notes(pairs: ScoredPairs, groups: Groups, rate: float, draws: int, by: str) -> list[str]:
    how = (
        f"wrong labels: in each of {draws} draws every one of the {by} gets another group's label "
        f"with probability {rate:g}, more likely that of a large group"
    )
    if pairs.people is None:
        return [how, "wrong labels: people are unknown, so each pair has a label of its own"]
    if not groups.cross.any():
        more = (
            "wrong labels: there are no pairs of two groups, so a wrong label can only take an "
            "imposter pair out of its group; false-positive rates would move more with such pairs"
        )
        return [how, more]
    return [how]


def _rows(
    of: LabelNoiseRow,
    names: Sequence[str],
    values: Float64,
    drawn: Float64,
    back: tuple[CorrectedRates, CorrectedRates] | None,
) -> Iterator[LabelNoiseRow]:
    """Yield the rows of each group, and of each deviation over groups."""
    true = np.full((2, len(names)), np.nan)
    if back is not None:
        true = np.array([each.rates for each in back])
        of = of._replace(reliable=float(all(each.reliable for each in back)))
    for g, name in enumerate(names):
        yield _row(of._replace(group=name), values[g], drawn[:, g], true[:, g])
    deviations: dict[str, Callable[[Any], Any]] = {**DEVIATIONS, "gap": gap}
    for name, deviation in deviations.items():
        over = np.array([float(deviation(each)) for each in (values, *true, *drawn)])
        named = of._replace(group=ALL, metric=f"{of.metric}_{name}")
        yield _row(named, over[0], over[3:], over[1:3])


def _row(of: LabelNoiseRow, value: float, drawn: Float64, true: Float64) -> LabelNoiseRow:
    known = drawn[~np.isnan(drawn)]
    low, median, high = (
        np.quantile(known, (_TAIL, 0.5, 1 - _TAIL)).tolist() if len(known) else [float("nan")] * 3
    )
    return of._replace(
        value=float(value),
        median=median,
        low=low,
        high=high,
        corrected=float(true[0]),
        corrected_never=float(true[1]),
        reliable=0.0 if np.isnan(true).any() else of.reliable,
    )


def _points(
    pairs: ScoredPairs, threshold: float | None, rates: Sequence[float], upper: float
) -> dict[str, float]:
    """Return the thresholds of the operating points, by condition."""
    if pairs.ranked is None:
        return {}
    ranking = Ranking.of(pairs.ranked, pairs.genuine)
    top = upper if pairs.score is not None else 1.0
    thresholds: dict[str, float] = {} if threshold is None else {"": threshold}
    for kind, threshold_at in (("global_fpr", threshold_at_fpr), ("global_fnr", threshold_at_fnr)):
        at = threshold_at(ranking, rates, upper=top)
        thresholds |= {condition(kind, r): float(t) for r, t in zip(rates, at, strict=True)}
    return {under: at for under, at in thresholds.items() if at == at}


def _taken_back(
    counted: RelabelledCounts, mixing: LabelMixing, given: Values, alone: bool
) -> dict[tuple[str, str], tuple[CorrectedRates, CorrectedRates]]:
    """Return the error rates of true groups; `alone`: a pair within a group has one label."""
    corrected = {}
    for (under, metric), values in given.items():
        if metric == "fnr" or (metric == "fpr" and alone):
            corrected[under, metric] = (mixing.one_label(values),) * 2
        elif metric == "fpr":
            rates = counted.by_both(under)
            corrected[under, metric] = (
                mixing.two_labels(rates),
                mixing.two_labels(rates, never=True),
            )
    return corrected
