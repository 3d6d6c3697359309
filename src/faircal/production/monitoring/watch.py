"""Watching a model in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal.methods import Method
from faircal.model import Population
from faircal.production.monitoring import calibration
from faircal.production.monitoring.comparing import CalibrationShares, CountLayout, Window
from faircal.production.monitoring.distance import Tolerance
from faircal.production.monitoring.findings import NAMES, Verdict, finding, summary
from faircal.production.monitoring.pairs_in_use import (
    PairArrays,
    PairsInUse,
    check_pairs,
    count_pairs,
)
from faircal.production.monitoring.shares import Int64
from faircal.production.monitoring.windows import WindowLadder, WindowRecord

State = dict[str, NDArray[Any] | float | int | str]

#: Pairs, and labels, in the smallest block.
BLOCK, LABELS = 500, 50
#: Pairs that are kept by themselves before they are counted.
_BUFFER = 512
#: A block that is never full.
_ENDLESS = 1 << 62
_VERSION = 1


@dataclass(eq=False)
class Watch:
    """Counts what a model in use says, and tells when it is not as in calibration any more.

    Four things are watched: which clusters images fall into, scores, images out of the population,
    and probabilities against labels where some come in. The chance of any alarm while nothing has
    changed but chance, and the share of genuine pairs, is at most `false_alarms`: over all of them,
    however long one watches, and however often `verdict` is asked. Not safe for several threads.

    Pairs are taken to come in the order of time: recent windows of many lengths are looked at, so
    that a change shows soon after a long quiet time. For tables in no such order, sorted perhaps,
    ``in_order=False`` counts all pairs as one and looks once, when `verdict` is asked; the rate is
    then that of one verdict.

    Attributes
    ----------
    population : Population
        What pairs are held against.
    false_alarms : float
    tolerance : Tolerance
        An alarm says that a distance is surely larger than that.
    in_order : bool
    pairs, labels : int
        How many were seen.

    Examples
    --------
    >>> import faircal
    >>> from faircal.production.monitoring import survey
    >>> cal, test = faircal.simulate("small", seed=0, people=1000).split(test_fold=5)
    >>> model = faircal.Baseline().fit(cal)
    >>> population = survey(model, cal)
    >>> watch = Watch.of(model)
    >>> said = model.apply(test)
    >>> watch.add(PairsInUse(said.score, said.probability))
    >>> watch.verdict().due
    False
    >>> another_camera = np.clip(said.score + 0.1 * ~test.genuine, -1, 1)
    >>> watch.add(PairsInUse(another_camera, said.probability))
    >>> [found.name for found in watch.verdict().findings if found.alarm]
    ['scores']
    """

    population: Population
    false_alarms: float = 0.01
    tolerance: Tolerance = field(default_factory=Tolerance)
    in_order: bool = True
    pairs: int = 0
    labels: int = 0
    reference: CalibrationShares = field(init=False)
    _ladder: WindowLadder = field(init=False)
    _label_ladder: WindowLadder = field(init=False)
    _part: Int64 = field(init=False)
    _label_part: Int64 = field(init=False)
    _waiting: list[PairsInUse] = field(init=False, default_factory=list)
    _waiting_pairs: int = field(init=False, default=0)
    _records: dict[str, WindowRecord] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        rate = self.false_alarms
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
            raise ParameterError(f"false_alarms: expected a rate between 0 and 1, found {rate!r}")
        self.reference = CalibrationShares(self.population)
        size = CountLayout.of(self.population).size
        self._ladder, self._part = WindowLadder(size), np.zeros(size, np.int64)
        self._label_ladder = WindowLadder(calibration.SIZE)
        self._label_part = np.zeros(calibration.SIZE, np.int64)

    @classmethod
    def of(
        cls,
        model: Method,
        *,
        false_alarms: float = 0.01,
        tolerance: Tolerance | None = None,
        in_order: bool = True,
    ) -> Watch:
        """Begin to watch `model`, which must know its population (`faircal.survey`).

        Raises
        ------
        DataError
            Where it does not.
        """
        return cls(_population_of(model), false_alarms, tolerance or Tolerance(), in_order)

    # ------------------------------------------------------------------ counting

    def add(self, pairs: PairsInUse) -> None:
        """Take note of pairs, in the order they came."""
        check_pairs(pairs, len(self.population.region))
        if not len(pairs):
            return
        self._waiting.append(pairs)
        self._waiting_pairs += len(pairs)
        if self._waiting_pairs >= _BUFFER:
            self._count()

    def _count(self) -> None:
        if not self._waiting:
            return
        columns = PairArrays.join(self._waiting, seed=self.pairs)
        self._waiting, self._waiting_pairs = [], 0
        size = BLOCK if self.in_order else _ENDLESS
        blocks = count_pairs(columns, self.population, self.pairs, size)
        self.pairs += len(columns)
        self._part = self._push(self._ladder, self._part, blocks, self.pairs, size, self._look)

    def feedback(self, probability: Any, genuine: Any, person: Any = None) -> None:
        """Take note of labels.

        Parameters
        ----------
        probability : array-like of float in [0, 1], shape (n,)
            P(genuine) as it was told to users: at the share of genuine pairs in use.
        genuine : array-like of bool, shape (n,)
            What turned out.
        person : array-like of int64, shape (n,), optional
            Number of a person of the pair, −1 where unknown: labels of one are not independent.
        """
        stated = np.atleast_1d(np.asarray(probability, np.float64))
        turned_out = np.atleast_1d(np.asarray(genuine))
        who = None if person is None else np.atleast_1d(np.asarray(person)).astype(np.int64)
        if stated.ndim != 1 or not ((stated >= 0) & (stated <= 1)).all():  # NaN is neither
            raise DataError("probability: expected numbers from 0 to 1, one per label")
        for name, other in (("genuine", turned_out), ("person", who)):
            if other is not None and other.shape != stated.shape:
                raise DataError(
                    f"{name}: expected {len(stated)} values, one per label, found {other.shape}"
                )
        if not np.isin(turned_out, (0, 1)).all():
            raise DataError("genuine: expected true or false for each label")
        if not len(stated):
            return
        # Labels of one call have no order: sorted ones would look like a change.
        order = np.random.default_rng(self.labels).permutation(len(stated))
        stated, turned_out = stated[order], turned_out[order].astype(bool)
        who = None if who is None else who[order]
        size = LABELS if self.in_order else _ENDLESS
        blocks = calibration.count_labels(stated, turned_out, who, self.labels, size)
        self.labels += len(stated)
        self._label_part = self._push(
            self._label_ladder, self._label_part, blocks, self.labels, size, self._look_at_labels
        )

    @staticmethod
    def _push(
        ladder: WindowLadder,
        part: Int64,
        blocks: Int64,
        counted: int,
        size: int,
        look: Callable[[WindowRecord], None],
    ) -> Int64:
        """Push blocks that are full, look where it is due; return the one that is not full yet."""
        blocks[0] += part
        full = len(blocks) - (counted % size != 0)
        for block in blocks[:full]:
            for due in ladder.push(block):
                look(WindowRecord(due.end * size, due.blocks * size, due.share, due.counts))
        return blocks[-1].copy() if full < len(blocks) else np.zeros_like(part)

    def _look(self, record: WindowRecord) -> None:
        window = Window.of(self.reference, record.counts, self.tolerance)
        self._keep("scores", record, window.scores().beyond.p_value)
        if 2 * window.placed >= record.length:
            self._keep("clusters", record, window.clusters().beyond.p_value)
        if 2 * window.flagged >= record.length:
            self._keep("outside", record, window.outside().beyond.p_value)

    def _look_at_labels(self, record: WindowRecord) -> None:
        labels = calibration.Labels.of(record.counts, self.tolerance)
        if labels.enough:
            self._keep("calibration", record, labels.compare()[0].p_value)

    def _keep(self, name: str, record: WindowRecord, p_value: float) -> None:
        """Keep the first look that raises the alarm; before it, the latest of the longest."""
        before = self._records.get(name)
        if before is not None and before.alarm:
            return
        alarm = p_value <= record.level(name, self.false_alarms)
        if alarm or before is None or record.replaces(before):
            self._records[name] = record.with_alarm(alarm)

    # ------------------------------------------------------------------- telling

    def verdict(self) -> Verdict:
        """Say what was found so far; can be asked at any time."""
        self._count()
        if not self.in_order:
            self._records = {}
            if self.pairs >= BLOCK:
                self._look(WindowRecord(self.pairs, self.pairs, 1.0, self._part))
            if self.labels >= LABELS:
                self._look_at_labels(WindowRecord(self.labels, self.labels, 1.0, self._label_part))
        findings = tuple(finding(name, self._records.get(name), self) for name in NAMES)
        due = any(each.alarm for each in findings)
        return Verdict(due, findings, self.pairs, self.labels, summary(findings, self.pairs))

    # ------------------------------------------------------------------- keeping

    def get_state(self) -> State:
        """Return all that `restore` needs: arrays of counts and a few numbers, nothing by pair."""
        self._count()
        state: State = {
            "version": _VERSION,
            "pairs": self.pairs,
            "labels": self.labels,
            "false_alarms": float(self.false_alarms),
            "in_order": int(self.in_order),
            "part": self._part,
            "label_part": self._label_part,
        }
        tolerance = {key: float(value) for key, value in asdict(self.tolerance).items()}
        state |= prefixed("tolerance", tolerance)
        for key, ladder in (("ladder", self._ladder), ("label_ladder", self._label_ladder)):
            state |= prefixed(key, ladder.get_state())
        for name, record in self._records.items():
            state |= prefixed(f"record.{name}", record.get_state())
        return state

    @classmethod
    def restore(cls, model: Method, state: Mapping[str, Any]) -> Watch:
        """Go on from `get_state`; the model must be the same.

        Raises
        ------
        DataError
            Where the state is not of a watch of this model.
        """
        population = _population_of(model)
        try:
            return cls._restored(population, state)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise DataError(
                "monitoring state: expected what a watch of this model keeps; begin a new watch"
            ) from error

    @classmethod
    def _restored(cls, population: Population, state: Mapping[str, Any]) -> Watch:
        if int(state["version"]) != _VERSION:
            raise ValueError("another version")
        tolerance = Tolerance(**unprefixed("tolerance", state))
        in_order = bool(state["in_order"])
        watch = cls(population, float(state["false_alarms"]), tolerance, in_order)
        watch.pairs, watch.labels = int(state["pairs"]), int(state["labels"])
        size = CountLayout.of(population).size
        watch._ladder = WindowLadder.restore(size, unprefixed("ladder", state))
        watch._label_ladder = WindowLadder.restore(
            calibration.SIZE, unprefixed("label_ladder", state)
        )
        watch._part = np.array(state["part"], np.int64).reshape(size)
        watch._label_part = np.array(state["label_part"], np.int64).reshape(calibration.SIZE)
        full = (watch.pairs // BLOCK, watch.labels // LABELS) if in_order else (0, 0)
        if (watch._ladder.done, watch._label_ladder.done) != full:
            raise ValueError("blocks do not fit the number of pairs")
        for name in NAMES:
            kept = unprefixed(f"record.{name}", state)
            if kept:
                expected = calibration.SIZE if name == "calibration" else size
                watch._records[name] = WindowRecord.restore(kept, expected)
        return watch


def _population_of(model: Method) -> Population:
    population = model.about_.population
    if population is None or not population.watchable:
        raise DataError(
            f"the model ({model.name}) does not know its calibration population: nothing can be "
            "held against it; fit it again with 'faircal fit', or call faircal.survey"
        )
    return population
