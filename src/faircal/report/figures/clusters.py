"""Clusters: who is in them, what their maps do, and the faces nearest to their centres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.metrics.results import ALL, ClusterRow, Member
from faircal.report.figures.base import Anything, Figure, FigureScope, long_table
from faircal.report.figures.style import (
    RULE,
    label,
    marker_look,
    require_matplotlib,
)
from faircal.report.wording import method_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NO_GROUP = "no group known"


class DrawnCluster(NamedTuple):
    """A cluster: its images, how many of each group, the group with most, and its shift."""

    name: str
    images: float
    of_group: dict[str, float]
    shift: float

    @property
    def majority(self) -> str:
        """The group with most images; none where no image has a group."""
        most = max(self.of_group, key=self.of_group.__getitem__, default="")
        return most if self.of_group.get(most) else NO_GROUP

    @property
    def share(self) -> float:
        """The share of that group among the images with a group."""
        total = sum(self.of_group.values())
        return max(self.of_group.values()) / total if total else 0.0


def read_clusters(
    rows: Sequence[ClusterRow], method: str, feature: str, attribute: str, fold: str
) -> list[DrawnCluster]:
    """Return the clusters of one fit."""
    numbers: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        if (row.method, row.feature, row.fold) == (method, feature, fold) and (
            row.attribute in ("", attribute)
        ):
            numbers.setdefault(row.cluster, {})[row.group, row.quantity] = row.value
    return [
        DrawnCluster(
            name,
            values.get((ALL, "images"), 0.0),
            {
                group: value
                for (group, quantity), value in values.items()
                if quantity == "images" and group != ALL
            },
            values.get((ALL, "shift"), float("nan")),
        )
        for name, values in numbers.items()
    ]


@dataclass(frozen=True, eq=False)
class ClusterShift(Figure):
    """By how much each cluster's threshold lies above that of all pairs, marked by its group.

    Parameters
    ----------
    clusters : sequence of DrawnCluster
        As `read_clusters` gives them.
    method, fold : str
        Which fit.

    Examples
    --------
    >>> clusters = [DrawnCluster("0", 9, {"F": 9}, 0.1), DrawnCluster("1", 1, {"F": 1}, -0.1)]
    >>> ClusterShift(clusters, "fsn").table["cluster"].to_pylist()
    ['1', '0']
    """

    clusters: Sequence[DrawnCluster]
    method: str
    fold: str = ""

    _key, _about = "cluster-shift", "Threshold shift of each cluster"
    _size = (7.0, 3.6)
    _panel_size = (4.6, 3.0)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Iterator[Anything]:
        """Give the clusters of each method in the last fold."""
        rows = [row for row in scope.store.clusters if row.feature == scope.feature]
        fold = rows[-1].fold if rows else ""
        for method in dict.fromkeys(row.method for row in rows):
            clusters = read_clusters(rows, method, scope.feature, scope.attribute, fold)
            yield scope.named(cls(clusters, method, fold), method)

    def _title(self) -> str:
        return f"{self._about}: {method_title(self.method)}"

    @property
    def groups(self) -> list[str]:
        """The groups of the images."""
        return list(dict.fromkeys(group for cluster in self.clusters for group in cluster.of_group))

    @cached_property
    def shown(self) -> list[DrawnCluster]:
        """The clusters with a known shift, the lowest first."""
        shown = [cluster for cluster in self.clusters if cluster.shift == cluster.shift]
        return sorted(shown, key=lambda cluster: cluster.shift)

    @cached_property
    def table(self) -> pa.Table:
        """Columns `cluster`, `shift`, `group` (of most images), `share` (of that group), `images`.

        In the order of the figure.
        """
        return long_table(
            ("cluster", "shift", "group", "share", "images"),
            ((c.name, c.shift, c.majority, c.share, int(c.images)) for c in self.shown),
        )

    def _in_caption(self) -> dict[str, str]:
        """Return what stands in the caption's gaps."""
        unknown = len(self.clusters) - len(self.shown)
        more = f" {unknown} without a known shift are not drawn." if unknown else ""
        fold = f" Clusters of the run that left fold {self.fold} out." if self.fold else ""
        return {"unknown": more, "fold": fold}

    def _numbers(self) -> str:
        said = []
        for group in [*self.groups, NO_GROUP]:
            shifts = [cluster.shift for cluster in self.shown if cluster.majority == group]
            if shifts:
                said.append(f"{group} {np.median(shifts):+.3f} ({len(shifts)} clusters)")
        return f"Median shift of the clusters by their main group: {', '.join(said)}."

    def _draw(self, ax: Axes) -> None:
        ax.axhline(0, color=RULE, linewidth=0.9)
        places = np.arange(1, len(self.shown) + 1)
        shifts = np.array([cluster.shift for cluster in self.shown])
        ax.vlines(places, 0, shifts, "#CCCCCC", linewidth=0.8)
        for index, group in enumerate([*self.groups, NO_GROUP]):
            mine = np.array([cluster.majority == group for cluster in self.shown], dtype=bool)
            if mine.any():
                look = marker_look(index)
                if group == NO_GROUP:
                    look = {"color": "#777777", "marker": "x"}
                ax.plot(places[mine], shifts[mine], linestyle="", label=label(group), **look)
        ax.set(xlabel="clusters, by shift", ylabel="threshold shift (score)")
        ax.set_xlim(0, len(self.shown) + 1)


#: Pixels of a picture's side, and between two: 25 stand in a square of 4 inches.
_SIDE, _GAP = 80, 4
_COLUMNS = ("cluster", "image_id", "distance")


@dataclass(frozen=True, eq=False)
class Montage(Figure):
    """Up to 25 pictures in a grid, such as the faces nearest to the centre of a cluster.

    Parameters
    ----------
    pictures : sequence of path
        None, or a file that can't be read, is left out.
    members : sequence of Member, optional
        Whose pictures they are, one for one; for the table.

    Examples
    --------
    >>> Montage(["gone.png"]).caption
    '0 pictures. 1 could not be read and are left out.'
    """

    pictures: Sequence[str | Path | None]
    members: Sequence[Member] = ()

    _size = (4.0, 4.2)
    _panel_size = (3.0, 3.2)
    most = 25
    _key = "montage"

    def _title(self) -> str:
        return f"Cluster {self.members[0].cluster}" if self.members else "Faces"

    @cached_property
    def _read(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """The pictures that can be read, with their places in the list, cut to squares."""
        require_matplotlib()  # which brings Pillow
        from PIL import ImageOps

        from faircal.embedding.pictures import read_picture

        pictures = []
        for place, path in enumerate(self.pictures):
            picture = None if path is None else read_picture(Path(path), least=_SIDE)
            if picture is not None:
                pictures.append((place, np.asarray(ImageOps.fit(picture, (_SIDE, _SIDE)))))
            if len(pictures) == self.most:
                break
        return pictures

    @cached_property
    def table(self) -> pa.Table:
        """Columns `cluster`, `image_id`, `distance` (to the centre), a picture a row."""
        if self.members:
            shown = (self.members[place] for place, _ in self._read)
            return long_table(_COLUMNS, ((m.cluster, m.image_id, m.distance) for m in shown))
        names = (Path(self.pictures[place] or "").name for place, _ in self._read)
        return long_table(_COLUMNS, (("", name, None) for name in names))

    @property
    def caption(self) -> str:
        """How to read it."""
        tried = self._read[-1][0] + 1 if len(self._read) == self.most else len(self.pictures)
        missing = tried - len(self._read)
        more = f" {missing} could not be read and are left out." if missing else ""
        what = "faces of one cluster, nearest to its centre first" if self.members else "pictures"
        return f"{len(self._read)} {what}.{more}"

    def _numbers(self) -> str:
        return self.caption

    def _draw(self, ax: Axes) -> None:
        columns = int(np.ceil(np.sqrt(max(len(self._read), 1))))
        rows = -(-len(self._read) // columns) or 1
        pitch = _SIDE + _GAP
        canvas = np.full((rows * pitch - _GAP, columns * pitch - _GAP, 3), 255, np.uint8)
        for i, (_, picture) in enumerate(self._read):
            top, left = (i // columns) * pitch, (i % columns) * pitch
            canvas[top : top + _SIDE, left : left + _SIDE] = picture
        ax.imshow(canvas, interpolation="none")
        ax.set_axis_off()
