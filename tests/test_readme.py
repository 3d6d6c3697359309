"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    names = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102
    assert ((names["p"] >= 0) & (names["p"] <= 1)).all()
    assert (tmp_path / "faces.faircal").exists()


def test_the_commands_run_one_after_the_other(tmp_path):
    (text,) = [block for block in blocks("sh") if block.startswith("faircal ")]
    commands = [shlex.split(line, comments=True) for line in text.splitlines()]
    assert [words[1] for words in commands] == [
        "simulate",
        "check",
        "fit",
        "score",
        "audit",
        "benchmark",
        "report",
    ]
    for words in commands:
        done = subprocess.run(
            [sys.executable, "-m", "faircal.cli.main", *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
    for made in ("scored.csv", "audit/report.html", "results/results.csv", "results/report.html"):
        assert (tmp_path / made).stat().st_size > 0


def test_links_lead_somewhere():
    root = Path(__file__).parents[1]
    for page in [root / "README.md", root / "ARCHITECTURE.md", root / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page.name, target)
