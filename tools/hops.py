"""How many functions a command enters: `make hops` (WITH="fit audit" lists those of two).

More than `LIMITS`, all later features together have a tenth more, and it fails.

Each command runs twice in this process, on the preset ``small``; what its second run enters of
``src/faircal`` is counted, so that imports and first-use caches do not. Lambdas, comprehensions,
generator expressions and what ``dataclass`` writes are not functions here.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "faircal") + "/"
#: Functions and files.
LIMITS = {"fit": (230, 40), "score": (200, 40), "audit": (450, 65), "benchmark": (650, 80)}
COMMANDS = {
    "simulate": "simulate small {folder}/small",
    "fit": "fit {folder}/small --method faircal --out {folder}/model.faircal",
    "score": "score {folder}/model.faircal {folder}/small --out {folder}/scored.parquet",
    "audit": "audit {folder}/small --attribute ethnicity --out {folder}/audit{run}",
    "benchmark": "benchmark {folder}/small --methods baseline,faircal,oracle,gst,fsn --jobs 1"
    " --out {folder}/benchmark{run}",
}


class Entered:
    """The functions of the package that are entered while it is the profiler."""

    def __init__(self) -> None:
        self.codes: dict[CodeType, None] = {}  # in the order of first calls

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a function that is called, or a generator that goes on."""
        if event == "call":
            self.codes[frame.f_code] = None

    def functions(self) -> list[tuple[str, str]]:
        """Return file and name of each, as they were first entered."""
        return [
            (code.co_filename.removeprefix(SOURCE), code.co_qualname)
            for code in self.codes
            if code.co_filename.startswith(SOURCE)
            and not code.co_name.startswith("<")
            and code.co_flags & inspect.CO_OPTIMIZED  # else the body of a class
        ]


def run(words: str) -> None:
    """Run a command of faircal here, silently."""
    from faircal.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words.split())
        except SystemExit as exit_:
            if exit_.code:
                raise RuntimeError(f"faircal {words}: {said.getvalue()}") from exit_


def count(name: str, folder: str) -> list[tuple[str, str]]:
    """Run a command twice and return the functions that its second run enters."""
    run(COMMANDS[name].format(folder=folder, run=1))
    entered = Entered()
    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        run(COMMANDS[name].format(folder=folder, run=2))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return entered.functions()


def within_limits(name: str, entered: list[tuple[str, str]]) -> bool:
    """Return whether a command enters no more functions and files than it may."""
    functions, files = LIMITS[name]
    return len(entered) <= 1.1 * functions and len({path for path, _ in entered}) <= 1.1 * files


def report(asked: list[str]) -> int:
    """Print functions and files of every command; of those asked for, every function too."""
    beyond = 0
    with tempfile.TemporaryDirectory() as folder:
        run(COMMANDS["simulate"].format(folder=folder))
        print(f"{'command':12}{'functions':>10}{'limit':>7}{'files':>7}{'limit':>7}")
        for name, (functions, files) in LIMITS.items():
            entered = count(name, folder)
            beyond += not within_limits(name, entered)
            paths = Counter(path for path, _ in entered)
            print(f"{name:12}{len(entered):10}{functions:7}{len(paths):7}{files:7}", flush=True)
            if name in asked:
                print(*(f"  {path:45} {name}" for path, name in sorted(entered)), sep="\n")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(report(sys.argv[1:]))
