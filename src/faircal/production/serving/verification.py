"""Results: of one pair, of a batch of pairs, and of one face among all enrolled."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from faircal.model import OperatingPoint
from faircal.production.scoring.judging import Judged
from faircal.production.serving.model_in_use import ModelInUse

Rows = NDArray[np.intp]


def new_id() -> str:
    """Return an id that nobody can guess and that sorts by time.

    >>> len(new_id())
    32
    """
    return f"{time.time_ns():016x}{secrets.randbits(64):016x}"


@dataclass(frozen=True)
class Verification:
    """What is said of one pair.

    Attributes
    ----------
    id : str
        Of the decision, for feedback and in the audit trail.
    similarity, score, probability, log_likelihood_ratio : float
    same : bool
        The decision at `point`.
    point : OperatingPoint
    clusters : (int, int), optional
        Regions of embedding space that the two images lie in; None where the model knows none.
    outside : (bool, bool), optional
        Whether each lies outside the population that the model was calibrated on.
    model : str
        Digest of the model file.
    prior : float
        Share of genuine pairs that `probability` holds for.
    """

    id: str
    similarity: float
    score: float
    probability: float
    log_likelihood_ratio: float
    same: bool
    point: OperatingPoint
    clusters: tuple[int, int] | None
    outside: tuple[bool, bool] | None
    model: str
    prior: float

    @classmethod
    def of(cls, judged: Judged, point: OperatingPoint, model: str, prior: float) -> Verification:
        """Return what `judged` says of its only pair, whose images are its only two."""
        places = judged.places
        return cls(
            new_id(),
            float(judged.similarity[0]),
            float(judged.score[0]),
            float(judged.probability[0]),
            float(judged.log_likelihood_ratio[0]),
            bool(judged.same[0]),
            point,
            None if places is None else (int(places.cluster[0]), int(places.cluster[1])),
            None if places is None else (bool(places.outside[0]), bool(places.outside[1])),
            model,
            prior,
        )

    @property
    def decision(self) -> str:
        """``same`` or ``different``."""
        return "same" if self.same else "different"

    @property
    def out_of_population(self) -> bool | None:
        """Whether either image lies outside; None where nobody can tell."""
        return None if self.outside is None else any(self.outside)

    def as_json(self) -> dict[str, Any]:
        """Return the answer to a request."""
        return {
            "id": self.id,
            "score": self.score,
            "similarity": self.similarity,
            "probability": self.probability,
            "log_likelihood_ratio": self.log_likelihood_ratio,
            "same": self.same,
            "decision": self.decision,
            "operating_point": point_json(self.point),
            "clusters": self.clusters,
            "outside": self.outside,
            "out_of_population": self.out_of_population,
            "model": self.model,
            "prior": self.prior,
        }


def point_json(point: OperatingPoint) -> dict[str, Any]:
    """Return what an answer says of the operating point."""
    return {
        "threshold": point.threshold,
        "on": point.on,
        "source": point.source,
        "fpr": point.fpr,
        "promised": point.promised,
    }


@dataclass(frozen=True, eq=False)
class BatchVerification:
    """What is said of many pairs; `left` and `right` are their rows in ``judged.places``.

    `left_ids` and `right_ids` are the templates of each pair, where its vectors are of some.
    `images` are numbers of the rows, the same for the same vector in any batch.
    """

    id: str
    judged: Judged
    left: Rows
    right: Rows
    point: OperatingPoint
    model: str
    prior: float
    left_ids: Sequence[str] | None = None
    right_ids: Sequence[str] | None = None
    images: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.left)

    def columns(self) -> dict[str, NDArray[Any] | None]:
        """Return the columns of the answer; None where the model knows no population."""
        judged, places = self.judged, self.judged.places
        columns: dict[str, NDArray[Any] | None] = {
            "score": judged.score,
            "similarity": judged.similarity,
            "probability": judged.probability,
            "log_likelihood_ratio": judged.log_likelihood_ratio,
            "same": judged.same,
        }
        for name, values in (
            ("cluster", None if places is None else places.cluster),
            ("outside", None if places is None else places.outside),
        ):
            for side, rows in (("left", self.left), ("right", self.right)):
                columns[f"{side}_{name}"] = None if values is None else values[rows]
        return columns

    @property
    def outside(self) -> NDArray[np.bool_] | None:
        """Pairs with an image outside the population, shape (n_pairs,)."""
        places = self.judged.places
        if places is None:
            return None
        return np.asarray(places.outside[self.left] | places.outside[self.right])


def image_numbers(vectors: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each row of (n, d) vectors, the same wherever the same vector comes.

    Made of its first numbers, which no two images have in common; it is not kept anywhere.

    >>> one, other, again = image_numbers(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    >>> bool(one == again), bool(one == other)
    (True, False)
    """
    first = np.zeros((len(vectors), 8), dtype=np.float32)
    start = vectors[:, :8]
    first[:, : start.shape[1]] = start
    numbers = np.zeros(len(vectors), dtype=np.uint64)
    for part in first.view(np.uint64).T:
        numbers = (numbers ^ part) * np.uint64(0x9E3779B97F4A7C15)
        numbers ^= numbers >> np.uint64(29)
    return (numbers >> np.uint64(2)).astype(np.int64)


Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class IdentificationCandidate:
    """One who may be meant.

    Attributes
    ----------
    id : str
        Of the template.
    similarity, score, probability, log_likelihood_ratio : float
        Of the pair: probe and template, as in a verification.
    same : bool
        The decision on the pair at the operating point.
    posterior : float
        Probability that this one, among all enrolled, is who was seen.
    """

    id: str
    similarity: float
    score: float
    probability: float
    log_likelihood_ratio: float
    same: bool
    posterior: float


def posteriors(
    log_ratios: Float64, enrolled: int, enrolled_prior: float = 0.5
) -> tuple[Float64, float]:
    """Return how likely each candidate is who was seen, and how likely nobody enrolled is.

    The probability of a pair does not know how many are enrolled: of 10,000 strangers' templates
    some are likely to score high. Here each of the N enrolled is as likely beforehand, together
    `enrolled_prior` = π, and one person has one template:

        P(i) = (π/N) LRᵢ / ((1−π) + (π/N) Σⱼ LRⱼ),  P(nobody) = (1−π) / the same.

    Templates that were not judged, the least similar ones, count as LR 0.

    Parameters
    ----------
    log_ratios : ndarray of shape (n_candidates,)
        Log-likelihood ratios, nats.
    enrolled : int
        N, at least 1.
    enrolled_prior : float
        π, between 0 and 1: how likely it is that whoever is seen is enrolled.

    Examples
    --------
    >>> likely, nobody = posteriors(np.log([1000.0, 0.1]), enrolled=100)
    >>> likely.round(3), round(nobody, 3)
    (array([0.909, 0.   ]), 0.091)
    """
    each = np.log(enrolled_prior / max(enrolled, 1)) + log_ratios
    none = np.log1p(-enrolled_prior)
    total = logsumexp([none, *each])
    return np.exp(each - total), float(np.exp(none - total))


def rank_candidates(
    in_use: ModelInUse,
    probe: NDArray[np.float32],
    names: Sequence[str],
    vectors: Sequence[NDArray[np.float32]],
    enrolled: int,
    enrolled_prior: float,
) -> tuple[list[IdentificationCandidate], float]:
    """Judge `probe` against templates; return candidates, highest score first, and P(nobody)."""
    if not names:
        return [], 1.0
    rows = np.arange(1, len(names) + 1)
    both = in_use.embeddings(np.vstack([probe, *vectors]).astype(np.float32))
    judged = in_use.compare(both, np.zeros(len(rows), dtype=np.intp), rows)
    likely, nobody = posteriors(
        judged.log_likelihood_ratio, max(enrolled, len(names)), enrolled_prior
    )
    order = np.lexsort([-judged.similarity, -judged.score])
    candidates = [
        IdentificationCandidate(
            names[i],
            float(judged.similarity[i]),
            float(judged.score[i]),
            float(judged.probability[i]),
            float(judged.log_likelihood_ratio[i]),
            bool(judged.same[i]),
            float(likely[i]),
        )
        for i in order
    ]
    return candidates, nobody
