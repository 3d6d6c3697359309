"""What methods that see groups share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from faircal.data import Groups
from faircal.errors import DataError
from faircal.methods.base import Inputs


def fit_groups(inputs: Inputs) -> Groups:
    """Return the groups that the method declared to need."""
    if inputs.groups is None:
        raise DataError(
            "the method needs groups and did not declare it; set its class variable 'needs'"
        )
    return inputs.groups


def group_rows(groups: Groups) -> list[NDArray[np.intp]]:
    """Return for each group the rows of the pairs with both images in it."""
    return [np.flatnonzero(groups.pair == code) for code in range(len(groups.names))]
