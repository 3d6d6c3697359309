"""Auditing the pairs of a Spark frame: workers count them, and the counts are added up."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircal.data.columns import SOMEWHERE, parse_scores
from faircal.data.pair_sources import ROW
from faircal.evaluation.audit import Audit, Auditor
from faircal.evaluation.audit.stream import FeatureAuditors, needed_columns
from faircal.methods import Method
from faircal.methods.modelfile import decode_method, encode
from faircal.metrics.measures import RATES
from faircal.production.spark.pairs import SparkPairs
from faircal.production.spark.session import errors_in_one_line

#: About so many scores decide where the bins are.
_SAMPLE = 1 << 18


def audit(
    pairs: SparkPairs,
    *,
    model: Method | None = None,
    attribute: str | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
) -> Audit:
    """Measure pairs of any number, overall and by group, on the workers of a cluster.

    Each worker counts its pairs in fine bins, and the counts are added up: whole numbers, so
    neither the cluster nor the order of the pairs changes a digit. As of a stream of pairs,
    curves and error rates at `threshold` are exact, and `Audit.error_bounds` says how far every
    other value can be from that of `faircal.audit`.

    Parameters
    ----------
    pairs : SparkPairs
        Labelled; the feature in use is measured (`SparkPairs.select` chooses another).
    model : Method, optional
        Scores the pairs; else they are measured with their own scores, and probabilities where a
        score table has them.
    attribute : str, optional
        The attribute that makes the groups, ``a+b`` for two crossed. Unless told, all of them
        crossed; where there is none, figures are global only.
    threshold, rates
        As for `faircal.audit`.

    Returns
    -------
    Audit
    """
    (auditor,) = count(
        pairs,
        [pairs.feature],
        model=model,
        attribute=attribute or pairs.default_attribute,
        threshold=threshold,
        rates=rates,
    )
    return auditor.finish()


def count(
    pairs: SparkPairs,
    features: Sequence[str] | None = None,
    *,
    model: Method | None = None,
    attribute: str | None = None,
    threshold: float | None = None,
    rates: Sequence[float] = RATES,
) -> list[Auditor]:
    """Count all pairs in one pass, for each of `features` (all unless told).

    The same as `faircal.evaluation.audit.audit_stream` on one machine. Without `attribute` there
    are no groups.

    Returns
    -------
    list of Auditor
        One a feature; `Auditor.finish` gives the audit.
    """
    names = list(pairs.features) if features is None else features
    # What a model makes of scores is spread as it likes, within the range.
    samples = dict.fromkeys(names) if model is not None else _samples(pairs, names)
    fresh = FeatureAuditors.of(
        pairs, samples, model=model, attribute=attribute, threshold=threshold, rates=rates
    )
    # A few pairs are counted here: what doesn't fit together is said before any work is done.
    FeatureAuditors(deepcopy(fresh.each), None if model is None else model.apply).add(pairs.head())
    start = _Start(tuple(fresh.each), None if model is None else encode(model))
    # Images bring their own groups and people.
    columns = needed_columns(None if pairs.has_images else model, attribute)
    return pairs.reduce(start, columns).each


@dataclass(frozen=True, eq=False)
class _Start:
    """Gives tallies of nothing yet; its model is made when first asked for, once a process."""

    each: tuple[Auditor, ...]
    blob: bytes | None

    def __call__(self) -> FeatureAuditors:
        return FeatureAuditors(
            deepcopy(list(self.each)), None if self.blob is None else self._model.apply
        )

    @cached_property
    def _model(self) -> Method:
        return decode_method(self.blob or b"")


def _samples(pairs: SparkPairs, features: Sequence[str]) -> dict[str, NDArray[np.float64] | None]:
    """Return some hundred thousand ready-made scores of each feature; None where there are none.

    Rows with numbers are evenly picked, as on one machine; others at random.
    """
    # A folder has one such column, whatever its features are called.
    columns = {name: name if not pairs.has_images else "score" for name in features}
    there = sorted(set(columns.values()) & set(pairs.frame.columns))
    if not there:
        return dict.fromkeys(features)
    frame = pairs.frame
    every = len(pairs) // _SAMPLE
    if every > 1 and ROW in frame.columns:
        frame = frame.where(frame[ROW] % every == 0)
    elif every > 1:
        frame = frame.sample(1 / every, seed=0)
    with errors_in_one_line():
        table = frame.select(there).toArrow()
    scores = {
        name: parse_scores(table[name], name, pairs.where, pairs.score_range, SOMEWHERE)
        for name in there
    }
    return {name: scores[column] for name, column in columns.items()}
