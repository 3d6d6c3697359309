"""Where a proper score comes from: miscalibration, discrimination, uncertainty.

``score = miscalibration − discrimination + uncertainty``, each of the three 0 or more:

- *uncertainty* is the score of always saying how often a class is true: what knowing nothing costs;
- *discrimination* is how much the probabilities gain on that, once they are recalibrated;
- *miscalibration* is what recalibrating them would save.

Recalibrated means: by isotonic regression of what was true on the probability (the CORP approach of
Dimitriadis, Gneiting and Jordan, 2021). There are no bins to choose, and as isotonic regression is
the best increasing map for every proper score at once, no term is negative. It knows the answers,
though: with few rows miscalibration and discrimination both come out too large, by the same amount.

With many classes each class is a binary question ("is it this one?") of its own, and the terms are
summed over classes. The Brier score of many classes *is* the sum of the classes' Brier scores, so
the sum is exact. Their log loss is not: recalibrated class by class, probabilities no longer sum to
1, and what a row then gives its true class is no proper log loss. The log score here is therefore
``ovr_nll``: the binary log losses of one class versus the rest, summed over classes. It is proper,
splits exactly, and is larger than the NLL of the rows; the two must not be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from faircal._base.errors import ParameterError
from faircal.metrics.calibration import brier, nll
from faircal.metrics.classes import classwise_rankings
from faircal.metrics.ranking import FloatArray, IntArray, Ranking, as_probabilities, pooled_counts


@dataclass(frozen=True)
class Decomposition:
    """A proper score in three parts; see the module.

    Parameters
    ----------
    score : float
        ``miscalibration − discrimination + uncertainty``.
    miscalibration : float
        What recalibrating would save; less is better.
    discrimination : float
        What the probabilities know; more is better.
    uncertainty : float
        A property of the labels alone.

    Examples
    --------
    >>> Decomposition(0.25, 0.0, 0.0, 0.25).skill
    0.0
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    @property
    def skill(self) -> float:
        """Share of the uncertainty that is gone: 1 is perfect, 0 knows nothing, below misleads."""
        return 1 - self.score / self.uncertainty if self.uncertainty else float("nan")


def decompose(
    probabilities: npt.ArrayLike,
    codes: npt.ArrayLike,
    score: Literal["brier", "ovr_nll"] = "brier",
) -> Decomposition:
    """Split the score of class probabilities into three, class by class, and sum over classes.

    Parameters
    ----------
    probabilities : array-like of float in [0, 1], shape (n_rows, n_classes)
    codes : array-like of int, shape (n_rows,)
    score : {"brier", "ovr_nll"}, default "brier"
        ``brier`` is `multiclass_brier`; ``ovr_nll`` the log losses of one class versus the rest,
        summed over classes, in nats.

    Returns
    -------
    Decomposition
        All NaN without rows. For two classes, twice what `decompose_binary` gives.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]]
    >>> parts = decompose(p, [0, 1, 0, 1])
    >>> round(parts.score, 3), round(parts.miscalibration, 3), parts.discrimination
    (0.37, 0.12, 0.25)
    >>> parts.uncertainty
    0.5
    """
    parts = decompose_classes(probabilities, codes, score)
    return Decomposition(
        score=sum(part.score for part in parts),
        miscalibration=sum(part.miscalibration for part in parts),
        discrimination=sum(part.discrimination for part in parts),
        uncertainty=sum(part.uncertainty for part in parts),
    )


def decompose_classes(
    probabilities: npt.ArrayLike,
    codes: npt.ArrayLike,
    score: Literal["brier", "ovr_nll"] = "brier",
) -> tuple[Decomposition, ...]:
    """Split the score of each class against the rest into three; `decompose` is their sum.

    Examples
    --------
    >>> parts = decompose_classes([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [0, 2])
    >>> [part.discrimination for part in parts]
    [0.25, 0.0, 0.25]
    """
    rankings = classwise_rankings(probabilities, codes)
    return tuple(decompose_binary(ranking, score=score) for ranking in rankings)


def decompose_binary(
    probability: npt.ArrayLike | Ranking,
    genuine: npt.ArrayLike | None = None,
    score: Literal["brier", "ovr_nll"] = "brier",
) -> Decomposition:
    """Split the score of one probability per row, or of a `Ranking`, into three.

    Parameters
    ----------
    score : {"brier", "ovr_nll"}, default "brier"
        `brier` or `nll`: there is one class, and the rest.

    Examples
    --------
    >>> parts = decompose_binary([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> round(parts.miscalibration, 3), parts.discrimination, parts.uncertainty
    (0.06, 0.125, 0.25)
    """
    if score not in _SCORES:
        raise ParameterError(
            f"score: expected brier or ovr_nll, found {score!r}; class probabilities recalibrated "
            "one by one no longer sum to 1, so use ovr_nll, the log losses of one class versus the "
            "rest, in place of the NLL"
        )
    ranking = as_probabilities(probability, genuine)
    n = len(ranking)
    if not n:
        return Decomposition(*[float("nan")] * 4)
    score_of, total_of_blocks = _SCORES[score]
    # The best increasing map gives each pooled block its own share of genuine rows.
    recalibrated = total_of_blocks(*pooled_counts(ranking)) / n
    value = score_of(ranking)
    uncertainty = total_of_blocks(np.array([ranking.n_genuine]), np.array([ranking.n_imposter])) / n
    # Rounding may make a difference −1e-17.
    miscalibration, gain = max(value - recalibrated, 0.0), max(uncertainty - recalibrated, 0.0)
    return Decomposition(value, miscalibration, gain, uncertainty)


def _squares(hit: IntArray, miss: IntArray) -> float:
    # hit (1 − r)² + miss r² with the share r = hit / (hit + miss)
    return float(np.sum(hit * (miss / (hit + miss))))


def _logs(hit: IntArray, miss: IntArray) -> float:
    share: FloatArray = hit / (hit + miss)
    # A block all of one kind is certain and right: 0 log 0 is 0, and nothing is clipped.
    return float(-np.sum(xlogy(hit, share) + xlogy(miss, miss / (hit + miss))))


#: Of a ranking, and the total of blocks that are each given their share.
_SCORES: dict[str, tuple[Callable[[Ranking], float], Callable[[IntArray, IntArray], float]]] = {
    "brier": (brier, _squares),
    "ovr_nll": (nll, _logs),
}
