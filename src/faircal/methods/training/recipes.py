"""What a training depends on besides data and seed: sizes, losses, schedule. No PyTorch here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from faircal._base.errors import ParameterError
from faircal._base.registry import check_whole

#: A hidden layer wider than this many times the input is taken for a number of units.
_WIDEST = 64


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


def _check_list(name: str, value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ParameterError(f"{name}: expected a list of numbers, found {value!r}")
    return value


@dataclass(frozen=True)
class ComparisonRecipe:
    """How FTC's network is made, trained and used.

    Parameters
    ----------
    hidden : tuple of float
        Hidden layers, as multiples of the embedding's length: the authors kept these ratios.
    dropout : float
    fairness : float
        λ: the loss is (1 − λ) cross-entropy + λ individual fairness.
    epochs, batch_size : int
    learning_rate, weight_decay : float
        Of Adam.
    dropout_when_scoring : bool
        Whether dropout stays on when pairs are scored.
    calibrated_range : (float, float)
        The range that the calibrator takes the score to lie in.
    """

    hidden: tuple[float, ...]
    dropout: float
    fairness: float
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    dropout_when_scoring: bool
    calibrated_range: tuple[float, float]

    def __post_init__(self) -> None:
        for multiple in _check_list("hidden", self.hidden):
            if not is_number(multiple) or not 0 < multiple <= _WIDEST:
                raise ParameterError(
                    "hidden: expected multiples of the embedding's length, each above 0 and at "
                    f"most {_WIDEST}, found {multiple!r}; (4, 4) makes two layers of 2048 for 512"
                )
        check_share("dropout", self.dropout)
        if not is_number(self.fairness) or not 0 <= self.fairness <= 1:
            raise ParameterError(
                f"fairness: expected a number from 0 to 1, found {self.fairness!r}"
            )
        check_whole("epochs", self.epochs, 1)
        check_whole("batch_size", self.batch_size, 1)
        check_number("learning_rate", self.learning_rate, 0)
        check_number("weight_decay", self.weight_decay, 0)
        check_flag("dropout_when_scoring", self.dropout_when_scoring)
        limits = _check_list("calibrated_range", self.calibrated_range)
        numbers = len(limits) == 2 and all(map(is_number, limits))
        if not numbers or not limits[0] <= 0 < 1 <= limits[1]:
            raise ParameterError(
                "calibrated_range: expected (low, high) around the score's [0, 1], "
                f"found {self.calibrated_range!r}"
            )

    def sizes(self, dimension: int) -> list[int]:
        """Return the sizes of all layers for embeddings of length `dimension`."""
        return [dimension, *(max(round(m * dimension), 1) for m in self.hidden), 2]


@dataclass(frozen=True)
class DebiasingRecipe:
    """How the networks of AGENDA, PASS and MultiPASS are made and trained.

    Parameters
    ----------
    width : int
        Length of the new embeddings.
    discriminator : tuple of int
        Hidden layers of a discriminator.
    n_discriminators : int or mapping from attribute to int
        Size of the ensemble of an attribute. Those that a mapping does not name keep the preset's,
        or have 2.
    identity_epochs : int
        Stage 1: the new embeddings and a classifier learn who is who.
    episodes : int
        How often stages 2 to 4 are passed through.
    restart_every, discriminator_epochs : int
        Stage 2: every so many episodes new discriminators learn the attribute, for so many epochs.
    debias_epochs : int
        Stage 3: the new embeddings learn who is who and to leave the discriminators ignorant.
    debias_weight : float
        λ: weight of the latter.
    update_epochs : int
        Stage 4: one discriminator of each ensemble learns on, for so many epochs at most.
    stop_at : float
        Accuracy on the validation images above which a discriminator learns no further.
    stop_together : bool
        Whether with several attributes all discriminators of a stage 4 go on until all are above.
    identity_rate, discriminator_rate, debias_rate, update_rate : float
        Adam's learning rate in stages 1 to 4.
    batch_size : int
    validation : float
        Share of the images that is kept from training, to measure discriminators on.
    squash : bool
        Whether discriminators end in softmax(sigmoid(·)), of which the cross-entropy takes a
        softmax once more.
    """

    width: int
    discriminator: tuple[int, ...]
    n_discriminators: int | Mapping[str, int]
    identity_epochs: int
    episodes: int
    restart_every: int
    discriminator_epochs: int
    debias_epochs: int
    debias_weight: float
    update_epochs: int
    stop_at: float
    stop_together: bool
    identity_rate: float
    discriminator_rate: float
    debias_rate: float
    update_rate: float
    batch_size: int
    validation: float
    squash: bool

    def __post_init__(self) -> None:
        for units in _check_list("discriminator", self.discriminator):
            check_whole("discriminator", units, 1)
        counts = self.n_discriminators
        for name in counts if isinstance(counts, Mapping) else ():
            if not isinstance(name, str):
                raise ParameterError(
                    f"n_discriminators: expected names of attributes, found {name!r}"
                )
        for count in counts.values() if isinstance(counts, Mapping) else [counts]:
            check_whole("n_discriminators", count, 1)
        for name in ("width", "restart_every", "batch_size"):
            check_whole(name, getattr(self, name), 1)
        for name in ("identity", "discriminator", "debias", "update"):
            check_whole(f"{name}_epochs", getattr(self, f"{name}_epochs"), 0)
            check_number(f"{name}_rate", getattr(self, f"{name}_rate"), 0)
        check_whole("episodes", self.episodes, 0)
        check_number("debias_weight", self.debias_weight, 0)
        check_share("validation", self.validation)
        if not is_number(self.stop_at) or not 0 <= self.stop_at <= 1:
            raise ParameterError(
                f"stop_at: expected an accuracy from 0 to 1, found {self.stop_at!r}"
            )
        check_flag("stop_together", self.stop_together)
        check_flag("squash", self.squash)

    def ensemble(self, attribute: str) -> int:
        """Return the number of discriminators of `attribute`."""
        counts = self.n_discriminators
        return counts.get(attribute, 2) if isinstance(counts, Mapping) else counts
