"""Choosing by cross-validation: which candidate has the least log-loss on rows held out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from faircal.calibrators.beta import EPS
from faircal.calibrators.classes.base import Float64, Int64
from faircal.compute.threads import each

FOLDS = 5
#: Most rows that a choice is made on; a random part where there are more.
MOST_ROWS = 50_000


def drawn_folds(
    n: int, units: npt.NDArray[np.int64] | None, seed: int, most: int = MOST_ROWS
) -> Int64:
    """Return the fold of each row, shape (n,): 0 to `FOLDS` − 1, or −1 for rows left out.

    Rows of one unit are in one fold. Where there are more rows than `most`, only so many are drawn.

    Parameters
    ----------
    n : int
    units : ndarray of shape (n,), optional
        Numbers from 0; every row by itself unless told.
    seed : int
    most : int
    """
    count = n if units is None else int(units.max(initial=-1)) + 1
    order = np.random.default_rng(seed).permutation(count)
    fold = np.empty(count, np.int64)
    fold[order] = np.arange(count) % FOLDS
    fold[order[int(np.ceil(count * min(1.0, most / max(n, 1)))) :]] = -1
    return fold if units is None else fold[units]


def choose(
    n_candidates: int,
    folds: Int64,
    losses: Callable[[Int64, Int64], Float64],
    *,
    cautious: bool = False,
    units: Int64 | None = None,
) -> int:
    """Return the candidate with the least mean loss on the rows held out.

    Candidates come with the safest first. It is chosen where there are too few rows to hold any
    out, and among equals.

    Parameters
    ----------
    n_candidates : int
    folds : ndarray of shape (n,)
        See `drawn_folds`.
    losses : callable
        From the rows to fit on and the rows held out to the loss of each candidate on each of the
        latter, shape (n_candidates, n_held_out).
    cautious : bool
        Whether to leave the safest only for one that is better by more than a standard error.
    units : ndarray of shape (n,), optional
        Numbers from 0: rows of one unit are better or worse together.
    """
    used = np.flatnonzero(folds >= 0)
    numbers = np.unique(folds[used])
    if len(numbers) < 2 or n_candidates < 2:
        return 0

    parts = [used[folds[used] == number] for number in numbers]

    def one(part: slice) -> Float64:
        held = parts[part.start]
        return losses(np.setdiff1d(used, held, assume_unique=True), held)

    of_rows = np.hstack(each(one, len(parts), 1))
    mean = of_rows.mean(axis=1)
    # Differences in the last digits are no reason to leave the safer one.
    best = int(np.argmax(mean <= mean.min() + 1e-9 * abs(mean.min()) + 1e-15))
    if not cautious:
        return best
    rows = np.concatenate(parts)
    gain = of_rows[0] - of_rows[best]
    sums = gain - gain.mean()
    if units is not None:
        sums = np.bincount(units[rows], sums)
    return best if gain.sum() > np.sqrt(np.square(sums).sum()) else 0


def log_losses(probabilities: Float64, codes: Int64) -> Float64:
    """Return the log-loss of each checked row; a certain mistake costs a finite 36."""
    of_label = probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(of_label, EPS)))
