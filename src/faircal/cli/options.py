"""What commands share: options, how values are read, consoles, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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

from faircal._base.jobs import Progress, silent
from faircal.cli.help import Part, option

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


def notes(texts: Iterable[str]) -> None:
    """Print notes on standard error, each with the word before it; a warning is one already."""
    for words in texts:
        note(printable(words if words.startswith("warning") else f"note: {words}"))


def printable(text: str) -> str:
    """Return text that cannot steer a terminal, whatever the data names its groups."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def print_json(value: Any) -> None:
    """Print JSON on standard output."""
    from faircal.metrics.results import without_nan

    click.echo(json.dumps(without_nan(value), indent=2, default=str))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show bars with the time left on standard error, one for each thing that is told of.

    They vanish when all is done. Where standard error is no terminal nothing is shown: a log wants
    no bars.
    """
    if not err().is_terminal:
        yield silent
        return
    # What is too long for the terminal is cut at the end, in the label, and nowhere else.
    label = Column(ratio=1, overflow="ellipsis", no_wrap=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(12),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("left {task.fields[label]}", table_column=label),
    )
    with Bars(*columns, console=err(), expand=True, transient=True) as bars:
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


def parse_value(text: str) -> Any:
    """Read a parameter's value: JSON where it is JSON (3, 0.5, true), else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_settings(method: str, settings: Mapping[str, Any]) -> None:
    """Raise where a parameter given by ``--set`` is not of the kind of its default."""
    from faircal._base.errors import ParameterError
    from faircal.methods import METHODS

    kinds: dict[type, tuple[Any, str]] = {
        int: (int, "a whole number"),
        float: (int | float, "a number"),
        bool: (bool, "true or false"),
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
    values = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"expected name=value, found {text!r}", param_hint=option)
        values[name] = value
    return values


def parse_settings(assignments: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Read ``name=value`` pairs, given by `option`."""
    values = parse_assignments(assignments, option)
    return {name: parse_value(value) for name, value in values.items()}


def parse_methods(assignments: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read ``method.name=value`` pairs."""
    values: dict[str, dict[str, Any]] = {}
    for name, value in parse_settings(assignments).items():
        method, dot, parameter = name.partition(".")
        if not (method and dot and parameter):
            raise click.BadParameter(
                f"expected method.name=value, found {name!r}", param_hint="--set"
            )
        values.setdefault(method, {})[parameter] = value
    for method, settings in values.items():
        check_settings(method, settings)
    return values


seed_option = option(
    "--seed",
    part=Part.GENERAL,
    type=click.IntRange(0),
    default=0,
    help="Seed of all that is drawn at random: the same one gives the same result.",
)
json_option = option(
    "--json",
    "as_json",
    part=Part.GENERAL,
    is_flag=True,
    help="Print the result as JSON, for machines, in place of tables and paths.",
)
jobs_option = option(
    "--jobs",
    part=Part.WORK,
    type=click.IntRange(1),
    show_default="the number of cores",
    help="Cells (a method on a fold) at a time. Results do not depend on it.",
)
resume_option = option(
    "--resume",
    part=Part.WORK,
    is_flag=True,
    help="Go on where an interrupted run of the same command stopped.",
)
out_option = option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder to write to. It is made where it is not there; results of an earlier run in it "
    "are replaced.",
)
model_out_option = option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Model file to write, such as faces.faircal; one that is there is replaced.",
)
table_out_option = option(
    "--out",
    part=Part.OUTPUT,
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Table to write: a name that ends in .parquet or .csv; one that is there is replaced.",
)
set_option = option(
    "--set",
    "parameters",
    part=Part.METHOD,
    multiple=True,
    metavar="METHOD.NAME=VALUE",
    show_default="the methods' own values",
    help="Any parameter of a method, such as ftc.epochs=20; VALUE is JSON or text. May be "
    "repeated.",
)
rates_option = option(
    "--rates",
    part=Part.MEASURE,
    type=CommaList(float),
    default="0.001,0.01",
    help="Global rates, as shares, with commas: groups are compared at the threshold where the FPR "
    "of all pairs is that, and where their FNR is.",
)
features_option = option(
    "--features",
    part=Part.DATA,
    type=CommaList(),
    default=(),
    show_default="all",
    help="Networks (names of embeddings) or score columns to use, with commas.",
)
feature_option = option(
    "--feature",
    part=Part.DATA,
    show_default="the only one",
    help="Network (name of embeddings) or score column to use, where there are several.",
)
fold_option = option(
    "--fold", part=Part.DATA, show_default="all pairs", help="Use the pairs of this fold only."
)
leave_out_option = option(
    "--leave-out",
    part=Part.DATA,
    metavar="FOLD",
    show_default="all pairs are used",
    help="Fold to leave out, and so to keep for testing.",
)
attribute_option = option(
    "--attribute",
    part=Part.MEASURE,
    show_default="that of dataset.json, else all crossed",
    help="Attribute that makes the groups, such as ethnicity; a+b crosses two.",
)
attributes_option = option(
    "--attributes",
    part=Part.DATA,
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="no attributes",
    help="Table (.csv, .parquet) with identity or image_id, and any columns of attributes.",
)
level_option = option(
    "--level",
    part=Part.DATA,
    type=click.IntRange(1),
    show_default="the folder a picture lies in",
    help="Which folder on the way to a picture names the person: 1 is the outermost.",
)
