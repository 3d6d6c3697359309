"""What a classifier is given, checked once at the door."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from faircal.data.simplex import as_probabilities_matrix
from faircal.errors import DataError
from faircal.registry import did_you_mean, short

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]


def two_columns(probabilities: npt.ArrayLike) -> Float64:
    """Return checked probabilities; one column only is that of the second of two classes."""
    given = np.asarray(probabilities)
    if given.ndim == 1 and given.dtype.kind in "biuf":
        given = np.column_stack([1.0 - given, given])
    return as_probabilities_matrix(given)


def column_classes(
    labels: npt.NDArray[Any], n_classes: int, given: npt.ArrayLike | None
) -> npt.NDArray[Any]:
    """Return the class of each column."""
    if given is not None:
        classes = np.asarray(given)
        if classes.shape != (n_classes,) or len(np.unique(classes)) < n_classes:
            raise DataError(f"classes: expected {n_classes} different ones, one for each column")
        return classes
    found = np.unique(labels)
    if len(found) == n_classes:
        return found
    whole = found.dtype.kind in "iub" and len(found) and found[0] >= 0 and found[-1] < n_classes
    if whole:
        return np.arange(n_classes)
    raise DataError(
        f"y: expected {n_classes} classes, one for each column of the probabilities, "
        f"found {len(found)}; give classes=, one for each column"
    )


def feature_matrix(features: npt.ArrayLike, n: int | None, width: int | None = None) -> Float32:
    """Return features as a finite float32 matrix, or say what is wrong."""
    try:
        found = check_array(features, dtype=np.float32, input_name="features", ensure_min_samples=0)
    except ValueError as error:
        raise DataError(f"features: {short(error)}") from error
    if n is not None and len(found) != n:
        raise DataError(
            f"features: expected {n} rows, one for each row of the probabilities, "
            f"found {len(found)}"
        )
    if width is not None and found.shape[1] != width:
        raise DataError(
            f"features: expected {width} columns, as in calibration, found {found.shape[1]}"
        )
    return np.asarray(found, dtype=np.float32)


def n_different(vectors: Float32, most: int) -> int:
    """Return how many different rows there are, counted no further than `most`."""
    for size in (4 * most, len(vectors)):
        found = len(np.unique(vectors[:size], axis=0))
        if found >= most:
            return most
    return found


def class_codes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the column of each label, or say which label is no class.

    Examples
    --------
    >>> class_codes(np.array(["b", "a"]), np.array(["b", "a", "c"]))
    array([0, 1])
    """
    order = np.argsort(classes)
    place = np.searchsorted(classes, labels, sorter=order)
    codes = order[np.minimum(place, len(classes) - 1)]
    strange = classes[codes] != labels
    if strange.any():
        row = int(np.argmax(strange))
        raise DataError(
            f"y: expected one of the {len(classes)} classes of the probabilities, found "
            f"{labels[row]!r} in row {row}; give classes=, one for each column"
        )
    return codes.astype(np.int64)


def column_names(features: Any) -> tuple[str, ...]:
    """Return what a data frame calls its columns; nothing of an array."""
    names = getattr(features, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


def same_columns(features: Any, names: tuple[str, ...]) -> Any:
    """Return the columns `names` of a data frame, in their order; an array is as it is."""
    found = column_names(features)
    if not names or not found or found == names:
        return features
    for name in names:
        if name not in found:
            raise DataError(
                f"features: no column '{name}', as in calibration; {did_you_mean(name, found)}"
            )
    return features[list(names)]
