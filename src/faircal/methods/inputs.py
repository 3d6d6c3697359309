"""What a method may see of a dataset, in memory or part by part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal._base.jobs import Job
from faircal.calibrators import Samples
from faircal.compute import CPU, Clustering, Engine
from faircal.data import CohortVectors, Embeddings, Groups, Memo
from faircal.data.folds import deal_pairs
from faircal.data.types import Scores

Float64 = NDArray[np.float64]
T = TypeVar("T")

#: The set, or sets, of each pair: whole numbers from 0, −1 for none.
Codes = tuple[NDArray[np.integer], ...]


#: Gives the set or sets of each pair, such as clusters or groups.
PairSets = Callable[["Inputs"], Codes]


@dataclass(frozen=True, eq=False)
class GroupSets:
    """The group of each pair, of those named: a cross-group pair, or one of another, is of none."""

    names: tuple[str, ...]

    def __call__(self, inputs: Inputs) -> Codes:
        """Return the group of each pair."""
        return (declared(inputs.groups, "groups").renamed(self.names).pair,)


#: Gives another score of each pair than its similarity.
PairScores = Callable[["Inputs"], Float64]


@dataclass(frozen=True, eq=False)
class PeopleFolds:
    """Draws folds of people; `people` has a number for each image."""

    people: NDArray[np.int64]
    left: NDArray[np.intp]
    right: NDArray[np.intp]

    def __call__(self, n_folds: int, seed: int) -> NDArray[np.int64]:
        """Return the fold of each pair, from 1; −1 where its people are in two folds."""
        return deal_pairs(self.people, self.left, self.right, seed, n_folds)


class Space(NamedTuple):
    """What embeddings must have in common with those that a method was fitted on."""

    dimension: int
    normalize: bool

    @classmethod
    def of(cls, embeddings: Embeddings) -> Space:
        """Return the space of `embeddings`."""
        return cls(embeddings.dimension, embeddings.normalize)

    def check(self, embeddings: Embeddings) -> None:
        """Raise unless `embeddings` are of this space."""
        if embeddings.dimension != self.dimension:
            raise DataError(
                f"expected {self.dimension}-d embeddings, as in fitting, "
                f"found {embeddings.dimension}; use the network the model was made for"
            )
        if embeddings.normalize != self.normalize:
            raise DataError(
                f"the model was fitted with normalize={self.normalize}, the data was loaded with "
                f"normalize={embeddings.normalize}; load it the same way"
            )


@dataclass(frozen=True, eq=False)
class Fitting(ABC):
    """What a method is fitted on: labelled scores by set, images, groups; in memory or streamed.

    `images` are the rows of the images that occur in pairs, ascending. Of pairs nothing is seen
    but their share of genuine ones and what `samples` gathers, so that it does not matter how many
    there are. `cohort` is there where the method declares it and the user gives one; what of it is
    needed later is the method's to keep.
    """

    score_range: tuple[float, float]
    images: NDArray[np.intp]
    embeddings: Embeddings | None
    group_names: tuple[str, ...]
    share_genuine: float
    memo: Memo
    job: Job
    cohort: CohortVectors | None = field(default=None, kw_only=True)

    @abstractmethod
    def samples(
        self,
        sets: PairSets | None = None,
        n_sets: int = 0,
        scores: PairScores | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Samples:
        """Return the labelled scores of each set, and of all pairs as last set.

        Parameters
        ----------
        sets : callable, optional
            Gives the set or sets of each pair; one that is twice in the same counts once.
        n_sets : int
            How many there are.
        scores : callable, optional
            Gives another score of each pair; it lies in `score_range`.
        score_range : (float, float), optional
        """

    def clustering(self, n_clusters: int, n_init: int, random_state: int) -> Clustering:
        """Return K-means of the images; methods fitted on the same dataset object share it."""
        key = ("kmeans", n_clusters, n_init, random_state)
        clustering: Clustering = self.memo(
            key,
            lambda: self.engine.kmeans(
                self.vectors(),
                n_clusters,
                n_init=n_init,
                random_state=random_state,
                progress=self.job.progress,
            ),
        )
        return clustering

    @property
    def engine(self) -> Engine:
        """Where heavy work is done."""
        return CPU if self.embeddings is None else self.embeddings.engine

    def vectors(self, like: Space | None = None) -> NDArray[np.float32]:
        """Return the vectors of `images`; an error where they are not of the space `like`."""
        embeddings = declared(self.embeddings, "embeddings")
        if like is not None:
            like.check(embeddings)
        return embeddings.rows(self.images)


@dataclass(frozen=True, eq=False)
class Inputs(Fitting):
    """All that a method may see of a dataset: what it declares to need, and nothing else.

    Attribute-free methods get no `groups`; nobody gets labels or identities when predicting.
    `left` and `right` are rows of the embeddings; `identity` has a code for each of `images`,
    −1 where it is unknown; `folds` are for cross-validation on people held out.
    """

    scores: Scores
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_]
    groups: Groups | None
    identity: NDArray[np.int32] | None
    folds: PeopleFolds | None = None

    def __len__(self) -> int:
        return len(self.left)

    @property
    def score(self) -> Float64:
        """The similarity of each pair, shape (n_pairs,)."""
        return self.scores()

    def samples(
        self,
        sets: PairSets | None = None,
        n_sets: int = 0,
        scores: PairScores | None = None,
        score_range: tuple[float, float] | None = None,  # noqa: ARG002  (scores tell by themselves)
    ) -> Samples:
        """Return the labelled scores of each set, and of all pairs as last set."""
        values = self.score if scores is None else scores(self)
        codes = () if sets is None else sets(self)
        return Samples.of(values, self.genuine, *codes, n_sets=n_sets)

    def positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return for the two images of each pair their positions in `images`."""
        return np.searchsorted(self.images, self.left), np.searchsorted(self.images, self.right)

    def of_images(self, groups: Groups) -> NDArray[np.int32]:
        """Return the group of each of `images`, as its pairs tell it."""
        code = np.empty(int(self.images[-1]) + 1, dtype=np.int32)
        code[self.left], code[self.right] = groups.left, groups.right
        return code[self.images]


def declared(given: T | None, what: str) -> T:
    """Return `given`; an error where the method did not declare to need it."""
    if given is None:
        raise DataError(f"the method uses {what} without a word in its class variable 'needs'")
    return given


def check_classes(genuine: int, pairs: int, where: str, imposters: bool = True) -> None:
    """Raise unless there are genuine pairs to fit on and, where they are needed, imposters."""
    if genuine == 0 or (imposters and genuine == pairs):
        expected = "genuine and imposter pairs" if imposters else "genuine pairs"
        raise DataError(
            f"{where}: expected {expected}, found one class only ({pairs} pairs); "
            "add the other class"
        )


#: Images looked at at a time: their vectors are copied.
_IMAGES = 2**16

#: Values by row, and which of them are there.
_RowValues = tuple[NDArray[Any], NDArray[np.bool_]]


@dataclass(eq=False)
class ImageValues:
    """What a model computes of each image once, by row of the embeddings.

    Values are remembered for as long as the embeddings are in use: of a million pairs among a
    thousand images only the thousand are worked out.

    Parameters
    ----------
    space : Space
        What the embeddings must have in common with those of the fit.
    work : callable
        Gives the values of some vectors, an array with a row for each.
    width : int, optional
        Values of an image; one number, not a row of one, where it is not given.
    dtype : numpy dtype
    unit : bool
        Whether `work` is given vectors of unit length in double precision (`Embeddings.unit`).
    """

    space: Space
    work: Callable[[NDArray[Any], Engine], NDArray[Any]]
    dtype: Any
    width: int | None = None
    unit: bool = False
    # A model must not keep all the vectors alive that it was ever asked about.
    _values: WeakKeyDictionary[Embeddings, _RowValues] = field(
        default_factory=WeakKeyDictionary, init=False
    )

    def __getstate__(self) -> dict[str, Any]:
        # What was worked out stays with its embeddings: a copy in another process has others.
        return {**vars(self), "_values": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _values=WeakKeyDictionary())

    def at(self, embeddings: Embeddings, images: NDArray[np.intp]) -> NDArray[Any]:
        """Return values by row of `embeddings`; only those of `images` are sure to be there.

        Several threads may ask at a time: at worst the same is worked out twice.
        """
        values, done = self._of_embeddings(embeddings)
        new = images[~done[images]]
        for start in range(0, len(new), _IMAGES):
            rows = new[start : start + _IMAGES]
            vectors = embeddings.unit(rows) if self.unit else embeddings.rows(rows)
            values[rows] = self.work(vectors, embeddings.engine)
            done[rows] = True  # after the values: another thread may look
        return values

    def remember(
        self, embeddings: Embeddings, images: NDArray[np.intp], computed: NDArray[Any]
    ) -> None:
        """Take the values of `images` from somebody who has computed them."""
        values, done = self._of_embeddings(embeddings)
        values[images] = computed
        done[images] = True

    def _of_embeddings(self, embeddings: Embeddings) -> _RowValues:
        values = self._values.get(embeddings)
        if values is None:
            self.space.check(embeddings)
            n = len(embeddings)
            shape = (n,) if self.width is None else (n, self.width)
            new = np.empty(shape, dtype=self.dtype), np.zeros(n, dtype=bool)
            values = self._values.setdefault(embeddings, new)  # another thread may have been first
        return values
