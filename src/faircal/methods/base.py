"""The contract of every method: what it needs, what it may see, what it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from faircal.data import Dataset, Embeddings, Groups
from faircal.errors import DataError, NotFittedError, ParameterError

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Needs:
    """What a method needs, beyond scores and labels of calibration pairs.

    The command line, the benchmark and the table of properties read this; nothing asks for a
    method's name.
    """

    embeddings: bool = False
    groups_to_fit: bool = False
    groups_to_apply: bool = False
    training: bool = False
    extra: str | None = None

    def missing(self, data: Dataset) -> str | None:
        """Say what `data` lacks for this method, or None when it lacks nothing."""
        if self.embeddings and data.embeddings is None:
            return "it needs embeddings, and the data has scores only"
        if (self.groups_to_fit or self.groups_to_apply) and not data.images.attributes:
            return "it needs a sensitive attribute, and the data has none"
        return None


@dataclass(frozen=True)
class Claims:
    """What the paper's table of properties says a method achieves."""

    improves_accuracy: bool = False
    fairly_calibrated: bool = False
    predictive_equality: bool = False


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that a method may see of a dataset: what it declares to need, and nothing else.

    Attribute-free methods get no `groups`; nobody gets labels when predicting.
    """

    score: Float64
    score_range: tuple[float, float]
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    images: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    embeddings: Embeddings | None
    groups: Groups | None
    memo: Callable[[Any, Callable[[], Any]], Any]

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, eq=False)
class Output:
    """What a method says of each pair: `score` is what it ranks by, `probability` is P(genuine)."""

    score: Float64
    probability: Float64


@dataclass
class Diagnostics:
    """What happened in a fit that its user should know."""

    notes: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Add a sentence."""
        self.notes.append(text)


class Method(BaseEstimator, ABC):  # type: ignore[misc]
    """A way from scores to fair decisions: fitted on calibration pairs, applied to others.

    A new method is a subclass in one file, decorated with `faircal.methods.register`; it sets the
    four class variables, stores its parameters in ``__init__`` and fills in the abstract methods.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[Needs]
    claims: ClassVar[Claims] = Claims()
    #: Whether the parameter ``target_fpr`` fits the method to one false-positive rate.
    fitted_to_rate: ClassVar[bool] = False
    #: A yardstick that no deployment could use: set apart in tables, never the best.
    yardstick: ClassVar[bool] = False

    diagnostics_: Diagnostics
    score_range_: tuple[float, float]

    # ------------------------------------------------------------- for users

    def fit(self, data: Dataset) -> Self:
        """Fit on the pairs of `data`, which must hold both classes."""
        inputs = self._inputs(data, fitting=True)
        if inputs.genuine.all() or not inputs.genuine.any():
            raise DataError(
                f"{data.name}: expected genuine and imposter pairs, found one class only "
                f"({len(inputs)} pairs); add the other class"
            )
        if self.needs.groups_to_fit:
            self.attribute_ = self._attribute(data, fitting=True)
        self.diagnostics_ = Diagnostics()
        self.score_range_ = inputs.score_range
        try:
            self._fit(inputs)
        except BaseException:
            del self.score_range_  # half a fit is none
            raise
        return self

    def apply(self, data: Dataset) -> Output:
        """Return score and probability of each pair of `data`."""
        if not hasattr(self, "score_range_"):
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        if data.score_range != self.score_range_:
            raise ParameterError(
                f"{data.name}: the model was fitted on scores in {self.score_range_}, "
                f"these are in {data.score_range}; use the same score_range"
            )
        return self._apply(self._inputs(data, fitting=False))

    def predict_proba(self, data: Dataset) -> Float64:
        """Return P(genuine) of each pair, shape (n_pairs,)."""
        return self.apply(data).probability

    def decision_scores(self, data: Dataset) -> Float64:
        """Return what the method ranks by, shape (n_pairs,); higher is more alike."""
        return self.apply(data).score

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (no pickle); `faircal.load_model` reads it."""
        from faircal.methods.modelfile import save_model

        save_model(self, path)

    # ----------------------------------------------------- for those who add

    @abstractmethod
    def _fit(self, inputs: Inputs) -> None:
        """Set the fitted attributes (names end in ``_``)."""

    @abstractmethod
    def _apply(self, inputs: Inputs) -> Output:
        """Score pairs; `inputs.genuine` is empty here."""

    @abstractmethod
    def _get_state(self) -> dict[str, Any]:
        """Return the fitted state: arrays, numbers, text, lists of them."""

    @abstractmethod
    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore what `_get_state` gave."""

    def _attribute(self, data: Dataset, fitting: bool) -> str | None:
        """Return the attribute whose groups the method may see: when applying, the fitted one."""
        fitted: str | None = None if fitting else getattr(self, "attribute_", None)
        return fitted or getattr(self, "attribute", None) or data.default_attribute

    def _inputs(self, data: Dataset, fitting: bool) -> Inputs:
        needs = self.needs
        problem = needs.missing(data)
        if problem is not None:
            raise DataError(
                f"{data.name}: {self.name} cannot be used: {problem}; choose another method"
            )
        groups = None
        if needs.groups_to_fit if fitting else needs.groups_to_apply:
            groups = data.groups(self._attribute(data, fitting))
        return Inputs(
            score=data.scores,
            score_range=data.score_range,
            left=data.pairs.left,
            right=data.pairs.right,
            images=data.used_images() if needs.embeddings else np.empty(0, dtype=np.intp),
            genuine=data.genuine if fitting else np.empty(0, dtype=bool),
            embeddings=data.embeddings if needs.embeddings else None,
            groups=groups,
            memo=data.memo,
        )
