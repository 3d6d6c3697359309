"""The faces of a cluster side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from faircal.metrics.results import Member
from faircal.report.figures.base import Figure, long_table
from faircal.report.figures.style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE, _GAP = 80, 4
_COLUMNS = {"cluster": pa.string(), "image_id": pa.string(), "distance": pa.float64()}


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

    @classmethod
    def of(
        cls,
        members: Iterable[Member],
        picture_of: Callable[[str], Path | None],
        *,
        key: str = "",
        title: str = "",
    ) -> Montage:
        """Make a montage of members of a cluster; `picture_of` finds the file of an image."""
        chosen = list(members)
        pictures = [picture_of(member.image_id) for member in chosen]
        return cls(pictures, chosen, key=key, title=title)

    def _title(self) -> str:
        return f"Cluster {self.members[0].cluster}" if self.members else "Faces"

    @cached_property
    def _read(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """The pictures that can be read, with their places in the list, cut to squares."""
        require_matplotlib()  # which brings Pillow
        from PIL import ImageOps

        from faircal.embedding.pictures import read_picture

        found = []
        for place, path in enumerate(self.pictures):
            picture = None if path is None else read_picture(Path(path), least=_SIDE)
            if picture is not None:
                found.append((place, np.asarray(ImageOps.fit(picture, (_SIDE, _SIDE)))))
            if len(found) == self.most:
                break
        return found

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
