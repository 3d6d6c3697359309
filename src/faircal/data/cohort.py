"""A cohort: some public people of known groups, run once through the network of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal._base.errors import DataError
from faircal.data.columns import Column, first_true
from faircal.data.types import DEFAULT_FEATURE, Embeddings

#: A group of fewer people is few, one of no more than `TOO_FEW` too few: how alike strangers of
#: its kind look to a network varies with who they are.
FEW, TOO_FEW = 10, 5


class CohortVectors(NamedTuple):
    """What a method sees of a cohort, an image a row.

    Attributes
    ----------
    vectors : ndarray of shape (n, d), float32
        Of the network in use, scaled as the data's.
    person : ndarray of shape (n,), int32
        Who is in each image, from 0.
    group : ndarray of shape (n,), int32
        Of each image; −1 is unknown.
    group_names : tuple of str
    embeddings : Embeddings
        The vectors as stored.
    """

    vectors: NDArray[np.float32]
    person: NDArray[np.int32]
    group: NDArray[np.int32]
    group_names: tuple[str, ...]
    embeddings: Embeddings


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Cohort:
    """People of known identity and group: what methods compare with that must not ask for groups.

    Parameters
    ----------
    embeddings : array of shape (n_images, d), or mapping from feature name to array
        Of the networks of the data it goes with.
    identity : sequence of shape (n_images,)
        Who is in each image. Images of unknown people are left out.
    groups : sequence of shape (n_images,)
        The group of each; empty where it is unknown.
    name : str
    attribute : str
        What the groups are of.
    provenance : mapping, optional
        Where it is from and under what licence, as ``dataset.json`` has it.
    notes : tuple of str
        What was done to it on the way in.
    where : str, optional
        What it is called in messages.

    Examples
    --------
    >>> vectors = np.random.default_rng(0).normal(size=(4, 8))
    >>> Cohort(embeddings=vectors, identity=list("aabc"), groups=["F", "F", "F", "M"])
    <Cohort 'cohort': 4 images of 3 people in 2 groups>
    """

    embeddings: Mapping[str, Embeddings]
    identity: Column
    groups: Column
    name: str
    attribute: str
    provenance: Mapping[str, Any]
    notes: tuple[str, ...]
    where: str

    def __init__(
        self,
        *,
        embeddings: Any,
        identity: Any,
        groups: Any,
        name: str = "cohort",
        attribute: str = "group",
        provenance: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
        where: str = "",
    ) -> None:
        where = where or name
        given = embeddings if isinstance(embeddings, Mapping) else {DEFAULT_FEATURE: embeddings}
        columns = {"identity": identity, "groups": groups}
        identity, groups = (
            each if isinstance(each, Column) else Column.of(each, f"{where}, {what}")
            for what, each in columns.items()
        )
        matrices = {key: _in_memory(each, f"{where}, embeddings") for key, each in given.items()}
        _check_lengths([*matrices.values(), identity, groups], where)
        rows = np.flatnonzero(identity.codes >= 0)
        if 0 < len(rows) < len(identity):
            unknown = len(identity) - len(rows)
            notes = (*notes, f"{where}: {unknown} images of unknown people are left out")
            matrices = {key: _rows_of(each, rows) for key, each in matrices.items()}
        vars(self).update(
            embeddings=matrices,
            identity=_renumbered(identity, rows),
            groups=_renumbered(groups, rows),
            name=name,
            attribute=attribute,
            provenance=provenance or {},
            notes=notes,
            where=where,
        )
        self._check()

    def __len__(self) -> int:
        return len(self.identity)

    def __repr__(self) -> str:
        return (
            f"<Cohort {self.name!r}: {len(self)} images of {len(self.identity.names)} people in "
            f"{len(self.groups.names)} groups>"
        )

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return how many people and images each group has."""
        people = {
            name: len(np.unique(self.identity.codes[self.groups.codes == code]))
            for code, name in enumerate(self.groups.names)
        }
        images = np.bincount(self.groups.codes[self.groups.codes >= 0], minlength=len(people))
        return {name: (people[name], int(n)) for name, n in zip(people, images, strict=True)}

    def record(self) -> dict[str, Any]:
        """Return what a model file, and a benchmark, say of it: whose vectors these are."""
        about = {key: self.provenance.get(key) for key in ("provenance", "licence", "license")}
        return {
            "name": self.name,
            "attribute": self.attribute,
            "people": len(self.identity.names),
            "images": len(self),
            "groups": {
                name: {"people": people, "images": images}
                for name, (people, images) in self.counts().items()
            },
            "simulated": bool(self.provenance.get("simulated", False)),
            "provenance": about["provenance"],
            "licence": about["licence"] or about["license"],
            "sha256": self.fingerprint(),
        }

    def marks(self, feature: str) -> list[str]:
        """Return a mark of each person, of one vector: so a model's file knows who it has seen."""
        if feature not in self.embeddings:
            return []
        first = np.unique(self.identity.codes, return_index=True)[1]
        vectors = self.embeddings[feature].vectors[first].astype(np.float32)
        return [hashlib.sha256(vector.tobytes()).hexdigest()[:12] for vector in vectors]

    def seen(self, feature: str) -> CohortVectors | None:
        """Return what a method sees; None where there are no embeddings of `feature`."""
        if feature not in self.embeddings:
            return None
        stored, names = self.embeddings[feature], tuple(self.groups.names)
        vectors = stored.rows(np.arange(len(self)))
        return CohortVectors(vectors, self.identity.codes, self.groups.codes, names, stored)

    def subset(self, rows: NDArray[np.intp]) -> Cohort:
        """Return the cohort of the images `rows`."""
        return replace(
            self,
            embeddings={key: _rows_of(each, rows) for key, each in self.embeddings.items()},
            identity=_renumbered(self.identity, rows),
            groups=_renumbered(self.groups, rows),
        )

    def fingerprint(self) -> str:
        """SHA-256 over vectors, people and groups."""
        sha = hashlib.sha256()
        for column in (self.identity, self.groups):
            sha.update(f"{column.names}".encode())
            sha.update(column.codes.tobytes())
        for key, each in sorted(self.embeddings.items()):
            sha.update(key.encode())
            sha.update(np.ascontiguousarray(each.vectors).tobytes())
        return sha.hexdigest()

    def like(self, features: Mapping[str, Embeddings | None], where: str) -> Cohort:
        """Return the cohort as it goes with the `features` of some data: named and scaled as they.

        One network goes with one, whatever they are called.
        """
        theirs = {name: each for name, each in features.items() if each is not None}
        if not theirs:
            raise DataError(f"{where}: has no embeddings that a cohort could go with; add them")
        own = dict(self.embeddings)
        if len(own) == len(theirs) == 1:
            own = dict(zip(theirs, own.values(), strict=True))
        shared = [name for name in theirs if name in own]
        if not shared:
            raise DataError(
                f"{self.where}: expected embeddings of {', '.join(theirs)}, as {where} has them, "
                f"found {', '.join(own)}; use the same network"
            )
        for name in shared:
            if own[name].dimension != theirs[name].dimension:
                raise DataError(
                    f"{self.where}: expected {theirs[name].dimension}-d embeddings, as {where} has "
                    f"them, found {own[name].dimension}; use the same network"
                )
        like = {
            name: each
            if (each.normalize, each.device) == (of.normalize, of.device)
            else replace(each, normalize=of.normalize, device=of.device)
            for name, each, of in ((name, own[name], theirs[name]) for name in shared)
        }
        return replace(self, embeddings=like)

    def _check(self) -> None:
        """Raise where it can be of no use to anybody."""
        if not self.identity.names:
            raise DataError(f"{self.where}: nobody in the cohort is identified; add identity")
        if len(self.identity.names) == 1:
            raise DataError(
                f"{self.where}: expected a cohort of people, found one person; add others"
            )
        if not self.groups.names:
            raise DataError(f"{self.where}: no group is known; name an attribute with values")
        if len(self.groups.names) == 1:
            raise DataError(
                f"{self.where}: expected two or more groups, found {self.groups.names[0]!r} alone; "
                "add people of others, or name another attribute (--cohort-attribute)"
            )
        if max(people for people, _ in self.counts().values()) < 2:
            raise DataError(
                f"{self.where}: expected two or more people in a group, found one in each of "
                f"{len(self.groups.names)} of {self.attribute}; add people (ten a group, better "
                "thirty), or name another attribute (--cohort-attribute)"
            )
        for each in self.embeddings.values():
            bad = each.unusable
            if bad.any():
                raise DataError(
                    f"{self.where}, row {first_true(bad) + 1}: NaN, infinite or zero vector "
                    f"({bad.sum()} such images); embed these images again or remove them"
                )


def _in_memory(vectors: Any, where: str) -> Embeddings:
    """Validate vectors; those of a file are read, to travel with the cohort."""
    held = vectors if isinstance(vectors, Embeddings) else Embeddings.of(vectors, where)
    mapped = isinstance(held.vectors, np.memmap)
    return replace(held, vectors=np.array(held.vectors, subok=False)) if mapped else held


def _rows_of(embeddings: Embeddings, rows: NDArray[np.intp]) -> Embeddings:
    return replace(embeddings, vectors=embeddings.vectors[rows])


def _renumbered(column: Column, rows: NDArray[np.intp]) -> Column:
    """Return the column of `rows`: of the values that are left."""
    codes = column.codes[rows]
    present = np.unique(codes[codes >= 0])
    numbers = np.full(len(column.names) + 1, -1, np.int32)
    numbers[present] = np.arange(len(present), dtype=np.int32)
    return Column(numbers[codes], tuple(column.names[code] for code in present))


def _check_lengths(parts: list[Any], where: str) -> None:
    """Raise unless vectors, identities and groups are as many."""
    if not parts[:-2]:
        raise DataError(f"{where}: a cohort needs embeddings; embed its pictures")
    lengths = [len(part) for part in parts]
    if len(set(lengths)) > 1:
        raise DataError(
            f"{where}: expected one identity and one group for each of {lengths[0]} images, found "
            f"{lengths[-2]} and {lengths[-1]}; give them in the same order"
        )
