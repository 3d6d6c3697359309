"""Mutants are drawn, found again after code has moved, and killed by a test that notices."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation.edits import faults, shape
from mutation.run import faulty_module
from mutation.sites import Tree, choose, relocate

ROOT = Path(__file__).parents[2]

MEANS = '''
def mean(values, low=0):
    """Return the mean of the values above `low`."""
    above = [value for value in values if value > low]
    return sum(above) / len(above)


def first(values):
    return values[:1]
'''
#: The same after a refactoring: moved, in a class, other names; `first` is gone.
AVERAGES = """
class Average:
    def mean(self, numbers, least=0):
        kept = [number for number in numbers if number > least]
        return sum(kept) / len(kept)
"""
TESTS = """
from faircal.metrics.means import mean


def test_mean():
    assert mean([1, 2, 6]) == 3
"""


def statement(text):
    return ast.parse(text).body[0]


def tree(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x = a + b[:-1]", {"x = a - b[:-1]", "x = a + b[:]", "x = a + b[:1]"}),
        ("x = 0 if a <= 1 else f(True)", {
            "x = 1 if a <= 1 else f(True)",
            "x = 0 if a < 1 else f(True)",
            "x = 0 if a <= 0 else f(True)",
            "x = 0 if a <= 1 else f(False)",
        }),
        ("return np.sum(a) // 2", {
            "return np.mean(a) // 2", "return -(-np.sum(a) // 2)", "return np.sum(a) // 3"
        }),
        ("if not a and b:\n    pass", {"if a and b:\n    pass", "if not a or b:\n    pass"}),
        ("if a < 1:\n    raise ValueError(a + 1)", set()),
        ("x: Array[1] = f'{a + 1}'", set()),
    ],
)  # fmt: skip
def test_faults_of_a_statement(text, wrong):
    assert {ast.unparse(fault) for fault in faults(statement(text))} == wrong


def test_shape_is_what_stays_when_names_change():
    assert shape(statement("low = min(found[:2]) + a.b")) == shape(
        statement("x = min(y[:2]) + c.d")
    )
    assert shape(statement("low = min(found)")) != shape(statement("low = max(found)"))


def test_a_faulty_module_differs_in_one_statement(tmp_path):
    root = tree(tmp_path, {"src/faircal/metrics/means.py": MEANS})
    site = next(site for site in Tree(root).sites if site.function == "first")
    code = ast.unparse(faulty_module(root / site.path, site, faults(site.statement)[0]))
    assert code == ast.unparse(ast.parse(MEANS.replace("values[:1]", "values[:]")))


def test_mutants_are_found_after_a_refactoring(tmp_path):
    before = tree(tmp_path / "before", {"src/faircal/metrics/means.py": MEANS})
    mutants = choose(before, seed=0, count=3)
    assert mutants == choose(before, seed=0, count=3)
    assert {mutant["function"] for mutant in mutants} == {"mean", "first"}
    assert [Tree(before).find(mutant).how for mutant in mutants] == ["same"] * 3
    moved = Tree(tree(tmp_path / "moved", {"src/faircal/other.py": MEANS}))
    assert [moved.find(mutant).how for mutant in mutants] == ["moved"] * 3
    renamed = Tree(tree(tmp_path / "renamed", {"src/faircal/averages.py": AVERAGES}))
    assert [renamed.find(mutant).how for mutant in mutants] == ["renamed", "renamed", "missing"]
    here = relocate(renamed.root, mutants)
    assert [mutant["id"] for mutant in here] == [0, 1]
    assert {mutant["path"] for mutant in here} == {"src/faircal/averages.py"}
    assert [renamed.find(mutant).how for mutant in here] == ["same"] * 2


def test_a_run_says_what_is_killed_and_leaves_the_tree_alone(tmp_path):
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
        "src/faircal/__init__.py": "",
        "src/faircal/metrics/__init__.py": "",
        "src/faircal/metrics/means.py": MEANS,
        "tests/metrics/test_means.py": TESTS,
    }
    root = tree(tmp_path / "tree", files)
    mutants, out = tmp_path / "mutants.json", tmp_path / "results.json"
    mutants.write_text(json.dumps(choose(root, seed=0, count=3)))
    words = [sys.executable, "-m", "mutation", "run", mutants, "--tree", root, "--out", out]
    subprocess.run(words, cwd=ROOT, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    fates = {fate["function"]: fate for fate in json.loads(out.read_text())["mutants"]}
    assert fates["mean"]["by"] == "tests/metrics/test_means.py::test_mean"
    assert fates["first"]["fate"] == "survived"  # no test calls it
    assert {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} == set(files)
