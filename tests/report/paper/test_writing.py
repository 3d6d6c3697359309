"""What is written: the same as the golden files, whole, and the same bytes every time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from faircal.report.cells import SIMULATED
from faircal.report.paper import reproduction, write_reproduction

GOLDEN = Path(__file__).parent / "golden"


def moved(quantity, printed):
    """Move FairCal's numbers a little, so that there is a difference to see."""
    return printed.mean + 0.0015 * (quantity.method == "faircal")


def written(store):
    return {
        str(path.relative_to(store.folder)): path.read_text()
        for path in write_reproduction(reproduction(store))
    }


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        ("rfw", "tables/01-properties_comparison.md"),
        ("rfw", "tables/02-global_performance_beta.tex"),
        ("rfw", "tables/05-subgroup_calibration_rfw_ks_ethnicity.md"),
        ("rfw", "agreement.md"),
        ("bfw", "tables/04-predictive_equality_at_fpr_beta.md"),
        ("bfw", "tables/14-predictive_equality_at_fpr_beta_aad.tex"),
        ("bfw", "tables/10-fair_calibration_ks_mean.csv"),
        ("ijbc", "tables/03-global_performance_beta_ijbc.md"),
    ],
)
def test_golden(make_store, dataset, name):
    golden = GOLDEN / f"{dataset}-{Path(name).name}"
    assert golden.exists(), f"{golden} is missing; make it and check it with the paper"
    text = written(make_store(dataset, moved))[name]
    assert text == golden.read_text(encoding="utf-8")


def test_golden_of_simulated_data(make_store):
    files = written(make_store("rfw", moved, simulated=True))
    golden = GOLDEN / "simulated-agreement.md"
    assert golden.exists(), f"{golden} is missing; make it and check it"
    assert files["agreement.md"] == golden.read_text(encoding="utf-8")
    for name, text in files.items():
        lines = text.splitlines()
        assert (
            all(line.endswith(",true") for line in lines[1:])
            if name.endswith(".csv")
            else (SIMULATED in lines[0])
        )


def test_files_are_numbered_in_the_papers_order(make_store):
    store = make_store("ijbc")
    names = sorted(name for name in written(store) if name.endswith(".md"))
    assert names == [
        "agreement.md",
        "tables/01-properties_comparison.md",
        "tables/02-fair_calibration_ks_ijbc.md",
        "tables/03-global_performance_beta_ijbc.md",
        "tables/04-predictive_equality_at_fpr_beta_ijbc.md",
    ]


def test_the_same_bytes_and_nothing_left_of_an_earlier_run(make_store):
    store = make_store("rfw")
    first = written(store)
    (store.folder / "tables" / "99-of_old.md").write_text("old")
    (store.folder / "tables" / "mine.md").write_text("mine")
    assert written(store) == first
    there = {str(p.relative_to(store.folder)) for p in store.folder.rglob("*") if p.is_file()}
    assert there == {*first, "tables/mine.md"}


@pytest.mark.parametrize("dataset", ["rfw", "bfw", "ijbc"])
def test_every_table_compiles_where_tex_is_installed(make_store, dataset, tmp_path):
    texts = [text for name, text in written(make_store(dataset, moved)).items() if ".tex" in name]
    assert len(texts) == {"rfw": 19, "bfw": 19, "ijbc": 4}[dataset]
    assert all(text.count("\\begin{table}") == 1 for text in texts)
    if shutil.which("pdflatex"):
        head = "\\documentclass{article}\\usepackage{booktabs,multirow,graphicx}\\begin{document}"
        pages = "\\clearpage\n".join(texts)
        (tmp_path / "all.tex").write_text(f"{head}{pages}\\end{{document}}", encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout[-3000:]
