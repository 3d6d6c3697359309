"""Commands of faircal, each as a process of its own that need not import everything anew.

A process that has imported what commands use, and has done nothing else, waits for orders: a line
of JSON each, with the words, the folder, the environment and the files that output goes to. For
each it forks. The child is the command; its exit code is the answer.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import keyword
import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from types import SimpleNamespace

#: What commands import when they run, beside faircal; what is not installed is left out.
LIBRARIES = ("numba", "pyarrow.csv", "pyarrow.parquet", "sklearn", "jinja2", "rich", "torch")
FIGURES = ("matplotlib.figure", "matplotlib.backends.backend_agg")


class Commands:
    """The process that waits, from the side of the tests."""

    def __init__(self, folder: Path):
        self._files = {name: folder / name for name in ("out", "err")}
        # Two processes of tests at a time leave each one core.
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | single,
        )

    def run(self, *words, code=0, cwd=None, figures=True, environment=None):
        """Run a command; fail unless it ends with `code`. Return what it said.

        Without `figures` it runs as where Matplotlib is not installed, which saves seconds.
        """
        for path in self._files.values():
            path.write_bytes(b"")
        order = {
            "words": [str(word) for word in words],
            "folder": str(cwd or Path.cwd()),
            "environment": os.environ | (environment or {}),
            "figures": figures,
            **{name: str(path) for name, path in self._files.items()},
        }
        print(json.dumps(order), file=self._process.stdin, flush=True)
        ended = int(self._process.stdout.readline())
        out, err = (path.read_text("utf-8") for path in self._files.values())
        assert ended == code, (words, err)
        return SimpleNamespace(returncode=ended, stdout=out, stderr=err)

    def stop(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def import_everything():
    """Import what commands use."""
    from faircal.cli.main import COMMANDS

    for name in COMMANDS:
        importlib.import_module(f"faircal.cli.{name}{'_' * keyword.iskeyword(name)}")
    for name in ("faircal.evaluation.benchmark", "faircal.report", *LIBRARIES, *FIGURES):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()


def wait_for_orders():
    from faircal.cli.main import main

    import_everything()
    answers = os.fdopen(os.dup(1), "w")
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        child = os.fork()
        if not child:
            answers.close()
            become(order, *(os.open(order[name], os.O_RDWR) for name in ("out", "err")))
            end_with(main)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def end_with(main):
    """End this process as a command ends, but leave it to the system to take its memory back.

    An interpreter that ends visits every object, and each page that it visits was shared: that
    takes longer than most commands.
    """
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def become(order, out, err):
    """Make this process one that was started with the order's words, folder and environment."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for number, file in enumerate((os.open(os.devnull, os.O_RDWR), out, err)):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False)
        for number, mode in enumerate("rww")
    )
    sys.argv = ["faircal", *order["words"]]
    if not order.get("figures", True):
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            del sys.modules[name]
        sys.modules["matplotlib"] = None


if __name__ == "__main__":
    wait_for_orders()
