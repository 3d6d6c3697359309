"""What commands share: option types, consoles, progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

F = TypeVar("F", bound=Callable[..., Any])

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


def print_json(value: Any) -> None:
    """Print JSON on standard output."""
    click.echo(json.dumps(value, indent=2, default=str))


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar with the time left on standard error; gives ``update(done, total, label)``."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[label]}"),
    )
    with Progress(*columns, console=err(), transient=not err().is_terminal) as progress:
        task = progress.add_task(what, total=None, label="")

        def update(done: int, total: int, label: str) -> None:
            progress.update(task, completed=done, total=total, label=label)

        yield update


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on standard error while something takes its time."""
    with err().status(what):
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


class ScoreRange(click.ParamType[Any]):
    """``LOW,HIGH``."""

    name = "low,high"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Split into two numbers."""
        if isinstance(value, tuple):
            return value
        try:
            low, high = map(float, str(value).split(","))
        except ValueError:
            self.fail(f"expected LOW,HIGH such as 0,100, found {value!r}", param, ctx)
        return low, high


def parse_value(text: str) -> Any:
    """Read a parameter's value: JSON where it is JSON (3, 0.5, true), else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_settings(assignments: tuple[str, ...]) -> dict[str, Any]:
    """Read ``name=value`` pairs."""
    found = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"expected name=value, found {text!r}", param_hint="--set")
        found[name] = parse_value(value)
    return found


data_argument = click.argument("data", type=click.Path(path_type=Path))
score_range_option = click.option(
    "--score-range",
    type=ScoreRange(),
    default="-1,1",
    show_default=True,
    help="Range of ready-made scores.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
raw_option = click.option(
    "--raw", is_flag=True, help="Keep embeddings as stored: no scaling to unit length."
)


def reads_data(function: F) -> F:
    """Add the argument DATA and the options that say how to read it."""
    return data_argument(score_range_option(raw_option(function)))
