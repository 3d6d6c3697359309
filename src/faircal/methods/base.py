"""The contract of every method: what it needs, what it may see, what it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from faircal.calibrators import make_calibrator
from faircal.data import Dataset, Embeddings, Groups, Memo
from faircal.errors import DataError, NotFittedError, ParameterError
from faircal.metrics import ThresholdRule
from faircal.registry import check_whole, did_you_mean

Float64 = NDArray[np.float64]
T = TypeVar("T")


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

    def missing(self, data: Dataset, attribute: str | None) -> str | None:
        """Say what `data` lacks for this method, or None when it lacks nothing.

        `attribute` is the one whose groups are to be used, None where there is none.
        """
        if self.embeddings and data.embeddings is None:
            return "it needs embeddings, and the data has scores only"
        if (self.groups_to_fit or self.groups_to_apply) and attribute is None:
            return f"it needs groups, and {data.why_no_groups()}"
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
    memo: Memo

    def __len__(self) -> int:
        return len(self.score)

    def declared_embeddings(self) -> Embeddings:
        """Return the embeddings; an error where the method did not declare to need them."""
        return _declared(self.embeddings, "embeddings")

    def declared_groups(self) -> Groups:
        """Return the groups; an error where the method did not declare to need them."""
        return _declared(self.groups, "groups")


def _declared(given: T | None, what: str) -> T:
    if given is None:
        raise DataError(f"the method uses {what} without a word in its class variable 'needs'")
    return given


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


#: Parameters that are counts, wherever a method takes them, and the least they may be.
_LEAST = {"n_clusters": 1, "n_init": 1, "random_state": 0, "min_pairs": 1}


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

    _fitted: bool = False
    diagnostics_: Diagnostics
    score_range_: tuple[float, float]

    # ------------------------------------------------------------- for users

    def fit(self, data: Dataset) -> Self:
        """Fit on the pairs of `data`, which must hold both classes."""
        self._fitted = False  # half a fit is none
        self.check_parameters()
        inputs = self._inputs(data, fitting=True)
        if inputs.genuine.all() or not inputs.genuine.any():
            raise DataError(
                f"{data.where}: expected genuine and imposter pairs, found one class only "
                f"({len(inputs)} pairs); add the other class"
            )
        if self.needs.groups_to_fit:
            self.attribute_ = self._attribute(data, fitting=True)
        self.diagnostics_ = Diagnostics()
        self.score_range_ = inputs.score_range
        self._fit(inputs)
        self._fitted = True
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    def apply(self, data: Dataset) -> Output:
        """Return score and probability of each pair of `data`."""
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} is not fitted yet; call fit first")
        if data.score_range != self.score_range_:
            raise ParameterError(
                f"{data.where}: the model was fitted on scores in {self.score_range_}, "
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

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be; `fit` does this first."""
        parameters = self.get_params(deep=False)
        for name, least in _LEAST.items():
            if name in parameters:
                check_whole(name, parameters[name], least)
        if "calibrator" in parameters:
            make_calibrator(parameters["calibrator"], (-1.0, 1.0))
        if "target_fpr" in parameters:
            rate = parameters["target_fpr"]
            if not isinstance(rate, int | float) or not 0 < rate < 1:
                raise ParameterError(f"target_fpr: expected a rate between 0 and 1, found {rate!r}")
        rule = parameters.get("threshold_rule", "nearest")
        if rule not in get_args(ThresholdRule):
            hint = did_you_mean(str(rule), get_args(ThresholdRule))
            raise ParameterError(f"threshold_rule: unknown rule {rule!r}; {hint}")

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
        attribute = self._attribute(data, fitting)
        problem = needs.missing(data, attribute)
        if problem is not None:
            raise DataError(
                f"{data.where}: {self.name} cannot be used: {problem}; choose another method"
            )
        groups = None
        if needs.groups_to_fit if fitting else needs.groups_to_apply:
            groups = data.groups(attribute)
        return Inputs(
            score=data.scores,
            score_range=data.score_range,
            left=data.pairs.left,
            right=data.pairs.right,
            images=data.used_images() if needs.embeddings else np.empty(0, dtype=np.intp),
            genuine=data.genuine if fitting else np.empty(0, dtype=bool),
            embeddings=data.embeddings if needs.embeddings else None,
            groups=groups,
            memo=data.memo(),
        )
