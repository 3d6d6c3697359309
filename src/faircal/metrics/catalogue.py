"""The registry of metrics that are one number per ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faircal._base.registry import Registry
from faircal.compute.counting import FilledBins
from faircal.metrics.bounds import auroc_bound, brier_bound, ece_bound, ks_bound, nll_bound
from faircal.metrics.calibration import brier, ece, ks, nll
from faircal.metrics.error_rates import auroc
from faircal.metrics.ranking import Ranking


@dataclass(frozen=True)
class Metric:
    """A number that a benchmark reports for all pairs and for each group.

    Parameters
    ----------
    name : str
        As in the ``metric`` column of the results.
    function : callable
        From a `Ranking`, or from scores and labels (`as_ranking` takes both), to a float; NaN where
        the metric is undefined.
    of : {"score", "probability"}
        What it measures: the ranking of a method's decision scores or of its probabilities.
    better : {"higher", "lower"}
    title : str
        For tables and figures.
    deviations : bool
        Whether the deviations over groups are reported too.
    bound : callable, optional
        From the counted bins of a set (`faircal.compute.counting.FilledBins`) to how far the metric
        of the counts can be from that of the scores; see `faircal.metrics.bounds`.

    Examples
    --------
    >>> METRICS["auroc"].function(Ranking.of([0.1, 0.7], [0, 1]))
    1.0
    """

    name: str
    function: Callable[[Ranking], float]
    of: Literal["score", "probability"]
    better: Literal["higher", "lower"]
    title: str
    deviations: bool = False
    bound: Callable[[FilledBins], float] | None = None


METRICS: Registry[Metric] = Registry("metric")

for _metric in (
    Metric("auroc", auroc, of="score", better="higher", title="AUROC", bound=auroc_bound),
    Metric("ks", ks, "probability", "lower", "KS", deviations=True, bound=ks_bound),
    Metric("ece", ece, "probability", "lower", "ECE", deviations=True, bound=ece_bound),
    Metric("brier", brier, "probability", "lower", "Brier", deviations=True, bound=brier_bound),
    Metric("nll", nll, of="probability", better="lower", title="NLL", bound=nll_bound),
):
    METRICS.register(_metric.name, _metric)
