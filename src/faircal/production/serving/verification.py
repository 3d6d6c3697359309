"""The model in use, and what it says: of one pair, of many, and of one face among all enrolled."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from faircal._base.errors import DataError, ModelFileError, ParameterError
from faircal.data import Embeddings, Groups
from faircal.data.columns import UNKNOWN
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import read_model
from faircal.metrics import EvidenceBounds, log_likelihood_ratio
from faircal.model import OperatingPoint
from faircal.production.scoring.judging import Judge, Judged
from faircal.production.serving.store.records import Decision

Rows = NDArray[np.intp]
Float64 = NDArray[np.float64]
Vector = NDArray[np.float32]

#: Vectors that a model that takes any dimension is tried out with.
_ANY_DIMENSION = 128


@dataclass(frozen=True, eq=False)
class ModelInUse:
    """A model in use: read once, tried out, and only ever replaced as a whole.

    A request takes one, and keeps it until it has answered. `digest` is the SHA-256 of the file.
    """

    judge: Judge
    digest: str

    @classmethod
    def read(
        cls, path: Path, point: OperatingPoint | None = None, prior: float | None = None
    ) -> ModelInUse:
        """Read a model file and judge one pair with it, so that it works for sure, and is warm.

        `point` and `prior` are in place of the model's own operating point and share.
        """
        model, blob = read_model(path)
        if isinstance(model, FairCalClassifier):
            raise ModelFileError(
                f"{path}: expected a model of pairs, found one of a classifier; "
                "fit one with 'faircal fit'"
            )
        if model.calibrated_at is None:
            raise ModelFileError(
                f"{path}: does not say at which share of genuine pairs it was fitted, "
                "as older ones don't; fit it again"
            )
        try:
            in_use = cls(Judge.of(model, point, prior), hashlib.sha256(blob).hexdigest())
        except ParameterError as error:
            raise ModelFileError(f"{path}: {error}") from error
        # A pair of noise: a model that can't judge it is refused now, not at the first request.
        wide = in_use.dimension or _ANY_DIMENSION
        vectors = np.random.default_rng(0).standard_normal((2, wide)).astype(np.float32)
        groups = pair_groups(["?"], ["?"]) if in_use.needs_groups else None
        judged = in_use.compare(in_use.embeddings(vectors), np.array([0]), np.array([1]), groups)
        if not np.isfinite(judged.probability).all():
            raise ModelFileError("the model gives no probability to a pair; fit it again")
        return in_use

    @property
    def model(self) -> Method:
        """The method."""
        return self.judge.model

    @cached_property
    def dimension(self) -> int | None:
        """Length of the embeddings; None where the model takes any."""
        return None if self.judge.space is None else self.judge.space.dimension

    @property
    def needs_groups(self) -> bool:
        """Whether the groups of both images must come with each pair."""
        return bool(self.model.needs.groups_to_apply)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The model card as JSON."""
        from faircal.report.card import card_facts

        return card_facts(self.model)

    def is_at_bound(self, line: Decision) -> bool:
        """Whether the evidence behind a probability in the audit trail was at a bound."""
        bounds = self.model.about_.evidence
        if bounds is None or line.probability is None or line.prior is None:
            return False
        ratio = log_likelihood_ratio(line.probability, calibrated_at=line.prior)
        return bool(bounds.reached(ratio))

    def at(self, prior: float | None) -> ModelInUse:
        """Return the same with probabilities for another share of genuine pairs."""
        if prior in (None, self.judge.prior):
            return self
        return replace(self, judge=replace(self.judge, prior=prior))

    def compare(
        self, embeddings: Embeddings, left: Rows, right: Rows, groups: Groups | None = None
    ) -> Judged:
        """Judge pairs of rows of `embeddings`; with groups where the method needs them."""
        if self.needs_groups and groups is None:
            raise DataError(
                f"method {self.model.name} needs the groups of both images; "
                "give left_group and right_group"
            )
        return self.judge(embeddings, left, right, groups)

    def embeddings(self, vectors: NDArray[Any]) -> Embeddings:
        """Return vectors, shape (n, d), float16 or float32, as the model takes them."""
        space = self.judge.space
        return Embeddings(vectors, True if space is None else space.normalize)


def pair_groups(left: Sequence[str | None], right: Sequence[str | None]) -> Groups:
    """Return the groups of pairs by name; None is unknown.

    Examples
    --------
    >>> pair_groups(["A", None], ["B", "A"]).left
    array([ 0, -1], dtype=int32)
    """
    names = tuple(sorted({name for name in (*left, *right) if name is not None}))
    code = {None: UNKNOWN} | {name: i for i, name in enumerate(names)}
    sides = [np.array([code[name] for name in side], dtype=np.int32) for side in (left, right)]
    return Groups(names, sides[0], sides[1])


def new_id() -> str:
    """Return an id that nobody can guess and that sorts by time.

    >>> len(new_id())
    32
    """
    return f"{time.time_ns():016x}{secrets.randbits(64):016x}"


@dataclass(frozen=True)
class Verification:
    """What is said of one pair, as the answer has it.

    `clusters` are the regions of embedding space that the two images lie in, and `outside` whether
    each lies outside the population of the calibration; None where the model has none. Of evidence
    `at_bound` the model can say that it is at least that strong; None where it has no bounds.
    """

    id: str
    similarity: float
    score: float
    probability: float
    log_likelihood_ratio: float
    same: bool
    at_bound: bool | None
    point: OperatingPoint
    clusters: tuple[int, int] | None
    outside: tuple[bool, bool] | None
    model: str
    prior: float

    def as_json(self) -> dict[str, Any]:
        """Return the answer to a request."""
        return {
            **{name: value for name, value in vars(self).items() if name != "point"},
            "decision": "same" if self.same else "different",
            "operating_point": point_json(self.point),
            "out_of_population": None if self.outside is None else any(self.outside),
        }


def point_json(point: OperatingPoint) -> dict[str, Any]:
    """Return what an answer says of the operating point."""
    names = ("threshold", "on", "source", "fpr", "promised", "assumption")
    return {name: getattr(point, name) for name in names}


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What is said of the pairs of a request, one or many.

    `left` and `right` are their rows in ``judged.places``; `left_ids` and `right_ids` the templates
    of each pair, where its vectors are of some. `images` are numbers of the rows, the same for the
    same vector in any batch; None: this is a single pair, and no batch.
    """

    id: str
    judged: Judged
    left: Rows
    right: Rows
    point: OperatingPoint
    model: str
    prior: float
    left_ids: Sequence[str | None] | None = None
    right_ids: Sequence[str | None] | None = None
    images: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.left)

    def columns(self) -> dict[str, NDArray[Any] | None]:
        """Return the columns of the answer; None where the model has no population."""
        judged, places = self.judged, self.judged.places
        columns: dict[str, NDArray[Any] | None] = {
            "score": judged.score,
            "similarity": judged.similarity,
            "probability": judged.probability,
            "log_likelihood_ratio": judged.log_likelihood_ratio,
            "same": judged.same,
            "at_bound": judged.at_bound,
        }
        for name, values in (
            ("cluster", None if places is None else places.cluster),
            ("outside", None if places is None else places.outside),
        ):
            for side, rows in (("left", self.left), ("right", self.right)):
                columns[f"{side}_{name}"] = None if values is None else values[rows]
        return columns

    def pair(self) -> Verification:
        """Return what is said of the only pair."""
        places, left, right = self.judged.places, self.left[0], self.right[0]
        return Verification(
            self.id,
            **_numbers(self.judged, 0),
            point=self.point,
            clusters=places and (int(places.cluster[left]), int(places.cluster[right])),
            outside=places and (bool(places.outside[left]), bool(places.outside[right])),
            model=self.model,
            prior=self.prior,
        )


def _numbers(judged: Judged, row: int) -> dict[str, Any]:
    """Return what is said of one pair of many, as numbers of Python."""
    return {
        "similarity": float(judged.similarity[row]),
        "score": float(judged.score[row]),
        "probability": float(judged.probability[row]),
        "log_likelihood_ratio": float(judged.log_likelihood_ratio[row]),
        "same": bool(judged.same[row]),
        "at_bound": None if judged.at_bound is None else bool(judged.at_bound[row]),
    }


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
        # 2⁶⁴ / golden ratio: spreads bits that are close together (Fibonacci hashing).
        numbers = (numbers ^ part) * np.uint64(0x9E3779B97F4A7C15)
        numbers ^= numbers >> np.uint64(29)
    return (numbers >> np.uint64(2)).astype(np.int64)  # never −1, which is nobody


@dataclass(frozen=True)
class IdentificationCandidate:
    """One who may be meant: the template, what is said of the pair, and of all enrolled.

    `posterior` is the probability that this one, among all enrolled, is who came.
    """

    id: str
    similarity: float
    score: float
    probability: float
    log_likelihood_ratio: float
    same: bool
    at_bound: bool | None
    posterior: float


def posteriors(
    log_ratios: Float64,
    enrolled: int,
    enrolled_prior: float = 0.5,
    bounds: EvidenceBounds | None = None,
) -> tuple[Float64, float]:
    """Return how likely each candidate is who was seen, and how likely nobody enrolled is.

    The probability of a pair does not know how many are enrolled: of 10,000 strangers' templates
    some are likely to score high. Here each of the N enrolled is as likely beforehand, together
    `enrolled_prior` = π, and one person has one template:

        P(i) = (π/N) LRᵢ / ((1−π) + (π/N) Σⱼ LRⱼ),  P(nobody) = (1−π) / the same.

    Templates that were not judged, the least similar ones, count as the lower of `bounds`: no
    evidence against them is stronger. Without bounds they count as LR 0.

    Parameters
    ----------
    log_ratios : ndarray of shape (n_candidates,)
        Log-likelihood ratios, nats.
    enrolled : int
        N, at least 1.
    enrolled_prior : float
        π, between 0 and 1: how likely it is that whoever is seen is enrolled.
    bounds : EvidenceBounds, optional
        Those of the model.

    Examples
    --------
    >>> likely, nobody = posteriors(np.log([1000.0, 0.1]), enrolled=100)
    >>> likely.round(3), round(nobody, 3)
    (array([0.909, 0.   ]), 0.091)
    """
    # In logarithms: likelihood ratios of a certain pair overflow.
    share = np.log(enrolled_prior / max(enrolled, 1))
    each, none = share + log_ratios, np.log1p(-enrolled_prior)
    others, left = [], enrolled - len(log_ratios)
    if bounds is not None and left > 0:
        others = [share + np.log(left) + bounds.low]
    total = logsumexp([none, *each, *others])
    return np.exp(each - total), float(np.exp(none - total))


def rank_candidates(
    in_use: ModelInUse,
    probe: Vector,
    templates: Mapping[str, Vector],
    enrolled: int,
    enrolled_prior: float,
) -> tuple[list[IdentificationCandidate], tuple[float, bool | None]]:
    """Judge `probe` against templates; return candidates, highest score first, and P(nobody).

    And whether that rests on evidence at a bound: that for the likeliest candidate.
    """
    if not templates:
        return [], (1.0, False)
    names, rows = list(templates), np.arange(1, len(templates) + 1)
    both = in_use.embeddings(np.vstack([probe, *templates.values()]).astype(np.float32))
    judged = in_use.compare(both, np.zeros(len(rows), dtype=np.intp), rows)
    # They were counted first: one may have been enrolled meanwhile.
    likely, p_none = posteriors(
        judged.log_likelihood_ratio,
        max(enrolled, len(names)),
        enrolled_prior,
        in_use.model.about_.evidence,
    )
    order = np.lexsort([-judged.similarity, -judged.score])
    candidates = [
        IdentificationCandidate(names[i], **_numbers(judged, i), posterior=float(likely[i]))
        for i in order
    ]
    at_bound = judged.at_bound
    likeliest = None if at_bound is None else bool(at_bound[np.argmax(judged.log_likelihood_ratio)])
    return candidates, (p_none, likeliest)
