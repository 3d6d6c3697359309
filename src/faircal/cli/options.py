"""What commands share: option types, consoles, progress."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column

from faircal.jobs import Progress, silent

if TYPE_CHECKING:
    pass

#: Widest line where the output is no terminal and has no width of its own.
_PLAIN_WIDTH = 140


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return (
        console
        if console.is_terminal
        else Console(stderr=stderr, highlight=False, width=_PLAIN_WIDTH)
    )


def out() -> Console:
    """Return the console for results (standard output)."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console for progress and notes (standard error)."""
    return _console(stderr=True)


def note(text: str) -> None:
    """Print a note on standard error."""
    click.echo(text, err=True)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal, whatever the data names its groups."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def print_json(value: Any) -> None:
    """Print JSON on standard output."""
    from faircal.results import without_nan

    click.echo(json.dumps(without_nan(value), indent=2, default=str))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show bars with the time left on standard error, one for each thing that is told of.

    Where standard error is no terminal nothing is shown: a log wants no bars.
    """
    if not err().is_terminal:
        yield silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(12, table_column=Column(no_wrap=True)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("left", table_column=Column(no_wrap=True)),
        # What is too long for the terminal is cut here, and nowhere else.
        TextColumn(
            "{task.fields[label]}",
            table_column=Column(ratio=1, overflow="ellipsis", no_wrap=True),
        ),
    )
    with Bars(*columns, console=err(), expand=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(what: str, done: int, total: int, label: str) -> None:
            if not total:
                if what in tasks:
                    bars.remove_task(tasks.pop(what))
                return
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, label=label)
            bars.update(tasks[what], completed=done, total=total, label=label)

        yield update


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on standard error, where it is a terminal, while something takes time."""
    console = err()
    with console.status(what) if console.is_terminal else nullcontext():
        yield


class CommaList(click.ParamType[Any]):
    """A comma-separated list; each element is converted by `kind`."""

    name = "list"

    def __init__(self, kind: Callable[[str], Any] = str) -> None:
        self.kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        """Split and convert."""
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(words):
            self.fail(f"expected values separated by commas, found {value!r}", param, ctx)
        try:
            return tuple(self.kind(word) for word in words)
        except ValueError:
            self.fail(
                f"expected {self.kind.__name__} values separated by commas, found {value!r}",
                param,
                ctx,
            )


def check_output(path: Path) -> None:
    """Raise when `path` can't be written, before any work is done for it; makes nothing."""
    from faircal.errors import ParameterError

    absolute = path.absolute()
    # A file is written beside the old one, which it then takes the place of.
    places = absolute.parents if path.is_file() else (absolute, *absolute.parents)
    home = next(folder for folder in places if folder.exists())
    if not home.is_dir():
        raise ParameterError(f"cannot write {path}: {home} is a file; choose another path")
    if not os.access(home, os.W_OK):
        raise ParameterError(f"cannot write {path}: {home} is not writable; choose another path")


def check_file(path: Path) -> None:
    """Raise when `path` can't be written as a file."""
    from faircal.errors import ParameterError

    if path.is_dir():
        raise ParameterError(f"{path} is a folder; give the path of a file to write")
    check_output(path)


def check_folder(path: Path) -> None:
    """Raise when `path` can't be used as a folder to write to."""
    from faircal.errors import ParameterError

    if path.exists() and not path.is_dir():
        raise ParameterError(f"cannot use {path} as output folder: it is a file; give another path")
    check_output(path)


def parse_value(text: str) -> Any:
    """Read a parameter's value: JSON where it is JSON (3, 0.5, true), else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_settings(method: str, settings: Mapping[str, Any]) -> None:
    """Raise where a parameter given by ``--set`` is not of the kind of its default."""
    from faircal.errors import ParameterError
    from faircal.methods import METHODS

    kinds = {
        int: (int, "a whole number"),
        float: (int | float, "a number"),
        bool: (bool, "true or false"),
        str: (str, "text"),
    }
    defaults = METHODS[method].defaults()
    for name, value in settings.items():
        default = defaults.get(name)
        # Lists and mappings are the method's to check, with what they hold.
        if name not in defaults or isinstance(default, tuple | dict) or isinstance(value, dict):
            continue
        kind, expected = kinds.get(type(default), (str, "text"))
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ParameterError(
                f"--set {name}: expected {expected}, found {value!r}; "
                f"{method}'s default is {default!r}"
            )


def parse_assignments(assignments: tuple[str, ...], option: str) -> dict[str, str]:
    """Read ``name=value`` pairs, given by `option`, as text."""
    found = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"expected name=value, found {text!r}", param_hint=option)
        found[name] = value
    return found


def parse_settings(assignments: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Read ``name=value`` pairs, given by `option`."""
    found = parse_assignments(assignments, option)
    return {name: parse_value(value) for name, value in found.items()}


def parse_methods(assignments: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read ``method.name=value`` pairs."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in parse_settings(assignments).items():
        method, dot, parameter = name.partition(".")
        if not (method and dot and parameter):
            raise click.BadParameter(
                f"expected method.name=value, found {name!r}", param_hint="--set"
            )
        found.setdefault(method, {})[parameter] = value
    for method, settings in found.items():
        check_settings(method, settings)
    return found


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
calibrated_at_option = click.option(
    "--calibrated-at",
    type=float,
    default=None,
    help="Share of genuine pairs that MODEL was fitted at  [default: what it says itself]",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1), default=None, help="Cells at a time  [default: cores]"
)
resume_option = click.option("--resume", is_flag=True, help="Go on where an earlier run stopped.")
out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
set_option = click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="METHOD.NAME=VALUE",
    help="Any parameter of a method.",
)
rates_option = click.option(
    "--rates",
    type=CommaList(float),
    default="0.001,0.01",
    show_default=True,
    help="Global error rates to compare at.",
)
features_option = click.option(
    "--features", type=CommaList(), default=(), help="Networks or score columns  [default: all]"
)
feature_option = click.option(
    "--feature", default=None, help="Which network or score column  [default: the only one]"
)

attributes_option = click.option(
    "--attributes",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Table with identity or image_id, and attribute columns.",
)
level_option = click.option(
    "--level",
    type=click.IntRange(1),
    default=None,
    help="Which folder names the person: 1 is the outermost  [default: the one a picture lies in]",
)
