"""In a terminal of 80 columns every command prints what it prints in a wide one."""

from __future__ import annotations

import pytest

SIZES = ("--people", "120", "--images", "960", "--pairs", "9000", "--dimension", "16")
WIDTH = 80


@pytest.fixture(scope="module")
def faces(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("narrow") / "faces"
    run_command("simulate", "small", folder, *SIZES)
    return str(folder)


@pytest.fixture
def at_width(monkeypatch, run_here):
    """Return a function that gives what a command prints where lines have so many letters."""

    def run(words, width):
        monkeypatch.setattr("faircal.cli.printing._PLAIN_WIDTH", width)
        done = run_here(words)
        assert done.code in (0, 1), done.err
        return done.out

    return run


COMMANDS = {
    "audit": "audit FACES --out OUT --attribute ethnicity --rates 0.05 --label-noise 0.05",
    "threshold": "threshold FACES --fpr 0.05 --attribute ethnicity",
    "threshold in groups": "threshold FACES --fpr 0.05 --within groups",
    "plan": "plan --rate 0.01 --people 500 --groups 4",
    "methods": "methods",
    "check": "check FACES",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_number_and_no_name_is_cut(command, faces, tmp_path, at_width):
    places = {"FACES": faces, "OUT": str(tmp_path / "out")}
    words = [places.get(word, word) for word in command.split()]
    wide, narrow = (at_width(words, width) for width in (300, WIDTH))
    assert "…" not in narrow
    assert {word for word in wide.split() if "─" not in word} <= set(narrow.split())
    assert all(len(line) <= WIDTH for line in narrow.splitlines() if "─" in line)
