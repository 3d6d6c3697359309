"""The dataset: images, pairs and features, validated once; what every other part takes."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal._base.errors import DataError, ParameterError
from faircal._base.registry import did_you_mean
from faircal.data.build import MOST_GROUPS, build_images, build_pairs
from faircal.data.cohort import Cohort
from faircal.data.cohort_overlap import join_cohort
from faircal.data.columns import UNKNOWN, Column, Index
from faircal.data.folds import crossing_identities, draw_folds
from faircal.data.tables import as_table
from faircal.data.types import (
    DEFAULT_FEATURE,
    Embeddings,
    Feature,
    Groups,
    Images,
    Pairs,
    Scores,
    cross,
)

T = TypeVar("T")

COSINE_RANGE = (-1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Memo:
    """What was computed before, by key."""

    values: dict[Any, Any]

    def __call__(self, key: Any, compute: Callable[[], T]) -> T:
        """Return ``compute()``, remembered under `key`."""
        if key not in self.values:
            self.values[key] = compute()
        return self.values[key]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dataset:
    """Face pairs with what is known of them. Do not change one in place; derive a new one.

    Parameters
    ----------
    embeddings : array of shape (n_images, d), mapping from feature name to array, or None
    pairs : table with ``left``, ``right``, ``genuine``, optional ``fold`` and ``score``
        pandas, Polars, Arrow or a mapping from column to array. ``left`` and ``right`` are image
        ids; without ids in `attributes` they are rows of `embeddings`.
    attributes : table with one row per image, optional
        ``image_id`` and ``identity`` where known, every other column is an attribute.
    name : str
        Shown in tables and reports.
    normalize : bool
        Scale embeddings to unit length before clustering and scoring.
    score_range : (float, float)
        The range of ready-made scores; cosines lie in (−1, 1).
    seed : int
        For drawing folds where `pairs` has none.
    cohort : Cohort, optional
        People of known groups, for methods that compare with them; parts of the data keep it.

    Attributes
    ----------
    images, pairs : Images, Pairs
    features : mapping from name to Feature
        `feature` is the one in use, `embeddings` its own (None where there are only scores);
        `select` gives the dataset with another.
    similarity : mapping from feature to Scores
        The scores of the pairs; those from embeddings are worked out once, when asked for.
    notes : tuple of str
        What was done to the data on the way in, for reports.
    has_images : bool
        Whether images are known: in a score table each side of a pair stands for its own.
    default_attribute : str or None
        All attribute columns crossed, ``"a+b"``, unless ``dataset.json`` names another.
    memo : Memo
        Lasts as long as this object, and knows nothing of it: lets methods fitted on the same data
        share work such as a clustering.

    Examples
    --------
    >>> data = Dataset(
    ...     embeddings=np.array([[3.0, 4.0], [4.0, 3.0], [1.0, 0.0]]),
    ...     pairs={"left": [0, 0], "right": [1, 2], "genuine": [1, 0], "fold": [1, 2]},
    ...     attributes={"ethnicity": ["Asian", "Asian", "Black"]},
    ... )
    >>> data.scores.round(2)
    array([0.96, 0.6 ])
    >>> data.groups("ethnicity").cross
    array([False,  True])
    """

    name: str
    images: Images
    pairs: Pairs
    features: Mapping[str, Feature]
    feature: str
    score_range: tuple[float, float]
    notes: tuple[str, ...]
    provenance: Mapping[str, Any]
    where: str
    memo: Memo
    embeddings: Embeddings | None
    similarity: Mapping[str, Scores]
    has_images: bool
    default_attribute: str | None
    cohort: Cohort | None
    #: Pairs in a part, of streams too, by default.
    BATCH: ClassVar[int] = 1 << 20

    def __init__(
        self,
        *,
        pairs: Any,
        embeddings: Any = None,
        attributes: Any = None,
        name: str = "data",
        normalize: bool = True,
        score_range: tuple[float, float] = COSINE_RANGE,
        seed: int = 0,
        cohort: Cohort | None = None,
    ) -> None:
        arrays = embeddings if isinstance(embeddings, Mapping) else {DEFAULT_FEATURE: embeddings}
        matrices = {
            key: value
            if isinstance(value, Embeddings)
            else Embeddings.of(value, f"embeddings '{key}'", normalize)
            for key, value in arrays.items()
            if value is not None
        }
        images = _images_of(attributes, matrices)
        limits = check_range(score_range)
        built, scores = build_pairs(as_table(pairs, "pairs"), Index(images.ids), "pairs", limits)
        features = join_scores(matrices, scores, "pairs")
        vars(self).update(vars(Dataset.assemble(name, images, built, features, limits, seed=seed)))
        check_vectors(self)
        if cohort is not None:
            vars(self).update(vars(join_cohort(self, cohort)))

    @classmethod
    def assemble(
        cls,
        name: str,
        images: Images,
        pairs: Pairs,
        features: Mapping[str, Feature],
        score_range: tuple[float, float] | None = COSINE_RANGE,
        provenance: Mapping[str, Any] | None = None,
        where: str = "",
        seed: int | None = 0,
        cohort: Cohort | None = None,
    ) -> Dataset:
        """Build a dataset from validated parts.

        Folds are drawn where the pairs have none; with `seed` None they stay without.
        """
        notes: tuple[str, ...] = ()
        if pairs.fold is None and seed is not None:
            fold, note = draw_folds(pairs, images, seed)
            pairs, notes = replace(pairs, fold=fold, drawn=True), (note,)
        ready = [feature.scores for feature in features.values() if feature.scores is not None]
        if not ready:
            score_range = COSINE_RANGE
        elif score_range is None:  # for measuring only: theirs, and at least a cosine's
            ends = [float(end) for scores in ready for end in (scores.min(), scores.max())]
            score_range = min(COSINE_RANGE[0], *ends), max(COSINE_RANGE[1], *ends)
        first, made = next(iter(features)), cls.__new__(cls)
        vars(made).update(
            name=name,
            images=images,
            pairs=pairs,
            features=features,
            feature=first,
            score_range=score_range,
            notes=notes,
            provenance=provenance or {},
            where=where or name,
            memo=Memo({}),
            embeddings=features[first].embeddings,
            similarity={
                name: Scores(feature.scores, feature.embeddings, pairs.left, pairs.right)
                for name, feature in features.items()
            },
            has_images=not images.by_side,
            default_attribute="+".join(images.crossed) or None,
            cohort=cohort,
        )
        return made

    # ------------------------------------------------------------------ views

    def __len__(self) -> int:
        return len(self.pairs.left)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name!r}: {len(self.pairs)} pairs, {len(self.images)} images, "
            f"features {', '.join(self.features)}, attributes {', '.join(self.images.attributes)}>"
        )

    @property
    def scores(self) -> NDArray[np.float64]:
        """Similarity of each pair under the feature in use, shape (n_pairs,)."""
        return self.similarity[self.feature]()

    @property
    def genuine(self) -> NDArray[np.bool_]:
        """Label of each pair; `DataError` where the pairs carry none."""
        if self.pairs.genuine is None:
            raise DataError(
                f"{self.where}: the pairs have no column 'genuine'; "
                "add it: labels are needed to fit and to measure"
            )
        return self.pairs.genuine

    @property
    def fold_names(self) -> list[Any]:
        """The folds that occur, in order."""
        if self.pairs.fold is None:
            return []
        names = np.unique(self.pairs.fold)
        if self.pairs.drawn:
            names = names[names != UNKNOWN]
        return [name.item() for name in names]

    @property
    def drawn_folds(self) -> bool:
        """Whether faircal drew the folds (the data had none)."""
        return self.pairs.drawn

    def used_images(self) -> NDArray[np.intp]:
        """Rows of the distinct images that occur in the pairs, ascending."""
        used = np.zeros(len(self.images.ids), dtype=bool)
        used[self.pairs.left] = True
        used[self.pairs.right] = True
        return np.flatnonzero(used)

    def groups(self, attribute: str | None = None) -> Groups:
        """Return the groups of all pairs for `attribute` (``a+b`` crosses; None: the default)."""
        attribute = attribute or self.default_attribute
        column = self.image_groups(attribute)
        names = str(attribute).split("+")
        crossed = len(names) > 1 and attribute not in self.images.attributes
        parts = {name: self.groups(name) for name in names} if crossed else {}
        left, right = column.codes[self.pairs.left], column.codes[self.pairs.right]
        return Groups(column.names, left, right, parts)

    @property
    def people(self) -> Groups | None:
        """Who is in each pair, as groups of their images; None where identities are unknown."""
        identity = self.images.identity
        if identity is None or not identity.names:
            return None
        left, right = identity.codes[self.pairs.left], identity.codes[self.pairs.right]
        return Groups(identity.names, left, right)

    def image_groups(self, attribute: str | None = None) -> Column:
        """Return the group of each image for `attribute`, as `groups` has it for pairs."""
        attribute = attribute or self.default_attribute
        if attribute is None:
            raise DataError(f"{self.where}: {self.why_no_groups()}")
        return cross(self.images.attributes, attribute, self.where)

    def why_no_groups(self) -> str:
        """Say why there is no default attribute, and what to do."""
        return why_no_groups(self.images.attributes)

    # ------------------------------------------------- as `PairParts`, all here

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(self.images.attributes)

    def group_names(self, attribute: str | None = None) -> tuple[str, ...]:
        """Return the groups of `attribute`, in order."""
        return self.image_groups(attribute).names

    def head(self) -> Dataset:
        """Return the pairs, which tell what all come with."""
        return self

    def parts(
        self,
        start: int = 0,
        columns: Collection[str] | None = None,  # noqa: ARG002
    ) -> Generator[Dataset, None, None]:
        """Yield the pairs from number `start` on, at most `BATCH` at a time."""
        for begin in range(start, len(self), self.BATCH):
            stop = min(begin + self.BATCH, len(self))
            yield self if stop - begin == len(self) else self.subset(np.arange(begin, stop))

    def reduce(
        self,
        start: Callable[[], T],
        columns: Collection[str] | None = None,  # noqa: ARG002
        *,
        progress: Callable[[int, int], None] | None = None,
        kept: Any = None,  # noqa: ARG002
    ) -> T:
        """Add all pairs at once to a tally; see `StoredPairs.reduce`."""
        tally: Any = start()
        tally.add(self)
        if progress is not None:
            progress(len(self), len(self))
        return tally  # type: ignore[no-any-return]

    # --------------------------------------------------------------- derived

    def with_cohort(self, cohort: Cohort | None) -> Dataset:
        """Return the dataset with a cohort of its networks, or with none; see `join_cohort`, too.

        Nobody looks here who is in both.
        """
        if cohort is not None:
            named = {name: feature.embeddings for name, feature in self.features.items()}
            cohort = cohort.like(named, self.where)
        made = copy.copy(self)
        vars(made).update(cohort=cohort, memo=Memo({}))
        return made

    def select(self, feature: str) -> Dataset:
        """Return the dataset with another feature in use."""
        if feature == self.feature:
            return self
        if feature not in self.features:
            raise no_such_feature(feature, self.features, self.where)
        made, embeddings = copy.copy(self), self.features[feature].embeddings
        vars(made).update(feature=feature, embeddings=embeddings, memo=Memo({}))
        return made

    def subset(self, rows: NDArray[Any]) -> Dataset:
        """Return the dataset of the pairs `rows` (indices or a mask); vectors are shared."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
        kept: dict[str, Any] = {
            name: array[index]
            for name, array in vars(self.pairs).items()
            if isinstance(array, np.ndarray)
        }
        pairs = replace(self.pairs, **kept)
        features, similarity = {}, {}
        for name, feature in self.features.items():
            ready, scores = feature.scores, self.similarity[name].values
            ready = None if ready is None else ready[index]
            scores = None if scores is None else scores[index]
            features[name] = Feature(feature.embeddings, ready)
            similarity[name] = Scores(scores, feature.embeddings, pairs.left, pairs.right)
        made = copy.copy(self)
        vars(made).update(pairs=pairs, features=features, similarity=similarity, memo=Memo({}))
        return made

    def with_pairs(self, pairs: Pairs) -> Dataset:
        """Return the dataset with other pairs of its images; their scores are cosines."""
        features = {name: Feature(feature.embeddings) for name, feature in self.features.items()}
        similarity = {
            name: Scores(None, feature.embeddings, pairs.left, pairs.right)
            for name, feature in features.items()
        }
        made = copy.copy(self)
        vars(made).update(pairs=pairs, features=features, similarity=similarity, memo=Memo({}))
        return made

    def split(self, test_fold: Any) -> tuple[Dataset, Dataset]:
        """Return (calibration, test): all other folds, and `test_fold`.

        Pairs that belong to no drawn fold are in neither. Where more than 5 % of the people to test
        on are calibrated on, too, it is a `DataError`; fewer are counted in the `notes` of both.
        """
        test = self._of_fold(test_fold)
        calibration = ~test
        if self.pairs.drawn:
            calibration &= self.pairs.fold != UNKNOWN
        parts = self.subset(calibration), self.subset(test)
        for fault in crossing_identities(self, test_fold):
            if fault.severity == "error":
                raise DataError(f"{self.where}: {fault}")
            for part in parts:
                vars(part).update(notes=(*self.notes, str(fault)))
        return parts

    def only(self, fold: Any) -> Dataset:
        """Return the pairs of `fold`, whoever is in others."""
        return self.subset(self._of_fold(fold))

    def _of_fold(self, fold: Any) -> NDArray[np.bool_]:
        folds = self.fold_names
        if self.pairs.fold is None or fold not in folds:
            raise no_such_fold(fold, folds, self.where)
        return np.asarray(self.pairs.fold == fold)

    def fingerprint(self) -> str:
        """SHA-256 over labels, folds, pairs, attributes, features' values and use, and cohort."""
        sha = hashlib.sha256()
        if self.cohort is not None:
            sha.update(self.cohort.fingerprint().encode())
        sha.update(str(self.score_range).encode())
        for array in (self.pairs.left, self.pairs.right, self.pairs.genuine, self.pairs.fold):
            if array is not None:
                sha.update(np.ascontiguousarray(array).tobytes())
        for key, column in sorted(self.images.attributes.items()):
            sha.update(f"{key}:{column.names}".encode())
            sha.update(column.codes.tobytes())
        for key, feature in sorted(self.features.items()):
            sha.update(key.encode())
            if feature.embeddings is not None:
                sha.update(str(feature.embeddings.normalize).encode())
                if feature.embeddings.device != "cpu":  # which changes the last digits
                    sha.update(feature.embeddings.device.encode())
                sha.update(np.ascontiguousarray(feature.embeddings.vectors).view(np.uint8).data)
            if feature.scores is not None:
                sha.update(feature.scores.tobytes())
        return sha.hexdigest()

    hash = fingerprint


def _images_of(attributes: Any, matrices: Mapping[str, Embeddings]) -> Images:
    if attributes is None and not matrices:
        raise DataError("embeddings are missing: give embeddings, or attributes by image")
    if attributes is not None:
        images, where = build_images(as_table(attributes, "attributes"), "attributes"), "attributes"
    else:
        first = next(iter(matrices.values()))
        images, where = Images(pa.array(np.arange(len(first)))), first.where
    check_counts(images, matrices.values(), where)
    return images


def why_no_groups(attributes: Collection[str]) -> str:
    """Say why columns `attributes` make no groups unless one is named, and what to do."""
    if not attributes:
        return "there is no attribute column; add one to measure groups"
    return (
        f"no column makes groups by itself ({', '.join(attributes)}: empty, over {MOST_GROUPS} "
        "values, or whole numbers in a score table); name one as attribute"
    )


def no_such_feature(feature: str, features: Collection[str], where: str) -> ParameterError:
    """Return the error for a feature that is not among `features`."""
    return ParameterError(
        f"{where}: unknown feature {feature!r}; {did_you_mean(feature, features)}"
    )


def no_such_fold(fold: Any, folds: Collection[Any], where: str) -> ParameterError:
    """Return the error for a fold that is not among `folds`."""
    expected = ", ".join(map(str, folds)) or "none"
    return ParameterError(f"{where}: no fold {fold!r}; expected one of {expected}")


def check_range(score_range: tuple[float, float]) -> tuple[float, float]:
    """Return `score_range` as two floats, low before high."""
    low, high = map(float, score_range)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"score_range: expected low < high, found ({low:g}, {high:g})")
    return low, high


def check_counts(images: Images, matrices: Iterable[Embeddings], where: str) -> None:
    """Raise unless every embedding matrix has a row for each image."""
    for matrix in matrices:
        if len(matrix.vectors) != len(images.ids):
            raise DataError(
                f"{matrix.where}: expected {len(images)} rows, one per row of {where}, found "
                f"{len(matrix)}; save embeddings and images in the same order"
            )


def join_scores(
    matrices: Mapping[str, Embeddings], scores: NDArray[np.float64] | None, where: str
) -> dict[str, Feature]:
    """Join embeddings with a ``score`` column; the column is then the similarity that counts."""
    if scores is None and not matrices:
        raise DataError(
            f"{where}: there are neither embeddings nor a column 'score'; "
            "embed the pictures with 'faircal embed', or supply embeddings.npy or scores"
        )
    if scores is None:
        return {name: Feature(matrix) for name, matrix in matrices.items()}
    if len(matrices) > 1:
        raise DataError(
            f"{where}: column 'score' does not say which of the features "
            f"{', '.join(matrices)} it belongs to; remove it or keep one feature"
        )
    if not matrices:
        return {"score": Feature(None, scores)}
    return {name: Feature(matrix, scores) for name, matrix in matrices.items()}


def check_vectors(data: Dataset) -> None:
    """Raise when an image that a pair uses has a NaN, infinite or zero vector."""
    used = data.used_images()
    for feature in data.features.values():
        if feature.embeddings is None:
            continue
        bad = feature.embeddings.unusable[used]
        if bad.any():
            row = int(used[np.flatnonzero(bad)[0]])
            raise DataError(
                f"{feature.embeddings.where}, row {row + 1} (image {data.images.ids[row]}): "
                f"NaN, infinite or zero vector ({int(bad.sum())} such images in use); "
                "embed these images again or drop their pairs"
            )
