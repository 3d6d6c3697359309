"""A run beside the paper, gathered and written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from faircal._base.files import write_text
from faircal.report.cells import Table, write_tables
from faircal.report.paper.agreement import (
    AgreementLine,
    DifferenceLine,
    agreement,
    agreement_page,
    notes,
)
from faircal.report.paper.claims import Claim, claims
from faircal.report.paper.latex import latex_files
from faircal.report.paper.matching import Matched
from faircal.report.paper.tables import layouts, paper_tables
from faircal.report.store import ResultsFolder

AGREEMENT = "agreement.md"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The paper's experiment on one dataset, as a run repeated it.

    Attributes
    ----------
    store : ResultsFolder
    dataset : {"rfw", "bfw", "ijbc"}
    title : str
        The dataset, as people call it.
    numbered : dict from int to Table
        The paper's tables by their place among those that it has for the dataset.
    agreement : list of AgreementLine
        By table, the last one in all; empty where nothing is compared.
    differences : list of DifferenceLine
        The same for tables of which the paper prints no standard deviation.
    claims : list of Claim
    notes : list of str
    """

    store: ResultsFolder
    dataset: str
    title: str
    numbered: dict[int, Table]
    agreement: list[AgreementLine]
    differences: list[DifferenceLine]
    claims: list[Claim]
    notes: list[str]

    @property
    def tables(self) -> list[Table]:
        """The paper's tables in its order."""
        return list(self.numbered.values())

    @property
    def counts(self) -> dict[str, int] | None:
        """How many numbers were compared, and lie within one and two published deviations."""
        if not self.agreement:
            return None
        _, *counts = self.agreement[-1]
        return dict(zip(("compared", "within_one", "within_two"), map(int, counts), strict=True))

    @cached_property
    def figures(self) -> list[Any]:
        """The paper's figures in its order; needs Matplotlib."""
        from faircal.report.figures import paper_figures

        return list(paper_figures(self.store, self.dataset, self._picture_of))

    def _picture_of(self, image_id: str) -> Path | None:
        """Return the picture of an image, where the pictures are at hand; none from elsewhere."""
        home = self.store.run.get("pictures")
        if not isinstance(home, str):
            return None
        path = Path(home, image_id).resolve()
        return path if path.is_relative_to(Path(home).resolve()) and path.is_file() else None


def reproduction(store: ResultsFolder) -> Reproduction:
    """Put a run beside the paper's experiment on the dataset ``run["paper"]``.

    On simulated data nothing is compared: there are no published numbers, and claims are counted
    on this data alone.
    """
    matched = Matched.of(store)
    tables = paper_tables(matched)
    found = agreement(matched)
    measured = {table.key for table in tables.values()}
    missing = [layout.title for layout in layouts(matched.dataset) if layout.key not in measured]
    return Reproduction(
        store,
        matched.dataset,
        matched.title,
        tables,
        found.lines,
        found.differences,
        claims(matched, store.curves),
        notes(matched, store.run, missing),
    )


def write_reproduction(made: Reproduction) -> list[Path]:
    """Write the paper's tables and how a run agrees with it into the run's folder.

    ``tables/`` holds the tables in the paper's order, also as LaTeX (see `latex_files`);
    ``agreement.md`` says in words how the run agrees.

    Returns
    -------
    paths : list of Path
        What was written.
    """
    folder = made.store.folder
    text = agreement_page(
        made.title,
        made.store.simulated,
        made.claims,
        made.agreement,
        made.differences,
        made.notes,
    )
    write_text(folder / AGREEMENT, text)
    tables = write_tables(made.numbered, folder, latex_files(made.numbered))
    return [*tables, folder / AGREEMENT]
