"""Finished cells on disk: what makes a benchmark resumable, and what results are joined from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from faircal._base.errors import DataError, ParameterError
from faircal._base.files import digest, output_folder, write_text
from faircal.evaluation.benchmark.settings import Cell, Plan
from faircal.evaluation.curves import read_curves_table, write_curves
from faircal.metrics.results import Replicated, Result, read_replicates, write_replicates

PARTS = "parts"


@dataclass(frozen=True)
class Parts:
    """The finished cells of one run, a file each, in ``DIR/parts/<fingerprint>``.

    A run with other data or settings has another fingerprint and so another folder: it can't mix
    with this one, and what an earlier run left stays until the new one has succeeded.
    """

    home: Path
    created: tuple[Path, ...]

    @classmethod
    def open(cls, folder: Path, plan: Plan, resume: bool) -> Parts:
        """Make the folder of the run's cells; empty, unless `resume`."""
        home = folder / PARTS / plan.fingerprint[:16]
        created = tuple(path for path in (home, *home.parents) if not path.exists())
        if not resume and home.is_dir():
            shutil.rmtree(home)
        if resume and not home.exists() and any(_folders(home.parent)):
            raise ParameterError(
                f"{folder}: data, settings or plugins differ from those of the run to resume; "
                "run without --resume or choose another folder"
            )
        output_folder(folder)
        return cls(output_folder(home), created)

    def _file(self, cell: Cell) -> Path:
        return self.home / f"{cell.key}.json"

    def _curves(self, cell: Cell) -> Path:
        return self.home / f"{cell.key}.parquet"

    def _replicates(self, cell: Cell) -> Path:
        return self.home / f"{cell.key}.replicates.parquet"

    def has(self, cell: Cell, main: bool) -> bool:
        """Whether the cell is finished; one that figures show (`main`) has curves, too."""
        return self._file(cell).exists() and (not main or self._curves(cell).exists())

    def write(
        self,
        cell: Cell,
        part: dict[str, Any],
        curves: pa.Table | None,
        replicates: Sequence[Replicated],
    ) -> None:
        """Keep what came out of a cell; its trainings need no checkpoint any more."""
        if replicates:
            write_replicates(self._replicates(cell), replicates)
        if curves is not None:
            write_curves(self._curves(cell), curves)
        write_text(self._file(cell), json.dumps(part))
        self._remove_checkpoints(f"{cell.key}-")

    def read_curves(self, cells: Iterable[Cell]) -> pa.Table:
        """Return the curves of cells, joined."""
        return pa.concat_tables([read_curves_table(self._curves(cell)) for cell in cells])

    def read_replicates(self, cell: Cell) -> list[Replicated]:
        """Return the replicates of a cell."""
        return read_replicates(self._replicates(cell))

    def read(self, cell: Cell) -> dict[str, Any]:
        """Return what came out of a cell."""
        path = self._file(cell)
        try:
            part: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise DataError(f"{path}: not valid JSON ({error}); run without --resume") from error
        part["results"] = list(map(Result._make, part["results"]))
        return part

    def checkpoint(self, cell: Cell, fit: str) -> Path:
        """Return where one of the fits of a cell keeps the state of its training."""
        return self.home / f"{cell.key}-{digest(lambda feed: feed(fit.encode()))[:16]}.checkpoint"

    def _remove_checkpoints(self, start: str) -> None:
        for path in self.home.glob(f"{start}*.checkpoint"):
            path.unlink()

    def discard_others(self) -> None:
        """Remove what the present run does not need: cells and checkpoints of other ones."""
        self._remove_checkpoints("")
        for other in _folders(self.home.parent):
            if other != self.home:
                shutil.rmtree(other)

    def leave_no_trace(self) -> None:
        """Undo `open` where no cell was finished: the input turned out to be bad."""
        if not any(self.home.iterdir()):
            for path in self.created:
                path.rmdir()


def _folders(parent: Path) -> Iterator[Path]:
    return (path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else iter(())


def replicates_over_folds(plan: Plan, parts: Parts) -> Iterator[Replicated]:
    """Give replicates of means over folds, of the cells that figures show."""
    folds: dict[tuple[str, ...], list[Replicated]] = {}
    for cell in filter(plan.is_main, plan.cells):
        for row in parts.read_replicates(cell):
            if not np.isnan(row.value):
                folds.setdefault(row[:8], []).append(row)
    for rows in folds.values():
        value = float(np.mean([row.value for row in rows]))
        noise = np.mean([row.noise for row in rows], axis=0)  # folds share no people
        yield rows[0]._replace(value=value, noise=noise.astype(np.float32))
