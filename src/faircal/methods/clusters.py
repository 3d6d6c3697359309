"""What cluster methods share: K-means on the calibration images, and whose pairs are whose."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.calibrators import Samples
from faircal.compute import Clustering, Engine
from faircal.data import Dataset, Embeddings
from faircal.methods.base import Method, check_count, check_truth
from faircal.methods.inputs import Fitting, ImageValues, Inputs, Space, declared

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ClusterSets:
    """The clusters k₁, k₂ of each pair's two images: the pair is in the sets S_k₁ and S_k₂.

    `of_image` has the cluster of each image, worked out once.
    """

    of_image: ImageValues

    def __call__(self, inputs: Inputs) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the clusters of each pair's two images."""
        cluster = self.of_image.at(declared(inputs.embeddings, "embeddings"), inputs.images)
        return cluster[inputs.left], cluster[inputs.right]


def _nearest(
    centers: NDArray[np.float32], vectors: NDArray[np.float32], engine: Engine
) -> NDArray[np.int32]:
    # Not a method or a closure: a model can be copied to another process.
    return engine.assign(vectors, centers)


class ClusterMethod(Method):
    """A method that clusters the embeddings of the calibration images.

    Subclasses take ``n_clusters``, ``n_init`` and ``random_state``. Two methods fitted on the
    same dataset object with the same three share one clustering.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d), float32
        Centres of the clusters in embedding space.
    inertia_ : float
        K-means' objective: the sum of squared distances to the nearest centre.
    cluster_sizes_ : ndarray of shape (n_clusters,), int64
        Calibration pairs with at least one image in each cluster.
    """

    n_clusters: int
    n_init: int
    random_state: int
    clustering_: Clustering
    cluster_centers_: NDArray[np.float32]
    inertia_: float
    normalize_: bool
    cluster_sizes_: NDArray[np.int64]
    #: The clusters of pairs; what was worked out of images lasts until the next fit.
    sets: ClusterSets

    @property
    @abstractmethod
    def cluster_shifts_(self) -> NDArray[np.float64]:
        """By how much each cluster's decision threshold lies above that of all pairs, (K,)."""

    def image_clusters(self, data: Dataset) -> tuple[Rows, NDArray[np.int32], NDArray[np.float32]]:
        """Return the images of `data`'s pairs (rows), their clusters and distances to the centres.

        Examples
        --------
        >>> import faircal
        >>> cal, test = faircal.simulate("small", seed=0).split(test_fold=5)
        >>> images, clusters, distance = faircal.FairCal(n_clusters=3).fit(cal).image_clusters(test)
        >>> len(images) == len(clusters) == len(distance), sorted(set(clusters.tolist()))
        (True, [0, 1, 2])
        """
        inputs = self._inputs(data, fitting=False)
        vectors = inputs.vectors(self.sets.of_image.space)
        clusters = inputs.engine.assign(vectors, self.cluster_centers_)
        away = vectors - self.cluster_centers_[clusters]
        return inputs.images, clusters, np.sqrt(np.einsum("ij,ij->i", away, away))

    def _fit_clusters(self, inputs: Fitting) -> Samples:
        """Cluster the images of the calibration pairs; return the scores of each S_k."""
        clustering = inputs.clustering(self.n_clusters, self.n_init, self.random_state)
        self._set_clustering(clustering, declared(inputs.embeddings, "embeddings").normalize)
        # S_k = {s(x₁, x₂): f(x₁) ∈ Z_k or f(x₂) ∈ Z_k}: a pair may be in two sets, and in one once.
        samples = inputs.samples(self.sets, self.n_clusters)
        # |S_k|, the weights of the mixture; the last set is that of all pairs.
        self.cluster_sizes_ = samples.sizes[:-1]
        pairs = int(samples.sizes[-1])
        figures = self.diagnostics_.figures
        figures["inertia"] = self.inertia_
        figures["n_iter"] = self.clustering_.n_iter
        figures["smallest_cluster_pairs"] = int(self.cluster_sizes_.min())
        figures["largest_cluster_pairs"] = int(self.cluster_sizes_.max())
        # Each pair is in one set or in two: what the sizes exceed the pairs by is those in two.
        figures["share_of_pairs_in_two_clusters"] = int(self.cluster_sizes_.sum()) / pairs - 1
        return samples

    def remember_clusters(
        self, embeddings: Embeddings, images: Rows, clusters: NDArray[np.int32]
    ) -> None:
        """Take the clusters of rows `images` from somebody who has computed them already."""
        self.sets.of_image.remember(embeddings, images, clusters)

    def _set_clustering(self, clustering: Clustering, normalize: bool) -> None:
        self.clustering_, self.normalize_ = clustering, normalize
        self.cluster_centers_, self.inertia_ = clustering.centers, clustering.inertia
        space = Space(clustering.centers.shape[1], normalize)
        nearest = partial(_nearest, clustering.centers)
        self.sets = ClusterSets(ImageValues(space, nearest, np.int32))

    def _cluster_state(self) -> dict[str, Any]:
        return {
            "centers": self.clustering_.centers,
            "inertia": self.clustering_.inertia,
            "n_iter": self.clustering_.n_iter,
            "cluster_sizes": self.cluster_sizes_,
            "normalize": self.normalize_,
        }

    def _set_cluster_state(self, state: dict[str, Any]) -> None:
        centers = np.asarray(state["centers"], np.float32)
        if centers.ndim != 2 or not centers.size:
            raise DataError(f"centers: expected a matrix, found shape {centers.shape}")
        if len(centers) != self.n_clusters:
            raise DataError(f"centers: expected {self.n_clusters!r} clusters, found {len(centers)}")
        clustering = Clustering(centers, float(state["inertia"]), int(state["n_iter"]))
        self._set_clustering(clustering, check_truth("normalize", state["normalize"]))
        self.cluster_sizes_ = np.asarray(state["cluster_sizes"], np.int64)
        check_count("cluster_sizes", self.cluster_sizes_, len(centers))
        if (self.cluster_sizes_ < 0).any():
            raise DataError("cluster_sizes: expected numbers of pairs, found one below 0")


def model_centers(model: Method) -> NDArray[np.float32] | None:
    """Return the centres of a model's clusters, or else of its population's; None: no such."""
    if isinstance(model, ClusterMethod):
        return model.cluster_centers_
    population = model.about_.population
    return population.centers if population is not None and len(population.centers) else None


def model_space(model: Method) -> Space | None:
    """Return what the embeddings that `model` is asked about must be like; None: nothing tells."""
    space: Space | None = getattr(model, "space_", None)
    centers = model_centers(model)
    if space is not None or centers is None:
        return space
    return Space(centers.shape[1], bool(getattr(model, "normalize_", True)))
