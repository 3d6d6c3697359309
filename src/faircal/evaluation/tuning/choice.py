"""What was chosen, by which rule, and how much depends on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faircal.evaluation.tuning.trials import Tried
from faircal.methods import FairCal

#: A number of clusters and a calibrator's name.
Key = tuple[int, str]


@dataclass(frozen=True)
class TriedSetting:
    """A number of clusters and a calibrator, with what was found on people held out.

    Attributes
    ----------
    n_clusters : int
    calibrator : str
    loss : float
        Mean log-loss in nats, in which every region of the embeddings counts the same.
    standard_error : float
        Of `loss`, over folds.
    worse, worse_error : float
        By how much `loss` is above that of the best candidate, and the standard error of that
        difference. Folds that are hard are hard for all, so this one is far smaller.
    log_loss : float
        Mean log-loss in which every pair counts the same.
    ks : float
        Calibration error (KS), mean over regions.
    """

    n_clusters: int
    calibrator: str
    loss: float
    standard_error: float
    worse: float
    worse_error: float
    log_loss: float
    ks: float


@dataclass(frozen=True)
class Stability:
    """How much a candidate depends on the start of K-means, and on K.

    Starts are compared two by two, on people held out; with one start there is nothing to compare
    and the values are NaN.

    Attributes
    ----------
    n_clusters : int
    calibrator : str
    difference, difference_95 : float
        Between the probabilities of a pair under two starts: mean, and 95th percentile.
    agreement : float
        Share of pairs that both starts put on the same side of 1/2.
    adjusted_rand : float
        Adjusted Rand index between the clusters of two starts: 1 for the same, 0 for chance.
    loss_spread : float
        Standard deviation of the loss between starts.
    change, change_error : float
        By how much the loss is above that of the next smaller K, and the standard error of that
        over folds; NaN for the smallest K.
    """

    n_clusters: int
    calibrator: str
    difference: float
    difference_95: float
    agreement: float
    adjusted_rand: float
    loss_spread: float
    change: float
    change_error: float


@dataclass(frozen=True)
class Choice:
    """What `choose` found.

    Attributes
    ----------
    n_clusters : int
    calibrator : str
        What is chosen: the least loss, or the fewest clusters `within` so many standard errors of
        it.
    table : tuple of Candidate
        A row for each number of clusters and calibrator.
    stability : tuple of Stability
        Likewise.
    baseline : Candidate
        One map for all pairs (K = 1) with the chosen calibrator: what clusters must beat.
    n_folds, starts : int
        Folds that were held out, starts of K-means that were tried.
    within : float
        Standard errors within which fewer clusters are preferred.
    notes : tuple of str
        What the user should know.

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> choice = faircal.choose(cal, clusters=(2, 20), starts=2)
    >>> model = choice.model().fit(cal)
    >>> model.n_clusters == choice.n_clusters
    True
    """

    n_clusters: int
    calibrator: str
    table: tuple[TriedSetting, ...]
    stability: tuple[Stability, ...]
    baseline: TriedSetting
    n_folds: int
    starts: int
    within: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> TriedSetting:
        """The chosen row of `table`."""
        key = self.n_clusters, self.calibrator
        return next(row for row in self.table if (row.n_clusters, row.calibrator) == key)

    @property
    def best(self) -> TriedSetting:
        """The row of `table` with the least loss."""
        return min(self.table, key=lambda row: row.loss)

    def model(self, random_state: int = 0) -> FairCal:
        """Return FairCal with what was chosen, to be fitted."""
        return FairCal(self.n_clusters, self.calibrator, random_state=random_state)


def decide(
    tried: Mapping[Key, Tried],
    plain: Mapping[str, Tried],
    within: float,
    notes: Sequence[str] = (),
) -> Choice:
    """Choose the fewest clusters within so many standard errors of the best; `plain` are K = 1.

    Fewer clusters leave more pairs to each map, and maps that depend less on where K-means starts.
    The standard error is that of the difference over folds. Between calibrators with as many
    clusters the loss decides.
    """
    best = min(tried.values(), key=lambda one: one.by_fold.mean())
    rows = {key: _candidate(key, one, best) for key, one in tried.items()}
    good = [row for row in rows.values() if row.worse <= within * row.worse_error]
    chosen = min(good, key=lambda row: (row.n_clusters, row.loss))
    some = next(iter(tried.values()))
    return Choice(
        chosen.n_clusters,
        chosen.calibrator,
        tuple(rows.values()),
        tuple(_stability(key, tried) for key in tried),
        _candidate((1, chosen.calibrator), plain[chosen.calibrator], best),
        n_folds=some.loss.shape[1],
        starts=some.loss.shape[0],
        within=within,
        notes=tuple(notes),
    )


def _candidate(key: Key, one: Tried, best: Tried) -> TriedSetting:
    worse = one.by_fold - best.by_fold
    return TriedSetting(
        *key,
        loss=float(one.by_fold.mean()),
        standard_error=_error(one.by_fold),
        worse=float(worse.mean()),
        worse_error=_error(worse),
        log_loss=one.log_loss,
        ks=one.ks,
    )


def _stability(key: Key, tried: Mapping[Key, Tried]) -> Stability:
    n_clusters, calibrator = key
    one = tried[key]
    smaller = [k for k, name in tried if name == calibrator and k < n_clusters]
    nan = np.full(2, np.nan)
    change = one.by_fold - tried[max(smaller), calibrator].by_fold if smaller else nan
    starts = one.loss.mean(axis=1)
    return Stability(
        n_clusters,
        calibrator,
        one.difference,
        one.difference_95,
        one.agreement,
        one.adjusted_rand,
        loss_spread=float(starts.std(ddof=1)) if len(starts) > 1 else float("nan"),
        change=float(change.mean()),
        change_error=_error(change),
    )


def _error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))
