"""All that is said of a pair in use: score, probability, likelihood ratio, decision, places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal.compute import CPU, Engine
from faircal.compute.engine import NEAREST_BLOCK, Nearest
from faircal.compute.threads import each, one_blas_thread
from faircal.data import Embeddings, Groups
from faircal.data.dataset import COSINE_RANGE
from faircal.data.types import Scores
from faircal.methods import Method
from faircal.methods.clusters import ClusterMethod, model_space
from faircal.methods.inputs import ImageValues, Space
from faircal.methods.prior import Shift, fitted_share
from faircal.metrics import log_likelihood_ratio
from faircal.model import DEFAULT_POINT, OperatingPoint, Places, Population

Rows = NDArray[np.intp]

#: What is kept of an image: `Places`, by row.
_PLACE = np.dtype([("cluster", np.int32), ("distance", np.float32), ("outside", np.bool_)])


class Placing:
    """Says where images lie; each is looked at once, for as long as its embeddings are there.

    Where the population's centres are those of the model, the model is given the clusters, and need
    not look for them again. Several threads may use it at a time.

    Parameters
    ----------
    model : Method
    population : Population
        That of the model; it has centres.
    space : Space
        What embeddings must be like.
    """

    def __init__(self, model: Method, population: Population, space: Space) -> None:
        self._population, self._centers = population, population.centers
        self._enrolled = ImageValues(space, self._work, _PLACE)
        self._nearest = Nearest.of(population.centers)
        same = isinstance(model, ClusterMethod) and np.array_equal(
            model.cluster_centers_, population.centers
        )
        self._clustering = model if isinstance(model, ClusterMethod) and same else None

    @classmethod
    def of_model(cls, model: Method) -> Placing | None:
        """Return that of a model; None where it has no population of images."""
        population, space = model.about_.population, model_space(model)
        if population is None or not len(population.centers) or space is None:
            return None
        return cls(model, population, space)

    def __call__(self, embeddings: Embeddings, images: Rows) -> Places:
        """Return places by row of `embeddings`; only those of `images` are sure to be there."""
        placed = self._enrolled.at(embeddings, images)
        places = Places(placed["cluster"], placed["distance"], placed["outside"])
        if self._clustering is not None:
            self._clustering.remember_clusters(embeddings, images, places.cluster[images])
        return places

    def _work(self, vectors: NDArray[np.float32], engine: Engine) -> NDArray[Any]:
        kept = np.empty(len(vectors), dtype=_PLACE)

        def work(block: slice) -> None:
            part = vectors[block]
            on_cpu = engine is CPU
            clusters = self._nearest(part) if on_cpu else engine.assign(part, self._centers)
            for name, values in self._population.place(part, clusters)._asdict().items():
                kept[name][block] = values

        # Blocks run in threads already; those of BLAS would compete with them for the cores.
        with one_blas_thread():
            each(work, len(vectors), NEAREST_BLOCK if engine is CPU else max(len(vectors), 1))
        return kept


Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """What is said of pairs, an element of each array a pair; places are of images.

    Attributes
    ----------
    similarity, score, probability, log_likelihood_ratio : ndarray of shape (n_pairs,)
        The cosine; what the model ranks by; P(genuine) at the wanted share of genuine pairs; nats.
        The last two are within the bounds of the model on evidence.
    same : ndarray of shape (n_pairs,), bool
        The decision at the operating point.
    at_bound : ndarray of shape (n_pairs,), bool, optional
        Whether the evidence is at least as strong as is said; None where the model has no bounds.
    places : Places, optional
        Of the rows of the embeddings; None where the model file has no population.
    """

    similarity: Float64
    score: Float64
    probability: Float64
    log_likelihood_ratio: Float64
    same: NDArray[np.bool_]
    at_bound: NDArray[np.bool_] | None
    places: Places | None


@dataclass(frozen=True, eq=False)
class Judge:
    """A model in use: it and the operating point and share of genuine pairs that it is used at.

    Build it with `of`. One with another `prior` (`dataclasses.replace`) need not get ready anew.

    Parameters
    ----------
    model : Method
        Fitted, on cosines.
    point : OperatingPoint
        Decisions on the score do not depend on `prior`.
    calibrated_at, prior : float
        Share of genuine pairs that the model was fitted at, and that probabilities are wanted for.
    space : Space, optional
        What embeddings must be like; None where nothing tells.
    placing : Placing, optional
        Says where images lie; None where the model file has no population.

    Examples
    --------
    >>> import faircal
    >>> from faircal.data import Embeddings
    >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
    >>> judge = Judge.of(faircal.FairCal(n_clusters=20).fit(cal))
    >>> judged = judge(Embeddings(test.embeddings.vectors[:2]), np.array([0]), np.array([1]))
    >>> bool(judged.same[0] == (judged.probability[0] >= 0.5))
    True
    """

    model: Method
    point: OperatingPoint
    calibrated_at: float
    prior: float
    space: Space | None
    placing: Placing | None

    @classmethod
    def of(
        cls, model: Method, point: OperatingPoint | None = None, prior: float | None = None
    ) -> Judge:
        """Return a judge at `point`, else at the model's own, else the default.

        Probabilities are for the share of genuine pairs of the fit, unless `prior` is given.
        """
        if model.score_range_ != COSINE_RANGE:
            raise ParameterError(
                f"the model was fitted on scores in {model.score_range_}, which are no "
                "cosines of embeddings; fit it on embeddings"
            )
        share = fitted_share(model, what="likelihood ratio")
        point = point or model.about_.operating_point or DEFAULT_POINT
        prior = share if prior is None else prior
        return cls(model, point, share, prior, model_space(model), Placing.of_model(model))

    def __call__(
        self, embeddings: Embeddings, left: Rows, right: Rows, groups: Groups | None = None
    ) -> Judged:
        """Judge pairs of rows of `embeddings`.

        Raises
        ------
        DataError
            Where a row is NaN, infinite or zero, or embeddings are of another space.
        """
        if self.space is not None:
            self.space.check(embeddings)
        bad = np.flatnonzero(embeddings.unusable)
        if len(bad):
            raise DataError(
                f"embedding {int(bad[0]) + 1}: expected finite numbers, not all 0; embed it again"
            )
        places = self.places(embeddings)  # first: it tells the model the clusters
        scores = Scores(None, embeddings, left, right)
        output = self.model.compare(embeddings, left, right, groups, scores)
        share, bounds = self.calibrated_at, self.model.about_.evidence
        probability = Shift(share, self.prior, bounds)(output.probability)
        ratio = log_likelihood_ratio(output.probability, calibrated_at=share, bounds=bounds)
        return Judged(
            scores(),
            output.score,
            probability,
            ratio,
            self.point.decide(output.score, probability),
            None if bounds is None else bounds.reached(ratio),
            places,
        )

    def places(self, embeddings: Embeddings) -> Places | None:
        """Say where images lie; None where the model file has no population."""
        if self.placing is None:
            return None
        return self.placing(embeddings, np.arange(len(embeddings)))
