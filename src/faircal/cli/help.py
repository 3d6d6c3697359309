"""How a command describes itself: what ``--help`` prints, and the site's reference is made of.

A command says beside its docstring what `Command` takes: examples, further tables, exit codes and
what to see. Its options say which `Part` of the page they stand in. `manual_of` makes one `Manual`
of all that, and `render` makes text of it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

F = TypeVar("F", bound="Callable[..., Any] | click.Command")

#: The commands by section, in the order in which people meet them. Each is a module here with a
#: click command `command`; a name that Python keeps for itself has a line under it. The text is the
#: first sentence of the command's help, here so that a list of commands imports none of them.
SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Compare the methods on simulated faces.",
        "simulate": "Write a simulated dataset folder.",
        "methods": "List the methods and their properties.",
    },
    "Data": {
        "import": "Make a dataset folder from data in its owners' layout.",
        "embed": "Detect, align and embed the faces in pictures.",
        "pairs": "Build pairs of images from identities.",
        "check": "Describe a dataset and find what is wrong with it.",
    },
    "Fit and score": {
        "choose": "Choose FairCal's clusters and calibrator on people held out.",
        "fit": "Fit a method on labelled pairs and write a model file.",
        "score": "Score pairs with a model.",
    },
    "Measure": {
        "audit": "Measure scores by group.",
        "regions": "Find where in embedding space it is worst, without attributes.",
        "threshold": "Find a threshold with a guaranteed false-positive rate.",
        "plan": "Say how many people and pairs a wanted interval needs.",
        "benchmark": "Compare methods by leave-one-fold-out.",
        "compare": "Tell what differs between two runs, and stop an update that is worse.",
        "report": "Write the report of a benchmark or an audit again.",
    },
    "Classifiers": {
        "classify": "Calibrate and measure the probabilities of any classifier.",
    },
    "The paper": {
        "reproduce": "Repeat the paper's experiment, with every table and figure.",
    },
    "Production": {
        "card": "Print the model card of a model file.",
        "export": "Write a model as one ONNX graph.",
        "serve": "Serve a model over HTTP: verify, enrol, identify.",
        "keys": "Make, list and remove API keys of the service.",
        "monitor": "Tell whether pairs in use still are what a model was calibrated for.",
    },
}

#: All of them, with their text.
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}

#: Of every command; its own say what a code means there.
EXIT_CODES = {
    0: "Done.",
    1: "Interrupted, or an error that nobody foresaw.",
    2: "Bad input or wrong usage; one line on standard error says what, and what to do.",
}
#: Metavars of types whose names say less.
_METAVARS = {"integer": "N", "integer range": "N", "float": "NUMBER", "float range": "NUMBER"}
#: Where the text of a row begins; below a longer term.
_COLUMN = 26
#: Widest line of an example.
_LINE = 76


class Part(StrEnum):
    """The parts of a page that options stand in, in their order."""

    DATA = "Data"
    POPULATION = "Population"
    NETWORK = "Network"
    GENUINE = "Genuine pairs"
    IMPOSTERS = "Imposter pairs"
    METHOD = "Method"
    COHORT = "Cohort"
    MOVING = "Another population"
    PROMISE = "What is promised"
    PRECISION = "How precise"
    SAMPLE = "People and images"
    MEASURE = "What to measure"
    GATE = "Gate"
    PRIOR = "Share of genuine pairs"
    CARD = "Model card"
    ADDRESS = "Address and access"
    STORAGE = "Storage"
    KEYS = "Keys"
    DECISION = "Decision"
    LIMITS = "Limits"
    MONITORING = "Monitoring"
    PICTURES = "Pictures"
    OUTPUT = "Output"
    WORK = "Long work"
    SPARK = "Spark"
    LOGS = "Logs"
    GENERAL = "General"

    def option(self, *names: str, **attrs: Any) -> Callable[[F], F]:
        """Return a decorator that adds an `Option` of this part."""
        return click.option(*names, cls=Option, part=self, **attrs)


@dataclass(frozen=True)
class Section:
    """A section of a manual: a title, and rows or examples.

    A row is a term, such as an option with its metavar, and what is said of it. An example is what
    a command does, without a full stop, and the command: lines that end in a backslash where it is
    long.
    """

    title: str
    rows: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Manual:
    """All that there is to say of a command, in the order in which it is said.

    `name` is with the names of its groups, such as ``faircal classify fit``; `takes` follows it in
    the line of usage; `summary` is one sentence, `description` paragraphs.
    """

    name: str
    takes: str
    summary: str
    description: tuple[str, ...]
    sections: tuple[Section, ...]


class Option(click.Option):
    """An option that knows its part of the page, and shows its default.

    A default that is no value (what happens where the option is not given) is given by
    ``show_default`` in words.
    """

    def __init__(self, *args: Any, part: Part, **attrs: Any) -> None:
        super().__init__(*args, **{"show_default": True, **attrs})
        self.part = part

    def make_metavar(self, ctx: click.Context) -> str:
        """Return the option's own name for text, N for whole numbers."""
        if self.metavar is None and isinstance(self.type, click.types.StringParamType):
            return max(self.opts, key=len).lstrip("-").upper()
        if self.metavar is None and self.type.name in _METAVARS:
            return _METAVARS[self.type.name]
        return super().make_metavar(ctx)

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return default, range and whether it must be given; words are no value in parentheses."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


class Argument(click.Argument):
    """An argument that says what it may be."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        text = attrs.pop("help")
        super().__init__(*args, **attrs)
        self.help = text


def argument(name: str, **attrs: Any) -> Callable[[F], F]:
    """Return a decorator that adds an `Argument`."""
    return click.argument(name, cls=Argument, **attrs)


class Command(click.Command):
    """A command with a page of its own.

    It takes `examples`, commands by what they do; further `tables` by title, such as ``Files``;
    what `exits` codes mean where that is not what `EXIT_CODES` says (1 means that besides); and
    what to `see`: commands, and pages of the documentation such as ``how-to/pairs``.
    """

    def __init__(
        self,
        *args: Any,
        examples: Mapping[str, str],
        tables: Mapping[str, Mapping[str, str]] | None = None,
        exits: Mapping[int, str] | None = None,
        see: tuple[str, ...] = (),
        **attrs: Any,
    ) -> None:
        super().__init__(*args, **attrs)
        self.examples = examples
        self.tables = tables or {}
        self.exits = EXIT_CODES | dict(exits or {})
        if exits and 1 in exits:
            self.exits[1] += f" {EXIT_CODES[1]}"
        self.see = see

    @property
    def paragraphs(self) -> list[str]:
        """The docstring: a sentence, then what there is to say."""
        text = inspect.cleandoc(self.help or "")
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002  (click's signature)
        """Return the first sentence, whole."""
        return self.paragraphs[0]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page."""
        formatter.write(render(manual_of(ctx), formatter.width))

    def command_sections(self, ctx: click.Context) -> list[Section]:  # noqa: ARG002
        """Return the commands of a group, by section."""
        return []


class Group(Command, click.Group):
    """A command of commands."""

    command_class = Command

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **attrs})

    def command_sections(self, ctx: click.Context) -> list[Section]:  # noqa: ARG002
        """Return its commands, in the order they were added."""
        rows = ((name, each.get_short_help_str()) for name, each in self.commands.items())
        return [Section("Commands", tuple(rows))]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return their names, in the same order."""
        return list(self.commands)


def manual_of(ctx: click.Context) -> Manual:
    """Return the manual of a context's command."""
    command = ctx.command
    assert isinstance(command, Command)  # noqa: S101  (all of ours are)
    summary, *description = command.paragraphs
    exits = {str(code): command.exits[code] for code in sorted(command.exits)}
    tables = {**command.tables, "Exit codes": exits, "See also": dict(map(_reference, command.see))}
    sections = [
        *command.command_sections(ctx),
        *_parameters(ctx),
        *(Section(title, tuple(rows.items())) for title, rows in tables.items()),
    ]
    examples = tuple((what, broken(line)) for what, line in command.examples.items())
    sections.insert(-2, Section("Examples", examples=examples))
    return Manual(
        ctx.command_path,
        " ".join(command.collect_usage_pieces(ctx)),
        summary,
        tuple(description),
        tuple(each for each in sections if each.rows or each.examples),
    )


def _parameters(ctx: click.Context) -> Iterator[Section]:
    """Give the arguments, then the options by part; click's own ``--help`` is general."""
    parameters = ctx.command.get_params(ctx)
    arguments = [each for each in parameters if isinstance(each, Argument)]
    rows = [(each.make_metavar(ctx).strip("[]{}."), each.help or "") for each in arguments]
    yield Section("Arguments", tuple(rows))
    options = [each for each in parameters if isinstance(each, click.Option)]
    for part in Part:
        inside = (each for each in options if getattr(each, "part", Part.GENERAL) is part)
        records = (each.get_help_record(ctx) for each in inside)
        yield Section(str(part), tuple(record for record in records if record is not None))


def _reference(name: str) -> tuple[str, str]:
    """Return a row of "See also": a page of the documentation, or a command."""
    if "/" in name:
        return name, "A page of the documentation."
    return f"faircal {name}", COMMANDS[name]


def broken(command: str, width: int = _LINE) -> str:
    r"""Return a command with lines broken before options, each but the last with a backslash.

    Examples
    --------
    >>> print(broken("faircal fit faces/ --clusters 100 --out faces.faircal", 40))
    faircal fit faces/ --clusters 100 \
        --out faces.faircal
    """
    lines: list[str] = []
    for piece in re.split(r" (?=--)", command):
        joined = f"{lines[-1]} {piece}" if lines else piece
        if lines and len(joined) > width - len(" \\"):
            lines.append(f"    {piece}")
        else:
            lines[-1:] = [joined]
    return " \\\n".join(lines)


def render(manual: Manual, width: int) -> str:
    """Return a manual as text of lines that are no wider than `width`, where words allow."""
    start = f"Usage: {manual.name} "
    blocks = [_filled(manual.takes, width, start, " " * len(start))]
    blocks += [_filled(text, width, "  ", "  ") for text in (manual.summary, *manual.description)]
    for section in manual.sections:
        lines = [f"{section.title}:", *(_row(*row, width) for row in section.rows)]
        examples = [f"# {what}\n{command}\n" for what, command in section.examples]
        lines += [textwrap.indent("\n".join(examples), "  ").rstrip()] if examples else []
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _row(term: str, text: str, width: int) -> str:
    """Return a term with its text beside it, or below where the term is long."""
    indent = " " * _COLUMN
    if len(term) > _COLUMN - 4:
        return f"  {term}\n{_filled(text, width, indent, indent)}"
    return _filled(text, width, f"  {term}".ljust(_COLUMN), indent)


def _filled(text: str, width: int, start: str, rest: str) -> str:
    """Return text in lines; options and names are not broken at their hyphens."""
    return textwrap.fill(
        text,
        width,
        initial_indent=start,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
