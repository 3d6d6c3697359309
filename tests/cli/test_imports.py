"""What is quick stays quick: heavy packages are imported where they are used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"sklearn", "scipy", "pyarrow", "numpy", "jinja2", "torch", "matplotlib", "pandas"}


def imported(code: str) -> set[str]:
    """Return the top-level packages that `code` imports in a fresh interpreter."""
    report = (
        "import sys, json; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


HELP = """
from faircal.cli.main import main
try:
    main({words})
except SystemExit as stop:
    assert stop.code == 0
"""


@pytest.mark.parametrize(
    "code",
    ["import faircal", HELP.format(words=["--help"]), HELP.format(words=["fit", "--help"])],
    ids=["import faircal", "faircal --help", "faircal fit --help"],
)
def test_nothing_heavy_is_imported(code):
    assert not imported(code) & HEAVY


def test_a_name_brings_what_it_needs():
    assert {"numpy", "pyarrow"} <= imported("import faircal; faircal.Dataset")


@pytest.mark.parametrize(
    "code",
    [
        "import faircal; faircal.FTC(); faircal.MultiPASS().check_parameters()",
        "import faircal; faircal.FairCal(n_clusters=2).fit(faircal.simulate('small', people=80))",
        HELP.format(words=["methods"]),
    ],
    ids=["trained methods unfitted", "a method that trains nothing", "faircal methods"],
)
def test_torch_is_imported_to_train_and_for_nothing_else(code):
    found = imported(code)
    assert "numpy" in found
    assert "torch" not in found


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "faircal", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("faircal, version ")
