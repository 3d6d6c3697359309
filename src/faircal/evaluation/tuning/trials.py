"""FairCal tried on people held out: losses by start and fold, and how starts differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from faircal._base.errors import DataError
from faircal.compute.clustering import kmeans
from faircal.data import Dataset
from faircal.data.folds import draw_folds
from faircal.methods import FairCal
from faircal.metrics import ks

Float64 = NDArray[np.float64]

#: Regions of the embeddings that count the same; pairs of one that count in full: one with fewer
#: counts less, for chance would decide. Both are the same for all candidates.
_REGIONS, _FULL = 12, 50
#: Pairs of each class that a fold must have, and leave to the others.
_LEAST = 20


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
        found = kmeans(vectors, n, random_state=random_state, engine=engine)
        region = np.zeros(len(data.images), dtype=np.int32)
        region[images] = found.assign(vectors, engine)
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
        >>> weight = Regions(2, where, where).weights(slice(None))
        >>> round(float(weight[900:].sum()), 6)
        0.5
        """
        each = 1 / np.maximum(self.sizes(part), _FULL)
        weight: Float64 = each[self.left[part]] + each[self.right[part]]
        weight /= weight.sum()
        return weight

    def ks(self, probability: Float64, genuine: NDArray[np.bool_]) -> float:
        """Return the calibration error, mean over the regions that have pairs enough."""
        found = []
        for region in range(self.n):
            inside = (self.left == region) | (self.right == region)
            if inside.sum() >= _FULL:
                found.append(ks(probability[inside], genuine[inside]))
        return float(np.mean(found)) if found else float("nan")


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
        folds = [part for part in range(1, n_folds + 1) if _enough(genuine, fold, part)]
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
        tell: Callable[[], None],
    ) -> Iterator[Tried]:
        """Try K with each calibrator, from every start; calibrators share the clusterings."""
        found = np.empty((len(calibrators), len(seeds), len(self.genuine)))
        rand = []
        for part in self.parts:
            clusters = []
            for start, seed in enumerate(seeds):
                for which, calibrator in enumerate(calibrators):
                    model = FairCal(n_clusters, calibrator, random_state=seed).fit(part.fitted)
                    found[which, start, part.place] = model.predict_proba(part.held)
                clusters.append(model.image_clusters(part.held)[1])
                tell()
            rand += [adjusted_rand_score(a, b) for a, b in combinations(clusters, 2)]
        same = float(np.mean(rand)) if rand else float("nan")
        for probability in found:
            yield self._measured(probability, same)

    def _measured(self, probability: Float64, adjusted_rand: float) -> Tried:
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
        return Tried(
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
        least = 1 / (len(self.genuine) + 2)
        right = np.where(self.genuine, probability, 1 - probability)
        loss: Float64 = -np.log(np.clip(right, least, 1 - least))
        return loss


@dataclass(frozen=True, eq=False)
class Tried:
    """What was found of one candidate: `loss` is by start and fold, the others are means."""

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


def _enough(genuine: NDArray[np.bool_], fold: NDArray[np.int64], part: int) -> bool:
    sides = genuine[fold == part], genuine[(fold > 0) & (fold != part)]
    return all(min(int(side.sum()), int((~side).sum())) >= _LEAST for side in sides)


def _moved(one: Float64, two: Float64) -> tuple[float, float, float]:
    """Return how two starts' probabilities differ, mean and 95th percentile, and agree at 1/2."""
    away = np.abs(one - two)
    same = (one >= 0.5) == (two >= 0.5)
    return float(away.mean()), float(np.percentile(away, 95)), float(same.mean())
