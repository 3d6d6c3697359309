"""A model file in use: read once, tried out, and then only ever replaced as a whole."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ModelFileError, ParameterError
from faircal.calibrators.prior import SHARE_FIGURE, shift_prior
from faircal.data import Embeddings, Groups
from faircal.data.columns import UNKNOWN
from faircal.methods import Method
from faircal.methods.classifier import FairCalClassifier
from faircal.methods.modelfile import read_model
from faircal.production.scoring.judging import Judge, Judged
from faircal.production.serving.settings import ServiceSettings

Rows = NDArray[np.intp]

#: Vectors that a model of no known dimension is tried out with.
_ANY_DIMENSION = 128


@dataclass(frozen=True, eq=False)
class ModelInUse:
    """A model in use. A request takes one, and keeps it until it has answered.

    Attributes
    ----------
    judge : Judge
    digest : str
        SHA-256 of the file.
    calibrated_at, prior : float
        Share of genuine pairs of the fit, and that probabilities are given for.
    """

    judge: Judge
    digest: str
    calibrated_at: float
    prior: float

    @classmethod
    def read(cls, settings: ServiceSettings) -> ModelInUse:
        """Read the model file and judge one pair with it, so that it is known to work, and warm."""
        model, blob = read_model(settings.model)
        if isinstance(model, FairCalClassifier):
            raise ModelFileError(
                f"{settings.model}: expected a model of pairs, found one of a classifier; "
                "fit one with 'faircal fit'"
            )
        if SHARE_FIGURE not in model.diagnostics_.figures:
            raise ModelFileError(
                f"{settings.model}: does not say at which share of genuine pairs it was fitted, "
                "as older ones don't; fit it again"
            )
        try:
            judge = Judge.of(model, settings.point, settings.prior)
        except ParameterError as error:
            raise ModelFileError(f"{settings.model}: {error}") from error
        share = judge.calibrated_at
        prior = share if settings.prior is None else settings.prior
        in_use = cls(judge, hashlib.sha256(blob).hexdigest(), share, prior)
        in_use.try_out()
        return in_use

    @property
    def model(self) -> Method:
        """The method."""
        return self.judge.model

    @cached_property
    def dimension(self) -> int | None:
        """Length of the embeddings; None where the model takes any."""
        return None if self.judge.space is None else self.judge.space.dimension

    @cached_property
    def normalize(self) -> bool:
        """Whether embeddings are scaled to unit length."""
        return True if self.judge.space is None else self.judge.space.normalize

    @property
    def needs_groups(self) -> bool:
        """Whether the groups of both images must come with each pair."""
        return bool(self.model.needs.groups_to_apply)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The model card as JSON."""
        from faircal.report.card import card_facts

        return card_facts(self.model)

    def at(self, prior: float | None) -> ModelInUse:
        """Return the same with probabilities for another share of genuine pairs."""
        if prior is None or prior == self.prior:
            return self
        return replace(self, prior=prior)

    def compare(
        self, embeddings: Embeddings, left: Rows, right: Rows, groups: Groups | None = None
    ) -> Judged:
        """Judge pairs of rows of `embeddings`; probabilities are for the share `prior`."""
        judged = self.judge(embeddings, left, right, groups)
        given = self.calibrated_at if self.judge.prior is None else self.judge.prior
        if self.prior == given:
            return judged
        # Not by another judge: that would have to get ready anew for every request.
        shifted = shift_prior(judged.probability, calibrated_at=given, prior=self.prior)
        same = self.judge.point.decide(judged.score, shifted)
        return replace(judged, probability=shifted, same=same)

    def embeddings(self, vectors: NDArray[Any]) -> Embeddings:
        """Return vectors, shape (n, d), float16 or float32, as the model takes them."""
        return Embeddings(vectors, self.normalize)

    def try_out(self) -> None:
        """Judge a pair of noise; a model that can't is refused now, not at the first request."""
        wide = self.dimension or _ANY_DIMENSION
        vectors = np.random.default_rng(0).standard_normal((2, wide)).astype(np.float32)
        groups = pair_groups(["?"], ["?"]) if self.needs_groups else None
        judged = self.compare(self.embeddings(vectors), np.array([0]), np.array([1]), groups)
        if not np.isfinite(judged.probability).all():
            raise ModelFileError("the model gives no probability to a pair; fit it again")


def pair_groups(left: list[str | None], right: list[str | None]) -> Groups:
    """Return the groups of pairs by name; None is unknown.

    Examples
    --------
    >>> pair_groups(["A", None], ["B", "A"]).left
    array([ 0, -1], dtype=int32)
    """
    names = tuple(sorted({name for name in (*left, *right) if name is not None}))
    code = {name: i for i, name in enumerate(names)}

    def codes(side: list[str | None]) -> NDArray[np.int32]:
        return np.array([UNKNOWN if n is None else code[n] for n in side], dtype=np.int32)

    return Groups(names, codes(left), codes(right))


def check_groups(in_use: ModelInUse, left: str | None, right: str | None) -> None:
    """Raise where the model needs groups that the request does not tell."""
    if in_use.needs_groups and (left is None or right is None):
        raise DataError(
            f"method {in_use.model.name} needs the groups of both images; "
            "give left_group and right_group"
        )
