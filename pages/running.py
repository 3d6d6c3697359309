"""Running a page: one shell and one interpreter, in one folder, from first block to last."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pages.parsing import Block, Page, PageError

#: The interpreter of a page: runs the files that it is told of, in one namespace.
_INTERPRETER = """
import os, sys, traceback
names, told = {"__name__": "__main__"}, os.fdopen(%d, "w")
sys.path.insert(0, "")
for line in sys.stdin:
    block, out, err = line.rstrip("\\n").split("\\t")
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        stream.flush()
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream.fileno())
    try:
        with open(block, encoding="utf-8") as file:
            code = file.read()
        exec(compile(code, block, "exec"), names)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    print("done", file=told, flush=True)
"""


@dataclass(frozen=True)
class Printed:
    """What a block printed."""

    block: Block
    text: str


class Session:
    """A process that runs blocks one after the other, and says after each that it is done."""

    def __init__(self, words: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._told, telling = os.pipe()
        self._process = subprocess.Popen(  # noqa: S603
            [word.replace("%d", str(telling)) for word in words],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            text=True,
            pass_fds=[telling],
            start_new_session=True,
        )
        self._telling = telling
        os.close(telling)

    def line(self, block: str, out: str, err: str) -> str:
        """What is written to the process so that it runs a block."""
        return f"{block}\t{out}\t{err}\n"

    def run(self, number: int, text: str, scratch: Path, timeout: float) -> str:
        """Run a block; return what it printed."""
        names = [str(scratch / f"{number}.{ending}") for ending in ("block", "out", "err")]
        block, out, err = names
        Path(block).write_text(text, encoding="utf-8")
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(self.line(block, out, err))
            self._process.stdin.flush()
            ready, _, _ = select.select([self._told], [], [], timeout)
            done = bool(ready) and os.read(self._told, 100) != b""
        except BrokenPipeError:
            ready, done = [self._told], False
        if not done:
            why = "failed" if ready else f"took longer than {timeout:.0f} s"
            said = Path(err).read_text("utf-8", "replace") if Path(err).exists() else ""
            raise PageError(f"{why}:\n{text}\n{said[-3000:]}")
        return Path(out).read_text("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # and what a block left running
        self._process.wait()
        assert self._process.stdin is not None  # noqa: S101
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        os.close(self._told)


class Shell(Session):
    """A bash that stops at the first error."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(["bash", "--norc", "-euo", "pipefail"], folder, environment)

    def line(self, block: str, out: str, err: str) -> str:
        """Read the block as if it stood here; the pipe that says 'done' is not for its children."""
        block, out, err = map(shlex.quote, (block, out, err))
        pipe = self._telling
        return f"source {block} >{out} 2>{err} </dev/null {pipe}>&-; echo done >&{pipe}\n"


class Interpreter(Session):
    """A Python that keeps its names."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__([sys.executable, "-u", "-c", _INTERPRETER], folder, environment)


SESSIONS = {"sh": Shell, "python": Interpreter}


def surroundings(folder: Path, scratch: Path, tools: Path | None) -> dict[str, str]:
    """The environment of a page: that of a reader whose home is the folder.

    Spark speaks to this machine only, and leaves nothing behind; Java compiles quickly rather than
    well.
    """
    found = [tools, Path(sys.executable).parent, os.environ["PATH"]]
    kept = Path(tempfile.gettempdir()) / "faircal-pages-matplotlib"  # its list of fonts
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
        "PATH": os.pathsep.join(str(each) for each in found if each is not None),
        "HOME": str(folder),
        "COLUMNS": "100",
        "OMP_NUM_THREADS": "1",  # results do not depend on it; pages run side by side
        "OPENBLAS_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": str(kept),
        "PYTHONWARNINGS": "default",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def run(
    page: Page, folder: Path, *, timeout: float = 300, tools: Path | None = None
) -> list[Printed]:
    """Run all blocks of a page in a folder; return what each printed.

    Programs in `tools` are found before those that are installed.
    """
    end = time.monotonic() + timeout
    printed: list[Printed] = []
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="faircal-page-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(made))
        environment = surroundings(folder, scratch, tools)
        sessions: dict[str, Session] = {}
        for number, block in enumerate(page.blocks):
            if block.title is not None:
                place = folder / block.title
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(block.text, encoding="utf-8")
            if not block.is_run:
                continue
            if block.language not in sessions:
                session = SESSIONS[block.language](folder, environment)
                sessions[block.language] = stack.enter_context(session)
            try:
                left = max(end - time.monotonic(), 1)
                text = sessions[block.language].run(number, block.text, scratch, left)
            except PageError as error:
                raise PageError(f"{page.path}:{block.first}: {error}") from None
            printed.append(Printed(block, text))
    return printed
