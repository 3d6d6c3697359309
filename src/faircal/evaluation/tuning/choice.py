"""What was chosen for FairCal, by which rule, and how much of the answer is chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.methods import FairCal

Float64 = NDArray[np.float64]
#: A number of clusters and a calibrator's name.
Key = tuple[int, str]


class TrialResult(NamedTuple):
    """What was measured of one candidate: `loss` is by start and fold, the others are means."""

    loss: Float64
    log_loss: float
    ks: float
    difference: float
    difference_95: float
    agreement: float
    adjusted_rand: float

    @property
    def by_fold(self) -> Float64:
        """Loss of each fold, mean over starts."""
        mean: Float64 = self.loss.mean(axis=0)
        return mean


@dataclass(frozen=True)
class TrialCandidate:
    """A number of clusters and a calibrator, with what was measured on people held out.

    Starts of K-means are compared two by two; with one start there is nothing to compare, and the
    values are NaN.

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
    loss: float
    standard_error: float
    worse: float
    worse_error: float
    log_loss: float
    ks: float
    difference: float
    difference_95: float
    agreement: float
    adjusted_rand: float
    loss_spread: float
    change: float
    change_error: float

    @property
    def name(self) -> str:
        """The candidate in words."""
        return f"{self.n_clusters} cluster{'s' * (self.n_clusters > 1)}, {self.calibrator}"


@dataclass(frozen=True)
class Choice:
    """What `choose` gives.

    Attributes
    ----------
    n_clusters : int
    calibrator : str
        What is chosen: the least loss, or the fewest clusters `within` so many standard errors of
        it.
    table : tuple of TrialCandidate
        A row for each number of clusters and calibrator.
    baseline : TrialCandidate
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
    table: tuple[TrialCandidate, ...]
    baseline: TrialCandidate
    n_folds: int
    starts: int
    within: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> TrialCandidate:
        """The chosen row of `table`."""
        key = self.n_clusters, self.calibrator
        return next(row for row in self.table if (row.n_clusters, row.calibrator) == key)

    @property
    def best(self) -> TrialCandidate:
        """The row of `table` with the least loss."""
        return min(self.table, key=lambda row: row.loss)

    def model(self, random_state: int = 0) -> FairCal:
        """Return FairCal with what was chosen, to be fitted."""
        return FairCal(self.n_clusters, self.calibrator, random_state=random_state)


def decide(
    tried: Mapping[Key, TrialResult],
    plain: Mapping[str, TrialResult],
    within: float,
    notes: Sequence[str] = (),
) -> Choice:
    """Choose the fewest clusters within so many standard errors of the best; `plain` are K = 1.

    Fewer clusters leave more pairs to each map, and maps that depend less on where K-means starts.
    The standard error is that of the difference over folds. Between calibrators with as many
    clusters the loss decides.
    """
    best = min(tried.values(), key=lambda one: one.by_fold.mean())
    rows = {key: _candidate(key, one, best, _smaller(key, tried)) for key, one in tried.items()}
    # The one-standard-error rule (Breiman et al., 1984), on differences: hard folds cancel.
    good = [row for row in rows.values() if row.worse <= within * row.worse_error]
    chosen = min(good, key=lambda row: (row.n_clusters, row.loss))
    starts, n_folds = best.loss.shape
    return Choice(
        chosen.n_clusters,
        chosen.calibrator,
        tuple(rows.values()),
        _candidate((1, chosen.calibrator), plain[chosen.calibrator], best, None),
        n_folds=n_folds,
        starts=starts,
        within=within,
        notes=tuple(notes),
    )


def _smaller(key: Key, tried: Mapping[Key, TrialResult]) -> TrialResult | None:
    """Return what was measured of the next smaller K with the same calibrator."""
    counts = [k for k, calibrator in tried if calibrator == key[1] and k < key[0]]
    return tried[max(counts), key[1]] if counts else None


def _candidate(
    key: Key, one: TrialResult, best: TrialResult, smaller: TrialResult | None
) -> TrialCandidate:
    worse = one.by_fold - best.by_fold
    change = np.full(2, np.nan) if smaller is None else one.by_fold - smaller.by_fold
    starts = one.loss.mean(axis=1)
    return TrialCandidate(
        *key,
        float(one.by_fold.mean()),
        _error(one.by_fold),
        float(worse.mean()),
        _error(worse),
        *one[1:],
        loss_spread=float(starts.std(ddof=1)) if len(starts) > 1 else float("nan"),
        change=float(change.mean()),
        change_error=_error(change),
    )


def _error(values: Float64) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def choice_words(choice: Choice) -> list[str]:
    """Say what was chosen, why, and where more or fewer clusters may be tried."""
    chosen, best, plain = choice.chosen, choice.best, choice.baseline
    near = "one standard error" if choice.within == 1 else f"{choice.within:g} standard errors"
    text = f"Chosen: {chosen.name}. "
    if chosen is best:
        text += "It has the least loss on people held out"
        fewer = any(row.n_clusters < chosen.n_clusters for row in choice.table)
        text += (
            f", and nothing with fewer clusters is within {near}."
            if fewer and choice.within
            else "."
        )
    else:
        text += f"It is within {near} of the best ({best.name}); "
        text += "fewer clusters leave more pairs to each map."
    if chosen.n_clusters > 1 and plain.worse <= plain.worse_error:
        text += " But one map for all pairs does as well: clusters gain nothing that can be told."
    elif chosen.n_clusters > 1:
        change = f"{plain.loss:.4f} to {chosen.loss:.4f} ({chosen.loss / plain.loss - 1:+.1%})"
        text += f" Against one map for all pairs the loss goes from {change}."
    return [text, *_edges(choice)]


def _edges(choice: Choice) -> list[str]:
    """Say where the numbers tried end too soon to tell."""
    counts = sorted({row.n_clusters for row in choice.table})
    if choice.n_clusters == counts[-1] and choice.best.n_clusters == counts[-1]:
        more = f"--clusters {counts[-1]},{2 * counts[-1]},{4 * counts[-1]}"
        return [f"The most clusters tried are the best: more may be better still ({more})."]
    if choice.n_clusters == counts[0] > 1:
        fewer = sorted({max(1, counts[0] // 4), max(1, counts[0] // 2), counts[0]})
        option = ",".join(map(str, fewer))
        return [f"The fewest clusters tried are chosen: still fewer may do (--clusters {option})."]
    return []


def stability_words(choice: Choice) -> list[str]:
    """Say how much depends on the start of K-means, and on the number of clusters."""
    rows = [row for row in choice.table if row.calibrator == choice.calibrator]
    words = [_start_words(choice.chosen, choice.starts)]
    return [*words, _count_words(choice.calibrator, rows)] if len(rows) > 1 else words


def _start_words(row: TrialCandidate, starts: int) -> str:
    if starts == 1:
        return "With one start it is not known how much depends on it; take --starts 3."
    if row.n_clusters == 1:
        return "With one cluster nothing depends on the start."
    rand = row.adjusted_rand
    alike = (
        "nearly the same" if rand > 0.8 else "alike in part" if rand > 0.4 else "mostly different"
    )
    return (
        f"Start: with {row.n_clusters} clusters, another start of K-means moves a probability by "
        f"{row.difference:.4f} on average, by less than {row.difference_95:.4f} for 95 % of pairs, "
        f"and turns {1 - row.agreement:.2%} of the decisions at 1/2. The clusters themselves are "
        f"{alike} (adjusted Rand index {rand:.2f}; 1 is the same, 0 is chance)."
    )


def _count_words(calibrator: str, rows: Sequence[TrialCandidate]) -> str:
    low, high = (end(rows, key=lambda row: row.loss) for end in (min, max))
    clear = [row for row in rows if abs(row.change) > 2 * row.change_error]
    return (
        f"K: with {calibrator} the loss lies between {low.loss:.4f} (K = {low.n_clusters}) and "
        f"{high.loss:.4f} (K = {high.n_clusters}). From one K to the next it changes by more than "
        f"two standard errors in {len(clear)} of {len(rows) - 1} steps."
    )
