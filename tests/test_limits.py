"""The code stays as small as it is, and ARCHITECTURE.md's walk is the way that a pair goes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import hops, size

ROOT = Path(__file__).parents[1]
WALK = re.compile(r"^- \*\*(\w+)\*\*: (.+?)(?=\n- |\n\n)", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("hops")
    hops.run(hops.COMMANDS["simulate"].format(folder=made))
    hops.run(hops.COMMANDS["fit"].format(folder=made))
    return str(made)


def test_size():
    files = size.sources(ROOT)
    assert size.within_limits(files), size.report(files)


def test_a_larger_tree_is_beyond_the_limits():
    files = size.sources(ROOT)
    assert not size.within_limits(files * 2)
    assert not size.within_limits([*files, files[0]._replace(lines=601)])
    assert not size.within_limits([*files, files[0]._replace(lines=9, classes=["FairCal"])])


@pytest.mark.parametrize("command", hops.LIMITS)
def test_functions_that_a_command_enters(command, folder):
    entered = hops.count(command, folder)
    assert hops.within_limits(command, entered), len(entered)
    assert not hops.within_limits(command, entered * 2)
    names = [name for _, name in entered]
    for walk in {"audit": ["audit", "report"]}.get(command, [command]):
        steps = walks().get(walk)
        if command != "benchmark":  # a fit, a score and an audit for each cell
            assert steps == sorted(steps, key=names.index)


def walks():
    """The functions of each walk of ARCHITECTURE.md, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return {name: re.findall(r"`([^`]+)`", steps) for name, steps in WALK.findall(text)}


def test_walks_are_short():
    assert list(walks()) == ["fit", "score", "audit", "report"]
    assert all(8 <= len(steps) <= 12 for steps in walks().values())
