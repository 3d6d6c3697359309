"""Watching a model in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.container import prefixed, unprefixed
from faircal._base.errors import DataError, ParameterError
from faircal.methods import Method
from faircal.production.monitoring import calibration
from faircal.production.monitoring.comparing import Reference, UseWindow
from faircal.production.monitoring.counts import BUCKETS, Layout, code_pairs
from faircal.production.monitoring.findings import NAMES, Finding, Verdict, finding, summary
from faircal.production.monitoring.pairs_in_use import PairsInUse
from faircal.production.monitoring.windows import ENDLESS, CountedWindow, WindowLadder

State = dict[str, NDArray[Any] | float | int | str]

#: Pairs, and labels, in the smallest block.
BLOCK, LABELS = 500, 50
_VERSION = 2


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

    Parameters
    ----------
    model : Method
        Whose population was counted (`faircal.survey`): pairs are compared with that.
    false_alarms : float
    in_order : bool

    Raises
    ------
    DataError
        Where the model does not know its population.

    Examples
    --------
    >>> import faircal
    >>> from faircal.production.monitoring import survey
    >>> cal, test = faircal.simulate("small", seed=0, people=1000).split(test_fold=5)
    >>> model = faircal.Baseline().fit(cal)
    >>> population = survey(model, cal)
    >>> watch = Watch(model)
    >>> output = model.apply(test)
    >>> watch.add(PairsInUse(output.score, output.probability))
    >>> watch.verdict().due
    False
    >>> another_camera = np.clip(output.score + 0.1 * ~test.genuine, -1, 1)
    >>> watch.add(PairsInUse(another_camera, output.probability))
    >>> [finding.name for finding in watch.verdict().findings if finding.alarm]
    ['scores']
    """

    def __init__(self, model: Method, *, false_alarms: float = 0.01, in_order: bool = True) -> None:
        population = model.about_.population
        if population is None or not population.watchable:
            raise DataError(
                f"the model ({model.name}) does not know its calibration population: nothing can "
                "be compared with it; fit it again with 'faircal fit', or call faircal.survey"
            )
        rate = false_alarms
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
            raise ParameterError(f"false_alarms: expected a rate between 0 and 1, found {rate!r}")
        self.population, self.false_alarms = population, float(rate)
        self.in_order = in_order
        self._reference, self._layout = Reference(population), Layout.in_use(population)
        block, labels = (BLOCK, LABELS) if in_order else (ENDLESS, ENDLESS)
        self._pairs = WindowLadder(self._layout.size, block)
        self._labels = WindowLadder(calibration.SIZE, labels)
        #: By name of what is watched, the look that counts.
        self._windows: dict[str, CountedWindow] = {}

    @property
    def pairs(self) -> int:
        """How many pairs were counted."""
        return self._pairs.count

    @property
    def labels(self) -> int:
        """How many labels were counted."""
        return self._labels.count

    # ------------------------------------------------------------------ counting

    def add(self, pairs: PairsInUse) -> None:
        """Count pairs, in the order they came, and their labels where they have some."""
        pairs.check(len(self.population.region))
        if not len(pairs):
            return
        start, size, n = self.pairs, self._pairs.block, len(pairs)
        codes = code_pairs(
            self.population,
            np.asarray(pairs.score, np.float64),
            pairs.sides("cluster"),
            pairs.sides("outside"),
        )
        # Pairs that came together get places in time by chance: a batch that is sorted by group or
        # label must not look like a change.
        block = (start + np.random.default_rng(start).permutation(n)) // size - start // size
        blocks = (start + n - 1) // size - start // size + 1
        tables = self._layout.tables(codes, pairs.buckets(start, BUCKETS), block, blocks)
        identified = np.bincount(block * 3 + pairs.identified(), minlength=3 * blocks)
        rows = self._layout.flat(tables, identified.reshape(blocks, 3))
        for window in self._pairs.add(rows, n):
            self._look(window)
        if pairs.genuine is not None:
            self.feedback(*pairs.labels())

    def feedback(self, probability: Any, genuine: Any, person: Any = None) -> None:
        """Count labels.

        Parameters
        ----------
        probability : array-like of float in [0, 1], shape (n,)
            P(genuine) as users were given it: at the share of genuine pairs in use.
        genuine : array-like of bool, shape (n,)
            What turned out.
        person : array-like of int64, shape (n,), optional
            Number of a person of the pair, −1 where unknown: labels of one are not independent.
        """
        shown = np.atleast_1d(np.asarray(probability, np.float64))
        truth = np.atleast_1d(np.asarray(genuine))
        who = None if person is None else np.atleast_1d(np.asarray(person)).astype(np.int64)
        if shown.ndim != 1 or not ((shown >= 0) & (shown <= 1)).all():  # NaN is neither
            raise DataError("probability: expected numbers from 0 to 1, one per label")
        for name, other in (("genuine", truth), ("person", who)):
            if other is not None and other.shape != shown.shape:
                raise DataError(
                    f"{name}: expected {len(shown)} values, one per label, found {other.shape}"
                )
        if not np.isin(truth, (0, 1)).all():
            raise DataError("genuine: expected true or false for each label")
        if not len(shown):
            return
        # Labels of one call have no order: sorted ones would look like a change.
        order = np.random.default_rng(self.labels).permutation(len(shown))
        counted = calibration.count_labels(
            shown[order],
            truth[order].astype(bool),
            None if who is None else who[order],
            self.labels,
            self._labels.block,
        )
        for window in self._labels.add(counted, len(shown)):
            self._look_at_labels(window)

    def use_window(self, window: CountedWindow) -> UseWindow:
        """Return a window of pairs beside what it is compared with."""
        return UseWindow(self._reference, *self._layout.cut(window.counts))

    def _look(self, window: CountedWindow) -> None:
        in_use = self.use_window(window)
        for name in ("scores", "clusters", "outside"):
            if in_use.covers(name):
                self._keep(name, window, in_use.compare(name).p_value)

    def _look_at_labels(self, window: CountedWindow) -> None:
        table = calibration.tabulate(window.counts)
        if table.sum(axis=(0, 1)).min() >= calibration.FEWEST:  # of both classes
            self._keep("calibration", window, calibration.compare_labels(table)[0].p_value)

    def _keep(self, name: str, window: CountedWindow, p_value: float) -> None:
        """Keep the first look that raises the alarm; before it, the latest of the longest."""
        before = self._windows.get(name)
        if before is not None and before.alarm:
            return
        alarm = p_value <= window.level(name, self.false_alarms)
        if alarm or before is None or window.replaces(before):
            self._windows[name] = replace(window, alarm=alarm)

    # ----------------------------------------------------------------- verdict

    def verdict(self) -> Verdict:
        """Say what came of it so far; can be asked at any time."""
        # Pairs without an order fill no windows: one look at all of them takes their place.
        if not self.in_order:
            self._windows = {}
            if self.pairs >= BLOCK:
                self._look(self._pairs.everything())
            if self.labels >= LABELS:
                self._look_at_labels(self._labels.everything())
        findings: tuple[Finding, ...] = tuple(
            finding(name, self._windows.get(name), self) for name in NAMES
        )
        due = any(each.alarm for each in findings)
        return Verdict(due, findings, self.pairs, self.labels, summary(findings, self.pairs))

    # ------------------------------------------------------------------- state

    def get_state(self) -> State:
        """Return all that `restore` needs: arrays of counts and a few numbers, nothing by pair."""
        state: State = {
            "version": _VERSION,
            "false_alarms": self.false_alarms,
            "in_order": int(self.in_order),
        }
        state |= prefixed("pairs", self._pairs.get_state())
        state |= prefixed("labels", self._labels.get_state())
        for name, window in self._windows.items():
            state |= prefixed(f"window.{name}", window.get_state())
        return state

    @classmethod
    def restore(cls, model: Method, state: Mapping[str, Any]) -> Watch:
        """Go on from `get_state`; the model must be the same.

        Raises
        ------
        DataError
            Where the state is not of a watch of this model.
        """
        refused = DataError(
            "monitoring state: expected what a watch of this model keeps; begin a new watch"
        )
        if state.get("version") != _VERSION:
            raise refused
        try:
            rate, in_order = float(state["false_alarms"]), bool(state["in_order"])
            watch = cls(model, false_alarms=rate, in_order=in_order)
            for name in ("pairs", "labels"):
                ladder: WindowLadder = getattr(watch, f"_{name}")
                kept = unprefixed(name, state)
                setattr(watch, f"_{name}", WindowLadder.restore(ladder.size, ladder.block, kept))
            for name in NAMES:
                looked_at = unprefixed(f"window.{name}", state)
                if looked_at:
                    size = watch._labels.size if name == "calibration" else watch._pairs.size
                    watch._windows[name] = CountedWindow.restore(looked_at, size)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise refused from error
        return watch
