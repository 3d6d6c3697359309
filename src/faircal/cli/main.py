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

from faircal._version import __version__
from faircal.errors import FairCalError, ParameterError
from faircal.registry import did_you_mean

#: In the order in which people meet them. Each is a module here with a click command `command`;
#: a name that Python keeps for itself has a line under it.
COMMANDS = {
    "demo": "Run the main job on built-in simulated data.",
    "simulate": "Write a simulated dataset folder.",
    "import": "Make a dataset folder from RFW, BFW, IJB-C, LFW or a folder of photos.",
    "embed": "Detect, align and embed the faces in pictures.",
    "pairs": "Build pairs of images from identities.",
    "check": "Describe a dataset and find what is wrong with it.",
    "choose": "Choose FairCal's clusters and calibrator on people held out.",
    "fit": "Fit a method on labelled pairs and write a model file.",
    "score": "Score pairs with a model.",
    "audit": "Measure scores by group.",
    "regions": "Find where in embedding space it is worst, without attributes.",
    "threshold": "Find a threshold with a guaranteed false-positive rate.",
    "plan": "Say how many people and pairs a wanted interval needs.",
    "benchmark": "Compare methods by leave-one-fold-out.",
    "compare": "Tell what differs between two runs, and stop an update that is worse.",
    "classify": "Calibrate and measure the probabilities of any classifier.",
    "reproduce": "Repeat the paper's experiment, with every table and figure.",
    "card": "Print the model card of a model file.",
    "export": "Write a model as one ONNX graph.",
    "serve": "Serve a model over HTTP: verify, enrol, identify.",
    "keys": "Make and remove API keys of the service.",
    "monitor": "Tell whether pairs in use still are what a model was calibrated for.",
    "report": "Write the report of a benchmark or an audit again.",
    "methods": "List the methods and their properties.",
}


class Commands(click.Group):
    """Commands are imported when they are called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in our order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return a command."""
        if name not in COMMANDS:
            return None
        module = f"{name}_" if keyword.iskeyword(name) else name
        command: click.Command = importlib.import_module(f"faircal.cli.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in COMMANDS:
            raise click.UsageError(
                f"no command {args[0]!r}; {did_you_mean(args[0], COMMANDS)}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: faircal demo. Every command has --help with an example.",
)
@click.version_option(__version__, "-V", "--version", prog_name="faircal")
@click.option("--verbose", is_flag=True, help="Show the trace of an error.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="Python file to import first, with methods of your own.",
)
def cli(verbose: bool, plugins: tuple[str, ...]) -> None:
    """Fair, calibrated probabilities for face verification, without sensitive attributes."""
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
    sys.exit(_run(words, verbose))


def _run(words: list[str], verbose: bool) -> int:
    try:
        code: Any = cli.main(words, prog_name="faircal", standalone_mode=False)
    except click.UsageError as error:
        return _fail(f"{error.format_message().rstrip('.')}; {_help(error)}", 2, verbose)
    except FairCalError as error:
        return _fail(str(error), 2, verbose)
    except (click.Abort, KeyboardInterrupt) as error:
        hint = str(error) or str(error.__context__ or "") or "what is written stays"
        return _fail(f"interrupted; {hint}", 1, False)
    except BrokenPipeError:
        return 1
    except Exception as error:  # the last resort of a command line
        text = f"{type(error).__name__}: {error}"
        return _fail(
            f"unexpected error ({text}); run again with --verbose and report it", 1, verbose
        )
    return code if isinstance(code, int) else 0


def _help(error: click.UsageError) -> str:
    path = "faircal" if error.ctx is None else error.ctx.command_path
    return f"see '{path} --help'"


def _fail(text: str, code: int, verbose: bool) -> int:
    if verbose:
        traceback.print_exc()
    line = " ".join(text.split())
    click.echo(f"faircal: {line}", err=True)
    return code


if __name__ == "__main__":
    main()
