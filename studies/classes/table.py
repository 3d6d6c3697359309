"""What a set is before a classifier sees it, and after: rows, labels, hidden groups, units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
#: Parts of a split: those the base classifier, the calibration and the test have.
TRAIN, CALIBRATION, TEST = 0, 1, 2
#: What share of the units each part gets.
SHARES = (0.4, 0.3, 0.3)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with labels and groups.

    Parameters
    ----------
    name : str
    inputs : ndarray of float32, shape (n, d)
        What a base classifier sees; nothing in it names the group.
    codes : ndarray of int64, shape (n,)
        Class of each row, from 0.
    classes : tuple of str
    groups : ndarray of int64, shape (n,)
        Hidden group of each row, −1 where it is unknown or too small.
    group_names : tuple of str
    units : ndarray of int64, shape (n,)
        Who or what a row comes from; rows of one unit stay in one part of a split.
    given : ndarray of float64, shape (n, C), optional
        Probabilities of a classifier that needs no training.
    truth : ndarray of float64, shape (n, C), optional
        True class probabilities given what the classifier says and the group.
    """

    name: str
    inputs: Float32
    codes: Int64
    classes: tuple[str, ...]
    groups: Int64
    group_names: tuple[str, ...]
    units: Int64
    given: Float64 | None = None
    truth: Float64 | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A set as one base classifier left it, with all its splits; see `save` and `load`.

    Parameters
    ----------
    table : Table
        Its `inputs` are left empty: `features` are what calibration sees.
    base : str
        Name of the base classifier.
    parts : ndarray of uint8, shape (n_splits, n)
        0 train, 1 calibration, 2 test.
    probabilities : ndarray of float32, shape (n_splits, n, C)
        NaN in rows the classifier was trained on.
    features : ndarray of float32, shape (n, d) or (n_splits, n, d)
    """

    table: Table
    base: str
    parts: npt.NDArray[np.uint8]
    probabilities: Float32
    features: Float32

    def rows(self, split: int, part: int) -> Int64:
        """Return the rows of a part of a split."""
        return np.flatnonzero(self.parts[split] == part)

    def said(self, split: int, rows: Int64) -> Float64:
        """Return class probabilities, which add up to 1 again after they were stored."""
        found: Float64 = self.probabilities[split, rows].astype(np.float64)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def seen(self, split: int, rows: Int64) -> Float32:
        """Return features, those of the split where each has its own."""
        features = self.features if self.features.ndim == 2 else self.features[split]
        return features[rows]


def split(units: Int64, seed: int) -> npt.NDArray[np.uint8]:
    """Deal units to train, calibration and test; return the part of each row.

    Examples
    --------
    >>> np.bincount(split(np.arange(10), 0)).tolist()
    [4, 3, 3]
    """
    names, unit = np.unique(units, return_inverse=True)
    place = np.random.default_rng([seed, 9]).permutation(len(names)) / len(names)
    part = np.searchsorted(np.cumsum(SHARES)[:-1], place + 0.5 / len(names)).astype(np.uint8)
    return part[unit]


def save(prepared: Prepared, folder: Path) -> Path:
    """Write ``SET-BASE.npz``; return its path."""
    table = prepared.table
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "codes": table.codes.astype(np.uint8),
        "classes": np.array(table.classes),
        "groups": table.groups.astype(np.int16),
        "group_names": np.array(table.group_names),
        "units": table.units.astype(np.int32),
        "parts": prepared.parts,
        "probabilities": prepared.probabilities,
        "features": prepared.features,
    }
    if table.truth is not None:
        arrays["truth"] = table.truth
    path = folder / f"{table.name}-{prepared.base}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
    return path


def load(path: Path) -> Prepared:
    """Read what `save` wrote; nothing in the file is executed."""
    name, base = path.stem.rsplit("-", 1)
    with np.load(path, allow_pickle=False) as arrays:
        table = Table(
            name=name,
            inputs=np.empty((len(arrays["codes"]), 0), np.float32),
            codes=arrays["codes"].astype(np.int64),
            classes=tuple(arrays["classes"].tolist()),
            groups=arrays["groups"].astype(np.int64),
            group_names=tuple(arrays["group_names"].tolist()),
            units=arrays["units"].astype(np.int64),
            truth=arrays.get("truth"),
        )
        return Prepared(table, base, arrays["parts"], arrays["probabilities"], arrays["features"])


def n_splits(path: Path) -> int:
    """Return how many splits a file holds, without reading the rest of it."""
    with np.load(path, allow_pickle=False) as arrays:
        return len(arrays["parts"])
