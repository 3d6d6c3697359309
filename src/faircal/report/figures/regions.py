"""Regions of embedding space that are worse than the rest: how much, and whose pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from faircal.evaluation.audit.regions import Question, RegionRow, distinct, in_words
from faircal.metrics.results import Member
from faircal.report.figures.base import (
    CAPTIONS,
    Figure,
    FigureRecord,
    FigureScope,
    long_table,
    slug,
    tell_apart,
)
from faircal.report.figures.style import (
    COLOURS,
    MARK,
    RULE,
    percent_axis,
    require_matplotlib,
    text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Regions in one figure; those found come first.
_MOST = 16
_MONTAGES = 6


class TestedRegion(NamedTuple):
    """A region with the value that it was tested for, its interval, and that of the rest."""

    row: RegionRow
    differs: bool
    value: float
    low: float
    high: float
    rest: float


@dataclass(eq=False, repr=False)
class RegionDots(Figure):
    """False-positive rate, or calibration gap, of the regions that were tested, against the rest.

    Parameters
    ----------
    rows : sequence of RegionRow
        ``regions.csv``.
    of : {"fpr", "gap"}
    """

    rows: Sequence[RegionRow]
    of: Question = "fpr"

    runs = ("audit",)

    @classmethod
    def in_report(cls, scope: FigureScope) -> Sequence[FigureRecord]:
        """Return the regions of a feature."""
        return region_figures([r for r in scope.store.regions if r.feature == scope.feature])

    def __post_init__(self) -> None:
        fpr = self.of == "fpr"
        tested = [
            TestedRegion(row, bool(row.found), row.fpr, row.low, row.high, row.rest_fpr)
            if fpr
            else TestedRegion(
                *(row, bool(row.gap_found), row.gap, row.gap_low, row.gap_high, row.rest_gap)
            )
            for row in self.rows
            if (row.p if fpr else row.gap_p) >= 0
        ]

        def order(each: TestedRegion) -> tuple[bool, float]:
            """Regions found, then others, furthest off first."""
            off = each.value - each.rest
            return not each.differs, -(off if fpr else abs(off))

        self.shown = sorted(tested, key=order)[:_MOST]
        self.size = 7.0, 1.4 + 0.3 * len(self.shown)
        self.key = self.key or "regions"
        self.title = self.title or ("False matches by region" if fpr else "Calibration by region")
        gap = "Mean probability less share of genuine pairs (positive: says too much)"
        what = "False-positive rate" if fpr else gap
        self.caption = CAPTIONS["RegionDots"].format(what=what)
        different = [in_words(each.row, self.of) for each in self.shown if each.differs]
        self.numbers = "; ".join(different) or "No region differs by more than chance"
        self.numbers += "."
        self.table = long_table(
            ("region", "found", "value", "low", "high", "rest"),
            ((each.row.region, *each[1:]) for each in self.shown),
        )

    def _draw(self, ax: Axes) -> None:
        for differs in (True, False):
            places = [(i, each) for i, each in enumerate(self.shown) if each.differs == differs]
            if not places:
                continue
            y = [i for i, _ in places]
            value, low, high = zip(*(each[2:5] for _, each in places), strict=True)
            colour, name = (COLOURS[1], "found") if differs else (RULE, "tested")
            ax.hlines(y, low, high, colour, linewidth=1.2 if differs else 0.8)
            fill = colour if differs else "white"
            ax.plot(value, y, "o", color=colour, markerfacecolor=fill, label=name, zorder=3)
        rest = [each.rest for each in self.shown]
        ax.plot(rest, range(len(rest)), "|", color=MARK, markersize=9, label="rest", zorder=2)
        names = [text(f"{row.region}, {row.people:.0f} people") for row, *_ in self.shown]
        ax.set_yticks(range(len(names)), names)
        label = "FPR (%)" if self.of == "fpr" else "probability less share genuine (points)"
        ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=label)
        if self.of == "fpr":
            ax.set_xlim(left=0)
        ax.grid(visible=False, axis="y")
        percent_axis(ax.xaxis)


def region_figures(rows: Sequence[RegionRow]) -> list[FigureRecord]:
    """Return the figures of ``regions.csv``; none without regions."""
    questions: dict[Question, str] = {"fpr": "regions-fpr", "gap": "regions-calibration"}
    return tell_apart(RegionDots(rows, of, key=key) for of, key in questions.items() if rows)


def region_montages(rows: Sequence[RegionRow], pictures: Path) -> list[FigureRecord]:
    """Return the example images of the regions found, where they are in the folder `pictures`."""
    home = pictures.resolve()
    made: list[FigureRecord] = []
    for row in distinct(rows)[:_MONTAGES]:
        paths = [(home / name).resolve() for name in row.example_ids]
        inside = [path if path.is_relative_to(home) and path.is_file() else None for path in paths]
        made.append(Montage(inside, key=slug("region", row.region), title=f"Region {row.region}"))
    return tell_apart(made)


#: Pixels of a picture's side, and between two: 25 stand in a square of 4 inches.
_SIDE, _GAP = 80, 4


@dataclass(eq=False, repr=False)
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

    most = 25

    def __post_init__(self) -> None:
        require_matplotlib()  # which brings Pillow
        from PIL import ImageOps

        from faircal.embedding.pictures import read_picture

        self.size, self.panel_size = (4.0, 4.2), (3.0, 3.2)
        self._squares: list[NDArray[np.uint8]] = []
        rows: list[tuple[str, str, float | None]] = []
        missing = 0
        for place, path in enumerate(self.pictures):
            if len(rows) == self.most:
                break
            picture = None if path is None else read_picture(Path(path), least=_SIDE)
            if picture is None:
                missing += 1
                continue
            self._squares.append(np.asarray(ImageOps.fit(picture, (_SIDE, _SIDE))))
            if self.members:
                member = self.members[place]
                rows.append((member.cluster, member.image_id, member.distance))
            else:
                rows.append(("", Path(path or "").name, None))
        self.key = self.key or "montage"
        self.title = self.title or (
            f"Cluster {self.members[0].cluster}" if self.members else "Faces"
        )
        what = "faces of one cluster, nearest to its centre first" if self.members else "pictures"
        more = f" {missing} could not be read and are left out." if missing else ""
        self.caption = self.numbers = f"{len(rows)} {what}.{more}"
        self.table = long_table(("cluster", "image_id", "distance"), rows)

    def _draw(self, ax: Axes) -> None:
        columns = int(np.ceil(np.sqrt(max(len(self._squares), 1))))
        rows = -(-len(self._squares) // columns) or 1
        pitch = _SIDE + _GAP
        canvas = np.full((rows * pitch - _GAP, columns * pitch - _GAP, 3), 255, np.uint8)
        for i, picture in enumerate(self._squares):
            top, left = (i // columns) * pitch, (i % columns) * pitch
            canvas[top : top + _SIDE, left : left + _SIDE] = picture
        ax.imshow(canvas, interpolation="none")
        ax.set_axis_off()
