"""Shells complete commands, options and values; the script is printed, or put where it belongs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faircal.calibrators import CALIBRATORS
from faircal.cli.contents import COMMANDS
from faircal.cli.main import command_paths
from faircal.data.importers.ijbc import PROTOCOLS
from faircal.data.pairing import IMPOSTERS
from faircal.data.simulation import PRESETS
from faircal.embedding import DETECTORS, NETWORKS
from faircal.methods import METHODS

SHELLS = ("bash", "zsh", "fish")


def read_bash(text):
    return [[*line.split(",", 1), ""] for line in text.splitlines() if line]


def read_zsh(text):
    lines = text.splitlines()
    return [lines[i : i + 3] for i in range(0, len(lines) - len(lines) % 3, 3)]


def read_fish(text):
    rows = (line.partition("\t") for line in text.splitlines() if line)
    return [[*value.split(",", 1), said] for value, _, said in rows]


READ = {"bash": read_bash, "zsh": read_zsh, "fish": read_fish}


@pytest.fixture
def complete(run_here, monkeypatch):
    """Return a function that asks as a shell does: types, values and what is said of them."""

    def ask(line, shell="bash"):
        words = line.split(" ")
        last = words[-1] if shell == "fish" else str(len(words) - 1)
        with monkeypatch.context() as patch:
            patch.setenv("_FAIRCAL_COMPLETE", f"{shell}_complete")
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", last)
            done = run_here([])
        assert done.code == 0
        assert done.err == ""
        return READ[shell](done.out)

    return ask


@pytest.fixture
def values(complete):
    def ask(line, shell="bash"):
        return [value for _, value, _ in complete(line, shell)]

    return ask


# ------------------------------------------------------------------- what is proposed


@pytest.mark.parametrize("shell", SHELLS)
def test_commands(values, shell):
    assert values("faircal ", shell) == list(COMMANDS)
    assert values("faircal c", shell) == [name for name in COMMANDS if name.startswith("c")]
    assert values("faircal keys ", shell) == ["add", "list", "remove"]
    assert values("faircal classify a", shell) == ["apply", "audit"]
    layouts = [path[1] for path in command_paths() if path[:1] == ("import",) and path[1:]]
    assert values("faircal import ", shell) == layouts


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_is_explained_in_a_line(complete, shell):
    assert complete("faircal thr", shell) == [["plain", "threshold", COMMANDS["threshold"]]]
    ((_, _, said),) = complete("faircal keys rem", shell)
    assert said == "Remove a key"
    ((_, _, said),) = complete("faircal fit faces --meth", shell)
    assert said == "Which method to fit; 'faircal methods' lists them"
    ((_, value, said),) = complete("faircal fit faces --method bas", shell)
    assert value == "baseline"
    assert said == "Rank by the raw score; calibrate it with one global map"


@pytest.mark.parametrize("shell", SHELLS)
def test_options(values, shell):
    assert values("faircal fit faces --cl", shell) == ["--clusters"]
    assert values("faircal fit faces --clusters 5 --cl", shell) == []
    assert set(values("faircal demo -", shell)) == {
        *("--all", "--out", "--seed", "--json", "-h", "--help")
    }
    assert values("faircal --ver", shell) == ["--version", "--verbose"]
    assert values("faircal --plugin mine.py fit faces --meth", shell) == ["--method"]


@pytest.mark.parametrize("shell", SHELLS)
def test_methods(values, shell):
    assert values("faircal fit faces --method ", shell) == list(METHODS)
    assert values("faircal fit faces --method f", shell) == ["ftc", "fsn", "faircal"]


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("fit faces --calibrator ", CALIBRATORS),
        ("simulate ", PRESETS),
        ("embed photos --network ", NETWORKS),
        ("embed photos --detector ", DETECTORS),
        ("import ijbc source --protocol ", PROTOCOLS),
        ("pairs faces --imposters ", IMPOSTERS),
        ("threshold faces --rule ", ["promised", "measured"]),
        ("threshold faces --within ", ["global", "groups", "clusters"]),
        ("audit faces --engine ", ["local", "spark"]),
        ("reproduce ", ["rfw", "bfw", "ijbc"]),
        ("completion ", SHELLS),
        ("score m faces --prior ", ["estimate"]),
        ("keys add gate-4 --scope verify,", ["verify,enrol", "verify,admin"]),
        ("score m faces --add clusters,out", ["clusters,outside"]),
    ],
)
def test_values(values, line, known):
    assert values(f"faircal {line}") == list(known)


def test_lists_are_completed_after_a_comma(values):
    assert values("faircal benchmark faces --methods ") == list(METHODS)
    assert values("faircal benchmark faces --methods ftc,faircal,f") == ["ftc,faircal,fsn"]


@pytest.mark.parametrize("line", ["fit ", "score ", "score model ", "fit faces --out ", "report "])
def test_files_are_left_to_the_shell(complete, line):
    assert complete(f"faircal {line}") == [["file", "", ""]]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "line",
    [
        "faircal nonsense --me",
        "faircal nonsense ",
        "faircal classify nonsense --me",
        "faircal fit faces --no-such-option --xyz",
        "faircal fit faces --clusters many --xyz",
        "faircal embed --list --xyz",
        "faircal --version nonsense --xyz",
    ],
)
def test_what_is_wrong_is_passed_over_in_silence(complete, line, shell):
    found = complete(line, shell)
    assert all(kind != "plain" or value in COMMANDS for kind, value, _ in found)


def test_a_wrong_value_is_still_told_with_what_was_meant(run_here):
    done = run_here(["fit", "faces", "--method", "faircl", "--out", "m"])
    assert done.code == 2
    assert "unknown method 'faircl'; did you mean faircal?" in done.err
    assert run_here(["fitt"]).err.startswith("faircal: no command 'fitt'; did you mean fit?")


def test_commands_are_completed_without_importing_them():
    code = (
        "import json, sys\nfrom faircal.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    asked = {"_FAIRCAL_COMPLETE": "bash_complete", "COMP_WORDS": "faircal ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asked,
    )
    *listed, modules = done.stdout.splitlines()
    assert listed == [f"plain,{name}" for name in COMMANDS]
    ours = {name for name in json.loads(modules) if name.startswith("faircal.cli.")}
    assert ours == {"faircal.cli.contents", "faircal.cli.help", "faircal.cli.main"}
    assert not {"numpy", "rich", "pyarrow"} & set(json.loads(modules))


# -------------------------------------------------------------------------- the script


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


WHERE = {
    "bash": ".local/share/bash-completion/completions/faircal",
    "zsh": ".zfunc/_faircal",
    "fish": ".config/fish/completions/faircal.fish",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(shell, home, run_here, monkeypatch):
    done = run_here(["completion", shell])
    assert done.code == 0
    assert done.err == ""
    assert f"_FAIRCAL_COMPLETE={shell}_complete" in done.out
    assert not any(home.iterdir())
    monkeypatch.setenv("SHELL", f"/usr/local/bin/{shell}")
    assert run_here(["completion"]).out == done.out


@pytest.mark.parametrize("shell", SHELLS)
def test_installing_twice_is_installing_once(shell, home, run_here):
    script = run_here(["completion", shell]).out
    done = run_here(["completion", shell, "--install"])
    path = home / WHERE[shell]
    assert done.code == 0
    assert done.out == f"{path}\n"
    assert done.err.splitlines()[0] == f"{path}: written"
    assert done.err.splitlines()[1].startswith("next: ")
    assert path.read_text("utf-8") == script
    again = run_here(["completion", shell, "--install"])
    assert again.code == 0
    assert again.out == done.out
    assert "is there already" in again.err
    assert [file for file in home.rglob("*") if file.is_file()] == [path]
    path.write_text("of an earlier version")
    assert "written" in run_here(["completion", shell, "--install"]).err
    assert path.read_text("utf-8") == script


def test_folders_of_the_desktop_are_kept_to(home, run_here, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    places = [
        run_here(["completion", shell, "--install"]).out.strip() for shell in ("bash", "fish")
    ]
    assert places == [
        str(home / "data/bash-completion/completions/faircal"),
        str(home / "config/fish/completions/faircal.fish"),
    ]
    assert all(Path(place).is_file() for place in places)


@pytest.mark.parametrize(("shell", "said"), [(None, "$SHELL is not set"), ("/bin/tcsh", "tcsh")])
def test_another_shell_is_one_line(shell, said, home, run_here, monkeypatch):
    if shell:
        monkeypatch.setenv("SHELL", shell)
    done = run_here(["completion", "--install"])
    assert done.code == 2
    assert said in done.err
    assert "bash, zsh or fish" in done.err
    assert done.err.count("\n") == 1


def test_a_file_in_the_way_is_one_line(home, run_here):
    (home / ".zfunc").write_text("not a folder")
    done = run_here(["completion", "zsh", "--install"])
    assert done.code == 2
    assert ".zfunc is a file" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "known"),
    [("thr", ["threshold"]), ("classify ap", ["apply"]), ("fit faces --calibrator pla", ["platt"])],
)
def test_bash_itself_completes(words, known):
    bash = shutil.which("bash")
    assert bash, "bash is not installed"
    script = f"""
        source <(faircal completion bash)
        complete -p faircal >&2
        COMP_WORDS=(faircal {words})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _faircal_completion faircal
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": path},
    )
    assert done.stdout.split() == known
    assert done.stderr == "complete -o nosort -F _faircal_completion faircal\n"
