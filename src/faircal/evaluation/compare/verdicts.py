"""What differences come to: better, worse, or not told apart; and whether an update may pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from faircal._base.errors import ParameterError
from faircal.evaluation.compare.paired import Difference
from faircal.metrics import FAIRNESS, METRICS
from faircal.metrics.results import ALL, GLOBAL

Verdict = Literal["worse", "better", "not told apart", "not enough data", "not known"]

_HIGHER = ("auroc", "tpr")
#: How often a worsening of the size that is reported would show.
POWER = 0.8
#: Narrower than this an interval is that of two values with the same noise, rounded.
_SAME = 1e-6


def improvement_sign(metric: str) -> int:
    """Return 1 where more of a metric is better, else -1.

    Examples
    --------
    >>> [improvement_sign(name) for name in ("auroc", "ks", "fpr_gap", "fdr", "tpr_mean")]
    [1, -1, -1, 1, 1]
    """
    if metric in FAIRNESS:
        return 1 if FAIRNESS[metric].better == "higher" else -1
    name, _, over = metric.partition("_")
    if over and over != "mean":
        return -1
    higher = METRICS[name].better == "higher" if name in METRICS else name in _HIGHER
    return 1 if higher else -1


class Comparison(NamedTuple):
    """One value of two runs or methods, A and B, and how it differs: a row of ``differences.csv``.

    Attributes
    ----------
    feature, attribute, method_a, method_b, group, condition, metric : str
    a, b : float
        The values.
    difference, low, high, level : float
        ``b − a`` with its interval, of this comparison alone.
    correlation, freedom : float
        As in `faircal.evaluation.compare.paired.Difference`.
    p, p_holm : float
        The chance that chance alone makes so large a difference, alone and after Holm's correction
        for all comparisons that were made together, `family`.
    verdict : str
        By the corrected p-value.
    people : float
        The fewest effective people of the two; NaN where they are not known.
    tolerance : float
        A difference up to this size is none.
    """

    feature: str
    attribute: str
    method_a: str
    method_b: str
    group: str
    condition: str
    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    level: float
    correlation: float
    freedom: float
    p: float
    p_holm: float
    verdict: str
    family: float
    people: float
    tolerance: float = 0.0

    @property
    def reportable(self) -> bool:
        """Whether there is anything to tell."""
        return self.verdict not in ("not enough data", "not known")

    @property
    def worst(self) -> float:
        """By how much B may be worse, as far as the interval goes; negative where it is better."""
        return self.high if improvement_sign(self.metric) < 0 else -self.low

    @property
    def detectable(self) -> float:
        """How large a worsening would have been noticed, 8 times in 10, after correction."""
        risk = (1 - self.level) / max(self.family, 1)
        ends = self.difference, self.low, self.high, self.correlation, self.freedom, self.level
        worse = -improvement_sign(self.metric)
        return self.tolerance + Difference(*ends).detectable(worse, risk, POWER)

    @property
    def no_errors(self) -> bool:
        """Whether neither has a single error."""
        return self.reportable and self.metric in ("fpr", "fnr") and self.a == self.b == 0

    @property
    def same(self) -> bool:
        """Whether A and B are one and the same, noise and all."""
        return self.reportable and self.a == self.b and self.high - self.low < _SAME

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for machines; what is not reported is None."""
        numbers = ("a", "b", "difference", "low", "high", "level", "correlation", "p", "p_holm")
        values = {name: getattr(self, name) for name in (*numbers, "detectable")}
        return {
            **dict(zip(self._fields[:7], self[:7], strict=True)),
            **(values if self.reportable else dict.fromkeys(values)),
            "family": int(self.family),
            "effective_people": None if math.isnan(self.people) else self.people,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class GateVerdict:
    """Whether an update may pass, with what speaks against it."""

    passed: bool
    against: tuple[Comparison, ...]


def no_worse(compared: Sequence[Comparison]) -> GateVerdict:
    """Let pass unless something has been shown to be worse."""
    against = tuple(each for each in compared if each.verdict == "worse")
    return GateVerdict(not against, against)


def non_inferior(compared: Sequence[Comparison], margin: float) -> GateVerdict:
    """Let pass where everything has been shown to be worse by less than `margin`, if at all.

    Each comparison is tested by itself: where all must succeed, no correction is needed. What
    can't be determined speaks against, too.
    """
    check_margin(margin)
    against = tuple(each for each in compared if not (each.reportable and each.worst < margin))
    return GateVerdict(not against, against)


def check_margin(margin: float) -> None:
    """Refuse a margin that nothing could be measured against."""
    if not 0 < margin < math.inf:
        raise ParameterError(f"margin: expected a number above 0, found {margin:g}")


def group_title(group: str) -> str:
    """Return what a group is called."""
    return {GLOBAL: "all pairs", ALL: "over groups"}.get(group, group)
