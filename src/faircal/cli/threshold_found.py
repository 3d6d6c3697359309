"""What ``faircal threshold`` found: the threshold, what was measured there, what it means."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from faircal.data import Dataset
    from faircal.evaluation.audit import ScoredPairs
    from faircal.evaluation.audit.operating import OperatingRates
    from faircal.evaluation.thresholds.guarantee import Guarantee
    from faircal.methods import Method
    from faircal.model import OperatingPoint


#: In the source of an operating point that nobody should use.
OWN = ", on the people of the fit: too low for others"


class Meaning(NamedTuple):
    """What the threshold says: a probability at one share of genuine pairs or another.

    `probability` holds at the share that the model was fitted at (`calibrated_at`); the
    log-likelihood ratio (nats) holds at any. `at_prior` is None where no other share was asked for.
    """

    probability: float
    calibrated_at: float
    log_likelihood_ratio: float
    prior: float | None
    at_prior: float | None


@dataclass(frozen=True, eq=False)
class Found:
    """All that is told, in a table or as JSON.

    Attributes
    ----------
    chosen : Guarantee
    data : Dataset
    people_known : bool
    rates : list of Rates
        What was measured at the threshold; empty where there is none.
    meaning : Meaning, optional
        None where the score does not tell the probability.
    own_people : bool, optional
        Whether the model was fitted on the people of the pairs; None where nothing tells.
    """

    chosen: Guarantee
    data: Dataset
    people_known: bool
    rates: list[OperatingRates]
    meaning: Meaning | None
    own_people: bool | None = None

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Groups whose FPR is surely above the wanted one, where no group was promised any."""
        from faircal.model.operating_point import above

        rows = [row.as_json() for row in self.rates]
        return () if self.chosen.scope == "groups" else above(rows, self.chosen.fpr)

    def as_json(self) -> dict[str, Any]:
        """Return everything by name."""
        chosen = self.chosen
        return {
            **asdict(chosen),
            "below_resolution": bool(chosen.needed),
            "extrapolated": [row.name for row in chosen.extrapolated],
            "refused": [row.name for row in chosen.refused],
            "people_known": self.people_known,
            "own_people": self.own_people,
            "exceeded": list(self.exceeded),
            "rows": [row._asdict() for row in chosen.rows],
            "needed": [need._asdict() for need in chosen.needed],
            "measured": [row.as_json() for row in self.rates],
            "at_threshold": None if self.meaning is None else self.meaning._asdict(),
        }

    def point(self, fold: str | None = None) -> OperatingPoint:
        """Return what goes into the model file."""
        from faircal.model import OperatingPoint

        chosen, name = self.chosen, self.data.name
        return OperatingPoint(
            threshold=chosen.threshold,
            on="score",
            source=f"faircal threshold --rule {chosen.rule}{OWN if self.own_people else ''}",
            fpr=chosen.fpr,
            confidence=chosen.confidence,
            within=chosen.scope if chosen.rule == "promised" else "",
            data=name if fold is None else f"{name}, fold {fold}",
            data_sha256=self.data.hash(),
            measured=tuple(row.as_json() for row in self.rates),
        )

    def resolution(self) -> list[str]:
        """Say, where the wanted rate is below what the data can resolve, how far and what lacks."""
        from faircal.metrics.results import GLOBAL

        chosen = self.chosen
        if not chosen.needed:
            return []
        every = "" if chosen.scope == "global" else f" in every {chosen.scope.removesuffix('s')}"
        lowest = f"the lowest they can show{every} is {_percent(chosen.resolved)}"
        if math.isnan(chosen.resolved):
            lowest = f"they are of too few people to show any{every}"
        below = (
            f"BELOW RESOLUTION: an FPR of {_percent(chosen.fpr)} is lower than these pairs can "
            f"show by counting; {lowest}"
        )
        worst = max(chosen.needed, key=lambda need: need.more_people)
        who = f"{worst.people:,} people (now {worst.people - worst.more_people:,}) and "
        where = "all pairs" if worst.name == GLOBAL else worst.name
        take = (
            f"to count it, {where} would take about {who if self.people_known else ''}"
            f"{worst.imposters:,} imposter pairs (now {worst.imposters - worst.more_imposters:,})"
        )
        return [below, take]


def find_out(
    chosen: Guarantee,
    data: Dataset,
    pairs: ScoredPairs,
    model: Method | None,
    prior: float | None,
    calibrated_at: float | None,
    own: bool | None = None,
) -> Found:
    """Measure what there is at the threshold that was chosen, and say what it means."""
    from faircal.evaluation.audit.operating import rates_at

    at, rates = chosen.told_threshold, []
    if not math.isnan(at):
        rates = rates_at(pairs, at, level=chosen.confidence)
    meaning = None if model is None else _meaning(at, pairs, model, prior, calibrated_at)
    return Found(chosen, data, pairs.people is not None, rates, meaning, own)


def fitted_on(model: Method, data: Dataset, fold: str | None) -> bool | None:
    """Say whether `model` was fitted on these people; None where nothing tells.

    Its file knows the fingerprint of what it was fitted on, and which fold was left out.
    """
    from faircal._base.errors import FairCalError
    from faircal.cli.source import fold_named

    made = model.about_.provenance
    if made is None:
        return None
    left_out = made.settings.get("leave_out")
    if left_out is None:
        return True if data.hash() == made.data_sha256 else None
    try:
        rest = data.split(fold_named(data, str(left_out)))[0]
    except FairCalError:  # no such fold: other data
        return None
    return fold != str(left_out) if rest.hash() == made.data_sha256 else None


def _meaning(
    at: float, pairs: ScoredPairs, model: Method, prior: float | None, calibrated_at: float | None
) -> Meaning | None:
    from faircal.calibrators.prior import SHARE_FIGURE, shift_prior
    from faircal.metrics import log_likelihood_ratio
    from faircal.production.scoring import fitted_share, probability_at

    asked = prior is not None or calibrated_at is not None
    if not asked and SHARE_FIGURE not in model.diagnostics_.figures:
        return None  # an old model, and nobody needs to know
    share = fitted_share(model, calibrated_at)
    if math.isnan(at) or pairs.score is None or pairs.probability is None:
        return None
    said = probability_at(at, pairs.score, pairs.probability)
    if math.isnan(said):
        return None
    (ratio,) = log_likelihood_ratio([said], calibrated_at=share)
    moved = None
    if prior is not None:
        moved = float(shift_prior([said], calibrated_at=share, prior=prior)[0])
    return Meaning(said, share, float(ratio), prior, moved)


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
