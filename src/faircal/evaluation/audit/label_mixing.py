"""Wrong labels as mixing of groups: how they come about, and taking them back from error rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

#: Where the mixing amplifies errors more than this, what is taken back is not to be relied on.
MOST_AMPLIFIED = 3.0


def confusion(sizes: Float64, rate: float) -> Float64:
    """Return P(labelled h | truly g), shape (n_groups, n_groups), rows g.

    With probability `rate` a label is that of another group, drawn in proportion to the sizes of
    the others. Were all others as likely, the errors of large groups would flood the small ones.

    Examples
    --------
    >>> confusion(np.array([50.0, 30.0, 20.0]), 0.1).round(3)
    array([[0.9  , 0.06 , 0.04 ],
           [0.071, 0.9  , 0.029],
           [0.062, 0.038, 0.9  ]])
    """
    others = np.tile(np.asarray(sizes, dtype=np.float64), (len(sizes), 1))
    np.fill_diagonal(others, 0.0)
    found = rate * others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)
    np.fill_diagonal(found, 1 - rate)
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Corrected:
    """Error rates of true groups, NaN where there is nothing to tell by; and whether to rely."""

    rates: Float64
    reliable: bool


@dataclass(frozen=True, eq=False)
class Mixing:
    """Who is truly in the groups as labelled.

    Attributes
    ----------
    truly : ndarray of float64, shape (n_groups, n_groups)
        P(truly g | labelled h), rows h.
    possible : bool
        Whether labels that are so often wrong could have given groups of these sizes.
    """

    truly: Float64
    possible: bool

    @classmethod
    def of(cls, sizes: Float64, rate: float) -> Mixing:
        """Work it out from the sizes of the groups as labelled, some of them maybe 0.

        Examples
        --------
        >>> Mixing.of(np.array([80.0, 20.0]), 0.1).truly.round(3)
        array([[0.984, 0.016],
               [0.438, 0.562]])
        """
        labelled = confusion(sizes, rate)
        if np.linalg.cond(labelled) > 1e6:
            return cls(np.eye(len(sizes)), possible=False)
        true_sizes = np.linalg.solve(labelled.T, sizes)
        joint = np.maximum(true_sizes, 0.0)[:, None] * labelled
        total = joint.sum(axis=0)
        # A group of nobody is no mixture; it has no rate either.
        truly = np.where(total > 0, joint / np.where(total > 0, total, 1.0), np.eye(len(sizes))).T
        return cls(truly, bool((true_sizes >= 0).all()))

    def one_label(self, rates: Float64) -> Corrected:
        """Return rates of pairs with one label, such as genuine pairs, of the true groups.

        A labelled group's rate is the mean of true ones, weighted by who is in it.
        """
        return self._solve(self.truly, rates)

    def two_labels(self, rates: Float64, never: bool = False) -> Corrected:
        """Return rates of imposter pairs, each of two people, within the true groups.

        A pair within a labelled group may truly be one of two groups. How often such pairs match
        is taken from the pairs of those two groups as labelled. Where there are none it can't be
        known: as often as the mean of pairs within the two, or `never`, between which it lies as
        strangers of two groups rarely look as alike as those of one.

        Parameters
        ----------
        rates : ndarray of float64, shape (n_groups, n_groups)
            By the labels of the two people; NaN where there are no such pairs.
        never : bool
        """
        unmeasured = np.isnan(rates) & ~np.eye(len(rates), dtype=bool)
        across = np.where(np.isnan(rates), 0.0, rates)
        np.fill_diagonal(across, 0.0)
        from_across = np.einsum("ha,ab,hb->h", self.truly, across, self.truly)
        weights = self.truly**2
        if not never:
            weights = weights + self.truly * (self.truly @ unmeasured)
        return self._solve(weights, np.diag(rates) - from_across)

    def _solve(self, weights: Float64, rates: Float64) -> Corrected:
        known = ~np.isnan(rates)
        found = np.full(len(rates), np.nan)
        if not known.any():
            return Corrected(found, reliable=False)
        part = weights[np.ix_(known, known)]
        if np.linalg.cond(part) > 1e6:
            return Corrected(found, reliable=False)
        solved = np.linalg.solve(part, rates[known])
        inside = bool(((solved >= 0) & (solved <= 1)).all())
        found[known] = np.clip(solved, 0, 1)
        amplified = float(np.abs(np.linalg.inv(part)).sum(axis=1).max())
        return Corrected(found, self.possible and inside and amplified <= MOST_AMPLIFIED)
