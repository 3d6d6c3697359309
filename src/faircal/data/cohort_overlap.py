"""What a cohort must not share with the data that it goes with, and what shows another network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.cohort import Cohort
from faircal.data.columns import Column
from faircal.data.types import Embeddings

if TYPE_CHECKING:
    from faircal.data.dataset import Dataset
    from faircal.data.parts import PairParts

D = TypeVar("D", bound="PairParts")
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

#: More of the cohort's people than this share are not left out, but refused.
MOST_SHARED = 0.05
#: Two images are the same picture where they are so many times nearer than the median genuine pair,
#: by 1 − cosine, and so many times nearer than all but 1 % of images are to any stranger. On two
#: real networks the first finds just the pictures that are there twice under two names; it holds,
#: too, where all cosines are near 1. The second is for networks of few dimensions.
_NEARER, _NEARER_STILL = 10, 4
#: Images of two networks vary in directions that agree no more than this (0: by chance, 1: alike).
#: On two real networks and simulated ones, groups against other groups agree by 0.12 or more, the
#: same turned by 0.04 at most; from so many people on, of each.
_AGREE, _ENOUGH = 0.06, 60
#: Where covariances are so near to those of no direction at all, nobody can tell.
_ROUND = 0.8
#: Images, and genuine pairs of each part, that tell what cosines are like.
_SAMPLED = 400
#: Cosines held at a time.
_CELLS = 1 << 23


class DataInUse:
    """The images that occur in pairs, and how alike some of the genuine pairs are."""

    def __init__(self, n_images: int) -> None:
        self.used, self.genuine = np.zeros(n_images, bool), np.empty(0)

    def add(self, part: Dataset) -> None:
        """Look at a part."""
        pairs, embeddings = part.pairs, part.embeddings
        self.used[pairs.left] = self.used[pairs.right] = True
        if pairs.genuine is not None and embeddings is not None:
            rows = np.flatnonzero(pairs.genuine)
            rows = rows[:: max(1, len(rows) // _SAMPLED)]
            cosines = embeddings.cosine(pairs.left[rows], pairs.right[rows])
            self.genuine = np.concatenate([self.genuine, cosines])

    def merge(self, other: DataInUse) -> None:
        """Add other parts."""
        self.used |= other.used
        self.genuine = np.concatenate([self.genuine, other.genuine])

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all as JSON and arrays."""
        return {}, {"used": np.packbits(self.used), "genuine": self.genuine}

    def restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: ARG002
        """Go on from what `state` gave."""
        self.used = np.unpackbits(arrays["used"], count=len(self.used)).astype(bool)
        self.genuine = arrays["genuine"]


def join_cohort(data: D, cohort: Cohort | None, most_shared: float = MOST_SHARED) -> D:
    """Return `data` with those of `cohort` who are not in it.

    People are left out who are called as people of the pairs are, or of whom a picture is one of
    theirs, up to that share of the cohort's people. A stream, and pairs on Spark, are gone through
    once to see who is in them.

    Raises
    ------
    DataError
        Where the cohort is of another network, or so many people are in both that it is no cohort
        of this data, or nobody is left of a group.
    """
    if cohort is None:
        return data
    with_all = data.with_cohort(cohort)
    cohort, images = with_all.cohort, with_all.images
    if cohort is None or images is None:  # refused by `with_cohort`
        return data
    name = data.feature if data.feature in cohort.embeddings else next(iter(cohort.embeddings))
    selected = with_all.select(name)
    in_use = selected.reduce(partial(DataInUse, len(images)), ("genuine",))
    likeness = _compare(cohort, name, selected.embeddings, images.identity, in_use)
    likeness.check_network(cohort.where, data.where)
    cohort = _without_shared(cohort, likeness, data.where, most_shared)
    return data.with_cohort(cohort)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class _Likeness:
    """How a cohort's images compare with those of the data.

    Parameters
    ----------
    nearest : ndarray of shape (n,)
        The largest cosine of each image with one of the data.
    namesakes : ndarray of shape (n_people,)
        The mean cosine of each of the cohort's people with those of the data who have their name;
        NaN where nobody has.
    genuine : float
        The median cosine of the data's genuine pairs; NaN where it has none.
    crowded : float
        The largest cosine with a stranger, of one in a hundred of the data's images.
    across : float
        The mean cosine of an image of each.
    agreement : float
        How well the directions agree in which images of both vary; NaN where nobody can tell.
    lengths : float
        How many times longer the cohort's vectors are than the data's, as they are used.
    """

    nearest: Float32
    namesakes: Float64
    genuine: float
    crowded: float
    across: float
    agreement: float
    lengths: float

    def check_network(self, cohort: str, data: str) -> None:
        """Raise where the embeddings are of two networks, as far as they tell."""
        remedy = "another network, or prepared in another way; embed both alike"
        if not 0.5 < self.lengths < 2:
            raise DataError(
                f"{cohort}: its vectors are {self.lengths:.3g} times as long as those of {data}, "
                f"which are used as stored: {remedy}"
            )
        if self.agreement < _AGREE:
            raise DataError(
                f"{cohort}: its images vary in directions that agree with those of {data} only by "
                f"chance ({100 * self.agreement:.0f} %): {remedy}"
            )

    def same_picture(self) -> NDArray[np.bool_]:
        """Tell which images are a picture of the data."""
        apart = 1e-5 if np.isnan(self.genuine) else 1 - self.genuine
        least = min(apart / _NEARER, (1 - self.crowded) / _NEARER_STILL)
        return np.asarray(1 - self.nearest < least)

    @property
    def numbered(self) -> bool:
        """Whether most people look like strangers to their namesakes."""
        genuine = 1.0 if np.isnan(self.genuine) else self.genuine
        return bool(np.nanmedian(self.namesakes) < (genuine + self.across) / 2)


def _compare(
    cohort: Cohort, name: str, embeddings: Embeddings | None, people: Column | None, used: DataInUse
) -> _Likeness:
    """Compare all images of a cohort with all that pairs use, block by block."""
    if embeddings is None:
        raise DataError("a cohort goes with embeddings")
    own, rows = cohort.embeddings[name], np.flatnonzero(used.used)
    unit, theirs = (
        each if each.normalize else replace(each, normalize=True) for each in (own, embeddings)
    )
    vectors, n = unit.rows(np.arange(len(own))), len(own)
    # The cohort's number of each person of the data: −2 where it has none.
    code = {person: number for number, person in enumerate(cohort.identity.names)}
    names = () if people is None else people.names
    numbers = np.array([*(code.get(person, -2) for person in names), -2], np.int32)
    persons = numbers[np.full(len(rows), -1) if people is None else people.codes[rows]]
    nearest = np.full(n, -1, np.float32)
    sample, own_sample = _spread(len(rows)), _spread(n)
    known = np.arange(-len(rows), 0) if people is None else people.apart[rows]
    looked_at, closest = theirs.rows(rows[sample]), np.full(len(sample), -1, np.float32)
    across, (sums, counts) = 0.0, np.zeros((2, len(cohort.identity.names)))
    for start in range(0, len(rows), max(1, _CELLS // n)):
        block = slice(start, start + max(1, _CELLS // n))
        block_rows = theirs.rows(rows[block])
        cosines = vectors @ block_rows.T
        np.maximum(nearest, cosines.max(axis=1), out=nearest)
        across += float(cosines.sum(dtype=np.float64))
        strange = known[sample][:, None] != known[block]
        others = np.where(strange, looked_at @ block_rows.T, -1).max(axis=1)
        np.maximum(closest, others, out=closest)
        for column in np.flatnonzero(persons[block] >= 0):
            person = persons[block][column]
            same = cosines[cohort.identity.codes == person, column]
            sums[person] += same.sum()
            counts[person] += len(same)
    longer = np.median(own.norms) / np.median(embeddings.norms[rows]) if len(rows) else 1.0
    return _Likeness(
        nearest=nearest,
        namesakes=np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0),
        genuine=float(np.median(used.genuine)) if len(used.genuine) else np.nan,
        crowded=float(np.quantile(closest, 0.99)) if len(closest) else 0.0,
        across=across / max(1, n * len(rows)),
        agreement=_agreement(
            vectors[own_sample], cohort.identity.codes[own_sample], looked_at, known[sample]
        ),
        lengths=1.0 if embeddings.normalize else float(longer),
    )


def _spread(n: int) -> NDArray[np.intp]:
    """Return some of `n` rows, evenly picked."""
    return np.unique(np.linspace(0, max(0, n - 1), min(n, _SAMPLED)).astype(np.intp))


def _agreement(
    own: Float32, own_person: NDArray[np.int32], theirs: Float32, person: NDArray[np.int64]
) -> float:
    """Return how well directions agree: 1 where two sets vary alike, 0 where one is turned at will.

    With covariances S and T of dimension d, tr(ST) / √(tr(S²) tr(T²)) is 1 where they are alike;
    by chance tr(S) tr(T) / d is in place of tr(ST). NaN where either is about the same in all
    directions, or people are few.
    """
    if min(len(np.unique(own_person)), len(np.unique(person))) < _ENOUGH:
        return np.nan
    own, theirs = own - own.mean(axis=0), theirs - theirs.mean(axis=0)
    squares = np.array([_squares(own, own_person), _squares(theirs, person)])
    lengths = np.array([np.square(each).sum(axis=1).mean() for each in (own, theirs)])
    if not (lengths**2 < _ROUND * own.shape[1] * squares).all():
        return np.nan
    within = float(np.sqrt(squares.prod()))
    chance = float(lengths.prod()) / own.shape[1] / within
    across = float(np.square(own @ theirs.T).mean()) / within
    return float((across - chance) / (1 - chance))


def _squares(vectors: Float32, person: NDArray[np.integer]) -> float:
    """Return the mean squared product of strangers; NaN where there are none."""
    strange = person[:, None] != person
    return float(np.square(vectors @ vectors.T)[strange].mean()) if strange.any() else np.nan


def _without_shared(cohort: Cohort, likeness: _Likeness, where: str, most: float) -> Cohort:
    """Return the cohort without those who are in the data too; say who is left out, and why."""
    people, codes = len(cohort.identity.names), cohort.identity.codes
    named = np.flatnonzero(~np.isnan(likeness.namesakes))
    notes = []
    if len(named) > MOST_SHARED * people and likeness.numbered:
        # People who are merely numbered alike, from 0 in both.
        notes.append(
            f"{cohort.where}: {len(named)} of {people} people are called as people of "
            f"{where} are, but look like strangers to them: taken for others"
        )
        named = named[:0]
    pictured = np.setdiff1d(codes[likeness.same_picture()], named)
    shared = np.union1d(named, pictured)
    keep = ~np.isin(codes, shared)
    if len(shared):
        example = cohort.identity.names[shared[0]]
        text = (
            f"{cohort.where}: {len(shared)} of {people} people are in {where}, too "
            f"({len(named)} by name, {len(pictured)} by a picture; for example {example!r})"
        )
        left = np.unique(cohort.groups.codes[keep])
        gone = [name for code, name in enumerate(cohort.groups.names) if code not in left]
        if gone or len(shared) > most * people:
            many = len(shared) > most * people
            why = (
                f"more than {100 * most:.0f} %" if many else f"nobody else is in group {gone[0]!r}"
            )
            raise DataError(f"{text}: {why}; take other people for the cohort")
        notes.append(f"{text}: left out")
    made = cohort.subset(np.flatnonzero(keep)) if len(shared) else cohort
    return replace(made, notes=(*cohort.notes, *notes)) if notes else made
