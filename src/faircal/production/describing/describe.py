"""Telling a model where it is from: data, population, intended use, limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from faircal._base.errors import NotFittedError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.data import ClassifierRows, Dataset, PairStream
from faircal.data.summary import MOST_COUNTED, AttributeCounts
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.metrics.results import versions
from faircal.model import About, Population, Provenance
from faircal.production.describing.counted import Counted, Surveyed
from faircal.production.describing.limits import limits_of_pairs, limits_of_rows
from faircal.production.monitoring import survey


def describe(
    model: Method | FairCalClassifier,
    data: Dataset | PairStream | Surveyed | ClassifierRows,
    *,
    intended_use: str = "",
    limits: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> About:
    """Tell a fitted model what it was made of and what for; `save` then writes it, too.

    Parameters
    ----------
    model : Method or FairCalClassifier
        Fitted on `data`. Its ``about_`` is replaced; an operating point stays.
    data : Dataset, PairStream, SparkPairs or Labelled
        What it was fitted on. A stream is gone through twice more.
    intended_use : str
        What the model is for, in the words of whoever answers for it.
    limits : sequence of str
        What it is not for, or can't do. What faircal knows itself is added: few people, groups
        that are missing, identities that nobody knows, the share of genuine pairs.
    settings : mapping, optional
        How the fit was called.
    progress : callable

    Returns
    -------
    About
        What was told. The same model, data and words give the same: there is no time in it.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.FairCal(n_clusters=20).fit(cal)
    >>> about = describe(model, cal, intended_use="opening the office door")
    >>> about.provenance.limits[0]
    'The people are simulated: nothing of this holds for real ones.'
    """
    told = [intended_use, *limits] if not isinstance(limits, str) else [limits, None]
    if not all(isinstance(text, str) for text in told):
        raise ParameterError("intended_use and limits: expected a text, and a list of texts")
    if isinstance(model, FairCalClassifier):
        if not isinstance(data, ClassifierRows):
            raise ParameterError("expected the Labelled rows that the classifier was fitted on")
        found, population = _of_rows(model, data), None
    else:
        found, population = _of_pairs(model, data, progress)
    provenance = Provenance(
        data=data.name,
        data_sha256=data.hash()
        if isinstance(data, Dataset | ClassifierRows)
        else data.fingerprint(),
        feature=getattr(data, "feature", ""),
        counts=found.counts,
        groups=found.groups,
        simulated=found.simulated,
        settings=_plain(settings or {}),
        versions=versions(),
        intended_use=intended_use,
        limits=(*limits, *found.limits),
    )
    model.about_ = About(provenance, population, model.about_.operating_point)
    return model.about_


class _Found(NamedTuple):
    """What is known of calibration data."""

    counts: Mapping[str, int | None]
    groups: Mapping[str, Mapping[str, int]]
    simulated: bool
    limits: tuple[str, ...]


def _of_pairs(model: Method, data: Any, progress: Progress) -> tuple[_Found, Population]:
    if isinstance(data, ClassifierRows):
        raise ParameterError("expected the Dataset or PairStream that the model was fitted on")
    if not model._fitted:
        raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
    counted = Counted.of(data, progress)
    simulated = bool(data.provenance.get("simulated", False))
    limits = tuple(limits_of_pairs(model, data.feature, counted, simulated))
    groups = {name: of.images for name, of in counted.groups.items()}
    return _Found(counted.counts(), groups, simulated, limits), survey(model, data)


def _of_rows(model: FairCalClassifier, data: ClassifierRows) -> _Found:
    model._check_fitted()
    units = None if data.identity is None else len(np.unique(data.identity.apart))
    counts = {"rows": len(data), "classes": len(data.classes), "units": units}
    groups = {
        name: AttributeCounts.of(column, column.codes)
        for name, column in data.attributes.items()
        if 0 < len(column.names) <= MOST_COUNTED
    }
    codes = np.empty(0, np.int64) if data.codes is None else data.codes
    each = np.bincount(codes, minlength=len(data.classes)).tolist()
    classes = dict(zip(data.classes, each, strict=True))
    limits = tuple(limits_of_rows(groups, classes))
    return _Found(counts, {name: of.images for name, of in groups.items()}, False, limits)


def _plain(value: Any) -> Any:
    """Return settings as JSON knows them; what it does not know is put in words."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
