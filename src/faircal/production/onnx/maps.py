"""Calibrators as graphs: one map, or the maps of many sets side by side.

A calibrator that is to be exported says what its graph is by `exports_maps`; those of faircal do
so below. Maps of many sets are one table each: a pair finds the numbers of its set by gathering,
so a graph grows with the numbers of its model and with nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from faircal._base.errors import ParameterError
from faircal.calibrators import (
    BetaCalibrator,
    Calibrator,
    HistogramCalibrator,
    IsotonicCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from faircal.calibrators.base import MOST_LOG_ODDS
from faircal.methods.set_calibrators import SetCalibrators
from faircal.production.onnx.graph import DOUBLE, INTEGER, Graph, GraphValue, sigmoid

EPS = float(np.finfo(np.float64).eps)


class Maps(ABC):
    """The maps of one or many sets, all of one class and score range, in a graph.

    Parameters
    ----------
    graph : Graph
    fitted : sequence of Calibrator
        One for each set.
    """

    def __init__(self, graph: Graph, fitted: Sequence[Calibrator]) -> None:
        self.graph, self.fitted = graph, fitted
        self.score_range = fitted[0].score_range

    def probability(self, score: GraphValue, which: GraphValue | None = None) -> GraphValue:
        """Return P(genuine) of each score, (n,), by the map of the set `which`, (n,), or the only.

        Sets are whole numbers from 0.
        """
        return self._predict(score.clipped(*self.score_range), which).clipped(0.0, 1.0)

    def log_odds(self, score: GraphValue) -> GraphValue:
        """Return the log-odds of each score by the only map, (n,), between ±`MOST_LOG_ODDS`."""
        odds = self._log_odds(score.clipped(*self.score_range))
        return odds.clipped(-MOST_LOG_ODDS, MOST_LOG_ODDS)

    @abstractmethod
    def _predict(self, score: GraphValue, which: GraphValue | None) -> GraphValue:
        """Return probabilities of scores within the range."""

    def _log_odds(self, score: GraphValue) -> GraphValue:
        probability = self._predict(score, None).clipped(0.0, 1.0)
        return (probability / (1.0 - probability)).log()


M = TypeVar("M", bound=type[Maps])
_KINDS: dict[type[Calibrator], type[Maps]] = {}


def exports_maps(*calibrators: type[Calibrator]) -> Callable[[M], M]:
    """Say that a class of `Maps` is the graph of `calibrators` (use as a class decorator)."""

    def register(kind: M) -> M:
        _KINDS.update(dict.fromkeys(calibrators, kind))
        return kind

    return register


def make_maps(graph: Graph, fitted: Sequence[Calibrator]) -> Maps:
    """Return the graph of calibrators of one class."""
    kind = _KINDS.get(type(fitted[0]))  # not that of a parent: a child may predict otherwise
    if kind is None:
        raise ParameterError(
            f"calibrator {type(fitted[0]).__name__} has no graph: expected one of "
            f"{', '.join(sorted(one.__name__ for one in _KINDS))}; choose one of those, or say "
            "what its graph is with faircal.production.onnx.exports_maps"
        )
    return kind(graph, fitted)


def set_maps(graph: Graph, calibrators: SetCalibrators) -> Maps:
    """Return the graph of the calibrators of sets, (n_sets + 1); the last is the global one."""
    return make_maps(graph, [*calibrators.maps, calibrators.fallback])


@exports_maps(BetaCalibrator, TemperatureCalibrator, PlattCalibrator)
class LogisticMaps(Maps):
    """sigmoid(slopes · terms + intercept), with a row of coefficients for each set."""

    def __init__(self, graph: Graph, fitted: Sequence[Calibrator]) -> None:
        super().__init__(graph, fitted)
        rows = [one.coefficients for one in fitted if isinstance(one, LogisticCalibrator)]
        self.tables = [graph.constant(column, DOUBLE) for column in np.transpose(rows)]

    def _predict(self, score: GraphValue, which: GraphValue | None) -> GraphValue:
        return sigmoid(self._eta(score, which))

    def _log_odds(self, score: GraphValue) -> GraphValue:
        return self._eta(score, None)

    def _eta(self, score: GraphValue, which: GraphValue | None) -> GraphValue:
        # Without sets a table is a vector of one number, which goes with any score.
        *slopes, eta = (table if which is None else table.take(which) for table in self.tables)
        for slope, term in zip(slopes, self._terms(score), strict=True):
            eta = term * slope + eta
        return eta

    def _terms(self, score: GraphValue) -> tuple[GraphValue, ...]:
        """Return what the slopes are multiplied with, each (n,)."""
        kind = type(self.fitted[0])
        if kind is PlattCalibrator:
            return (score,)
        low, high = self.score_range
        # z is the score mapped onto [0, 1], a little away from both ends.
        z = ((score - low) / (high - low)).clipped(EPS, 1.0 - EPS)
        if kind is TemperatureCalibrator:
            return (z.log() - (1.0 - z).log(),)  # the logit
        return z.log(), -(1.0 - z).log()


class TableMaps(Maps):
    """Maps that look a score up: those of all sets in a row, and where each begins and ends."""

    def __init__(self, graph: Graph, fitted: Sequence[Calibrator]) -> None:
        super().__init__(graph, fitted)
        parts = [self._places(one) for one in fitted]
        lengths = np.array([len(places) for places, _ in parts])
        ends = np.cumsum(lengths)
        self.places, self.values = (
            graph.constant(np.concatenate(several), DOUBLE) for several in zip(*parts, strict=True)
        )
        self.starts, self.ends = (
            graph.constant(ends - lengths, INTEGER),
            graph.constant(ends, INTEGER),
        )
        # The steps of a binary search, unrolled: the longest table says how many suffice.
        self.steps = [1 << i for i in reversed(range(int(lengths.max()).bit_length()))]

    @staticmethod
    @abstractmethod
    def _places(fitted: Calibrator) -> tuple[np.ndarray, np.ndarray]:
        """Return places, ascending, and a value for each."""

    def _bounds(self, which: GraphValue | None) -> tuple[GraphValue, GraphValue]:
        """Return where the places of each pair's set begin and end."""
        if which is None:
            return self.starts, self.ends
        return self.starts.take(which), self.ends.take(which)

    def _last(
        self, score: GraphValue, start: GraphValue, end: GraphValue, *, below: bool
    ) -> GraphValue:
        """Return the last place at or `below` each score, or the first where there is none: (n,).

        Found by halving, in as many steps as the longest set needs; no table is made.
        """
        # `at` is one behind the place; it moves on for as long as the place there is low enough.
        at = start + score.cast(INTEGER) * 0  # of the scores' shape, also where bounds are of all
        for step in self.steps:
            ahead = at + step
            place = self.places.take((ahead - 1).least(end - 1))
            low_enough = place < score if below else place <= score
            at = ((ahead <= end) & low_enough).where(ahead, at)
        return (at - 1).most(start)


@exports_maps(HistogramCalibrator)
class HistogramMaps(TableMaps):
    """The value of the bin, whose upper edge belongs to it."""

    @staticmethod
    def _places(fitted: Calibrator) -> tuple[np.ndarray, np.ndarray]:
        state = fitted.get_state()
        return state["edges"][:-1], state["values"]

    def _predict(self, score: GraphValue, which: GraphValue | None) -> GraphValue:
        return self.values.take(self._last(score, *self._bounds(which), below=True))


@exports_maps(IsotonicCalibrator, SplineCalibrator)
class LinearMaps(TableMaps):
    """Linear between knots, constant beyond them."""

    @staticmethod
    def _places(fitted: Calibrator) -> tuple[np.ndarray, np.ndarray]:
        state = fitted.get_state()
        return state["knots"], state["values"]

    def _predict(self, score: GraphValue, which: GraphValue | None) -> GraphValue:
        start, end = self._bounds(which)
        lower = self._last(score, start, end, below=False)
        upper = (lower + 1).least(end - 1)
        place, value = self.places.take(lower), self.values.take(lower)
        width = self.places.take(upper) - place
        rise = (self.values.take(upper) - value) / (width > 0.0).where(width, 1.0)
        return rise * (score - place).most(0.0) + value
