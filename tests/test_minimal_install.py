"""The base package works with its declared dependencies and nothing else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from importlib.metadata import requires
from pathlib import Path

import faircal

SOURCE = Path(faircal.__file__).parent
#: Where a distribution and what is imported from it have different names.
IMPORTED_AS = {"scikit-learn": "sklearn"}
BLOCKED = (
    "pandas",
    "polars",
    "torch",
    "matplotlib",
    "betacal",
    "fairlearn",
    "pytest",
    "hypothesis",
)

HOOK = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked by this test", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(script, folder):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HOOK + textwrap.dedent(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_hook_blocks(tmp_path):
    for name in BLOCKED:
        found = run(f"import {name}", tmp_path)
        assert found.returncode == 1
        assert f"{name} is blocked by this test" in found.stderr


def test_main_job_without_extras(tmp_path):
    script = """
        import faircal
        from faircal.benchmark import Settings, run_benchmark
        from faircal.cli.main import main
        from faircal.report import write_report

        data = faircal.simulate("small", seed=0, people=80, images=240, pairs=700, dimension=16)
        calibration, test = data.split(test_fold=5)
        model = faircal.FairCal(n_clusters=4).fit(calibration)
        model.save("m.faircal")
        p = faircal.load_model("m.faircal").predict_proba(test)
        found = faircal.audit(
            probability=p, genuine=test.genuine, groups=test.groups("ethnicity"), threshold=0.5
        )
        assert 0 <= found.value("fpr", group="Asian") <= 1
        rows = run_benchmark(data, "out", Settings(clusters=(4,)), jobs=1)
        assert {"baseline", "faircal", "fsn", "gst", "oracle"} <= {row.method for row in rows}
        assert write_report("out").stat().st_size > 1000
        assert not set(sys.modules) & set(%r)
        print("done")
    """
    found = run(script % (BLOCKED,), tmp_path)
    assert found.stderr == ""
    assert found.stdout == "done\n"
    assert (tmp_path / "out" / "results.csv").exists()


def test_command_line_without_extras(tmp_path):
    found = run(
        "from faircal.cli.main import main; sys.argv = ['faircal', 'methods']; main()", tmp_path
    )
    assert found.returncode == 0, found.stderr
    assert "FairCal" in found.stdout


def test_importing_is_quick_because_it_imports_next_to_nothing(tmp_path):
    script = """
        import faircal
        print(sorted({"numpy", "scipy", "sklearn", "pyarrow", "click"} & set(sys.modules)))
    """
    assert run(script, tmp_path).stdout == "[]\n"


def test_nothing_undeclared_is_imported():
    declared = {
        re.match(r"[\w.-]+", line).group().lower()
        for line in requires("faircal")
        if "extra ==" not in line
    }
    allowed = {IMPORTED_AS.get(name, name) for name in declared} | {"faircal"}
    allowed |= set(sys.stdlib_module_names)
    seen = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                seen |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                seen.add(node.module.partition(".")[0])
    assert {"numpy", "sklearn", "pyarrow"} <= seen
    assert seen <= allowed
