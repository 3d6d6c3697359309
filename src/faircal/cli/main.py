"""The command ``faircal``: finds the command, and turns every error into one line and a code."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import keyword
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from faircal._base.errors import FairCalError, ParameterError
from faircal._base.registry import did_you_mean
from faircal._version import __version__
from faircal.cli.help import COMMANDS, SECTIONS, Group, Option, Part, Section


class Commands(Group):
    """Commands are imported when they are called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in our order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return a command, or say which one may have been meant."""
        if name not in COMMANDS:
            if ctx.resilient_parsing:  # what is typed is completed, not run
                return None
            raise click.UsageError(f"no command {name!r}; {did_you_mean(name, COMMANDS)}", ctx)
        module = f"{name}_" if keyword.iskeyword(name) else name
        command: click.Command = importlib.import_module(f"faircal.cli.{module}").command
        return command

    def command_sections(self, ctx: click.Context) -> list[Section]:
        """Return the commands by section, without importing them."""
        return [Section(title, tuple(rows.items())) for title, rows in SECTIONS.items()]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples={
        "Compare the methods on simulated faces, and write a report": "faircal demo",
        "Make data to try things on": "faircal simulate small faces/",
        "Fit a method, and keep one fold of people for testing": "faircal fit faces/ --clusters 20 "
        "--leave-out 5 --out faces.faircal",
        "Measure a vendor's scores by group": "faircal audit scores.csv --attribute ethnicity "
        "--out audit/",
        "Compare a method of your own with the others": "faircal --plugin mine.py benchmark faces/ "
        "--methods baseline,faircal,mine --out results/",
    },
    exits={1: "Refused or alarmed, where a command says so."},
    see=("how-to/real-data", "explanation/pitfalls", "reference/formats", "reference/glossary"),
)
@click.version_option(
    __version__, "-V", "--version", prog_name="faircal", cls=Option, part=Part.GENERAL
)
@Part.GENERAL.option(
    "--verbose",
    is_flag=True,
    help="Show Python's trace of an error before its line; anywhere among the words.",
)
@Part.GENERAL.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    show_default="none",
    help="Python file to import first, with methods of your own; before the command. May be "
    "repeated.",
)
def cli(verbose: bool, plugins: tuple[str, ...]) -> None:
    """Fair, calibrated probabilities for face verification, without sensitive attributes.

    A dataset folder (images, pairs, embeddings) or a table of scores goes in. A model file, scored
    pairs, a threshold that holds, or a report comes out. Results go to standard output, notes and
    progress to standard error.

    'faircal COMMAND --help' says what a command reads, does and writes, with examples.
    """
    for path in plugins:
        _import_file(path)


def _import_file(path: str) -> None:
    """Import a file by its path; what goes wrong in it is the user's, and said so."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ParameterError(f"--plugin {path}: expected a Python file; check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except FairCalError:
        raise
    except Exception as error:
        raise ParameterError(
            f"--plugin {path}: cannot be imported ({type(error).__name__}: {error}); mend it"
        ) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit 0 done, 2 bad input or wrong usage, 1 anything else."""
    if arguments is None:
        # The process is the command: what it imports is many objects, none of them garbage.
        gc.set_threshold(100_000)
        atexit.register(gc.freeze)
        arguments = sys.argv[1:]
    words = list(arguments)
    verbose = "--verbose" in words
    words = [word for word in words if word != "--verbose"]
    try:
        code: Any = cli.main(words, prog_name="faircal", standalone_mode=False)
    except click.UsageError as error:
        path = "faircal" if error.ctx is None else error.ctx.command_path
        line = f"{error.format_message().rstrip('.')}; see '{path} --help'"
        code = _fail(line, 2, verbose)
    except FairCalError as error:
        code = _fail(str(error), 2, verbose)
    except (click.Abort, KeyboardInterrupt) as error:
        hint = str(error) or str(error.__context__ or "") or "what is written stays"
        code = _fail(f"interrupted; {hint}", 1, False)
    except BrokenPipeError:
        code = 1
    except Exception as error:  # the last resort of a command line
        text = f"{type(error).__name__}: {error}"
        line = f"unexpected error ({text}); run again with --verbose and report it"
        code = _fail(line, 1, verbose)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(text: str, code: int, verbose: bool) -> int:
    if verbose:
        traceback.print_exc()
    line = " ".join(text.split())
    click.echo(f"faircal: {line}", err=True)
    return code


if __name__ == "__main__":
    main()
