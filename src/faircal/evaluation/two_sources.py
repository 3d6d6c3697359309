"""Rates of a cohort's imposters, and what they rest on: whether both were photographed alike."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faircal._base.errors import DataError
from faircal.data import Cohort, Dataset, load_cohort
from faircal.data.pairing.two_sources import TwoSources, two_sources
from faircal.methods import Method
from faircal.metrics.intervals.dyadic import IdentifiedPairs
from faircal.metrics.intervals.sufficient_data import insufficient_data_reason

#: The share of the cohort's strangers at whose score the two sources are compared: a shift shows
#: there with a tenth of the pairs that a lower rate would take.
COMPARED_AT = 0.1
#: Times as many that are taken for alike: two collections are never quite the same.
_ALIKE = 1.1


@dataclass(frozen=True)
class StrangerComparison:
    """How many more of one's own strangers reach a score than of a cohort's in the same mix.

    Attributes
    ----------
    ratio, low, high : float
        How many times as many, and its 95 % interval; NaN where nobody can know.
    at : float
        The share of the cohort's strangers that reach the score.
    unknown : str
        Why nobody can know; empty where it was measured.
    """

    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    at: float = COMPARED_AT
    unknown: str = ""

    @classmethod
    def of(cls, sources: TwoSources, model: Method | None) -> StrangerComparison:
        """Compare strangers of both, with their cosines or with what `model` says of them."""
        data, unknown = sources.strangers()
        if unknown:
            return cls(unknown=unknown)
        if model is not None and model.needs.groups_to_apply and data.groups().unknown.any():
            return cls(unknown=f"{model.name} needs the groups of the data's people, too")
        score = data.scores if model is None else model.apply(data).score
        people = IdentifiedPairs.of(data.genuine, data.people)
        own = data.pairs.left < sources.n_own
        for side, whose in ((own, "data"), (~own, "cohort")):
            trials = people.part(side).trials["fpr"]
            few = insufficient_data_reason(
                "fpr", trials.pairs, trials.effective_people, COMPARED_AT, of="pairs of strangers"
            )
            if few is not None:
                return cls(unknown=f"in the {whose} there are {few}")
        reached = score >= np.quantile(score[~own], 1 - COMPARED_AT)
        mine, theirs = float(reached[own].mean()), float(reached[~own].mean())
        if theirs == 1:
            return cls(unknown="all strangers of the cohort have the same score")
        mine = max(mine, 1 / int(own.sum()))
        ratio = mine / theirs
        moves = np.where(own, (reached - mine) / mine, (theirs - reached) / theirs)
        moves *= ratio / np.where(own, own.sum(), (~own).sum())
        low, high = people.spread(moves).interval(ratio, 0.95, loss=True)
        return cls(ratio, low, high, theirs)

    @property
    def unlike(self) -> bool:
        """Whether one's own strangers surely pass more often: the cohort's rates are too low."""
        return self.low > _ALIKE

    def words(self) -> str:
        """Say whether both were photographed alike, as far as strangers tell."""
        if self.unknown:
            return (
                "whether the cohort and the data were photographed alike is not known: "
                f"{self.unknown}"
            )
        compared = (
            f"the data's strangers pass {self.ratio:.3g} times as often as the cohort's "
            f"({self.low:.3g} to {self.high:.3g}, where {100 * self.at:.3g} % pass)"
        )
        unlike = f"the cohort and the data were not photographed alike: {compared}"
        if self.low > 1:
            more = "its rates are higher than the cohort's, and most so where they are low"
            return f"WARNING: {unlike}; {more}"
        if self.high < 1:
            return f"{unlike}; its rates are lower than the cohort's"
        return (
            "as far as strangers tell, the cohort and the data were photographed alike: "
            f"{compared}; its rates may be up to {self.high:.3g} times the cohort's"
        )


@dataclass(frozen=True, eq=False)
class CohortImposters:
    """Genuine pairs of some data beside a cohort's imposters, and what is to be said of them.

    Attributes
    ----------
    sources : TwoSources
    comparison : StrangerComparison
    """

    sources: TwoSources
    comparison: StrangerComparison

    @classmethod
    def of(
        cls,
        data: Dataset,
        cohort: Cohort | str | Path,
        model: Method | None,
        attribute: str | None = None,
        seed: int = 0,
    ) -> CohortImposters:
        """Put both together; `attribute` makes the groups of a cohort in a folder."""
        if not isinstance(cohort, Cohort):
            cohort = load_cohort(cohort, attribute)
        sources = two_sources(data, cohort, seed)
        if model is not None:
            _check_unseen(sources.cohort, data.feature, model)
        return cls(sources, StrangerComparison.of(sources, model))

    @property
    def data(self) -> Dataset:
        """The pairs of both sources."""
        return self.sources.data

    def as_json(self) -> dict[str, Any]:
        """Return everything by name, as JSON knows it."""
        cohort = self.sources.cohort
        numbers = asdict(self.comparison)
        return {
            "cohort": cohort.name,
            "sha256": cohort.fingerprint(),
            "attribute": cohort.attribute,
            "people": {name: people for name, (people, _) in cohort.counts().items()},
            "imposters": int((~self.data.genuine).sum()),
            "strangers": {k: None if v != v else v for k, v in numbers.items()},
            "rests_on": self.comparison.words(),
        }

    def notes(self) -> list[str]:
        """Say where imposters are from, of whom rates are, and what that rests on."""
        cohort, left_out = self.sources.cohort, self.sources.left_out
        notes = list(cohort.notes)
        imposters = int((~self.data.genuine).sum())
        notes.append(
            f"imposters: {imposters:,} pairs of strangers of the same group ({cohort.attribute}) in"
            f" {cohort.name}; rates of people who are of none of its groups are not known"
        )
        if left_out:
            notes.append(f"the data's own {left_out:,} imposter pairs are left out")
        return [*notes, self.comparison.words()]


def _check_unseen(cohort: Cohort, feature: str, model: Method) -> None:
    """Raise where a model was fitted with people of the cohort: their scores are not of others."""
    made = model.about_.provenance
    marks = made.cohort.get("marks") if made is not None else None
    seen = set(cohort.marks(feature)) & set(marks if isinstance(marks, list) else ())
    if seen:
        raise DataError(
            f"{cohort.where}: the model was fitted with {len(seen)} of the"
            f" {len(cohort.identity.names)} people of this cohort, and rates are to be of people it"
            " has not seen; give another cohort, or fit with a part of this one and keep the rest"
        )
