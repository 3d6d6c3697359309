"""The registry of metrics that are one number per ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faircal._base.registry import Registry
from faircal.metrics.calibration import brier, brier_losses, ece, ks, nll, nll_losses
from faircal.metrics.error_rates import auroc
from faircal.metrics.ranking import BoolArray, FloatArray


@dataclass(frozen=True)
class Metric:
    """A number that a benchmark reports for all pairs and for each group.

    Parameters
    ----------
    name : str
        As in the ``metric`` column of the results; without an underscore, for what is measured over
        groups is called ``NAME_mean``, ``NAME_aad``, ….
    function : callable
        From a `Ranking`, or from scores and labels (`as_ranking` takes both), to a float; NaN where
        the metric is undefined. `mean_of` makes one of `losses`. Single pairs are not there where
        scores are counted; ``thresholds``, ``tp`` and ``fp`` always are.
    of : {"score", "probability"}
        What it measures: the ranking of a method's decision scores or of its probabilities.
    better : {"higher", "lower"}
    title : str
        For tables and figures.
    deviations : bool
        Whether the deviations over groups are reported too.
    losses : callable, optional
        From scores or probabilities and labels, each of shape (n_pairs,), to what each pair adds,
        none below 0: the metric is their mean, and its interval is made of how they vary with the
        people. KS, ECE and AUROC are no means and have intervals of their own.
    headline : bool
        Whether each group's value stands beside its error rates: in the terminal, in
        ``audit.json``, among the tables of the report, and in what ``compare`` compares by default.

    Examples
    --------
    >>> METRICS["auroc"].function([0.1, 0.7], [0, 1])
    1.0
    """

    name: str
    function: Callable[..., float]
    of: Literal["score", "probability"]
    better: Literal["higher", "lower"]
    title: str
    deviations: bool = False
    losses: Callable[[FloatArray, BoolArray], FloatArray] | None = None
    headline: bool = True


METRICS: Registry[Metric] = Registry("metric")

for _metric in (
    Metric("auroc", auroc, of="score", better="higher", title="AUROC", headline=False),
    Metric("ks", ks, "probability", "lower", "KS", deviations=True),
    Metric("ece", ece, "probability", "lower", "ECE", deviations=True, headline=False),
    Metric("brier", brier, "probability", "lower", "Brier", True, brier_losses, headline=False),
    Metric("nll", nll, "probability", "lower", "NLL", headline=False, losses=nll_losses),
):
    METRICS.register(_metric.name, _metric)
