"""Several features of the same pairs, audited together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal.data import Dataset
from faircal.evaluation.audit.stream import Auditor
from faircal.metrics.measures import RATES

if TYPE_CHECKING:
    from faircal.methods import Method
    from faircal.methods.base import Output


class PairSource(Protocol):
    """What must be known of pairs before they come."""

    @property
    def name(self) -> str:
        """Shown in tables and reports."""

    @property
    def score_range(self) -> tuple[float, float]:
        """The range of scores."""

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute`, in order."""


class Auditors:
    """An auditor for each feature of pairs that come in parts.

    Parameters
    ----------
    each : list of Auditor
        Their label ``feature`` says what of.
    apply : callable, optional
        Gives the output of a model for a part; without it parts are measured with their own scores.
    """

    def __init__(
        self, each: list[Auditor], apply: Callable[[Dataset], Output] | None = None
    ) -> None:
        self.each, self._apply = each, apply

    @classmethod
    def of(
        cls,
        pairs: PairSource,
        samples: Mapping[str, NDArray[np.float64] | None],
        *,
        model: Method | None = None,
        attribute: str | None = None,
        threshold: float | None = None,
        rates: Sequence[float] = RATES,
    ) -> Auditors:
        """Start with nothing counted.

        Parameters
        ----------
        pairs : Pairs
        samples : mapping from feature to ndarray or None
            Some of the scores of each feature that is to be audited, where they are ready-made.
        model, attribute, threshold, rates
            As for `audit_stream`.
        """
        names = () if attribute is None else pairs.group_names(attribute)
        each = [
            Auditor(
                attribute=attribute,
                groups=names,
                threshold=threshold,
                rates=rates,
                score_range=pairs.score_range,
                sample=sample,
                dataset=pairs.name,
                feature=feature,
                method="" if model is None else model.name,
            )
            for feature, sample in samples.items()
        ]
        return cls(each, None if model is None else model.apply)

    def add(self, part: Dataset) -> None:
        """Count the pairs of `part`."""
        self.count(self.scored(part))

    def scored(self, part: Dataset) -> list[tuple[Dataset, Output | None]]:
        """Return `part` with each feature in use, and with what the model says of it."""
        views = [part.select(auditor.labels["feature"]) for auditor in self.each]
        return [(view, None if self._apply is None else self._apply(view)) for view in views]

    def count(self, scored: Sequence[tuple[Dataset, Output | None]]) -> None:
        """Count what `scored` gave."""
        for auditor, (view, output) in zip(self.each, scored, strict=True):
            auditor.add(view, output)

    def merge(self, other: Auditors) -> None:
        """Add what others, with the same settings, have counted."""
        for own, more in zip(self.each, other.each, strict=True):
            own.merge(more)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what was counted so far as JSON and arrays."""
        states: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, auditor in enumerate(self.each):
            state, own = auditor.state()
            states.append(state)
            arrays |= prefixed(str(i), own)
        return {"auditors": states}, arrays

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        for i, (auditor, told) in enumerate(zip(self.each, header["auditors"], strict=True)):
            auditor.restore(told, unprefixed(str(i), arrays))
