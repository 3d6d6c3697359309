"""Choosing K and the calibrator of FairCal by cross-validation over people, without attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from faircal._base.errors import DataError, ParameterError
from faircal._base.jobs import Progress, silent
from faircal._base.registry import check_integer
from faircal.calibrators import make_calibrator
from faircal.data import Dataset
from faircal.data.folds import draw_folds
from faircal.evaluation.tuning.choice import Choice, Key, TrialCandidate, TrialResult, decide
from faircal.methods import FairCal
from faircal.methods.inputs import check_classes
from faircal.metrics import ks

Float64 = NDArray[np.float64]

__all__ = ["Choice", "TrialCandidate", "choose"]

#: What is tried by default.
CLUSTERS, CALIBRATORS = (10, 25, 50, 100), ("beta", "isotonic")
#: Regions of the embeddings that count the same; pairs of one that count in full: one with fewer
#: counts less, for chance would decide. Both are the same for all candidates.
_REGIONS, _FULL = 12, 50
#: Pairs of each class that a fold must have, and leave to the others.
_LEAST = 20
#: Share of pairs that may belong to no fold without a word; share of a region's pairs that may lie
#: in one fold.
_SILENT, _APART = 0.05, 0.8


@dataclass(frozen=True, eq=False)
class PairRegions:
    """The regions of both images of each pair, numbers from 0 to `n` − 1."""

    n: int
    left: NDArray[np.int32]
    right: NDArray[np.int32]

    @classmethod
    def of(cls, data: Dataset, random_state: int) -> PairRegions:
        """Cut the embeddings of `data` into regions by K-means, for all candidates alike."""
        embeddings, images = data.embeddings, data.used_images()
        if embeddings is None:
            raise DataError(f"{data.where}: expected embeddings, found scores only")
        vectors, engine = embeddings.rows(images), embeddings.engine
        n = min(_REGIONS, len(images))
        clustering = engine.kmeans(vectors, n, random_state=random_state)
        region = np.zeros(len(data.images), dtype=np.int32)
        region[images] = engine.assign(vectors, clustering.centers)
        return cls(n, region[data.pairs.left], region[data.pairs.right])

    def take(self, rows: NDArray[np.intp]) -> PairRegions:
        """Return those of some pairs."""
        return PairRegions(self.n, self.left[rows], self.right[rows])

    def sizes(self, part: slice) -> Float64:
        """Return how many of some pairs each region has; a pair of two belongs half to each."""
        both = np.concatenate([self.left[part], self.right[part]])
        return np.bincount(both, minlength=self.n) / 2

    def weights(self, part: slice) -> Float64:
        """Return weights of some pairs, sum 1, with which every region counts the same.

        Examples
        --------
        >>> where = np.repeat([0, 1], [900, 100])
        >>> weight = PairRegions(2, where, where).weights(slice(None))
        >>> round(float(weight[900:].sum()), 6)
        0.5
        """
        # Weights 1 / n_r add up to 1 a region, less where a region has under `_FULL` pairs.
        each = 1 / np.maximum(self.sizes(part), _FULL)
        weight: Float64 = each[self.left[part]] + each[self.right[part]]
        weight /= weight.sum()
        return weight

    def ks(self, probability: Float64, genuine: NDArray[np.bool_]) -> float:
        """Return the calibration error, mean over the regions that have pairs enough."""
        errors = []
        for region in range(self.n):
            inside = (self.left == region) | (self.right == region)
            if inside.sum() >= _FULL:
                errors.append(ks(probability[inside], genuine[inside]))
        return float(np.mean(errors)) if errors else float("nan")


@dataclass(frozen=True, eq=False)
class Trial:
    """Pairs to fit on, and pairs of other people to try on; `place` is where those are held."""

    fitted: Dataset
    held: Dataset
    place: slice


@dataclass(frozen=True, eq=False)
class Trials:
    """All pairs that are held out in turn, one fold after the other."""

    parts: tuple[Trial, ...]
    genuine: NDArray[np.bool_]
    regions: PairRegions
    lost: int

    @classmethod
    def of(cls, data: Dataset, n_folds: int, random_state: int) -> Trials:
        """Deal the people of `data` to folds."""
        fold, _ = draw_folds(data.pairs, data.images, random_state, n_folds)
        genuine = data.genuine
        folds = [part for part in range(1, n_folds + 1) if _both_classes(genuine, fold, part)]
        if len(folds) < 2:
            raise DataError(
                f"{data.where}: too few people to hold out: expected two folds of people or more "
                f"with {_LEAST} genuine and {_LEAST} imposter pairs each, found {len(folds)} of "
                f"{n_folds}; add people, or draw fewer folds (--folds)"
            )
        held = [np.flatnonzero(fold == part) for part in folds]
        ends = np.cumsum([0, *map(len, held)]).tolist()
        parts = tuple(
            Trial(data.subset((fold > 0) & (fold != part)), data.subset(rows), slice(*place))
            for part, rows, place in zip(folds, held, pairwise(ends), strict=True)
        )
        rows = np.concatenate(held)
        regions = PairRegions.of(data, random_state).take(rows)
        return cls(parts, genuine[rows], regions, int((fold < 0).sum()))

    @property
    def fewest_images(self) -> int:
        """Images that the smallest part to fit on has."""
        return min(len(part.fitted.used_images()) for part in self.parts)

    @property
    def apart(self) -> float:
        """Share of a region's pairs that lie in the one fold that has most, mean over regions."""
        counts = np.array([self.regions.sizes(part.place) for part in self.parts])
        most, total = counts.max(axis=0), counts.sum(axis=0)
        return float((most / np.maximum(total, 1))[total >= min(_FULL, total.max())].mean())

    def run(
        self,
        n_clusters: int,
        calibrators: Sequence[str],
        seeds: Sequence[int],
        report: Callable[[], None],
    ) -> Iterator[TrialResult]:
        """Try K with each calibrator, from every start; calibrators share the clusterings."""
        probabilities = np.empty((len(calibrators), len(seeds), len(self.genuine)))
        rand = []
        for part in self.parts:
            clusters = []
            for start, seed in enumerate(seeds):
                for which, calibrator in enumerate(calibrators):
                    model = FairCal(n_clusters, calibrator, random_state=seed).fit(part.fitted)
                    probabilities[which, start, part.place] = model.predict_proba(part.held)
                clusters.append(model.image_clusters(part.held)[1])
                report()
            rand += [adjusted_rand_score(a, b) for a, b in combinations(clusters, 2)]
        same = float(np.mean(rand)) if rand else float("nan")
        for probability in probabilities:
            yield self._measured(probability, same)

    def _measured(self, probability: Float64, adjusted_rand: float) -> TrialResult:
        """Measure the probabilities of all starts, (n_starts, n_pairs)."""
        loss = np.empty((len(probability), len(self.parts)))
        plain = np.empty(len(probability))
        for start, p in enumerate(probability):
            by_pair = self._losses(p)
            plain[start] = by_pair.mean()
            for f, part in enumerate(self.parts):
                loss[start, f] = self.regions.weights(part.place) @ by_pair[part.place]
        error = [self.regions.ks(p, self.genuine) for p in probability]
        moved = [_moved(a, b) for a, b in combinations(probability, 2)] or [(np.nan,) * 3]
        difference, difference_95, agreement = np.mean(moved, axis=0).tolist()
        return TrialResult(
            loss,
            float(plain.mean()),
            float(np.mean(error)),
            difference,
            difference_95,
            agreement,
            adjusted_rand,
        )

    def _losses(self, probability: Float64) -> Float64:
        """Return the log-loss of each pair.

        From n pairs nobody knows a probability below about 1/n: a map that says 0 is taken to say
        that. Else one pair would decide against every map of steps.
        """
        # Laplace's rule of succession: what n pairs of the other class would leave.
        least = 1 / (len(self.genuine) + 2)
        right = np.where(self.genuine, probability, 1 - probability)
        loss: Float64 = -np.log(np.clip(right, least, 1 - least))
        return loss


def _both_classes(genuine: NDArray[np.bool_], fold: NDArray[np.int64], part: int) -> bool:
    sides = genuine[fold == part], genuine[(fold > 0) & (fold != part)]
    return all(min(int(side.sum()), int((~side).sum())) >= _LEAST for side in sides)


def _moved(one: Float64, two: Float64) -> tuple[float, float, float]:
    """Return how two starts' probabilities differ, mean and 95th percentile, and agree at 1/2."""
    away = np.abs(one - two)
    same = (one >= 0.5) == (two >= 0.5)
    return float(away.mean()), float(np.percentile(away, 95)), float(same.mean())


def choose(
    data: Dataset,
    clusters: Sequence[int] = CLUSTERS,
    calibrators: Sequence[str] = CALIBRATORS,
    starts: int = 3,
    n_folds: int = 5,
    random_state: int = 0,
    within: float = 0.0,
    progress: Progress = silent,
) -> Choice:
    """Choose the number of clusters and the calibrator of `FairCal`, and say how stable that is.

    People are dealt to folds. For each fold every candidate is fitted on pairs of the other
    people, from several starts of K-means, and tried on pairs within the fold. What counts is the
    log-loss, in which every region of the embeddings counts the same (the regions come from one
    more K-means, with 12 clusters, the same for all candidates): so small regions matter, and no
    attribute is looked at. The candidate of least loss is chosen; or, of those `within` so many
    standard errors of it, the one with the fewest clusters.

    Parameters
    ----------
    data : Dataset
        Calibration pairs, with embeddings. Keep test pairs out.
    clusters : sequence of int
        Numbers of clusters to try.
    calibrators : sequence of str
        Calibrators to try; see `faircal.calibrators`.
    starts : int
        Starts of K-means; losses are means over them.
    n_folds : int
        Folds of people; one without pairs enough is left out.
    random_state : int
        Seed of the folds, the regions and the first start; further starts count up from it.
    within : float
        Standard errors within which fewer clusters are preferred to less loss.
    progress : callable
        Called as the work goes on, with (stage, steps done, steps in all, a few words).

    Returns
    -------
    Choice

    Examples
    --------
    >>> import faircal
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> choice = faircal.choose(cal, clusters=(2, 20), starts=2)
    >>> [(row.n_clusters, row.calibrator) for row in choice.table]
    [(2, 'beta'), (2, 'isotonic'), (20, 'beta'), (20, 'isotonic')]
    >>> choice.chosen.worse <= choice.chosen.worse_error
    True
    """
    counts, names = _checked(clusters, calibrators, starts, n_folds, random_state)
    if not within >= 0:
        raise ParameterError(f"within: expected a number from 0, found {within!r}")
    _check_data(data)
    trials = Trials.of(data, n_folds, random_state)
    if counts[-1] > trials.fewest_images:
        raise ParameterError(
            f"clusters: expected 1 to {trials.fewest_images} (the images left where a fold is held "
            f"out), found {counts[-1]}; choose fewer clusters (--clusters)"
        )
    seeds = range(random_state, random_state + starts)
    steps = len(trials.parts) * (1 + starts * len(counts))
    done = 0

    def report() -> None:
        nonlocal done
        done += 1
        progress("choosing", done, steps, label)

    label = "one map for all"
    progress("choosing", 0, steps, label)
    plain = dict(zip(names, trials.run(1, names, seeds[:1], report), strict=True))
    tried: dict[Key, TrialResult] = {}
    for n_clusters in counts:
        label = f"{n_clusters} clusters"
        results = trials.run(n_clusters, names, seeds, report)
        tried |= {(n_clusters, name): one for name, one in zip(names, results, strict=True)}
    return decide(tried, plain, within, _notes(trials, n_folds))


def _checked(
    clusters: Sequence[int], calibrators: Sequence[str], starts: int, n_folds: int, seed: int
) -> tuple[list[int], list[str]]:
    """Return numbers of clusters, ascending, and names of calibrators, without repeats."""
    for name, values in (("clusters", clusters), ("calibrators", calibrators)):
        if isinstance(values, str) or not len(values):
            raise ParameterError(
                f"{name}: expected one or more to try, found {values!r}; list them"
            )
    for count in clusters:
        check_integer("clusters", count, 1)
    for calibrator in calibrators:
        make_calibrator(calibrator)
    check_integer("starts", starts, 1)
    check_integer("n_folds", n_folds, 2)
    check_integer("random_state", seed, 0)
    return sorted({int(count) for count in clusters}), list(dict.fromkeys(calibrators))


def _check_data(data: Dataset) -> None:
    problem = FairCal.unusable_reason(data, None)
    if problem is not None:
        raise DataError(
            f"{data.where}: faircal cannot be used: {problem}; add embeddings ('faircal embed')"
        )
    check_classes(int(data.genuine.sum()), len(data), data.where)


def _notes(trials: Trials, n_folds: int) -> list[str]:
    """Say where less was tried than asked for."""
    notes = []
    if len(trials.parts) < n_folds:
        notes.append(
            f"{len(trials.parts)} of {n_folds} folds of people have pairs enough to hold out"
        )
    lost = trials.lost / (trials.lost + len(trials.genuine))
    if lost > _SILENT:
        notes.append(
            f"{lost:.0%} of the pairs join people of two folds and are left out; with all pairs "
            "more clusters may do better"
        )
    if trials.apart > _APART:
        notes.append(
            "whole regions of the embeddings are held out at once, since pairs join people of a "
            "region only with each other: what clusters gain there can't be seen; use pairs within "
            "folds that mix them, as 'faircal pairs' makes"
        )
    return notes
