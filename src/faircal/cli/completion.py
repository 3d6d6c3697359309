"""``faircal completion``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from faircal.cli.help import Command, Part, argument, option
from faircal.cli.options import note

#: Lines of ~/.zshrc.
ZFUNC, COMPINIT = "fpath+=~/.zfunc", "autoload -Uz compinit && compinit"
#: As click calls it.
_VARIABLE = "_FAIRCAL_COMPLETE"


def _folder(variable: str, home: str) -> Path:
    """Return a folder of the user's: where a variable says, or below the home folder."""
    folder = os.environ.get(variable)
    return Path(folder) if folder else Path.home() / home


@dataclass(frozen=True)
class Shell:
    """A shell: where it looks for scripts, and what must be done besides."""

    path: Callable[[], Path]
    then: str


SHELLS = {
    "bash": Shell(
        lambda: _folder("XDG_DATA_HOME", ".local/share") / "bash-completion/completions/faircal",
        "open a new shell; without the package bash-completion put this line into ~/.bashrc:  "
        "source <(faircal completion bash)",
    ),
    "zsh": Shell(
        lambda: Path.home() / ".zfunc/_faircal",
        f"put this into ~/.zshrc, before any other line with compinit:  {ZFUNC}; {COMPINIT}",
    ),
    "fish": Shell(
        lambda: _folder("XDG_CONFIG_HOME", ".config") / "fish/completions/faircal.fish",
        "open a new shell",
    ),
}


@click.command(
    cls=Command,
    examples={
        "Install it for the shell that $SHELL names": "faircal completion --install",
        "bash (4.4 or later), by hand: put this line into ~/.bashrc": "source <(faircal completion "
        "bash)",
        "zsh, by hand: put this line into ~/.zshrc, after compinit": "source <(faircal completion "
        "zsh)",
        "fish, by hand: run this": "faircal completion fish > "
        "~/.config/fish/completions/faircal.fish",
    },
    tables={
        "Files that --install writes": {
            "bash": "~/.local/share/bash-completion/completions/faircal, which the package "
            "bash-completion reads; $XDG_DATA_HOME stands for ~/.local/share where it is set.",
            "zsh": "~/.zfunc/_faircal, which needs the lines below.",
            "fish": "~/.config/fish/completions/faircal.fish; $XDG_CONFIG_HOME stands for "
            "~/.config where it is set.",
        },
        "Lines that zsh needs in ~/.zshrc after --install": {
            ZFUNC: "So that the script is found; before compinit.",
            COMPINIT: "Unless it is there already.",
        },
    },
)
@argument(
    "shell",
    type=click.Choice(list(SHELLS)),
    required=False,
    metavar="[bash|zsh|fish]",
    help="Which shell. Without it, the one that $SHELL names.",
)
@option(
    "--install",
    is_flag=True,
    part=Part.OUTPUT,
    help="Write the script to where the shell looks for it, and say what is left to do. No start "
    "file of a shell is ever changed.",
)
def command(shell: str | None, install: bool) -> None:
    """Print or install the script that completes commands in your shell.

    With it the tab key completes commands, options, names of files, and values that faircal knows:
    methods, calibrators, networks, presets and the like. Where the shell can show them, each comes
    with a line of what it is.

    The script is short and asks faircal itself at each tab: install it once, it knows every later
    version. Names of methods and calibrators take a second, as these have to be imported.

    Without --install the script is printed, and nothing is written.
    """
    name = shell or _current()
    script = _script(name)
    if not install:
        click.echo(script, nl=False)
        return
    from faircal._base.files import check_file, output_folder, write_text

    path = SHELLS[name].path()
    check_file(path)
    output_folder(path.parent)
    if path.exists() and path.read_bytes() == script.encode():
        note(f"{path}: is there already, as it should be")
    else:
        write_text(path, script)
        note(f"{path}: written")
    note(f"next: {SHELLS[name].then}")
    click.echo(str(path))


def _current() -> str:
    """Return the shell that is used here."""
    from faircal._base.errors import ParameterError

    name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        found = f"found {name}" if name else "$SHELL is not set"
        raise ParameterError(f"expected bash, zsh or fish, {found}; say which: completion bash")
    return name


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    from faircal._base.errors import ParameterError

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover  (click knows all three)
        raise ParameterError(f"click knows no completion of {shell}")
    root = click.get_current_context().find_root()
    return kind(root.command, {}, "faircal", _VARIABLE).source()
