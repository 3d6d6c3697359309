"""What a model was made of and what for: data, intended use, limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from faircal._base.errors import NotFittedError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal.data import ClassifierRows, Cohort, PairParts
from faircal.data.summary import MOST_COUNTED, AttributeCounts, DataSummary
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.metrics.intervals.sufficient_data import FEWEST_PEOPLE
from faircal.model import About, Provenance, versions

#: People of calibration, and images of a group whose people nobody knows, that are no longer few.
_FEW_PEOPLE, _FEW_IMAGES = 100, 100
#: Names in a sentence.
_NAMED = 6


class _DataFacts(NamedTuple):
    """What is known of calibration data; `unit` is what `groups` count.

    Attributes without a value, or with so many that they are no groups, are left out.
    """

    counts: dict[str, int | None]
    groups: dict[str, AttributeCounts]
    unit: str


def describe(
    model: Method | FairCalClassifier,
    data: PairParts | ClassifierRows,
    *,
    intended_use: str = "",
    limits: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> About:
    """Have a fitted model keep what it was made of and what for; `save` then writes it, too.

    Parameters
    ----------
    model : Method or FairCalClassifier
        Fitted on `data`. Its provenance is replaced; population and operating point stay.
    data : Dataset, PairStream, SparkPairs or ClassifierRows
        What it was fitted on. A stream is gone through once more.
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
        What the model keeps. The same model, data and words give the same: no time is in it.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.FairCal(n_clusters=20).fit(cal)
    >>> about = describe(model, cal, intended_use="opening the office door")
    >>> about.provenance.limits[0]
    'The people are simulated: nothing of this holds for real ones.'
    """
    texts = [intended_use, *limits] if not isinstance(limits, str) else [limits, None]
    if not all(isinstance(text, str) for text in texts):
        raise ParameterError("intended_use and limits: expected a text, and a list of texts")
    if isinstance(model, FairCalClassifier):
        if not isinstance(data, ClassifierRows):
            raise ParameterError("expected the ClassifierRows that the classifier was fitted on")
        model._check_fitted()
        facts, simulated, cohort = _of_rows(data), False, None
        own_limits = limits_of_rows(facts, data)
    else:
        if isinstance(data, ClassifierRows):
            raise ParameterError("expected the Dataset or PairStream that the model was fitted on")
        if not model._fitted:
            raise NotFittedError(f"{type(model).__name__} is not fitted yet; call fit first")
        facts = _of_pairs(data, progress)
        simulated = bool(data.provenance.get("simulated", False))
        cohort = data.cohort if model.needs.cohort else None
        if data.cohort is not None:  # who looks for the data that a model was fitted on has none
            data = data.with_cohort(None)
        own_limits = limits_of_pairs(model, facts, data.feature, simulated)
        if cohort is not None:
            own_limits = chain(own_limits, [_of_cohort(cohort)])
    provenance = Provenance(
        data=data.name,
        data_sha256=data.hash() if isinstance(data, ClassifierRows) else data.fingerprint(),
        feature=getattr(data, "feature", ""),
        counts=facts.counts,
        groups={name: of.images for name, of in facts.groups.items()},
        simulated=simulated,
        settings=_plain(settings or {}),
        versions=versions(),
        intended_use=intended_use,
        limits=(*limits, *own_limits),
        cohort={}
        if cohort is None
        else {**cohort.record(), "marks": cohort.marks(getattr(data, "feature", ""))},
    )
    model.about_ = replace(model.about_, provenance=provenance)
    return model.about_


def _of_pairs(data: PairParts, progress: Progress) -> _DataFacts:
    """Count who is in pairs; of a folder's pairs the images are shared by all parts."""
    summary = DataSummary.of(data, "counting calibration pairs", progress)
    counts: dict[str, int | None] = {
        "pairs": summary.pairs,
        "genuine": summary.genuine,
        "imposters": summary.pairs - summary.genuine,
        "images": None,
        "people": len(summary.names) if summary.names else None,
    }
    if data.images is None or not len(summary.used):
        sides = {k: of for k, of in summary.sides.items() if 0 < len(of.images) <= MOST_COUNTED}
        return _DataFacts(counts, sides, "sides of pairs")
    used, identity = summary.images, data.images.identity
    whom = None if identity is None or not identity.names else identity.take(used)
    counts["images"] = len(used)
    counts["people"] = None if whom is None else len(np.unique(whom[whom >= 0]))
    groups = {}
    for name, column in data.images.attributes.items():
        if 0 < len(column.names) <= MOST_COUNTED:
            codes = column.take(used)
            groups[name] = of = AttributeCounts.of(column, codes)
            if whom is not None:
                for code, value in enumerate(column.names):
                    of.people[value] = len(np.unique(whom[(codes == code) & (whom >= 0)]))
    return _DataFacts(counts, groups, "images")


def _of_rows(data: ClassifierRows) -> _DataFacts:
    """Count rows of a classifier."""
    units = None if data.identity is None else len(np.unique(data.identity.apart))
    counts = {"rows": len(data), "classes": len(data.classes), "units": units}
    groups = {
        name: AttributeCounts.of(column, column.codes)
        for name, column in data.attributes.items()
        if 0 < len(column.names) <= MOST_COUNTED
    }
    return _DataFacts(counts, groups, "rows")


# ---------------------------------------------------------------------------- limits


def limits_of_pairs(
    model: Method, facts: _DataFacts, feature: str, simulated: bool
) -> Iterator[str]:
    """Say what a model of pairs can't do, and what nobody can tell of it."""
    people = facts.counts["people"]
    if simulated:
        yield "The people are simulated: nothing of this holds for real ones."
    if feature:
        yield (
            f"Made for embeddings or scores of “{feature}”; those of another network mean nothing "
            "to it."
        )
    if model.needs.groups_to_apply:
        attribute = getattr(model, "attribute_", None) or "an attribute"
        yield f"In use it must be told {attribute} of both images of every pair."
    if model.yardstick:
        yield "A yardstick for studies: it uses what a deployment must not ask for."
    rate = model.get_params(deep=False).get("target_fpr")
    if model.fitted_to_rate and rate is not None:
        yield f"Fitted to a false-positive rate of {_percent(rate)}; at others groups may differ."
    if people is None:
        yield "Nobody knows who is in the images: how many people this rests on can't be told."
    elif people < _FEW_PEOPLE:
        yield f"It rests on {people} people, which are few: others may differ from them."
    if not facts.groups:
        yield (
            "No attribute came with the data: who its people were, and whether groups are "
            "treated alike, can't be told."
        )
    yield from _of_groups(facts)
    yield from _of_classes(model, facts.counts)


def _of_classes(model: Method, counts: Mapping[str, int | None]) -> Iterator[str]:
    """Say what share of genuine pairs probabilities are for, and what imposters can show."""
    pairs, imposters = counts["pairs"] or 0, counts["imposters"] or 0
    counted = (pairs - imposters) / max(pairs, 1)
    share = counted if model.calibrated_at is None else model.calibrated_at
    as_there = ", as in calibration" if share == counted else ""
    yield (
        f"Probabilities hold where {_percent(share)} of the pairs are genuine{as_there}; "
        "where the share is another, they must be moved to it (--prior)."
    )
    if not imposters:
        yield (
            "No imposter pair was among the calibration pairs: what it makes of different people "
            "rests on the cohort, and on pairs drawn at random from the calibration images."
        )
    # With none among n, 3 / n is the most that the rate can be with 95 % confidence.
    if imposters and 3 / imposters < 1:
        yield (
            f"Its {imposters:,} imposter pairs can't show a false-positive rate below about "
            f"{_percent(3 / imposters)}."
        )


def limits_of_rows(facts: _DataFacts, data: ClassifierRows) -> Iterator[str]:
    """Say what a calibrated classifier can't do."""
    yield "It calibrates the probabilities of one classifier; those of another mean nothing to it."
    yield from _of_groups(facts)
    codes = np.empty(0, np.int64) if data.codes is None else data.codes
    each = np.bincount(codes, minlength=len(data.classes)).tolist()
    classes = dict(zip(data.classes, each, strict=True))
    few = _listing(f"{name} ({n})" for name, n in classes.items() if n < FEWEST_PEOPLE)
    if few:
        yield f"Fewer than {FEWEST_PEOPLE} rows of the class {few}."


def _of_groups(facts: _DataFacts) -> Iterator[str]:
    """Say which groups are missing, small or unknown."""
    for name, of in facts.groups.items():
        missing = [value for value, count in of.images.items() if not count]
        if missing:
            yield f"{name}: nobody of {_listing(missing)} was among the calibration pairs."
        unit, least, counts = (
            ("people", FEWEST_PEOPLE, of.people)
            if of.people
            else (facts.unit, _FEW_IMAGES, of.images)
        )
        few = [(value, n) for value, n in counts.items() if n < least and value not in missing]
        if few:
            named = _listing(f"{value} ({n})" for value, n in few)
            yield (
                f"{name}: fewer than {least} {unit} of {named}; what holds for them can't be told."
            )
        if of.unknown:
            share = of.unknown / (sum(of.images.values()) + of.unknown)
            yield f"{name} is not known of {_percent(share)} of the {facts.unit}."


def _listing(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _of_cohort(cohort: Cohort) -> str:
    people, groups = len(cohort.identity.names), len(cohort.groups.names)
    return (
        f"It compares with a cohort of {people} people in {groups} groups: what it makes of people "
        "unlike all of them, or photographed otherwise, can't be told."
    )


def _percent(share: float) -> str:
    """Print a fraction as percent, with two digits that count at least."""
    near = min(share, 1 - share)
    digits = max(1, -1 - math.floor(math.log10(near))) if near > 0 else 0
    return f"{100 * share:.{digits}f} %"


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
