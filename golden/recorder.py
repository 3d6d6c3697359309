"""Running one case, and what a case is given to do so.

A case uses the stable surface alone: ``python -m faircal`` with output for machines, and the names
of ``../shared/interfaces.md``.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from golden import values
from golden.values import Values


@dataclass
class Recorder:
    """Where a case works, and the values it has recorded."""

    work: Path
    values: Values = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def faircal(self, key: str, command: str, exits: Sequence[int] = (0,)) -> None:
        """Run a command with ``--json``, and record its exit code and what it prints.

        Words that begin with @ are names in the folder where the case works.
        """
        words = [str(self.work / w[1:]) if w[0] == "@" else w for w in shlex.split(command)]
        code, output, errors = _run([*words, "--json"])
        self.values[f"{key}/exit"] = values.flatten("", code)[""]
        if code not in exits:
            self.fail(key, f"exit {code}: {_first_line(errors)}")
        elif output.strip():
            self.values |= values.flatten(key, json.loads(output))

    def file(self, key: str, name: str) -> None:
        """Record a table: one file, or a folder of Parquet files."""
        path = self.work / name
        if path.is_dir():
            self.values |= values.columns(key, pq.read_table(path))
        else:
            self.values |= values.table_file(key, path)

    def folder(self, key: str, name: str) -> None:
        """Record what a folder of results holds."""
        self.values |= values.folder(key, self.work / name)

    def numbers(self, key: str, thing: Any) -> None:
        """Record numbers, or any JSON-like data."""
        self.values |= values.flatten(key, thing)

    def fail(self, key: str, why: str) -> None:
        """Record a failure: a value too, so that one that comes or goes is found."""
        self.values[f"{key}/failure"] = why
        self.failures.append(f"{key}: {why}")


def _run(words: Sequence[str]) -> tuple[int, str, str]:
    """``python -m faircal WORDS`` in this process: imports are paid for once a case."""
    output, errors, argv = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["faircal", *words]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            runpy.run_module("faircal", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except Exception as error:  # a failure is a value
        code = 1
        errors.write(f"{type(error).__name__}: {error}")
    finally:
        sys.argv = argv
    return code, output.getvalue(), errors.getvalue()


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), lines[0] if lines else "")


def main(name: str, out: str) -> int:
    """Run one case and keep its values in the folder `out`."""
    from golden.cases import CASES

    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="golden-") as work:
        recorder = Recorder(Path(work))
        case: Callable[[Recorder], None] = CASES[name]
        try:
            case(recorder)
        except Exception as error:
            recorder.fail(name, f"{type(error).__name__}: {error}".splitlines()[0])
            traceback.print_exc()
    values.write(Path(out) / f"{name}.parquet", recorder.values)
    count = sum(1 if isinstance(v, str) else len(v) for v in recorder.values.values())
    print(f"{count:>9,} numbers {time.process_time() - began:6.1f} s")
    for failure in recorder.failures:
        print(f"    FAILED {failure}")
    return int(bool(recorder.failures))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
