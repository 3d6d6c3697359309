"""What trained methods share: recipes whose every value can be overridden, and the device.

A recipe is what a training depends on besides data and seed: sizes, losses, schedule. It needs no
PyTorch; `faircal.methods.training`, which does, is imported when networks are trained or used.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.calibrators import Calibrator, make_calibrator
from faircal.methods.base import Claims, Method, Needs, Output, check_names, check_truth
from faircal.methods.inputs import Inputs, Space, declared

if TYPE_CHECKING:
    from faircal.methods.training.session import TrainingSession


@dataclass(frozen=True)
class Recipe:
    """What a training depends on besides data and seed; its values are checked when it is made."""


R = TypeVar("R", bound=Recipe)


class TrainedMethod(Method, Generic[R]):
    """A method that trains networks, scores pairs with them, and calibrates the scores globally.

    Subclasses have a recipe for each preset. A parameter that is None takes its value from the
    preset; any other value overrides it.

    Attributes
    ----------
    recipe_ : Recipe
        The preset's, with what the parameters override.
    weights_ : list of ndarray
        What is needed to score pairs.
    calibrator_ : Calibrator
    """

    needs = Needs(embeddings=True, groups_to_fit=True, training=True, extra="torch")
    claims = Claims(predictive_equality=True)
    presets: ClassVar[Mapping[str, Any]]

    preset: str
    attribute: str | None
    calibrator: str | Calibrator
    device: str
    mixed_precision: bool
    random_state: int

    recipe_: R
    weights_: list[NDArray[np.float32]]

    def recipe(self) -> R:
        """Return the recipe of the preset, with what the parameters override."""
        if not isinstance(self.preset, str) or self.preset not in self.presets:
            hint = did_you_mean(str(self.preset), self.presets)
            raise ParameterError(f"preset: unknown preset {self.preset!r}; {hint}")
        base: R = self.presets[self.preset]
        given = {field.name: getattr(self, field.name) for field in fields(base)}
        # None is no value of any field of a recipe, so it can stand for the preset's.
        changes = {key: value for key, value in given.items() if value is not None}
        for key, value in changes.items():
            preset = getattr(base, key)
            if isinstance(value, Mapping) and isinstance(preset, Mapping):
                changes[key] = {**preset, **value}
        return replace(base, **changes)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return what each parameter is by default: what the default preset says."""
        values = super().defaults()
        return {**values, **vars(cls.presets[values["preset"]])}

    def check_parameters(self) -> None:
        """Raise `ParameterError` where a parameter's value cannot be; `fit` does this first."""
        super().check_parameters()
        self.recipe()
        check_flag("mixed_precision", self.mixed_precision)
        if not isinstance(self.device, str):
            raise ParameterError(
                f"device: expected auto, cpu or cuda, found {self.device!r}; give its name"
            )
        if self.device != "auto":
            from faircal.compute.device import choose_device

            choose_device(self.device)

    def _fit(self, inputs: Inputs) -> None:
        from faircal.compute.device import choose_device
        from faircal.methods.training.session import TrainingSession, describe, working_on

        self.space_ = Space.of(declared(inputs.embeddings, "embeddings"))
        self.recipe_ = self.recipe()
        device = choose_device(self.device)
        how = self.random_state, inputs.job, self.mixed_precision
        with working_on(device), TrainingSession(device, *how) as session:
            self.weights_, self.diagnostics_.figures = self._train(inputs, session)
        self.diagnostics_.note(f"trained on {describe(device)}", choice=True)
        # The score is no probability: one global map, as for the baseline.
        self.calibrator_ = self._new_calibrator()
        self.calibrator_.fit(self._score(inputs), inputs.genuine)

    def _apply(self, inputs: Inputs) -> Output:
        score = self._score(inputs)
        return Output(score, self.calibrator_.predict(score))

    @abstractmethod
    def _train(
        self, inputs: Inputs, session: TrainingSession
    ) -> tuple[list[NDArray[np.float32]], dict[str, float]]:
        """Return what is needed to score pairs, and figures of how the training went."""

    @abstractmethod
    def _score(self, inputs: Inputs) -> NDArray[np.float64]:
        """Return the score of each pair."""

    @abstractmethod
    def _calibrated_range(self) -> tuple[float, float]:
        """Return the range that the calibrator takes the score to lie in."""

    def _new_calibrator(self) -> Calibrator:
        return make_calibrator(self.calibrator, self._calibrated_range())

    def _get_state(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute_,
            "dimension": self.space_.dimension,
            "normalize": self.space_.normalize,
            "recipe": asdict(self.recipe_),
            **{f"weights.{i}": array for i, array in enumerate(self.weights_)},
            **prefixed("calibrator", self.calibrator_.get_state()),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        (self.attribute_,) = check_names("attribute", [state["attribute"]])
        normalize = check_truth("normalize", state["normalize"])
        self.space_ = Space(int(state["dimension"]), normalize)
        # A later version's presets may differ, and so may the devices of another machine.
        self.recipe_ = type(self.recipe())(**{k: _fixed(v) for k, v in state["recipe"].items()})
        self.device = "auto"
        weights = unprefixed("weights", state)
        self.weights_ = [np.asarray(weights[str(i)], np.float32) for i in range(len(weights))]
        shapes = [array.shape for array in self.weights_]
        if shapes != self._shapes():
            raise DataError(f"weights: expected shapes {self._shapes()}, found {shapes}")
        self.calibrator_ = self._new_calibrator().set_state(unprefixed("calibrator", state))

    @abstractmethod
    def _shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes that `weights_` must have."""


def _fixed(value: Any) -> Any:
    """Return lists, as JSON has them, as tuples."""
    return tuple(value) if isinstance(value, list) else value


# ---------------------------------------------------- checks of a recipe's values


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number, true and false not counted."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Real) and math.isfinite(value)


def check_number(name: str, value: Any, least: float) -> None:
    """Raise `ParameterError` unless `value` is a finite number of `least` or more."""
    if not is_number(value) or value < least:
        raise ParameterError(f"{name}: expected a number of {least:g} or more, found {value!r}")


def check_share(name: str, value: Any) -> None:
    """Raise `ParameterError` unless `value` is a number from 0 to below 1."""
    if not is_number(value) or not 0 <= value < 1:
        raise ParameterError(f"{name}: expected a number of 0 or more, below 1, found {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise `ParameterError` unless `value` is true or false."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: expected true or false, found {value!r}")


def check_list(name: str, value: object) -> Sequence[Any]:
    """Return `value`; raise `ParameterError` unless it is a list or a tuple."""
    if not isinstance(value, list | tuple):
        raise ParameterError(f"{name}: expected a list of numbers, found {value!r}")
    return value
