"""The document says what the kept rows say."""

from __future__ import annotations

import pytest

from studies.__main__ import DOCS, RESULTS, main
from studies.cells import KEPT, keep, read
from studies.page import page
from studies.parts import PARTS, Cell, cells_of
from studies.sections import back
from studies.tally import Tally

PICTURES = ("real", "protocol", "groups")


def row(cell, value, **more):
    groups = {"A": {"pairs": 10, "ks": value, "fpr@0.01": value}}
    values = dict.fromkeys(KEPT, value)
    figures = {"components": 3}
    told = {"values": values, "groups": groups, "figures": figures, "imposters": 5, **more}
    return {**cell._asdict(), "cpu_seconds": 1.0, **told}


@pytest.fixture
def tally():
    """Two folds of the real set: Baseline 4, FairCal 3, Smooth 1.5, Oracle 1."""
    found = {}
    for name, value in (("baseline", 4.0), ("faircal", 3.0), ("smooth", 1.5), ("oracle", 1.0)):
        for fold in (1, 2):
            drawn = {metric: [value, value + fold / 10] for metric in KEPT}
            cell = Cell("lfw", fold, name)
            found[cell] = row(cell, value + (fold - 1.5) / 10, replicates=drawn)
    return Tally(found)


def test_the_page_agrees_with_the_kept_rows():
    if not RESULTS.exists():
        pytest.skip("the study was not run yet")
    pictures = {name: f"study-smooth-{name}.png" for name in PICTURES}
    kept = (DOCS / "study-smooth.md").read_text("utf-8")
    assert kept == page(Tally(read(RESULTS)), pictures), "run python -m studies --write"


def test_means_shares_and_intervals(tally):
    assert tally.mean("lfw", "smooth", "ks_mean") == pytest.approx(1.5)
    assert tally.closed("lfw", "smooth", "ks_mean") == pytest.approx(100 * 2.5 / 3)
    assert tally.replicates("lfw", "smooth", "ks").tolist() == pytest.approx([1.5, 1.65])
    gap = tally.interval_of_difference("lfw", "ks", "smooth", "faircal")
    assert gap == pytest.approx((-1.5, -1.5))
    assert not tally.is_worse("lfw", "nll", "smooth", "faircal")
    assert tally.is_worse("lfw", "auroc", "smooth", "faircal")
    assert tally.worse_folds("lfw", "auroc", "smooth", "faircal") == (2, 2)


def test_what_pairing_anew_brings_back(tally):
    more = dict(tally.rows)
    for name, value in (("lfw, 100 % random", 3.5), ("lfw, cluster", 2.0)):
        cell = Cell(name, 1, "smooth")
        more[cell] = row(cell, value)
    assert back(Tally(more), "lfw, cluster", "smooth") == pytest.approx(75)


def test_the_page_tells_failures_too(tally):
    text = page(tally, {})
    assert "SmoothFairCal − FairCal −0.54 (−1.00 to +0.14), not told apart" in text
    assert "lfw: AUROC | 3.00 | 1.50 | 2 of 2" in text
    assert "nan" not in text


def test_rows_are_kept_line_by_line_and_a_cut_line_is_run_again(tmp_path):
    path, cells = tmp_path / "rows.jsonl", [Cell("lfw", fold, "oracle") for fold in (1, 2, 3)]
    for cell in cells[:2]:
        keep(row(cell, 1.0), path)
    path.write_bytes(path.read_bytes()[:-20])
    assert list(read(path)) == cells[:1]
    keep(row(cells[2], 1.0), path)
    assert list(read(path)) == [cells[0], cells[2]]


@pytest.mark.parametrize("part", PARTS)
def test_parts_have_cells_once_each(part):
    cells = cells_of(part, quick=False)
    assert cells
    assert len(set(cells)) == len(cells)
    assert set(cells_of(part, quick=True)) <= set(cells)


@pytest.mark.parametrize("wrong", [["nonsense"], ["real"]])
def test_wrong_use_is_told(wrong, capsys):
    with pytest.raises(SystemExit):
        main(wrong)
    assert "expected" in capsys.readouterr().err
