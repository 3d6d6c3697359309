"""Who of many: candidates judged one by one, and what that comes to among all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from faircal.production.serving.loaded import Loaded

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
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


def candidates_of(
    loaded: Loaded,
    probe: NDArray[np.float32],
    names: Sequence[str],
    vectors: Sequence[NDArray[np.float32]],
    enrolled: int,
    enrolled_prior: float,
) -> tuple[list[Candidate], float]:
    """Judge `probe` against templates; return candidates, highest score first, and P(nobody)."""
    if not names:
        return [], 1.0
    rows = np.arange(1, len(names) + 1)
    both = loaded.embeddings(np.vstack([probe, *vectors]).astype(np.float32))
    said = loaded.compare(both, np.zeros(len(rows), dtype=np.intp), rows)
    likely, nobody = posteriors(
        said.log_likelihood_ratio, max(enrolled, len(names)), enrolled_prior
    )
    order = np.lexsort([-said.similarity, -said.score])
    found = [
        Candidate(
            names[i],
            float(said.similarity[i]),
            float(said.score[i]),
            float(said.probability[i]),
            float(said.log_likelihood_ratio[i]),
            bool(said.same[i]),
            float(likely[i]),
        )
        for i in order
    ]
    return found, nobody
