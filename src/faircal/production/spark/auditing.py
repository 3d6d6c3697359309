"""Auditing the pairs of a Spark frame: workers go through them, the audit is made here."""

from __future__ import annotations

from collections.abc import Sequence

from faircal.evaluation.audit import Audit, audit_parts
from faircal.methods import Method
from faircal.metrics.measures import RATES
from faircal.production.spark.pairs import SparkPairs


def audit(
    pairs: SparkPairs,
    *,
    model: Method | None = None,
    attribute: str | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
) -> Audit:
    """Measure pairs of any number, overall and by group, on the workers of a cluster.

    The workers score the pairs and collect what an audit needs; of more than two million pairs they
    count scores in fine bins. Neither the cluster nor the order of the pairs changes a digit.

    Parameters
    ----------
    pairs : SparkPairs
        Labelled; the feature in use is measured (`SparkPairs.select` chooses another).
    model, threshold, rates
        As for `faircal.evaluation.audit.audit_parts`.
    attribute : str, optional
        The attribute that makes the groups; unless given, all of them crossed. Where there is none,
        figures are global only.
    """
    made = audit_parts(
        pairs,
        [pairs.feature],
        model=model,
        attribute=attribute or pairs.default_attribute,
        threshold=threshold,
        rates=rates,
    )
    return made.audits[0]
