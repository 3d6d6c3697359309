"""FTC: fair template comparison, a trained network in place of the cosine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import ParameterError
from faircal._base.registry import check_integer
from faircal.calibrators import Calibrator
from faircal.data import Dataset
from faircal.methods.inputs import Inputs, declared
from faircal.methods.trained import (
    Recipe,
    TrainedMethod,
    check_flag,
    check_list,
    check_number,
    check_share,
    is_number,
)

if TYPE_CHECKING:
    from faircal.methods.training.session import TrainingSession

#: A hidden layer wider than this many times the input is taken for a number of units.
_WIDEST = 64


@dataclass(frozen=True)
class ComparisonRecipe(Recipe):
    """How FTC's network is made, trained and used.

    Its fields are `FTC`'s parameters of the same names.
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
        for multiple in check_list("hidden", self.hidden):
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
        check_integer("epochs", self.epochs, 1)
        check_integer("batch_size", self.batch_size, 1)
        check_number("learning_rate", self.learning_rate, 0)
        check_number("weight_decay", self.weight_decay, 0)
        check_flag("dropout_when_scoring", self.dropout_when_scoring)
        limits = check_list("calibrated_range", self.calibrated_range)
        numbers = len(limits) == 2 and all(map(is_number, limits))
        if not numbers or not limits[0] <= 0 < 1 <= limits[1]:
            raise ParameterError(
                "calibrated_range: expected (low, high) around the score's [0, 1], "
                f"found {self.calibrated_range!r}"
            )

    def sizes(self, dimension: int) -> list[int]:
        """Return the sizes of all layers for embeddings of length `dimension`."""
        return [dimension, *(max(round(m * dimension), 1) for m in self.hidden), 2]


# "paper" is what the paper says, "paper-code" what its authors ran, where they differ.
_PAPER = ComparisonRecipe(
    hidden=(4, 4),
    dropout=0.3,
    fairness=0.5,
    epochs=50,
    batch_size=200,
    learning_rate=1e-3,
    weight_decay=1e-3,
    dropout_when_scoring=False,
    calibrated_range=(0.0, 1.0),
)


@dataclass(eq=False, repr=False)
class FTC(TrainedMethod[ComparisonRecipe]):
    """Score a pair by a network that sees |z₁ − z₂| and is trained to treat groups alike.

    The loss is (1 − λ) cross-entropy + λ individual fairness: outputs of pairs with the same label
    should be the same whatever their groups. Cross-group pairs count in the cross-entropy only. One
    global calibrator turns the network's probability of "same" into one that holds.

    Parameters
    ----------
    preset : {"paper", "paper-code"}
        ``paper``: as the text says. ``paper-code``: what its authors ran; one hidden layer more,
        dropout still on when pairs are scored, and a calibrator that takes the score to lie in
        [−1, 1]. Parameters that are None take the preset's values.
    attribute : str, optional
        Which attribute makes the groups (``a+b`` crosses); all columns crossed by default.
    calibrator : str or Calibrator
    hidden : tuple of float
        Hidden layers, as multiples of the embedding's length.
    dropout : float
    fairness : float
        λ.
    epochs, batch_size : int
    learning_rate, weight_decay : float
    dropout_when_scoring : bool
    calibrated_range : (float, float)
    device : str
        ``auto`` is a GPU where there is one.
    mixed_precision : bool
        Multiply in bfloat16 when training.
    random_state : int
        The same seed on the same device gives the same model.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> model = faircal.FTC(epochs=2, hidden=(0.5,), attribute="ethnicity").fit(cal)
    >>> model.predict_proba(test).shape == (len(test),)
    True
    """

    name = "ftc"
    title = "FTC"
    presets: ClassVar = {
        "paper": _PAPER,
        "paper-code": replace(
            _PAPER, hidden=(2, 4, 4), dropout_when_scoring=True, calibrated_range=(-1.0, 1.0)
        ),
    }

    preset: str = "paper"
    attribute: str | None = None
    calibrator: str | Calibrator = "beta"
    hidden: tuple[float, ...] | None = None
    dropout: float | None = None
    fairness: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    dropout_when_scoring: bool | None = None
    calibrated_range: tuple[float, float] | None = None
    device: str = "auto"
    mixed_precision: bool = False
    random_state: int = 0

    @classmethod
    def unusable_reason(
        cls, data: Dataset, attribute: str | None, fitting: bool = True
    ) -> str | None:
        """Say why the method can't be used on the pairs of `data`, or None when it can."""
        missing = super().unusable_reason(data, attribute, fitting)
        if missing is not None or not fitting or not len(data):
            return missing
        if not (data.groups(attribute).pair >= 0).any():
            return f"it needs pairs within a group of {attribute}, and there is none"
        return None

    def _train(
        self, inputs: Inputs, session: TrainingSession
    ) -> tuple[list[NDArray[np.float32]], dict[str, float]]:
        from faircal.methods.training.comparison import train

        groups = declared(inputs.groups, "groups")
        outside = int((groups.pair < 0).sum())
        if outside:
            self.diagnostics_.note(
                f"{outside} of {len(inputs)} pairs are within no group: they count in the "
                "cross-entropy and not in the fairness"
            )
        pairs = *inputs.positions(), inputs.genuine, groups.pair
        return train(session, self.recipe_, inputs.vectors(), *pairs, len(groups.names))

    def _score(self, inputs: Inputs) -> NDArray[np.float64]:
        from faircal.methods.training.comparison import score

        recipe = self.recipe_
        return score(
            self.weights_,
            inputs.vectors(self.space_),
            *inputs.positions(),
            # Its authors never left training mode: in ``paper-code`` dropout is on here, too.
            dropout=recipe.dropout if recipe.dropout_when_scoring else 0.0,
            seed=self.random_state,
            device=self.device,
        )

    def _calibrated_range(self) -> tuple[float, float]:
        low, high = self.recipe_.calibrated_range
        return float(low), float(high)

    def _shapes(self) -> list[tuple[int, ...]]:
        sizes = self.recipe_.sizes(self.space_.dimension)
        return [shape for a, b in pairwise(sizes) for shape in ((b, a), (b,))]
