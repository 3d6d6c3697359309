"""What is known of the images of several blocks, as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from faircal.data.columns import UNKNOWN, Column
from faircal.data.types import Images

Rows = NDArray[np.intp]


def merged(images: Sequence[Images]) -> Images:
    """Return the images of all, one after the other; codes mean the same throughout."""
    first = images[0]
    if len(images) == 1:
        return first
    identities = [of.identity for of in images if of.identity is not None]
    return replace(
        first,
        ids=pa.concat_arrays([of.ids for of in images]),
        identity=Later(lambda: joined_column(identities)) if identities else None,
        attributes={
            name: joined_column([of.attributes[name] for of in images]) for name in first.attributes
        },
        rows=None if first.rows is None else np.concatenate([of.rows for of in images]),
    )


def joined_column(columns: Sequence[Column]) -> Column:
    """Return columns one after the other, with the names of all, sorted.

    Examples
    --------
    >>> joined_column([Column.of(["b", "a"]), Column.of(["c", "b", ""])])
    Column(codes=array([ 1,  0,  2,  1, -1], dtype=int32), names=('a', 'b', 'c'))
    """
    names = [pa.array(column.names, pa.string()) for column in columns]
    if all(of.names == columns[0].names for of in columns):
        return Column(np.concatenate([of.codes for of in columns]), columns[0].names)
    every = pc.unique(pa.concat_arrays(names))
    every = every.take(pc.sort_indices(every))
    codes = []
    for column, own in zip(columns, names, strict=True):
        new = np.asarray(pc.index_in(own, value_set=every), dtype=np.int32)
        codes.append(np.append(new, np.int32(UNKNOWN))[column.codes])
    return Column(np.concatenate(codes), tuple(every.to_pylist()))


class Later(Column):
    """A column that is made when it is asked for: who only scores needs no people."""

    def __init__(self, make: Callable[[], Column]) -> None:
        vars(self)["_make"] = make

    @cached_property
    def _made(self) -> Column:
        found: Column = vars(self)["_make"]()
        return found

    @property
    def codes(self) -> NDArray[np.int32]:
        """The code of each row."""
        return self._made.codes

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return self._made.names


def some(images: Images, rows: Rows) -> Images:
    """Return what is known of some images."""

    def picked(column: Column) -> Column:
        return Column(column.codes[rows], column.names)

    identity = images.identity
    return replace(
        images,
        ids=images.ids.take(pa.array(rows)),
        identity=None if identity is None else Later(lambda: picked(identity)),
        attributes={name: picked(column) for name, column in images.attributes.items()},
        rows=np.asarray(rows, np.int64) if images.rows is None else images.rows[rows],
    )
