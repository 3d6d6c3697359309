"""A run beside the paper: how near it comes to the printed numbers, gathered and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from faircal._base.files import write_text
from faircal.evaluation.benchmark import EXPERIMENTS
from faircal.report.cells import SIMULATED, Table, TableValue, markdown_rows, plain, write_tables
from faircal.report.paper.claims import Claim, claims
from faircal.report.paper.latex import latex
from faircal.report.paper.published import METHODS, PAPER, Matched, features
from faircal.report.paper.tables import TableLayout, layouts, paper_tables
from faircal.report.rendering import sentences
from faircal.report.store import ResultsFolder
from faircal.report.wording import method_title

#: A difference of one standard deviation counts as within one, whatever its last bit.
_ROUNDING = 1e-9


class AgreementLine(NamedTuple):
    """How many numbers are compared, and how many lie within one and two published fold std."""

    title: str
    cells: int
    within_one: int
    within_two: int


class DifferenceLine(NamedTuple):
    """How far numbers lie from published ones that have no std: fractions, absolute."""

    title: str
    cells: int
    median: float
    largest: float


def agreement(matched: Matched) -> tuple[list[AgreementLine], list[DifferenceLine]]:
    """Compare a run with the paper, by table and in all; apart, what the paper prints no std of.

    Each published number counts once, in its first table.
    """
    counted: set[tuple[str, ...]] = set()
    lines, differences = [], []
    for layout in layouts(matched.dataset):
        values = list(_compared(layout, matched, counted))
        in_spreads = [abs(value.difference) for value in values if value.published_std > 0]
        apart = [abs(v.mean - v.published) for v in values if not v.published_std > 0]
        title = f"{layout.title} on {matched.title}"
        if in_spreads:
            one, two = (sum(n <= most + _ROUNDING for n in in_spreads) for most in (1, 2))
            lines.append(AgreementLine(title, len(in_spreads), one, two))
        if apart:
            differences.append(DifferenceLine(title, len(apart), median(apart), max(apart)))
    if lines:
        sums = (sum(column) for column in list(zip(*lines, strict=True))[1:])
        lines.append(AgreementLine("In all", *sums))
    return lines, differences


def _compared(
    layout: TableLayout, matched: Matched, counted: set[tuple[str, ...]]
) -> Iterator[TableValue]:
    """Yield the values of a table that have a published one, but those that were seen before."""
    columns = [column for _, block in layout.blocks(matched) for column in block]
    for feature, variant, column in product(matched.features, matched.variants, columns):
        what = (column.group, column.condition, column.metric)
        key = (feature.name, variant.method, *what)
        value = matched.value(feature, variant, column)
        if value.compared and key not in counted:
            counted.add(key)
            yield value


#: Pairs of the paper's experiments, where it says; a few more or fewer are no other experiment.
_PAIRS, _NEAR = {"rfw": 23_541, "bfw": 890_347}, 0.05


def notes(matched: Matched, run: Mapping[str, Any], left_out: Sequence[str]) -> list[str]:
    """Say what of the paper's experiment is missing or different in a run: ``notes.txt``.

    Parameters
    ----------
    matched : Matched
    run : mapping
        ``run.json``.
    left_out : sequence of str
        Tables that have no value.
    """
    settings, pairs = run.get("settings", {}), run.get("pairs")
    papers = EXPERIMENTS[matched.dataset].parameters.get(matched.attribute, {})
    papers_pairs = _PAIRS.get(matched.dataset)
    other = bool(
        pairs and papers_pairs and abs(pairs / papers_pairs - 1) > _NEAR and not matched.simulated
    )
    return sentences(
        "paper/notes.txt",
        {"method": method_title},
        matched=matched,
        simulated=SIMULATED,
        features=features(matched.dataset),
        missing=[method for method in METHODS if matched.variant(method) is None],
        folds=len(run.get("folds") or ()),
        settings=settings,
        parameters={
            method: [f"{n} = {v}" for n, v in given.items() if papers.get(method, {}).get(n) != v]
            for method, given in (settings.get("parameters") or {}).items()
        },
        pairs=pairs,
        other_pairs=papers_pairs if other else None,
        left_out=left_out,
    )


class AgreementPart(NamedTuple):
    """A part of what is said of a run beside the paper, on the page and in ``agreement.md``."""

    title: str
    words: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def agreement_parts(
    claimed: Sequence[Claim],
    lines: Sequence[AgreementLine],
    differences: Sequence[DifferenceLine],
    simulated: bool,
) -> list[AgreementPart]:
    """Return claims with their counts, then numbers: how many lie within a deviation, how far."""
    texts = [(claim.text, _share(claim.won, claim.of)) for claim in claimed]
    if simulated:
        words = "In how many of the cases in which it can be said a claim is true of this data."
        return [AgreementPart("Claims", words, ("Claim", "True here"), tuple(texts))]
    judged = [claim for claim in claimed if claim.holds is not None]
    held = sum(bool(claim.holds) for claim in judged)
    verdicts = {None: "cannot be said", True: "yes", False: "no"}
    parts = [
        AgreementPart(
            "Claims",
            "Claims that are true here at least as often as of the paper's own numbers: "
            f"{held} of the {len(judged)} that can be judged. The best is the best as printed, to "
            "two decimals; a tie counts. Methods that were not run take part on neither side.",
            ("Claim", "True here", "In the paper", "As often as there"),
            tuple(
                (*text, _share(claim.published_won, claim.published_of), verdicts[claim.holds])
                for text, claim in zip(texts, claimed, strict=True)
            ),
        )
    ]
    words = "No number has a published one with a standard deviation to compare it with."
    if lines:
        cells, one, two = lines[-1][1:]
        words = (
            f"Of {cells} numbers, {one} ({100 * one / cells:.0f} %) "
            f"lie within one standard deviation over folds of the published one, {two} "
            f"({100 * two / cells:.0f} %) within two. Each number counts once, though "
            "the appendix prints many again."
        )
    rows = tuple((line.title, *map(str, line[1:])) for line in lines)
    columns = ("Table", "Compared", "Within 1 σ", "Within 2 σ") if lines else ()
    parts.append(AgreementPart("Numbers", words, columns, rows))
    if differences:
        words = (
            "The paper prints no standard deviation of these, so that only the difference can be "
            "told, in percentage points."
        )
        columns = ("Table", "Compared", "Median difference", "Largest difference")
        rows = tuple(
            (title, str(cells), f"{100 * median:.2f}", f"{100 * largest:.2f}")
            for title, cells, median, largest in differences
        )
        parts.append(AgreementPart("Numbers without a standard deviation", words, columns, rows))
    return parts


def _share(won: int | None, of: int | None) -> str:
    return f"{won} of {of}" if of else "–"


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
    parts : list of AgreementPart
        The same in words and tables.
    notes : list of str
    """

    store: ResultsFolder
    dataset: str
    title: str
    numbered: dict[int, Table]
    agreement: list[AgreementLine]
    differences: list[DifferenceLine]
    claims: list[Claim]
    parts: list[AgreementPart]
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
    (lines, differences), claimed = agreement(matched), claims(matched)
    measured = {table.key for table in tables.values()}
    missing = [layout.title for layout in layouts(matched.dataset) if layout.key not in measured]
    return Reproduction(
        store,
        matched.dataset,
        matched.title,
        tables,
        lines,
        differences,
        claimed,
        agreement_parts(claimed, lines, differences, matched.simulated),
        notes(matched, store.run, missing),
    )


def agreement_markdown(made: Reproduction) -> str:
    """Return ``agreement.md``."""
    if made.store.simulated:
        head = [f"> {SIMULATED}", f"# The paper's claims on {plain(made.title)}"]
    else:
        head = [f"# How this run on {plain(made.title)} agrees with the paper"]
    texts = [*head, f"The paper: {PAPER}"]
    for part in made.parts:
        texts += [f"## {part.title}", part.words]
        if part.rows:
            rule = (":---", *["---:"] * (len(part.columns) - 1))
            rows = [part.columns, rule, *([*map(plain, row)] for row in part.rows)]
            texts.append(markdown_rows(rows))
    if made.notes:
        texts.append("## Notes\n\n" + "\n".join(f"- {plain(note)}" for note in made.notes))
    return "\n\n".join(text.rstrip() for text in texts) + "\n"


def write_reproduction(made: Reproduction) -> list[Path]:
    """Write the paper's tables and how a run agrees with it into the run's folder.

    ``tables/`` holds the tables in the paper's order, also as LaTeX; ``agreement.md`` says in
    words how the run agrees. Returns the paths.
    """
    folder = made.store.folder
    write_text(folder / AGREEMENT, agreement_markdown(made))
    texts = {
        f"{number:02d}-{table.key}.tex": latex(table) for number, table in made.numbered.items()
    }
    return [*write_tables(made.numbered, folder, texts), folder / AGREEMENT]
