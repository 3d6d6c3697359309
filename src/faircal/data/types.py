"""The few frozen types that data is made of: embeddings, images, pairs, features, faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from faircal._base.errors import DataError
from faircal._base.registry import did_you_mean
from faircal.compute import Engine, engine, kernels
from faircal.compute.threads import each
from faircal.data.columns import UNKNOWN, Column

#: What embeddings are called where they are given without a name.
DEFAULT_FEATURE = "embedding"
#: Rows taken at a time: a block of 512-d float32 rows stays in the cache.
_BLOCK = 512


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The vectors of all images, one row each, as stored.

    Parameters
    ----------
    vectors : ndarray of shape (n_images, d), float16 or float32
        May be memory-mapped.
    normalize : bool
        Whether vectors are scaled to unit length when they are used (`rows`).
    device : str
        Where heavy work on them is done: ``cpu``, or ``cuda`` with the extra torch.
    where : str
        The file they are from, or what else they are called in messages.
    """

    vectors: NDArray[Any]
    normalize: bool = True
    device: str = "cpu"
    where: str = "embeddings"

    @classmethod
    def of(
        cls, vectors: Any, where: str, normalize: bool = True, device: str = "cpu"
    ) -> Embeddings:
        """Validate `vectors`: two-dimensional, floating point; float64 becomes float32."""
        try:
            array = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
        except ValueError as error:
            raise DataError(
                f"{where}: expected rows of equal length, found {type(vectors).__name__} of "
                "unequal ones; save one vector per image"
            ) from error
        if array.ndim != 2 or not array.shape[1]:
            raise DataError(
                f"{where}: expected a matrix with one row per image, found shape {array.shape}; "
                "save the embeddings as an array of shape (images, dimension)"
            )
        if array.dtype not in (np.float16, np.float32, np.float64):
            raise DataError(
                f"{where}: expected float16, float32 or float64, found {array.dtype}; "
                "convert with .astype('float32')"
            )
        if array.dtype == np.float64:
            with np.errstate(over="ignore"):  # becomes infinite, and is reported as such
                array = array.astype(np.float32)
        engine(device)  # one that is not there is an error now, not later
        return cls(array, normalize, device, where)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Length of one vector."""
        return int(self.vectors.shape[1])

    @property
    def engine(self) -> Engine:
        """What does heavy work on the vectors."""
        return engine(self.device)

    @cached_property
    def norms(self) -> NDArray[np.float32]:
        """Euclidean length of each row, shape (n_images,); NaN or infinite where a row is."""
        norms = np.empty(len(self.vectors), dtype=np.float32)

        def work(block: slice) -> None:
            # In C order: sums come out the same however rows are stored.
            rows = np.ascontiguousarray(self.vectors[block], dtype=np.float32)
            kernels.lengths(rows, norms[block])

        each(work, len(norms), _BLOCK)
        return norms

    @property
    def unusable(self) -> NDArray[np.bool_]:
        """Rows that are NaN, infinite or zero, shape (n_images,)."""
        return np.asarray(~np.isfinite(self.norms) | (self.norms == 0))

    def rows(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the vectors of `rows` as methods use them, shape (len(rows), d), float32.

        Of unit length, unless ``normalize=False``.
        """
        taken = np.empty((len(rows), self.vectors.shape[1]), dtype=np.float32)
        norms = self.norms if self.normalize else None

        def work(block: slice) -> None:
            taken[block] = self.vectors[rows[block]]
            if norms is not None:
                taken[block] /= norms[rows[block], None]

        each(work, len(rows), _BLOCK)
        return taken

    def unit(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the vectors of `rows` at unit length, to the last digit of double precision."""
        taken = np.empty((len(rows), self.vectors.shape[1]))

        def work(block: slice) -> None:
            part = self.vectors[rows[block]].astype(np.float64)
            norms = np.sqrt(np.einsum("ij,ij->i", part, part))
            np.divide(part, norms[:, None], out=taken[block])

        each(work, len(rows), _BLOCK)
        return taken

    def cosine(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the cosine similarity of rows `left` and `right`, clipped to [−1, 1]."""
        return engine(self.device).cosines(self.vectors, self.norms, left, right)


@dataclass(frozen=True, eq=False)
class Images:
    """What is known of each image besides its embedding.

    Parameters
    ----------
    ids : pyarrow.Array
        Image ids, unique, integers or text.
    identity : Column or None
        The person in each image.
    attributes : mapping from name to Column
        Sensitive columns (``ethnicity``, ``gender``, …).
    crossed : tuple of str
        The attributes that make the groups when none is named: normally all of them.
    by_side : bool
        True for a score table, which knows no images: each side of each pair stands for one.
    """

    ids: pa.Array
    identity: Column | None = None
    attributes: Mapping[str, Column] = field(default_factory=dict)
    crossed: tuple[str, ...] = ()
    by_side: bool = False

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two images compared, a pair an element.

    Parameters
    ----------
    left, right : ndarray of shape (n_pairs,), intp
        Rows of the images table (and so of the embeddings).
    genuine : ndarray of shape (n_pairs,), bool, or None
        Same person or not; None where nobody knows (pairs to be scored).
    fold : ndarray of shape (n_pairs,)
        The fold a pair belongs to: integers or text. Where folds were drawn, −1 marks pairs whose
        two people fell into different folds; they belong to none.
    probability : ndarray of shape (n_pairs,), float64, or None
        What somebody's model said, in a table that is to be audited.
    drawn : bool
        Whether faircal drew the folds, because the data had none.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    genuine: NDArray[np.bool_] | None
    fold: NDArray[Any] | None = None
    probability: NDArray[np.float64] | None = None
    drawn: bool = False

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True, eq=False)
class Feature:
    """What one face network gives: embeddings, ready-made scores of the pairs, or both."""

    embeddings: Embeddings | None = None
    scores: NDArray[np.float64] | None = None


@dataclass(eq=False)
class Scores:
    """The scores of pairs: known already, or to be worked out from embeddings when asked for."""

    values: NDArray[np.float64] | None
    embeddings: Embeddings | None = None
    left: NDArray[np.intp] | None = None
    right: NDArray[np.intp] | None = None

    def __call__(self) -> NDArray[np.float64]:
        """Return the score of each pair, shape (n_pairs,)."""
        if self.values is None:
            if self.embeddings is None or self.left is None or self.right is None:
                raise DataError("there are neither embeddings nor scores; supply one")
            self.values = self.embeddings.cosine(self.left, self.right)
        return self.values


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each pair's two images, as codes into `names`; −1 is unknown.

    A pair belongs to a group only when both of its images do. A pair of two different groups is
    *cross-group*; one with an unknown attribute is *unknown*; both count globally, in no group.
    Groups of crossed attributes have the groups of each attribute alone as `parts`, by name.
    """

    names: tuple[str, ...]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    parts: Mapping[str, Groups] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def unknown(self) -> NDArray[np.bool_]:
        """Pairs with at least one unknown side, shape (n_pairs,)."""
        return np.asarray((self.left == UNKNOWN) | (self.right == UNKNOWN))

    @cached_property
    def cross(self) -> NDArray[np.bool_]:
        """Pairs of two different known groups, shape (n_pairs,)."""
        return np.asarray((self.left != self.right) & ~self.unknown)

    @cached_property
    def pair(self) -> NDArray[np.int32]:
        """Code of the group both images belong to, or −1, shape (n_pairs,)."""
        return np.where(self.left == self.right, self.left, np.int32(UNKNOWN))

    def shares(self) -> dict[str, int]:
        """Count all, cross-group and unknown pairs."""
        return {
            "pairs": len(self.left),
            "cross_group_pairs": int(self.cross.sum()),
            "unknown_pairs": int(self.unknown.sum()),
        }

    def renamed(self, names: Sequence[str]) -> Groups:
        """Return the same groups coded by `names`; a group that is not among them is unknown."""
        code = {name: i for i, name in enumerate(names)}
        table = np.array(
            [code.get(name, UNKNOWN) for name in self.names] + [UNKNOWN], dtype=np.int32
        )
        return Groups(tuple(names), table[self.left], table[self.right])


def unknown_note(attribute: str, unknown: int, pairs: int) -> list[str]:
    """Say what share of `pairs` is of unknown group; nothing where there is none."""
    share = 100 * unknown / max(pairs, 1)
    note = f"{unknown} of {pairs} pairs ({share:.1f} %) have an unknown {attribute}: "
    return [note + "they count globally and in no group"] if unknown else []


def cross(columns: Mapping[str, Column], attribute: str, where: str = "data") -> Column:
    """Return the column of `attribute`; ``a+b`` crosses two columns into ``"A B"`` groups.

    Examples
    --------
    >>> e, g = Column.of(["Asian", "Black", "Asian"]), Column.of(["F", "M", ""])
    >>> cross({"ethnicity": e, "gender": g}, "ethnicity+gender")
    Column(codes=array([ 0,  1, -1], dtype=int32), names=('Asian F', 'Black M'))
    """
    parts = [attribute] if attribute in columns else attribute.split("+")
    for part in parts:
        if part not in columns:
            hint = did_you_mean(part, columns)
            raise DataError(f"{where}: attribute '{part}' is not in the data; {hint}")
        if parts.count(part) > 1:
            raise DataError(f"{where}: '{attribute}' crosses '{part}' with itself; name it once")
    codes = columns[parts[0]].codes.astype(np.int64)
    names = list(columns[parts[0]].names)
    for part in parts[1:]:
        column = columns[part]
        width = max(len(column.names), 1)
        unknown = (codes == UNKNOWN) | (column.codes == UNKNOWN)
        codes = np.where(unknown, UNKNOWN, codes * width + column.codes)
        names = [f"{a} {b}" for a in names for b in column.names]
    # Only combinations that occur are groups.
    present = np.flatnonzero(np.bincount(codes + 1, minlength=len(names) + 1)[1:])
    renumber = np.full(max(len(names), 1) + 1, UNKNOWN, dtype=np.int32)
    renumber[present] = np.arange(len(present), dtype=np.int32)
    return Column(renumber[codes], tuple(names[i] for i in present))


@dataclass(frozen=True)
class Fault:
    """One kind of fault found in a dataset.

    ``error``: the data cannot be used; ``warning``: it can, but look first; ``note``: good to know.
    What has no `example` is said without a count.
    """

    severity: Literal["error", "warning", "note"]
    what: str
    count: int
    example: str
    remedy: str

    def __str__(self) -> str:
        cases = f": {self.count} (for example {self.example})" if self.example else ""
        return f"{self.what}{cases}; {self.remedy}"


def people_of(pairs: Pairs, images: Images) -> tuple[NDArray[np.int64], str]:
    """Return a person's number for each image, and where it comes from."""
    identity = images.identity
    if identity is not None and len(identity.names):
        return identity.apart, "identities"  # an image of an unknown person: one of its own
    if pairs.genuine is None:
        return np.arange(len(images)), "images (no identities, no labels)"
    same = connected(pairs.left[pairs.genuine], pairs.right[pairs.genuine], len(images))
    return same, "genuine pairs (no identities)"


def connected(left: NDArray[np.integer], right: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """Return for each of `n` things the number of the set that its pairs connect it with."""
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
