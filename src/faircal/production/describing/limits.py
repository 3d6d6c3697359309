"""What faircal itself knows to be a limit of a model, in short sentences made from the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from faircal.calibrators.prior import SHARE_FIGURE
from faircal.data.summary import AttributeCounts
from faircal.methods import Method
from faircal.metrics.intervals.planning import FEWEST_PEOPLE
from faircal.production.describing.counted import Counted

#: People of calibration, and images of a group whose people nobody knows, that are no longer few.
_FEW_PEOPLE, _FEW_IMAGES = 100, 100
#: Names in a sentence.
_NAMED = 6


def limits_of_pairs(
    model: Method, feature: str, counted: Counted, simulated: bool
) -> Iterator[str]:
    """Say what a model of pairs can't do, and what nobody can tell of it."""
    if simulated:
        yield "The people are simulated: nothing of this holds for real ones."
    yield from _of_method(model, feature)
    yield from _of_people(counted.people)
    if not counted.groups:
        yield (
            "No attribute came with the data: who its people were, and whether groups are "
            "treated alike, can't be told."
        )
    unit = "images" if counted.images is not None else "sides of pairs"
    for name, of in counted.groups.items():
        yield from _of_group(name, of, unit)
    yield from _of_counts(model, counted)


def limits_of_rows(groups: dict[str, AttributeCounts], classes: dict[str, int]) -> Iterator[str]:
    """Say what a calibrated classifier can't do; `classes` are rows by class."""
    yield "It calibrates the probabilities of one classifier; those of another mean nothing to it."
    for name, of in groups.items():
        yield from _of_group(name, of, "rows")
    few = _listing(f"{name} ({n})" for name, n in classes.items() if n < FEWEST_PEOPLE)
    if few:
        yield f"Fewer than {FEWEST_PEOPLE} rows of the class {few}."


def _of_method(model: Method, feature: str) -> Iterator[str]:
    if feature:
        yield f"Made for embeddings or scores of “{feature}”; those of another network are strange."
    if model.needs.groups_to_apply:
        attribute = getattr(model, "attribute_", None) or "an attribute"
        yield f"In use it must be told {attribute} of both images of every pair."
    if model.yardstick:
        yield "A yardstick for studies: it uses what a deployment must not ask for."
    rate = model.get_params(deep=False).get("target_fpr")
    if model.fitted_to_rate and rate is not None:
        yield f"Fitted to a false-positive rate of {_percent(rate)}; at others groups may differ."


def _of_people(people: int | None) -> Iterator[str]:
    if people is None:
        yield "Nobody knows who is in the images: how many people this rests on can't be told."
    elif people < _FEW_PEOPLE:
        yield f"It rests on {people} people, which are few: others may differ from them."


def _of_group(name: str, of: AttributeCounts, of_what: str) -> Iterator[str]:
    missing = [value for value, count in of.images.items() if not count]
    if missing:
        yield f"{name}: nobody of {_listing(missing)} was among the calibration pairs."
    if of.people:
        few = {value: n for value, n in of.people.items() if n < FEWEST_PEOPLE}
        unit, least = "people", FEWEST_PEOPLE
    else:
        few = {value: n for value, n in of.images.items() if n < _FEW_IMAGES}
        unit, least = of_what, _FEW_IMAGES
    named = _listing(f"{value} ({few[value]})" for value in few if value not in missing)
    if named:
        yield f"{name}: fewer than {least} {unit} of {named}; what holds for them can't be told."
    everything = sum(of.images.values()) + of.unknown
    if of.unknown:
        yield f"{name} is not known of {_percent(of.unknown / everything)} of the {of_what}."


def _of_counts(model: Method, counted: Counted) -> Iterator[str]:
    share = model.diagnostics_.figures.get(SHARE_FIGURE, counted.genuine / max(counted.pairs, 1))
    yield (
        f"Probabilities hold where {_percent(share)} of the pairs are genuine, as in calibration; "
        "where the share is another, they must be moved to it (--prior)."
    )
    imposters = counted.pairs - counted.genuine
    # With none among n, 3 / n is the most that the rate can be with 95 % confidence.
    if imposters and 3 / imposters < 1:
        yield (
            f"Its {imposters:,} imposter pairs can't show a false-positive rate below about "
            f"{_percent(3 / imposters)}."
        )


def _listing(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _percent(share: float) -> str:
    """Print a fraction as percent, with two digits that count at least."""
    near = min(share, 1 - share)
    digits = max(1, -1 - math.floor(math.log10(near))) if near > 0 else 0
    return f"{100 * share:.{digits}f} %"
